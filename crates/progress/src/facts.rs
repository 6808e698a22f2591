//! What was found, as values beside the sentences: who, in what way, in which function, at which lines.
//!
//! They stand in the order in which a reader meets them: who ended, who did otherwise, who hangs, and what does not fit.

use crate::cause::{Cause, Deed};
use crate::ends::{crashed, ended};
use crate::inside::Inside;
use crate::judgement::named;
use crate::progress::{Facts, Progress};
use crate::reason::died_in;
use crate::task::{Group, Kind, Place};
use crate::whereabouts::telling;
use lockstep_api::mpi::rules;
use lockstep_check::Loose;
use lockstep_check::races::Race;
use lockstep_comm::{Circle, PartId};
use lockstep_diagnosis::{Disagreement, origin};
use lockstep_trace::{Fact, SourceLine, TraceName, c_name};

impl Progress {
    /// All that is told, as values; the most telling first.
    #[must_use]
    pub fn facts(&self) -> Vec<Fact> {
        let crashed = crashed(&self.tasks);
        let in_threads = crashed.iter().filter_map(|it| died_in(self, *it));
        let in_threads: Vec<TraceName> = in_threads.collect();
        let is_in_first = |it: &&u32| died_in(self, **it).is_none();
        let first: Vec<u32> = crashed.iter().filter(is_in_first).copied().collect();
        let mut facts = self.standing("crashed", &first);
        facts.extend(in_threads.into_iter().map(|it| {
            let (function, lines) = at(self.threads.get(&it).map_or(&[], Vec::as_slice));
            Fact {
                kind: "crashed",
                who: vec![it],
                function,
                lines,
            }
        }));
        let mut ended = ended(&self.tasks, &self.waiting);
        ended.retain(|it| !crashed.contains(it));
        facts.extend(self.standing("ended", &ended));
        facts.extend(self.causes.iter().map(|it| self.cause(it)));
        if self.hang {
            facts.extend(self.hanging());
        }
        facts.extend(self.unfit.iter().cloned());
        facts.extend(self.loose.iter().map(|it| self.loose_end(it)));
        facts
    }

    fn traces(&self, tasks: &[u32]) -> Vec<TraceName> {
        let traces = tasks
            .iter()
            .filter_map(|it| Some(self.tasks.get(it)?.trace));
        traces.collect()
    }

    /// These tasks where they stand, those at one place together.
    fn standing(&self, kind: &'static str, tasks: &[u32]) -> Vec<Fact> {
        let of = |group: &Group| {
            let here = group.tasks.iter().copied();
            let here: Vec<u32> = here.filter(|it| tasks.contains(it)).collect();
            let (function, lines) = at(&group.stack);
            (!here.is_empty()).then(|| Fact {
                kind,
                who: self.traces(&here),
                function,
                lines,
            })
        };
        self.groups.iter().filter_map(of).collect()
    }

    /// Those that hang: in a deadlock those that are named, else those that hold the others up; and threads that wait for others
    /// of their process.
    fn hanging(&self) -> Vec<Fact> {
        let (kind, tasks) = match self.kind {
            Kind::Deadlock => ("deadlock", named(self)),
            Kind::Livelock if !self.waiting.stuck.is_empty() => ("livelock", named(self)),
            Kind::Livelock => ("livelock", self.holding()),
            Kind::Slow | Kind::None => ("slow", self.holding()),
        };
        let mut facts = self.standing(kind, &tasks);
        let inside = self.waiting.inside.iter().map(|it| {
            let task = || {
                self.tasks
                    .get(&it.task)
                    .filter(|task| task.trace == it.from)
            };
            let stack = match self.threads.get(&it.from) {
                Some(stack) => stack.as_slice(),
                None => task().map_or(&[][..], |it| &it.stack),
            };
            let (function, lines) = at(stack);
            Fact {
                kind: match it.why {
                    Inside::Lock(_) | Inside::Behind(_) => "waits-for-lock",
                    Inside::Semaphore => "waits-for-semaphore",
                    Inside::Again => "waits-for-itself",
                    Inside::Signal => "waits-for-signal",
                    Inside::Barrier => "waits-at-barrier",
                    Inside::End => "waits-for-end",
                    Inside::Team => "waits-for-team",
                },
                who: vec![it.from],
                function,
                lines,
            }
        });
        facts.extend(inside);
        facts.extend(self.kept.iter().map(|it| Fact {
            kind: if it.is_over { "kept-lock" } else { "took-lock" },
            who: vec![it.thread],
            function: it.function(),
            lines: it.lines(),
        }));
        facts.extend(self.truants.values().map(|it| Fact {
            kind: "left-barrier-out",
            who: vec![it.thread],
            function: it.departure.left_out.first().cloned(),
            lines: Vec::new(),
        }));
        facts
    }

