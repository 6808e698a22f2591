//! How goroutines, objects, lines and waits are called in a sentence.

use crate::execution::{
    Action, Execution, GoroutineId, ObjectId, ObjectKind, SiteId, WaitReason, What,
};
use crate::replay::Replay;
use crate::symbols::package;
use crate::tree::Place;
use crate::waits::{Need, Wait, Waiting, Way};
use std::collections::BTreeSet;
use std::path::Path;

/// Words for one execution.
pub(crate) struct Words<'r, 'a> {
    pub replay: &'r Replay<'a>,
}

impl Words<'_, '_> {
    fn execution(&self) -> &Execution {
        self.replay.execution
    }

    /// `goroutine 7`; the first one is `main`, the test's its name.
    pub fn who(&self, id: GoroutineId) -> String {
        let execution = self.execution();
        match execution.goroutines.get(id.0 as usize) {
            _ if execution.test == Some(id) => "the test".to_owned(),
            Some(it) if id.0 == 0 && it.parent.is_none() && execution.main() == id => {
                "main".to_owned()
            }
            Some(it) => format!("goroutine {}", it.number),
            None => "a goroutine".to_owned(),
        }
    }

    /// `main.go:12`
    pub fn at(&self, site: Option<SiteId>) -> String {
        site.and_then(|it| self.execution().site(it)).map_or_else(
            || "a line that was not seen".to_owned(),
            |it| short(&Place::of(it)),
        )
    }

    /// `the mutex first used at main.go:8`
    pub fn object(&self, object: ObjectId) -> String {
        self.named(object, None)
    }

    /// The same; as a `name`, where it is the inside of something that has one.
    fn named(&self, object: ObjectId, name: Option<&str>) -> String {
        let Some(it) = self.execution().objects.get(object.0 as usize) else {
            return "an object".to_owned();
        };
        let (kind, made) = match it.kind {
            ObjectKind::Channel { .. } => ("channel", self.replay.made(object).is_some()),
            ObjectKind::Timer => ("timer's channel", false),
            ObjectKind::Mutex => ("mutex", false),
            ObjectKind::RwMutex => ("rwmutex", false),
            ObjectKind::WaitGroup => ("wait group", false),
            ObjectKind::Cond => ("condition", false),
            ObjectKind::Once => ("once", false),
        };
        let how = if made { "made at" } else { "first used at" };
        // Where a line makes several, they are told apart by their number.
        let alike = || {
            let objects = self.execution().objects.iter().enumerate();
            objects.filter(|(_, other)| other.first == it.first && same_kind(other.kind, it.kind))
        };
        let number = match alike().nth(1) {
            Some(_) if name.is_none() => {
                let before = alike().take_while(|(at, _)| *at < object.0 as usize);
                format!(" (number {})", before.count() + 1)
            }
            _ => String::new(),
        };
        let kind = name.unwrap_or(kind);
        match it.first {
            Some(first) => format!("the {kind} {how} {}{number}", self.at(Some(first))),
            None => format!("a {kind}"),
        }
    }

    /// `to send to the channel made at main.go:5`
    pub fn want(&self, action: Action, object: Option<ObjectId>) -> String {
        let it = match (object, action) {
            (Some(object), _) => self.object(object),
            (None, Action::Send | Action::Receive) => "a nil channel".to_owned(),
            (None, _) => "something that was not seen".to_owned(),
        };
        match action {
            Action::Send => format!("to send to {it}"),
            Action::Receive => format!("to receive from {it}"),
            Action::Lock => format!("for {it}"),
            Action::RLock => format!("to read-lock {it}"),
            Action::Wait => format!("for {it} to come to 0"),
            Action::CondWait => format!("for a signal of {it}"),
            _ => format!("for {it}"),
        }
    }

