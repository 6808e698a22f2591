//! Arguments that leave their own series: what a rank says at a call, beside what it said at the same call of a normal run.
//!
//! The calls of MPI of one trace are laid beside those of its normal trace one by one, as long as both call the same functions. There
//! an argument mostly says what it said: a tag that counts rounds, a displacement that follows from rank and round, the communicator
//! of a row. Where one does not, it is a fault or it follows from data, or from who came first. It is no chance where the series goes by
//! a rule in the normal run (the same each time, or by equal steps, or so every few calls) and few ranks leave theirs:
//!
//! ```text
//!  normal   tag  1  2  3  4  5  6      faulty   tag  1  2  3  5  ...     rank 3 leaves its series at its fourth call
//! ```
//! How often a process asks whether something has come (`MPI_Test`, `MPI_Iprobe`) is left out of the order; what it asks is not.
//! *Costs*: a pass over the recorded calls of both runs, and another one for each series that is left.

use super::wrong::Wrong;
use crate::structure::arguments::{Call, Said, calls, is_poll, ranks};
use lockstep_comm::communicators::Communicators;
use lockstep_trace::mpi::Kind;
use lockstep_trace::{ProcessName, Run, Thread, TraceName};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The longest rule that is looked for, in calls.
const PERIOD: usize = 16;
/// How much of a series is looked at, on each side of where it is left.
const AROUND: usize = 512;
/// How many calls are looked ahead, to tell a call that is left out from an argument that is another.
const AHEAD: usize = 3;

/// A function and one of its arguments.
type Key = (String, &'static str);

/// An argument of a trace beside that of the normal one.
#[derive(Debug, Clone)]
struct Beside {
    kind: Kind,
    compared: u64,
    differing: u64,
    first: Option<Difference>,
}

/// The first call in which it says something else.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Difference {
    /// Its number among those compared.
    ordinal: u64,
    event: u64,
    normal: Said,
    faulty: Said,
}

/// The arguments of a trace.
type Table = FxHashMap<Key, Beside>;

/// Calls between two that are compared in order: those that only ask, one of each function, and the next other one.
#[derive(Debug)]
struct Step {
    asked: Vec<Call>,
    call: Option<Call>,
}

/// The steps of a trace, of which some are looked at before they are taken.
struct Steps<I> {
    calls: I,
    ahead: VecDeque<Step>,
}

impl<I: Iterator<Item = Call>> Steps<I> {
    fn new(calls: I) -> Self {
        let ahead = VecDeque::new();
        Self { calls, ahead }
    }

    fn read(&mut self) -> Option<Step> {
        let mut asked: Vec<Call> = Vec::new();
        let calls = self.calls.by_ref();
        let call = calls.find_map(|call| {
            if !is_poll(call.meaning) {
                return Some(call);
            }
            if asked.iter().all(|it| it.name != call.name) {
                asked.push(call);
            }
            None
        });
        (call.is_some() || !asked.is_empty()).then_some(Step { asked, call })
    }

    fn take(&mut self) -> Option<Step> {
        self.ahead.pop_front().or_else(|| self.read())
    }

    /// What comes so many steps behind the one that was taken last.
    fn look(&mut self, by: usize) -> Option<&Call> {
        while self.ahead.len() < by {
            let step = self.read()?;
            self.ahead.push_back(step);
        }
        self.ahead.get(by.checked_sub(1)?)?.call.as_ref()
    }
}

/// Whether both say the same in all.
fn is_alike(a: &Call, b: &Call) -> bool {
    a.name == b.name
        && a.given.iter().all(|it| {
            let other = b.given.iter().find(|other| other.name == it.name);
            other.is_none_or(|other| other.said == it.said)
        })
}

