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
            Some(_) => {
                let before = alike().take_while(|(at, _)| *at < object.0 as usize);
                format!(" (number {})", before.count() + 1)
            }
            None => String::new(),
        };
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
            text.push_str(&format!(" {}", self.wait(wait)));
            let next = wait
                .on()
                .into_iter()
                .find(|it| waiting.is_stuck(*it) && !told.contains(it));
            let Some(next) = next else {
                let back = wait.on().iter().any(|it| told.contains(it) && *it != at);
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

    /// `waits at main.go:12 for the mutex first used at main.go:8, held by goroutine 5 since main.go:20`
    pub fn wait(&self, wait: &Wait) -> String {
        let mut text = format!("waits at {}", self.at(wait.site));
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
            [way] => text.push_str(&format!(
                " {}{}",
                self.want(way.action, way.object),
                self.why(wait.goroutine, way)
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
    fn why(&self, of: GoroutineId, way: &Way) -> String {
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
            Need::Nothing | Need::Outside | Need::Subtests(_) => String::new(),
            Need::Any(_) => self.nobody(of, way.action, object, &way.partners),
        }
    }

    /// Why nobody does what would be needed.
    fn nobody(
        &self,
        of: GoroutineId,
        action: Action,
        object: ObjectId,
        partners: &[GoroutineId],
    ) -> String {
        let (verb, matching): (&str, &[Action]) = match action {
            Action::Send => ("receive from it", &[Action::Receive]),
            Action::Receive => ("send to it or close it", &[Action::Send, Action::Close]),
            Action::CondWait => ("signal it", &[Action::Signal, Action::Broadcast]),
            Action::Wait => {
                let count = self.replay.count(object);
                return match partners {
                    [] => format!(", which counts {count}, and nobody is left to call Done"),
                    _ => format!(", which counts {count}"),
                };
            }
            _ => return String::new(),
        };
        if !partners.is_empty() {
            let all: Vec<String> = partners.iter().map(|it| self.who(*it)).collect();
            return format!(", and {} could {verb}", all.join(" or "));
        }
        // Who did, lives and is no partner is who waits here.
        let (own, before): (Vec<_>, Vec<_>) = self
            .replay
            .uses(object)
            .iter()
            .filter(|((_, did), it)| matching.contains(did) && it.completed > 0)
            .partition(|((who, _), _)| *who == of);
        let other = if own.is_empty() {
            "nobody"
        } else {
            "nobody else"
        };
        let before: Vec<String> = before
            .iter()
            .map(|((who, _), it)| format!("{} at {}", self.who(*who), self.at(it.site)))
            .collect();
        match &before[..] {
            [] => format!(", and {other} is there to {verb}"),
            [one] => format!(", and {other} is left to {verb} ({one} did, and has ended)"),
            many => format!(
                ", and {other} is left to {verb} ({} did, and have ended)",
                many.join(", ")
            ),
        }
    }
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