    /// `goroutine 7 waits at main.go:12 for the mutex ..., held by goroutine 9 since main.go:20, which waits ...`
    pub fn chain(&self, waiting: &Waiting, from: GoroutineId) -> String {
        let mut told = BTreeSet::new();
        let mut text = self.who(from);
        let mut at = from;
        loop {
            told.insert(at);
            let Some(wait) = waiting.of(at) else {
                return text;
            };
            let on = self.on(wait);
            let next = on
                .iter()
                .copied()
                .find(|it| waiting.is_stuck(*it) && !told.contains(it));
            let aside = match next {
                None => self
                    .kept_off(waiting, at, &told)
                    .or_else(|| self.may(waiting, wait, &told)),
                Some(_) => None,
            };
            text.push_str(&format!(" {}", self.wait(waiting, wait, aside.is_some())));
            if let Some(aside) = aside {
                text.push_str(&format!("; {}, which may know it,", self.who(aside)));
                at = aside;
                continue;
            }
            let Some(next) = next else {
                let back = on.iter().any(|it| told.contains(it) && *it != at);
                if back {
                    text.push_str(": a circle");
                }
                return text;
            };
            // The holder has just been named.
            let named = wait.ways.len() == 1
                && matches!(&wait.ways[0].need, Need::Release(holds) if holds.len() == 1);
            if named {
                text.push_str(", which");
            } else {
                text.push_str(&format!("; {}", self.who(next)));
            }
            at = next;
        }
    }

    /// Those whose doing it waits for; of a pipe, who is at its other end.
    fn on(&self, wait: &Wait) -> BTreeSet<GoroutineId> {
        match self.pipe(wait) {
            Some(pipe) => pipe.way.on(),
            None => wait.on(),
        }
    }

    /// Who may know what `id` waits for, and is kept off by a lock that `id` holds meanwhile; none of those told.
    pub fn kept_off(
        &self,
        waiting: &Waiting,
        id: GoroutineId,
        told: &BTreeSet<GoroutineId>,
    ) -> Option<GoroutineId> {
        let able = able(waiting.of(id)?);
        let mut stuck = waiting.stuck();
        stuck.find_map(|it| {
            let holds = |way: &Way| match &way.need {
                Need::Release(holds) => holds.iter().any(|it| it.goroutine == id),
                _ => false,
            };
            let may = able.contains(&it.goroutine) && !told.contains(&it.goroutine);
            (may && it.ways.iter().any(holds)).then_some(it.goroutine)
        })
    }

    /// Where nobody did what would be needed: who may yet know of it, and waits for something else.
    fn may(
        &self,
        waiting: &Waiting,
        wait: &Wait,
        told: &BTreeSet<GoroutineId>,
    ) -> Option<GoroutineId> {
        let main = self.execution().main();
        let able = able(wait);
        let object = wait.ways.first().and_then(|it| it.object);
        let is_peer = |it: &Wait| it.ways.iter().any(|it| it.object == object);
        let mut others = waiting.stuck().filter(|it| {
            let id = it.goroutine;
            let waits = matches!(
                it.reason,
                WaitReason::Send
                    | WaitReason::Receive
                    | WaitReason::Select
                    | WaitReason::Mutex
                    | WaitReason::RwMutexRead
                    | WaitReason::RwMutexWrite
                    | WaitReason::Cond
            );
            waits && id != main && able.contains(&id) && !told.contains(&id) && !is_peer(it)
        });
        let (one, another) = (others.next(), others.next());
        one.filter(|_| another.is_none() && self.on(wait).is_empty())
            .map(|it| it.goroutine)
    }