/// Whether, from `here` on, one trace goes as the other goes behind the call that `there` has left over.
fn leaves_out<A, B>(here: &Call, rest: &mut Steps<A>, there: &mut Steps<B>) -> bool
where
    A: Iterator<Item = Call>,
    B: Iterator<Item = Call>,
{
    let is_next = there.look(1).is_some_and(|next| is_alike(here, next));
    is_next
        && (1..AHEAD).all(|by| match (rest.look(by), there.look(by + 1)) {
            (Some(a), Some(b)) => is_alike(a, b),
            // A trace that ends there says nothing of what it left out.
            (None, _) => by > 1,
            (Some(_), None) => false,
        })
}

/// Lays the calls of a trace beside those of the normal one.
fn beside(normal: impl Iterator<Item = Call>, faulty: impl Iterator<Item = Call>) -> Table {
    let mut table = Table::default();
    let (mut normal, mut faulty) = (Steps::new(normal), Steps::new(faulty));
    while let (Some(a), Some(b)) = (normal.take(), faulty.take()) {
        for asked in &b.asked {
            if let Some(other) = a.asked.iter().find(|it| it.name == asked.name) {
                add(&mut table, other, asked, true);
            }
        }
        let (Some(a), Some(b)) = (a.call, b.call) else {
            break;
        };
        if a.name != b.name {
            break;
        }
        // A call that is left out, or one more, is told as such.
        if !is_alike(&a, &b)
            && (leaves_out(&b, &mut faulty, &mut normal)
                || leaves_out(&a, &mut normal, &mut faulty))
        {
            break;
        }
        add(&mut table, &a, &b, false);
    }
    table
}

fn add(table: &mut Table, normal: &Call, faulty: &Call, asks: bool) {
    for given in &faulty.given {
        let is_told = match given.kind {
            Kind::Tag | Kind::Peer | Kind::Comm => true,
            Kind::Int | Kind::Long | Kind::Op | Kind::Datatype => !asks,
            _ => false,
        };
        let other = normal.given.iter().find(|it| it.name == given.name);
        let Some(other) = other.filter(|_| is_told) else {
            continue;
        };
        let key = (faulty.name.clone(), given.name);
        let found = table.entry(key).or_insert(Beside {
            kind: given.kind,
            compared: 0,
            differing: 0,
            first: None,
        });
        if other.said != given.said {
            found.differing += 1;
            let first = || Difference {
                ordinal: found.compared,
                event: faulty.event,
                normal: other.said.clone(),
                faulty: given.said.clone(),
            };
            if found.first.is_none() {
                found.first = Some(first());
            }
        }
        found.compared += 1;
    }
}

/// The traces whose calls have one order: of processes of which one thread calls MPI.
fn talkers(run: &Run) -> BTreeMap<TraceName, &Thread> {
    let talks = || run.traces().filter(|it| it.has_arguments());
    let mut often: BTreeMap<ProcessName, usize> = BTreeMap::new();
    for thread in talks() {
        *often.entry(thread.name.process).or_default() += 1;
    }
    talks()
        .filter(|it| often.get(&it.name.process) == Some(&1))
        .map(|it| (it.name, it))
        .collect()
}

/// A run with its communicators.
struct Read<'a> {
    run: &'a Run,
    communicators: Communicators,
    talkers: BTreeMap<TraceName, &'a Thread>,
}

impl<'a> Read<'a> {
    fn new(run: &'a Run) -> Self {
        Self {
            run,
            communicators: Communicators::of(run),
            talkers: talkers(run),
        }
    }

    fn beside(&self, faulty: &Self) -> BTreeMap<TraceName, Table> {
        let both: Vec<_> = (faulty.talkers.iter())
            .filter_map(|(name, thread)| Some((*name, *self.talkers.get(name)?, *thread)))
            .collect();
        both.into_par_iter()
            .map(|(name, a, b)| {
                let normal = calls(self.run, &self.communicators, a);
                let faulty = calls(faulty.run, &faulty.communicators, b);
                (name, beside(normal, faulty))
            })
            .collect()
    }

