//! Arguments that are wrong whatever the rest of the run does: ranks that disagree within one collective
//! call, and reductions and datatypes that no normal run ever used there. And what is perhaps wrong: a count, tag or peer
//! of a message that few ranks say and no normal run ever said, where normal runs always say one of a few; or an argument that leaves
//! its own series ([`crate::findings::series`]).
//!
//! Calls of one collective are found as MPI does: the n-th on a communicator. What the ranks must agree on
//! is the function, the reduction, the root and, where the datatype is the same, the count. If all of one party say what they
//! said in that call of a normal run, the others are named, however many they are. Else those who say what fewer say are, and
//! of two equal parties that which does not say what normal runs say.

use super::series::departures;
use super::wrong::Wrong;
use crate::structure::arguments::{Call, Said, calls, is_first_come, ranks};
use lockstep_comm::communicators::{CommunicatorId, Communicators};
use lockstep_trace::mpi::{Counts, Does, Kind, Shape};
use lockstep_trace::{Run, Thread, TraceName};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Collective calls that are compared at most; about 200 bytes each.
const MOST: usize = 1 << 20;

/// What the ranks of a collective must agree on: the function, then arguments by name.
type Agreed = Vec<(&'static str, Said)>;

/// One rank in a collective.
struct Voice {
    trace: TraceName,
    event: u64,
    function: String,
    agreed: Agreed,
}

/// A trace, and the event of its first such call.
type Caller = (TraceName, u64);

/// What is said for an argument of a function, and who says it.
type ByArgument = BTreeMap<(String, &'static str), FxHashMap<Said, Vec<Caller>>>;

/// An argument that has more values than these says something else each time.
const FEW: usize = 16;
/// How many values of normal runs are told.
const SHOWN: usize = 3;

/// What a run's collectives and reductions say.
#[derive(Default)]
struct Sayings {
    collectives: BTreeMap<(CommunicatorId, u64), Vec<Voice>>,
    /// By function and argument: reductions and datatypes.
    fixed: ByArgument,
    /// The same for counts, tags and peers of messages.
    varied: ByArgument,
    /// By function and argument, all that must be agreed on.
    usual: FxHashSet<(String, &'static str, Said)>,
    /// Whether something depends on who comes first.
    first_come: bool,
}

/// The first wrong argument of each trace of a run, in the order of the traces.
pub(crate) fn wrong(normals: &[&Run], faulty: &Run) -> Vec<Wrong> {
    let all = normals.par_iter().chain([&faulty]);
    let mut before: Vec<Sayings> = all.map(|run| read(run)).collect();
    let now = before.pop().unwrap_or_default();
    if now.fixed.is_empty() && now.varied.is_empty() && now.collectives.is_empty() {
        return Vec::new();
    }
    let mut found: BTreeMap<TraceName, Wrong> = BTreeMap::new();
    let mut tell = |wrong: Wrong| {
        let first = found.entry(wrong.trace).or_insert_with(|| wrong.clone());
        // Of one call, that the ranks disagree says more; what may depend on data says less.
        let key = |it: &Wrong| (it.is_weak, it.event, !it.is_mismatch);
        if key(&wrong) < key(first) {
            *first = wrong;
        }
    };
    let first_come = before.iter().any(|run| run.first_come);
    departures(normals, faulty, first_come)
        .into_iter()
        .for_each(&mut tell);
    // Disagreements that normal runs have, too, are this program's way.
    let usual: FxHashSet<(String, &'static str)> = before
        .iter()
        .flat_map(|run| run.collectives.values())
        .filter_map(|voices| disagreement(voices))
        .collect();
    let is_usual = |function: &str, argument, said: &Said| {
        let key = (function.to_owned(), argument, said.clone());
        before.iter().any(|run| run.usual.contains(&key))
    };
    // Where members made other calls, or reduced otherwise, what does not fit later in that communicator follows from it.
    let mut apart: Option<CommunicatorId> = None;
    for (call, voices) in &now.collectives {
        let Some((function, argument)) = disagreement(voices).filter(|_| apart != Some(call.0))
        else {
            continue;
        };
        if !usual.contains(&(function, argument)) {
            apart = matches!(argument, "" | "op").then_some(call.0);
            let before = before.iter().filter_map(|run| run.collectives.get(call));
            let normal: Vec<&Voice> = before.flatten().collect();
            let voices = (voices.as_slice(), normal.as_slice());
            wrong_side(voices, argument, &is_usual, faulty, &mut tell);
        }
    }
    let fixed: Vec<&ByArgument> = before.iter().map(|run| &run.fixed).collect();
    let varied: Vec<&ByArgument> = before.iter().map(|run| &run.varied).collect();
    if fixed.iter().all(|run| !run.is_empty()) {
        for (key, said) in &now.fixed {
            novel(key, said, &usual_of(&fixed, key), false, faulty, &mut tell);
        }
    }
    for (key, said) in &now.varied {
        let usual = usual_of(&varied, key);
        let steady = varied.iter().all(|run| {
            run.get(key)
                .is_some_and(|said| said.len() == usual.len() && said.len() <= FEW)
        });
        let others = said.iter().filter(|(said, _)| !usual.contains(said));
        let few = others.map(|(_, callers)| callers.len()).sum::<usize>();
        let all: FxHashSet<TraceName> = said.values().flatten().map(|it| it.0).collect();
        if steady && 2 * few <= all.len() {
            novel(key, said, &usual, true, faulty, &mut tell);
        }
    }
    found.into_values().collect()
}

/// What normal runs say for an argument.
fn usual_of<'a>(before: &[&'a ByArgument], key: &(String, &'static str)) -> FxHashSet<&'a Said> {
    let said = before.iter().filter_map(|run| Some(run.get(key)?.keys()));
    said.flatten().collect()
}

/// Tells those who say what no normal run says.
fn novel(
    (function, argument): &(String, &'static str),
    said: &FxHashMap<Said, Vec<Caller>>,
    usual: &FxHashSet<&Said>,
    is_weak: bool,
    faulty: &Run,
    tell: &mut dyn FnMut(Wrong),
) {
    if usual.is_empty() {
        return;
    }
    for (said, callers) in said.iter().filter(|(said, _)| !usual.contains(said)) {
        for (trace, event) in callers {
            let ranks = ranks(faulty, trace.process);
            let says = |said: &Said| said.by(trace.process.rank, ranks);
            let others = either(usual.iter().map(|it| says(it)).collect());
            let said = says(said);
            let said = format!("{function} with {argument}={said}");
            let instead = format!("the normal run says {others}");
            tell(Wrong {
                is_weak,
                ..Wrong::new(faulty, (*trace, *event), function, (said, instead))
            });
        }
    }
}

/// `7 or 8 or 3 other values`.
fn either(mut values: Vec<String>) -> String {
    values.sort_unstable();
    let more = values.len().saturating_sub(SHOWN);
    values.truncate(SHOWN);
    let mut text = values.join(" or ");
    if more > 0 {
        text.push_str(&format!(" or {more} other values"));
    }
    text
}

fn read(run: &Run) -> Sayings {
    let mut read = Sayings::default();
    // Looking for them costs a pass over all events.
    if !run.traces().any(Thread::has_arguments) {
        return read;
    }
    let communicators = Communicators::of(run);
    let mut left = MOST;
    for thread in run.traces() {
        let mut counts: FxHashMap<CommunicatorId, u64> = FxHashMap::default();
        for call in calls(run, &communicators, thread) {
            read.first_come |= is_first_come(&call);
            for given in &call.given {
                let table = match given.kind {
                    Kind::Op | Kind::Datatype => &mut read.fixed,
                    Kind::Int | Kind::Tag | Kind::Peer => &mut read.varied,
                    _ => continue,
                };
                let key = (call.name.clone(), given.name);
                let said = table.entry(key).or_default();
                if said.len() > FEW {
                    continue;
                }
                let callers = said.entry(given.said.clone()).or_default();
                if callers.last().is_none_or(|(last, _)| *last != thread.name) {
                    callers.push((thread.name, call.event));
                }
            }
            let (Some(agreed), Some(communicator)) = (agreed(&call), call.resolved.communicator())
            else {
                continue;
            };
            for (argument, said) in &agreed {
                read.usual
                    .insert((call.name.clone(), argument, said.clone()));
            }
            let count = counts.entry(communicator).or_default();
            if left > 0 {
                left -= 1;
                read.collectives
                    .entry((communicator, *count))
                    .or_default()
                    .push(Voice {
                        trace: thread.name,
                        event: call.event,
                        function: call.name,
                        agreed,
                    });
            }
            *count += 1;
        }
    }
    read
}

/// What the caller says that all others of the collective must say too; `None` for other calls.
fn agreed(call: &Call) -> Option<Agreed> {
    let Does::Collective(shape, counts) = call.meaning.does else {
        return None;
    };
    let count = match counts {
        Counts::Same => Some("count"),
        Counts::ResultBlock => Some("recvcount"),
        Counts::OneBlock | Counts::BlockEach if shape == Shape::All => Some("sendcount"),
        _ => None,
    };
    let said = call.given.iter().filter(|given| match given.kind {
        Kind::Op | Kind::Root => true,
        Kind::Datatype => count.is_some() && given.name != "recvtype",
        _ => count == Some(given.name),
    });
    Some(said.map(|given| (given.name, given.said.clone())).collect())
}

/// The function and the argument that the ranks of a collective disagree in; the argument is empty where
/// it is the function.
fn disagreement(voices: &[Voice]) -> Option<(String, &'static str)> {
    let (first, others) = voices.split_first()?;
    if others.iter().any(|other| other.function != first.function) {
        return Some((first.function.clone(), ""));
    }
    let differ = |kind: &str| {
        let of = |voice: &Voice| voice.agreed.iter().find(|(name, _)| *name == kind).cloned();
        others.iter().any(|other| of(other) != of(first))
    };
    let types = first
        .agreed
        .iter()
        .any(|(name, _)| is_type(name) && differ(name));
    let name = first.agreed.iter().map(|(name, _)| *name).find(|name| {
        // So many of one datatype may be so many of another.
        let may_differ = is_type(name) || types && name.ends_with("count");
        !may_differ && differ(name)
    })?;
    Some((first.function.clone(), name))
}

fn is_type(name: &str) -> bool {
    name.ends_with("type")
}

/// Tells those who are wrong: who does not say what it said in that call of a normal run, where all of the other party do; else
/// who says what fewer say. `normal` is the same call of normal runs.
fn wrong_side(
    (voices, normal): (&[Voice], &[&Voice]),
    argument: &'static str,
    is_usual: &dyn Fn(&str, &'static str, &Said) -> bool,
    run: &Run,
    tell: &mut dyn FnMut(Wrong),
) {
    let word = |voice: &Voice| match argument {
        "" => Said::Name(voice.function.clone().into()),
        _ => {
            let said = voice.agreed.iter().find(|(name, _)| *name == argument);
            said.map_or(Said::Name("nothing".into()), |(_, said)| said.clone())
        }
    };
    let mut parties: BTreeMap<Said, Vec<&Voice>> = BTreeMap::new();
    for voice in voices {
        parties.entry(word(voice)).or_default().push(voice);
    }
    let is_as_before = |voice: &Voice| {
        let is_it = |it: &&&Voice| it.trace == voice.trace && it.function == voice.function;
        let mut before = normal.iter().filter(is_it);
        before.any(|it| word(it) == word(voice))
    };
    let right = parties.iter().max_by_key(|(said, party)| {
        let as_before = party.iter().all(|it| is_as_before(it));
        let usual = argument.is_empty() || is_usual(&party[0].function, argument, said);
        (as_before, party.len(), usual)
    });
    let Some((right, most)) = right else { return };
    for (said, party) in parties.iter().filter(|(said, _)| *said != right) {
        for voice in party {
            let others = match most.len() {
                1 => "the other says".to_owned(),
                many => format!("{many} others of that call say"),
            };
            let what = match argument {
                "" => voice.function.clone(),
                _ => format!("{} with {argument}={said}", voice.function),
            };
            let words = (what, format!("{others} {right}"));
            tell(Wrong {
                is_mismatch: true,
                ..Wrong::new(run, (voice.trace, voice.event), &voice.function, words)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voice(rank: u32, function: &str, agreed: &[(&'static str, i64)]) -> Voice {
        Voice {
            trace: TraceName::new(rank, 0),
            event: 7,
            function: function.into(),
            agreed: agreed
                .iter()
                .map(|(name, it)| (*name, Said::Number(*it)))
                .collect(),
        }
    }

    fn told(voices: &[Voice]) -> Vec<(u32, String)> {
        let mut all = Vec::new();
        if let Some((_, argument)) = disagreement(voices) {
            let usual = |_: &str, _: &'static str, said: &Said| *said == Said::Number(1);
            let run = Run {
                directory: "run".into(),
                codec: lockstep_format::codec::Kind::None,
                functions: Vec::new(),
                processes: Vec::new(),
                is_mpi: true,
                notes: Vec::new(),
            };
            wrong_side((voices, &[]), argument, &usual, &run, &mut |wrong| {
                all.push((wrong.trace.process.rank, wrong.told));
            });
        }
        all
    }

    #[test]
    fn who_says_what_fewer_say_is_named() {
        let say =
            |count| move |rank| voice(rank, "MPI_Allreduce", &[("count", count), ("datatype", 3)]);
        let mut voices: Vec<Voice> = (0..4).map(say(1)).collect();
        assert_eq!(told(&voices), []);
        voices[2] = say(5)(2);
        let expected = "calls MPI_Allreduce with count=5 where 3 others of that call say 1";
        assert_eq!(told(&voices), [(2, expected.to_owned())]);
    }

    #[test]
    fn of_two_it_is_the_one_that_normal_runs_do_not_know() {
        let voices = [
            voice(0, "MPI_Reduce", &[("root", 1)]),
            voice(1, "MPI_Reduce", &[("root", 0)]),
        ];
        assert_eq!(told(&voices)[0].0, 1);
    }

    #[test]
    fn another_function_is_told_and_another_datatype_with_another_count_is_not() {
        let mut voices: Vec<Voice> = (0..3).map(|rank| voice(rank, "MPI_Barrier", &[])).collect();
        voices[1].function = "MPI_Bcast".into();
        assert_eq!(
            told(&voices),
            [(
                1,
                "calls MPI_Bcast where 2 others of that call say MPI_Barrier".to_owned()
            )]
        );
        let voices = [
            voice(0, "MPI_Bcast", &[("count", 1), ("datatype", 3)]),
            voice(1, "MPI_Bcast", &[("count", 4), ("datatype", 5)]),
        ];
        assert_eq!(told(&voices), []);
    }
}