    /// The pipe at which a goroutine waits, within the standard package that made it.
    fn pipe<'w>(&self, wait: &'w Wait) -> Option<Pipe<'w>> {
        if !self.is_on_behalf(wait) {
            return None;
        }
        let execution = self.execution();
        let goroutine = execution.goroutines.get(wait.goroutine.0 as usize)?;
        let mut names = goroutine.stack.iter().filter_map(|it| execution.site(*it));
        let name = names.find(|it| {
            it.function.starts_with("io.(*pipe).") || it.function.starts_with("net.(*pipe).")
        })?;
        let writes = name.function.ends_with(".write");
        let action = if writes {
            Action::Send
        } else {
            Action::Receive
        };
        let ways = wait.ways.iter().filter(|it| it.action == action);
        // What is written goes through the channel that was made first.
        let way = ways.min_by_key(|it| it.object)?;
        Some(Pipe { writes, way })
    }

    /// What a goroutine waits for, each with those whose doing it waits for.
    pub fn wants(&self, wait: &Wait) -> Vec<(String, BTreeSet<GoroutineId>)> {
        if let Some(pipe) = self.pipe(wait) {
            let object = pipe.way.object.map(|it| self.named(it, Some("pipe")));
            let object = object.unwrap_or_else(|| "a pipe".to_owned());
            let does = if pipe.writes { "write to" } else { "read from" };
            return vec![(format!("to {does} {object}"), pipe.way.on())];
        }
        if wait.ways.len() > 1
            && self.is_on_behalf(wait)
            && let Some(library) = self.library(wait.goroutine)
        {
            return vec![(
                format!("for something within {}", library.package),
                wait.on(),
            )];
        }
        let want = |way: &Way| match way.need {
            Need::Subtests(_) => "for its subtests".to_owned(),
            Need::Parent(test) => self.parent(test),
            _ => self.want(way.action, way.object),
        };
        wait.ways.iter().map(|it| (want(it), it.on())).collect()
    }

    /// `waits at main.go:12 for the mutex first used at main.go:8, held by goroutine 5 since main.go:20`
    ///
    /// `aside`: somebody is told next who may do what is needed.
    pub fn wait(&self, waiting: &Waiting, wait: &Wait, aside: bool) -> String {
        if self.is_over(wait) {
            return "has come to its end, and waits for its subtests".to_owned();
        }
        let mut text = format!("waits at {}", self.at(wait.site));
        if let Some(pipe) = self.pipe(wait) {
            let object = pipe.way.object.map(|it| self.named(it, Some("pipe")));
            let object = object.unwrap_or_else(|| "a pipe".to_owned());
            let (does, verb, verbs) = match pipe.writes {
                true => ("write to", "read from it", "reads from it"),
                false => (
                    "read from",
                    "write to it or close it",
                    "writes to it or closes it",
                ),
            };
            let partners: Vec<String> = pipe.way.partners.iter().map(|it| self.who(*it)).collect();
            let other = match &partners[..] {
                [] => format!("nobody {verbs}"),
                all => format!("{} could {verb}", all.join(" or ")),
            };
            return format!("{text} to {does} {object}, and {other}");
        }
        match &wait.ways[..] {
            [] if wait.reason == WaitReason::Io => {
                let of_network = self.library(wait.goroutine).is_some_and(|it| it.is_network);
                text.push_str(if of_network {
                    " for the network"
                } else {
                    " for the outside"
                });
            }
            [] if wait.reason == WaitReason::Forever => text.push_str(" for ever"),
            [] => text.push_str(&format!(" ({})", reason(wait.reason))),
            [way] if way.need == Need::Nothing && way.object.is_none() => match way.action {
                Action::Select => text.push_str(" in a select that has no case"),
                action => {
                    text.push_str(&format!(" {}, which is for ever", self.want(action, None)))
                }
            },
            [way] if matches!(way.need, Need::Subtests(_)) => text.push_str(" for its subtests"),
            [
                Way {
                    need: Need::Parent(test),
                    ..
                },
            ] => {
                text.push_str(&format!(" {}", self.parent(*test)));
            }
            [way] => text.push_str(&format!(
                " {}{}",
                self.want(way.action, way.object),
                self.why(waiting, wait.goroutine, way, aside)
            )),
            _ if self.is_on_behalf(wait)
                && let Some(library) = self.library(wait.goroutine) =>
            {
                text.push_str(&format!(
                    " within {}, in a select none of whose cases can come any more",
                    library.package
                ));
            }
            ways => {
                let all: Vec<String> = ways
                    .iter()
                    .map(|way| self.want(way.action, way.object))
                    .collect();
                text.push_str(&format!(
                    " in a select, {}, none of which can come any more",
                    all.join(" or ")
                ));
            }
        }
        text
    }

    /// What `t.Parallel` waits for.
    fn parent(&self, test: GoroutineId) -> String {
        format!(
            "in t.Parallel until the function of {} has returned",
            self.who(test)
        )
    }

    /// Whether a test has come to the end of its function, and waits for subtests that run in parallel.
    pub fn is_over(&self, wait: &Wait) -> bool {
        wait.site.is_none()
            && matches!(&wait.ways[..], [way] if matches!(way.need, Need::Subtests(_)))
    }

    /// Whether a standard package waits, on somebody's behalf.
    pub fn is_on_behalf(&self, wait: &Wait) -> bool {
        let event = wait.since.and_then(|it| self.execution().events.get(it));
        matches!(event.map(|it| &it.what), Some(What::Request { on_behalf, .. }) if *on_behalf)
    }

    /// Which standard package a goroutine stands in, where that is known.
    fn library(&self, of: GoroutineId) -> Option<Library> {
        let execution = self.execution();
        let goroutine = execution.goroutines.get(of.0 as usize)?;
        let inner = goroutine.stack.iter();
        let inner = inner.take_while(|it| Some(**it) != goroutine.own);
        let names: Vec<&str> = inner
            .filter_map(|it| Some(&*execution.site(*it)?.function))
            .collect();
        let outermost = names.last()?;
        Some(Library {
            package: package(outermost)?,
            is_network: names.iter().any(|it| it.starts_with("net.")),
        })
    }

    /// `, held by goroutine 5 since main.go:20`
    fn why(&self, waiting: &Waiting, of: GoroutineId, way: &Way, aside: bool) -> String {
        let Some(object) = way.object else {
            return String::new();
        };
        match &way.need {
            Need::Release(holds) => {
                let all: Vec<String> = holds
                    .iter()
                    .map(|it| {
                        let who = if it.goroutine == of {
                            "itself".to_owned()
                        } else {
                            self.who(it.goroutine)
                        };
                        let ended = self.replay.ended(it.goroutine).is_some();
                        let gone = if ended { ", which has ended" } else { "" };
                        let read = match way.action {
                            Action::Once => "run",
                            _ if it.reading => "read-locked",
                            _ => "held",
                        };
                        format!("{read} by {who} since {}{gone}", self.at(it.site))
                    })
                    .collect();
                format!(", {}", all.join(" and "))
            }
            Need::Behind(writers) => {
                let all: Vec<String> = writers.iter().map(|it| self.who(*it)).collect();
                format!(", behind a writer that waits for it, {}", all.join(", "))
            }
            Need::Nothing | Need::Outside | Need::Subtests(_) | Need::Parent(_) => String::new(),
            Need::Any(_) => self.nobody(waiting, (of, way), object, aside),
        }
    }

    /// Why nobody does what would be needed.
    fn nobody(
        &self,
        waiting: &Waiting,
        (of, way): (GoroutineId, &Way),
        object: ObjectId,
        aside: bool,
    ) -> String {
        let (verb, verbs, matching): (&str, &str, &[Action]) = match way.action {
            Action::Send => ("receive from it", "receives from it", &[Action::Receive]),
            Action::Receive => (
                "send to it or close it",
                "sends to it or closes it",
                &[Action::Send, Action::Close],
            ),
            Action::CondWait => (
                "signal it",
                "signals it",
                &[Action::Signal, Action::Broadcast],
            ),
            Action::Wait => {
                let count = self.replay.count(object);
                if !way.partners.is_empty() {
                    return format!(", which counts {count}");
                }
                let ended = self.without_done(object);
                let all: Vec<String> = ended.iter().map(|it| self.who(*it)).collect();
                let gone = match &all[..] {
                    [] => String::new(),
                    [one] => format!("{one} has ended without"),
                    [first @ .., last] if all.len() <= 3 => {
                        format!("{} and {last} have ended without", first.join(", "))
                    }
                    _ => format!("{} have ended without", self::count(all.len(), "goroutine")),
                };
                let gone = match self.counted_below(&ended) {
                    _ if all.is_empty() => gone,
                    Some(it) => format!(" ({gone}, and counted down {}: a copy?)", self.object(it)),
                    None => format!(" ({gone})"),
                };
                return format!(", which counts {count}, and nobody is left to call Done{gone}");
            }
            _ => return String::new(),
        };
        let kind = self.execution().objects.get(object.0 as usize);
        if kind.is_some_and(|it| it.kind == ObjectKind::Timer) {
            return ", and the timer does not run (it was stopped, which closes no channel, or has fired)"
                .to_owned();
        }
        let full = self.content(way.action, object);
        if !way.partners.is_empty() {
            let all: Vec<String> = way.partners.iter().map(|it| self.who(*it)).collect();
            return format!("{full}, and {} could {verb}", all.join(" or "));
        }
        let is_peer = |it: &&Wait| {
            let mut ways = it.ways.iter();
            it.goroutine != of
                && ways.any(|it| it.action == way.action && it.object == Some(object))
        };
        let peers: Vec<String> = waiting
            .stuck()
            .filter(is_peer)
            .map(|it| self.who(it.goroutine))
            .collect();
        let too = match &peers[..] {
            [] => String::new(),
            [one] => format!(", for which {one} waits, too"),
            [all @ .., last] if peers.len() <= 3 => {
                format!(", for which {} and {last} wait, too", all.join(", "))
            }
            all => format!(", for which {} others wait, too", all.len()),
        };
        // Who did, lives and is no partner is who waits here.
        let (own, before): (Vec<_>, Vec<_>) = self
            .replay
            .uses(object)
            .iter()
            .filter(|((_, did), it)| matching.contains(did) && it.completed > 0)
            .partition(|((who, _), _)| *who == of);
        let other = if own.is_empty() && peers.is_empty() {
            "nobody"
        } else {
            "nobody else"
        };
        let before: Vec<String> = before
            .iter()
            .map(|((who, _), it)| format!("{} at {}", self.who(*who), self.at(it.site)))
            .collect();
        let is_left = match (aside, before.is_empty()) {
            (true, _) => verbs.to_owned(),
            (false, true) => format!("is there to {verb}"),
            (false, false) => format!("is left to {verb}"),
        };
        let gone = match &before[..] {
            [] => String::new(),
            [one] => format!(" ({one} did, and has ended)"),
            many => format!(" ({} did, and have ended)", many.join(", ")),
        };
        format!("{full}{too}, and {other} {is_left}{gone}")
    }

    /// Who should have counted a wait group down and ended: made where others were that did; or, where nobody did, by who
    /// counted it up, behind that.
    pub fn without_done(&self, group: ObjectId) -> Vec<GoroutineId> {
        let execution = self.execution();
        let uses = self.replay.uses(group);
        let did = |id: GoroutineId| uses.contains_key(&(id, Action::Done));
        let made = |id: GoroutineId| execution.goroutines.get(id.0 as usize)?.created_at;
        let done: BTreeSet<SiteId> = uses
            .keys()
            .filter(|(_, action)| *action == Action::Done)
            .filter_map(|(id, _)| made(*id))
            .collect();
        let nobody_did = !uses.keys().any(|(_, action)| *action == Action::Done);
        let ended = execution.with_ids().map(|it| it.0);
        ended
            .filter(|id| self.replay.ended(*id).is_some() && !did(*id))
            .filter(|id| {
                let parent = execution.goroutines[id.0 as usize].parent;
                let counts = parent.and_then(|it| uses.get(&(it, Action::Add)));
                let is_behind = counts
                    .zip(self.replay.created(*id))
                    .is_some_and(|(add, made)| add.first < made);
                is_behind && (nobody_did || made(*id).is_some_and(|it| done.contains(&it)))
            })
            .collect()
    }

    /// A wait group that one of these counted down and that nobody ever counted up so far: a copy of another one, as
    /// else it would have crashed.
    fn counted_below(&self, by: &[GoroutineId]) -> Option<ObjectId> {
        let objects = (0..self.execution().objects.len() as u32).map(ObjectId);
        let mut below = objects.filter(|it| self.replay.count(*it) < 0);
        below.find(|it| {
            let uses = self.replay.uses(*it);
            by.iter().any(|id| uses.contains_key(&(*id, Action::Done)))
        })
    }

    /// Of a channel that has room and no more of it: `, full of what goroutine 7 sent at main.go:9`
    fn content(&self, action: Action, channel: ObjectId) -> String {
        let object = self.execution().objects.get(channel.0 as usize);
        let Some(ObjectKind::Channel { capacity }) = object.map(|it| it.kind) else {
            return String::new();
        };
        if action != Action::Send || capacity == 0 {
            return String::new();
        }
        let inside = self.replay.content(channel);
        if inside.len() as u64 != capacity {
            return String::new();
        }
        let mut all: Vec<String> = Vec::new();
        for (who, at) in inside {
            let told = format!("{} sent at {}", self.who(who), self.at(at));
            if !all.contains(&told) {
                all.push(told);
            }
        }
        match &all[..] {
            [one] => format!(", full of what {one}"),
            [one, other] => format!(", full of what {one} and {other}"),
            _ => ", which is full".to_owned(),
        }
    }
}