    /// What the trace says for an argument, around its n-th call; and where that one is in it.
    fn series(
        &self,
        trace: TraceName,
        (function, argument): &Key,
        ordinal: u64,
    ) -> (Vec<Said>, usize) {
        let Some(thread) = self.talkers.get(&trace) else {
            return (Vec::new(), 0);
        };
        let mut steps = Steps::new(calls(self.run, &self.communicators, thread));
        let said = std::iter::from_fn(move || steps.take()).flat_map(|step| {
            let of = (step.asked.into_iter().chain(step.call)).filter(|it| it.name == *function);
            let said = of.filter_map(|it| it.given.into_iter().find(|it| it.name == *argument));
            said.map(|it| it.said).collect::<Vec<_>>()
        });
        let ordinal = usize::try_from(ordinal).unwrap_or(usize::MAX);
        let before = ordinal.saturating_sub(AROUND);
        let said = said.skip(before).take(2 * AROUND).collect();
        (said, ordinal - before)
    }
}

/// By which rule a series goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// By none that is seen.
    None,
    /// It is too short to tell.
    Short,
    /// By one around that place.
    Around,
    /// The same, of all of it.
    Whole,
}

/// Whether each value lies between those that come a period before it and behind it.
fn goes_by(said: &[Said], period: usize) -> bool {
    let between = |(a, b, c): (&Said, &Said, &Said)| match (a, b, c) {
        (Said::Number(a), Said::Number(b), Said::Number(c))
        | (Said::Offset(a), Said::Offset(b), Said::Offset(c)) => {
            b.checked_sub(*a) == c.checked_sub(*b)
        }
        _ => a == b && b == c,
    };
    let behind = |by: usize| said.iter().skip(by * period);
    let mut all = said.iter().zip(behind(1)).zip(behind(2));
    all.all(|((a, b), c)| between((a, b, c)))
}

fn rule(said: &[Said], at: usize) -> Rule {
    if said.len() < 3 {
        return Rule::Short;
    }
    if (1..=PERIOD).any(|period| said.len() >= 3 * period && goes_by(said, period)) {
        return Rule::Whole;
    }
    let around = (1..=PERIOD).any(|period| {
        let length = said.len().min(4 * period);
        let first = (at + 1).saturating_sub(length);
        let last = at.min(said.len() - length);
        length >= 3 * period
            && (first..=last).any(|start| goes_by(&said[start..start + length], period))
    });
    match around {
        true => Rule::Around,
        false => Rule::None,
    }
}

/// Whether a value that stays the same for a while takes another one of its own: data may let it do so sooner or later.
fn only_shifts(said: &[Said], at: usize, now: &Said) -> bool {
    let near = &said[at.saturating_sub(1)..said.len().min(at + 2)];
    near.windows(2).all(|it| it[0] == it[1]) && said.contains(now)
}