    fn cause(&self, cause: &Cause) -> Fact {
        let functions = cause.functions();
        Fact {
            kind: match &cause.deed {
                Deed::Departed { by_normal, .. } if *by_normal => "departed-from-normal",
                Deed::Departed { .. } => "departed",
                Deed::Lapsed(_) => "lapsed",
                Deed::Skipped(_) => "skipped",
                Deed::Omitted(_) => "omitted",
                Deed::Misdirected(_) => "misdirected",
                Deed::Passed(_) => "passed",
                Deed::WentOn => "went-on",
                Deed::Differed { .. } => "differed",
            },
            who: self.traces(&[cause.task]),
            function: functions.first().map(|it| (*it).to_owned()),
            lines: cause.lines().to_vec(),
        }
    }

    fn loose_end(&self, loose: &Loose) -> Fact {
        Fact {
            kind: loose.end.rule().id,
            who: self.traces(&loose.tasks),
            function: loose.end.function().map(str::to_owned),
            lines: loose
                .site
                .as_ref()
                .map_or_else(Vec::new, |it| it.lines.clone()),
        }
    }
}

/// The call that tells most, and its line.
fn at(stack: &[Place]) -> (Option<String>, Vec<SourceLine>) {
    let frame = telling(stack).and_then(|it| stack.get(it));
    let function = frame.map(|it| c_name(&it.function).into_owned());
    let line = frame.and_then(|it| it.called_at.clone());
    (function, line.into_iter().collect())
}

/// Operations that do not fit, or fit by luck.
pub(crate) fn unfit<'a>(
    facts: &Facts<'_>,
    disagreements: impl Iterator<Item = &'a Disagreement>,
    circle: Option<&Circle>,
    race: Option<&Race>,
) -> Vec<Fact> {
    let all = &facts.progress.disagreements;
    // What follows from another is no mistake of its own.
    let own = disagreements.filter(|it| origin(all, it).mismatch.order >= it.mismatch.order);
    let mismatched = own.map(|it| &it.mismatch).filter_map(|it| {
        // Who only went apart broke a rule later.
        let kind = it.aspect.rule().map_or("went-apart", |rule| rule.id);
        let few: Vec<PartId> = it
            .sides
            .iter()
            .skip(1)
            .flat_map(|it| it.1.clone())
            .collect();
        let first = few.first()?;
        let part = facts
            .conversations
            .get(&first.task)?
            .parts
            .get(first.part)?;
        let tasks: Vec<u32> = few.iter().map(|it| it.task).collect();
        Some(operation(facts, kind, &tasks, (first.task, part.operation)))
    });
    let circle = circle.and_then(|it| {
        let mut tasks: Vec<u32> = it.iter().map(|it| it.0).collect();
        tasks.sort_unstable();
        let first = it.iter().min()?;
        Some(operation(
            facts,
            rules::POTENTIAL_DEADLOCK.id,
            &tasks,
            *first,
        ))
    });
    let race = race.and_then(|it| {
        let part = facts.conversations.get(&it.task)?.parts.get(it.wildcard)?;
        let at = (it.task, part.operation);
        Some(operation(facts, rules::MESSAGE_RACE.id, &[it.task], at))
    });
    let stray = crate::verdict::unreceived(facts);
    let stray = stray.map(|it| operation(facts, "unreceived", &[it.from], (it.from, it.operation)));
    let potential = circle.into_iter().chain(race);
    mismatched.chain(potential).chain(stray).collect()
}

/// What is told of tasks, by the call of one of them.
fn operation(
    facts: &Facts<'_>,
    kind: &'static str,
    tasks: &[u32],
    (task, at): (u32, usize),
) -> Fact {
    let conversation = facts.conversations.get(&task);
    let called = conversation.and_then(|it| Some((it, it.operations.get(at)?)));
    let open = called.filter(|(it, _)| it.pending.contains(&at));
    let stack = open.and_then(|_| facts.progress.group_of(task));
    let lines = match stack {
        Some(group) => self::at(&group.stack).1,
        None => {
            let call = called.and_then(|(it, _)| facts.sites.call(it, at));
            let site = call.and_then(|it| it.site);
            site.map_or_else(Vec::new, |it| it.lines)
        }
    };
    Fact {
        kind,
        who: facts.progress.traces(tasks),
        function: called.map(|(_, it)| it.name.to_string()),
        lines,
    }
}