/// A pipe of the standard library, and what is waited for there.
struct Pipe<'w> {
    writes: bool,
    way: &'w Way,
}

/// Who may know what a goroutine waits for.
fn able(wait: &Wait) -> BTreeSet<GoroutineId> {
    let known = |way: &Way| match &way.need {
        Need::Any(who) => who.clone(),
        _ => Vec::new(),
    };
    wait.ways.iter().flat_map(known).collect()
}

/// What a goroutine stands in, below what is the program's own.
struct Library {
    package: String,
    is_network: bool,
}

fn same_kind(one: ObjectKind, other: ObjectKind) -> bool {
    std::mem::discriminant(&one) == std::mem::discriminant(&other)
}

/// `main.go:12`
pub(crate) fn short(place: &Place) -> String {
    let name = Path::new(&place.file)
        .file_name()
        .and_then(|it| it.to_str());
    format!("{}:{}", name.unwrap_or(&place.file), place.line)
}

/// The runtime's reason in words.
pub(crate) fn reason(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Send => "to send",
        WaitReason::Receive => "to receive",
        WaitReason::Select => "in a select",
        WaitReason::Forever => "for ever",
        WaitReason::Mutex => "for a mutex",
        WaitReason::RwMutexRead => "to read-lock",
        WaitReason::RwMutexWrite => "to write-lock",
        WaitReason::WaitGroup => "for a wait group",
        WaitReason::Cond => "for a condition",
        WaitReason::Sleep => "sleeps",
        WaitReason::Io | WaitReason::Call => "for the outside",
        WaitReason::Runtime => "for the runtime",
    }
}