/// The first call of each trace in which an argument leaves its series. `first_come` says whether, in normal runs, something depends
/// on who comes first.
pub(crate) fn departures(normals: &[&Run], faulty: &Run, first_come: bool) -> Vec<Wrong> {
    let now = Read::new(faulty);
    let before: Vec<Read<'_>> = normals.iter().map(|run| Read::new(run)).collect();
    let Some((first, others)) = before.split_first() else {
        return Vec::new();
    };
    let tables = first.beside(&now);
    if !(tables.values()).any(|table| table.values().any(|it| it.differing > 0)) {
        return Vec::new();
    }
    // What normal runs do not say alike varies.
    let mut varies: BTreeSet<Key> = BTreeSet::new();
    for other in others {
        for table in first.beside(other).into_values() {
            let differing = table.into_iter().filter(|(_, it)| it.differing > 0);
            varies.extend(differing.map(|(key, _)| key));
        }
    }
    let besides: Vec<BTreeMap<TraceName, Table>> =
        others.iter().map(|other| other.beside(&now)).collect();
    let mut keys: BTreeMap<Key, Vec<(TraceName, &Beside)>> = BTreeMap::new();
    for (trace, table) in &tables {
        for (key, found) in table {
            let of = keys.entry(key.clone()).or_default();
            of.push((*trace, found));
        }
    }
    let mut departures: Vec<(Kind, Wrong)> = Vec::new();
    for (key, callers) in keys.iter().filter(|(key, _)| !varies.contains(*key)) {
        for (trace, found) in callers {
            let Some(difference) = &found.first else {
                continue;
            };
            let is_new = besides.iter().all(|tables| {
                let found = tables.get(trace).and_then(|table| table.get(key));
                let other = found.and_then(|it| it.first.as_ref());
                other.is_some_and(|it| it.event == difference.event)
            });
            let case = Case {
                callers,
                ranks: tables.len(),
                first_come,
                kind: found.kind,
                difference,
            };
            if !is_new || !case.is_rare() {
                continue;
            }
            let (said, at) = first.series(*trace, key, difference.ordinal);
            let Some(is_sure) = case.is_sure(&said, at) else {
                continue;
            };
            let own = trace.process.rank;
            let ranks = ranks(faulty, trace.process);
            let says = |said: &Said, other: &Said| match (said.peer(own, ranks), other) {
                // Beside a name the distance says nothing.
                (Some(peer), Said::Name(_)) => peer.to_string(),
                _ => said.by(own, ranks),
            };
            let said_now = says(&difference.faulty, &difference.normal);
            let said_before = says(&difference.normal, &difference.faulty);
            let words = (
                format!("{} with {}={said_now}", key.0, key.1),
                format!("the normal run says {said_before}"),
            );
            let departure = Wrong {
                is_weak: !is_sure,
                leaves_series: true,
                ..Wrong::new(faulty, (*trace, difference.event), &key.0, words)
            };
            departures.push((found.kind, departure));
        }
    }
    // Of several arguments of one call, that which says most.
    departures.sort_by_key(|(kind, _)| weight(*kind));
    departures.into_iter().map(|(_, it)| it).collect()
}

/// How much an argument says, least of all a count: so many of one datatype may be so many of another.
fn weight(kind: Kind) -> u8 {
    match kind {
        Kind::Comm => 0,
        Kind::Op | Kind::Datatype => 1,
        Kind::Peer => 2,
        Kind::Tag => 3,
        Kind::Long => 4,
        _ => 5,
    }
}

/// An argument of a trace that says something else, among those who make the same call.
struct Case<'a> {
    callers: &'a [(TraceName, &'a Beside)],
    ranks: usize,
    first_come: bool,
    kind: Kind,
    difference: &'a Difference,
}