/// `1 goroutine`, `3 goroutines`
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use crate::execution::{Action, GoroutineId, ObjectKind, Site, SiteId, State, WaitReason};
    use crate::sample::{MAIN, Sample};
    use crate::verdict::judge;

    #[test]
    fn who_ended_without_done_is_named() {
        let mut it = Sample::new();
        let group = it.object(ObjectKind::WaitGroup, 2);
        it.does(MAIN, 2, Action::Add, group);
        it.does(MAIN, 2, Action::Add, group);
        let (first, second) = (it.go(MAIN, 3), it.go(MAIN, 3));
        // Not one of those that count.
        let other = it.go(MAIN, 4);
        it.ends(other, 20);
        it.does(first, 10, Action::Done, group);
        it.ends(first, 11);
        it.ends(second, 9);
        it.waits(MAIN, 5, Action::Wait, group);
        insta::assert_snapshot!(judge(&it.execution).sentence, @"every goroutine waits for ever: main waits at main.go:5 for the wait group first used at main.go:2 to come to 0, which counts 1, and nobody is left to call Done (goroutine 19 has ended without)");
    }

    #[test]
    fn a_timer_does_not_send_any_more() {
        let mut it = Sample::new();
        let timer = it.object(ObjectKind::Timer, 4);
        it.waits(MAIN, 5, Action::Receive, timer);
        it.execution.clock = false;
        insta::assert_snapshot!(judge(&it.execution).sentence, @"every goroutine waits for ever: main waits at main.go:5 to receive from the timer's channel first used at main.go:4, and the timer does not run (it was stopped, which closes no channel, or has fired)");
    }

    /// As package testing has it: a test waits within it, without a usage.
    fn waits_in_testing(it: &mut Sample, test: GoroutineId, function: &str, own: Option<SiteId>) {
        let inside = SiteId(it.execution.sites.len() as u32);
        it.execution.sites.push(Site {
            file: "/go/src/testing/testing.go".to_owned(),
            line: 1800,
            function: function.to_owned(),
        });
        let goroutine = &mut it.execution.goroutines[test.0 as usize];
        goroutine.entry = "testing.tRunner".to_owned();
        goroutine.state = State::Waiting(WaitReason::Receive);
        goroutine.stack = [inside].into_iter().chain(own).collect();
        goroutine.own = own;
    }

    #[test]
    fn a_parallel_subtest_waits_for_its_parent() {
        let mut it = Sample::new();
        let test = it.go(MAIN, 1);
        it.execution.test = Some(test);
        let group = it.object(ObjectKind::WaitGroup, 2);
        it.does(test, 2, Action::Add, group);
        let subtest = it.go(test, 3);
        let own = it.site(10);
        waits_in_testing(&mut it, subtest, "testing.(*T).Parallel", Some(own));
        it.waits(test, 5, Action::Wait, group);
        it.execution.goroutines[test.0 as usize].entry = "testing.tRunner".to_owned();
        insta::assert_snapshot!(judge(&it.execution).sentence, @"every goroutine waits for ever: the test waits at main.go:5 for the wait group first used at main.go:2 to come to 0, which counts 1; goroutine 19 waits at main.go:10 in t.Parallel until the function of the test has returned: a circle");
    }

    #[test]
    fn a_test_at_its_end_waits_for_its_subtests() {
        let mut it = Sample::new();
        let test = it.go(MAIN, 1);
        it.execution.test = Some(test);
        let subtest = it.go(test, 3);
        it.execution.goroutines[subtest.0 as usize].entry = "testing.tRunner".to_owned();
        let lock = it.mutex(10);
        it.does(subtest, 10, Action::Lock, lock);
        it.waits(subtest, 11, Action::Lock, lock);
        waits_in_testing(&mut it, test, "testing.tRunner", None);
        let judgement = judge(&it.execution);
        insta::assert_snapshot!(judgement.sentence, @"every goroutine waits for ever: the test has come to its end, and waits for its subtests; goroutine 19 waits at main.go:11 for the mutex first used at main.go:10, held by itself since main.go:10");
        assert_eq!(judgement.goroutines[0].blocked_at, None);
    }
}