impl Case<'_> {
    /// Who says something else in as early a call.
    fn as_early(&self) -> usize {
        let first = self.callers.iter().filter_map(|(_, it)| it.first.as_ref());
        first
            .filter(|it| it.ordinal <= self.difference.ordinal)
            .count()
    }

    /// What most do is no sign of one of them.
    fn is_rare(&self) -> bool {
        2 * self.as_early() <= self.ranks
    }

    /// Whether data do not decide about it: a communicator, a wildcard.
    fn is_firm(&self) -> bool {
        let is_name = |said: &Said| matches!(said, Said::Name(_));
        let Difference { normal, faulty, .. } = self.difference;
        is_name(normal) || is_name(faulty)
    }

    /// Whether it is a difference by itself; `None` where it may be chance.
    fn is_sure(&self, said: &[Said], at: usize) -> Option<bool> {
        if self.first_come && !self.is_firm() {
            return None;
        }
        let rule = rule(said, at);
        if rule == Rule::None {
            return None;
        }
        let alike = self
            .callers
            .iter()
            .map(|(_, it)| it.compared - it.differing);
        let others_agree = self.callers.iter().filter(|(_, it)| it.differing == 0);
        let others_agree = others_agree.count() >= 2;
        let by_rule = match (rule, self.kind) {
            (Rule::Whole, _) => true,
            (Rule::Short, Kind::Int) => false,
            (Rule::Short, _) => others_agree,
            (Rule::Around, Kind::Int) => false,
            (Rule::Around, _) => true,
            (Rule::None, _) => false,
        };
        let shifts = rule != Rule::Short && only_shifts(said, at, &self.difference.faulty);
        Some(
            by_rule
                && !self.first_come
                && !shifts
                && 2 * self.as_early() <= self.callers.len()
                && alike.sum::<u64>() >= 3,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::arguments::Given;
    use lockstep_comm::communicators::Resolved;
    use lockstep_trace::mpi;
    use lockstep_trace::{Annotated, Event, FunctionId};

    fn call(name: &str, said: &[(&'static str, Kind, Said)]) -> Call {
        let given = said.iter().map(|(name, kind, said)| Given {
            name,
            kind: *kind,
            said: said.clone(),
        });
        let function = FunctionId(0);
        Call {
            function,
            name: name.into(),
            meaning: mpi::meaning(name),
            event: 0,
            given: given.collect(),
            resolved: Resolved {
                annotated: Annotated {
                    index: 0,
                    inferred: false,
                    event: Event::Call(function),
                    symbols: 0,
                    arguments: None,
                    line: None,
                },
                function: Some(function),
                meanings: Vec::new(),
            },
        }
    }

    fn with_tag(name: &str, tag: i64) -> Call {
        call(name, &[("tag", Kind::Tag, Said::Number(tag))])
    }

    fn first(normal: &[Call], faulty: &[Call], function: &str) -> Option<(u64, Said)> {
        let table = beside(normal.iter().cloned(), faulty.iter().cloned());
        let found = table.get(&(function.to_owned(), "tag"))?.first.clone()?;
        Some((found.ordinal, found.faulty))
    }

    #[test]
    fn a_tag_that_leaves_its_series_is_found() {
        let run = |wrong: i64| -> Vec<Call> {
            let rounds = (1..9).flat_map(|round| {
                let tag = if round == 4 { wrong } else { round };
                [with_tag("MPI_Irecv", tag), with_tag("MPI_Send", round)]
            });
            rounds.collect()
        };
        assert_eq!(first(&run(4), &run(4), "MPI_Irecv"), None);
        let found = first(&run(4), &run(5), "MPI_Irecv");
        assert_eq!(found, Some((3, Said::Number(5))));
        assert_eq!(first(&run(4), &run(5), "MPI_Send"), None);
    }

    #[test]
    fn a_call_left_out_and_one_more_are_none() {
        let run = |tags: &[i64]| -> Vec<Call> {
            let each = tags.iter().map(|tag| with_tag("MPI_Send", *tag));
            each.collect()
        };
        let normal = run(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(first(&normal, &run(&[1, 2, 4, 5, 6]), "MPI_Send"), None);
        let more = run(&[1, 2, 9, 3, 4, 5, 6]);
        assert_eq!(first(&normal, &more, "MPI_Send"), None);
        let wrong = run(&[1, 2, 4, 4, 5, 6]);
        let found = Some((2, Said::Number(4)));
        assert_eq!(first(&normal, &wrong, "MPI_Send"), found);
        // One that ends there.
        let wrong = run(&[1, 2, 4]);
        assert_eq!(first(&normal, &wrong, "MPI_Send"), found);
    }

    #[test]
    fn how_often_somebody_asks_is_no_matter_and_what_is() {
        let run = |times: usize, tag: i64| -> Vec<Call> {
            let mut calls = vec![with_tag("MPI_Iprobe", tag); times];
            calls.push(with_tag("MPI_Recv", 3));
            calls
        };
        assert_eq!(first(&run(2, 12), &run(9, 12), "MPI_Recv"), None);
        let found = first(&run(2, 12), &run(9, 21), "MPI_Iprobe");
        assert_eq!(found, Some((0, Said::Number(21))));
    }

    #[test]
    fn rules_are_the_same_equal_steps_and_so_every_few_calls() {
        let numbers = |all: &[i64]| all.iter().map(|it| Said::Number(*it)).collect::<Vec<_>>();
        let cases: [(&[i64], usize, Rule); 7] = [
            (&[4, 4, 4, 4], 1, Rule::Whole),
            (&[1, 2, 3, 4, 5], 3, Rule::Whole),
            (&[1, 10, 2, 10, 3, 10], 2, Rule::Whole),
            (&[7, 1], 0, Rule::Short),
            (&[9, 2, 2, 2, 2, 2, 5, 1], 3, Rule::Around),
            (&[3, 1, 4, 1, 5, 9, 2, 6], 4, Rule::None),
            (&[5, 8, 5, 9, 7, 5, 5, 8], 5, Rule::None),
        ];
        for (said, at, expected) in cases {
            assert_eq!(rule(&numbers(said), at), expected, "{said:?}");
        }
    }

    #[test]
    fn what_a_count_was_before_or_becomes_later_may_come_earlier() {
        let said: Vec<Said> = [5, 5, 5, 6, 6, 6].map(Said::Number).into();
        assert!(only_shifts(&said, 1, &Said::Number(6)));
        assert!(!only_shifts(&said, 1, &Said::Number(-1)));
        let rounds: Vec<Said> = (1..9).map(Said::Number).collect();
        assert!(!only_shifts(&rounds, 3, &Said::Number(5)));
    }

    fn told(
        found: &[(&'static str, Beside)],
        at: usize,
        said: &[i64],
        first_come: bool,
    ) -> Option<bool> {
        let callers: Vec<(TraceName, &Beside)> = (found.iter().zip(0..))
            .map(|((_, found), rank)| (TraceName::new(rank, 0), found))
            .collect();
        let found = callers[at].1;
        let difference = found.first.as_ref()?;
        let case = Case {
            callers: &callers,
            ranks: callers.len(),
            first_come,
            kind: found.kind,
            difference,
        };
        let said: Vec<Said> = said.iter().map(|it| Said::Number(*it)).collect();
        let at = difference.ordinal as usize;
        case.is_rare().then(|| case.is_sure(&said, at)).flatten()
    }

    fn argument(
        kind: Kind,
        compared: u64,
        first: Option<(u64, i64, i64)>,
    ) -> (&'static str, Beside) {
        let first = first.map(|(ordinal, normal, faulty)| Difference {
            ordinal,
            event: 0,
            normal: Said::Number(normal),
            faulty: Said::Number(faulty),
        });
        let differing = u64::from(first.is_some());
        let it = Beside {
            kind,
            compared,
            differing,
            first,
        };
        ("it", it)
    }

    #[test]
    fn few_that_leave_a_rule_are_sure_and_what_varies_is_nothing() {
        let alike = || argument(Kind::Long, 3, None);
        let wrong = |faulty| argument(Kind::Long, 3, Some((0, 8, faulty)));
        let one = [alike(), wrong(11), alike()];
        assert_eq!(told(&one, 1, &[8, 9, 10], false), Some(true));
        // By no rule; where something depends on who comes first; most do so.
        assert_eq!(told(&one, 1, &[8, 3, 10], false), None);
        assert_eq!(told(&one, 1, &[8, 9, 10], true), None);
        let most = [wrong(11), wrong(12), alike()];
        assert_eq!(told(&most, 1, &[8, 9, 10], false), None);
        // A count that goes by a rule only for a while may follow from data.
        let alike = || argument(Kind::Int, 7, None);
        let count = [alike(), argument(Kind::Int, 7, Some((3, 2, 7))), alike()];
        assert_eq!(told(&count, 1, &[9, 2, 2, 2, 2, 5, 1], false), Some(false));
        assert_eq!(told(&count, 1, &[2, 2, 2, 2, 2, 2, 2], false), Some(true));
    }

    #[test]
    fn a_communicator_says_more_than_a_datatype_and_that_more_than_a_count() {
        let mut kinds = [Kind::Int, Kind::Tag, Kind::Datatype, Kind::Comm];
        kinds.sort_by_key(|kind| weight(*kind));
        let expected = [Kind::Comm, Kind::Datatype, Kind::Tag, Kind::Int];
        assert_eq!(kinds, expected);
    }
}
