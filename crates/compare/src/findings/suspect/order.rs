//! In what order traces are suspected, and why.

use super::{Suspect, p_in_words};
use crate::difftrace::sweep::Ranking;
use crate::findings::clause;
use crate::findings::finding::{Finding, Rarity, Reason};
use crate::statistics::normality::evidence::Evidence;
use crate::structure::phases::Phases;
use crate::{CausalOrder, Culprit};
use lockstep_trace::threads::{self, Does};
use lockstep_trace::{Event, FunctionId, ProcessName, Run, ThreadName, TraceName};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// So many of the first suspects have the line of a call told from others of its caller.
const TOLD_APART: usize = 64;

/// Puts the findings in order and gives the reasons in words.
pub(crate) fn rank(
    findings: &mut [Finding],
    ranking: &Ranking,
    order: Option<&dyn CausalOrder>,
    faulty: &Run,
) -> Vec<Suspect> {
    if let Some(order) = order {
        date(findings, order);
    }
    let likeness = Likeness::of(ranking);
    // Where normal runs differ from each other, where one first leaves them is chance.
    let by_score = findings
        .iter()
        .any(|finding| finding.standing.as_ref().is_some_and(|it| !it.is_steady));
    let ends_early = findings.iter().any(|it| it.reason == Reason::EndsEarly);
    let asked = order.filter(|_| ends_early);
    let culprits = asked.map_or_else(Vec::new, CausalOrder::culprits);
    blame(findings, &culprits, by_score);
    stay_away(findings);
    sort(findings, &likeness, by_score);
    if let Some(order) = order {
        hear(findings, order);
    }
    // Which costs a pass over a trace each.
    for finding in findings.iter_mut().take(TOLD_APART) {
        if let Some(parted) = &mut finding.parted {
            parted.divergence.tell_apart(faulty);
        }
    }
    let first = findings.first().map(|finding| finding.trace);
    let kind = |it: &Finding| {
        (
            it.shared,
            it.is_usual(),
            it.blame.answers,
            it.blame.has_crashed,
            it.blame.is_culprit,
            it.reason,
        )
    };
    findings
        .chunk_by(|a, b| kind(a) == kind(b))
        .flat_map(|kind| {
            let as_early = match by_score {
                true => (1..=kind.len()).collect(),
                false => as_early(kind),
            };
            let each = kind.iter().zip(as_early);
            each.map(|(finding, as_early)| suspect(finding, as_early, first, &likeness))
        })
        .collect()
}

/// Gives the findings their logical times.
fn date(findings: &mut [Finding], order: &dyn CausalOrder) {
    // Some have no place: then loops are all that they can be compared by.
    let times: Option<Vec<u64>> = findings
        .iter()
        .map(|it| Some(order.time(it.trace, it.event()?)))
        .collect();
    for (finding, time) in findings.iter_mut().zip(times.into_iter().flatten()) {
        finding.causal.time = Some(time);
    }
}

/// What the similarities of the traces say of each.
struct Likeness {
    row_sums: FxHashMap<TraceName, f64>,
    /// In how many rows of the ranking table.
    candidates: FxHashMap<TraceName, usize>,
    rows: usize,
}

impl Likeness {
    fn of(ranking: &Ranking) -> Self {
        let mut row_sums: FxHashMap<TraceName, f64> = FxHashMap::default();
        for (object, sum) in &ranking.row_sums {
            let most = row_sums.entry(object.trace).or_default();
            *most = most.max(*sum);
        }
        let mut candidates: FxHashMap<TraceName, usize> = FxHashMap::default();
        for row in &ranking.rows {
            // Several pieces of a trace may be candidates.
            let traces: FxHashSet<TraceName> = row.threads.iter().map(|it| it.trace).collect();
            for trace in traces {
                *candidates.entry(trace).or_default() += 1;
            }
        }
        Self {
            row_sums,
            candidates,
            rows: ranking.rows.len(),
        }
    }

    fn row_sum(&self, trace: TraceName) -> f64 {
        self.row_sums.get(&trace).copied().unwrap_or_default()
    }
}

/// Marks the traces that the others wait for: of a process the threads that do not wait themselves, or else its main one; of
/// one that is known to have done something wrong its main one.
fn blame(findings: &mut [Finding], culprits: &[Culprit], by_score: bool) {
    // What fits to nothing is told of both sides; that one left its series says which of them is wrong.
    let left = |it: &Finding| {
        let wrong = it.wrong.as_ref().filter(|it| it.leaves_series);
        wrong.is_some() && it.reason == Reason::Arguments
    };
    let leavers: BTreeSet<ProcessName> = (findings.iter().filter(|it| left(it)))
        .map(|it| it.trace.process)
        .collect();
    let is_cleared =
        |it: &&Culprit| it.deed.is_some() && !leavers.is_empty() && !leavers.contains(&it.process);
    for Culprit { process, deed } in culprits.iter().filter(|it| !is_cleared(it)) {
        let own = |it: &Finding| {
            it.trace.process == *process
                && (by_score || matches!(it.reason, Reason::EndsEarly | Reason::Unusual))
        };
        let is_main = |it: &Finding| it.trace.thread == ThreadName::Main(0);
        let works = |it: &Finding| {
            !is_main(it)
                && it.reason == Reason::EndsEarly
                && it.stuck().is_some_and(|it| !it.waits())
        };
        let in_thread = deed.is_none() && findings.iter().any(|it| own(it) && works(it));
        for finding in findings.iter_mut().filter(|it| own(it)) {
            finding.blame.is_culprit = match in_thread {
                true => works(finding),
                false => is_main(finding),
            };
            if finding.blame.is_culprit && deed.is_some() {
                finding.told.clone_from(deed);
            }
        }
    }
}

/// Marks the threads that do not come to a barrier in which all threads of their process wait that did not come to their end: they
/// went another number of times round.
fn stay_away(findings: &mut [Finding]) {
    let barrier = |it: &Finding| {
        let stuck = it.stuck();
        let stuck = stuck.filter(|it| matches!(it.meaning.does, Does::Barrier(_)))?;
        Some(stuck.function.clone())
    };
    let mut waiting: BTreeMap<ProcessName, (Option<String>, usize)> = BTreeMap::new();
    for finding in findings.iter().filter(|it| it.reason == Reason::EndsEarly) {
        let of = waiting.entry(finding.trace.process);
        let (common, number) = of.or_insert((barrier(finding), 0));
        *number += 1;
        *common = common
            .take()
            .filter(|it| Some(it) == barrier(finding).as_ref());
    }
    let is_away = |it: &&mut Finding| it.reason == Reason::Counts && it.stuck().is_none();
    for finding in findings.iter_mut().filter(is_away) {
        if let Some((Some(barrier), number)) = waiting.get(&finding.trace.process) {
            finding.blame.is_culprit = true;
            finding.told = Some(format!(
                "does not come to {barrier}, where {number} of its process wait: it {}",
                clause::parts(finding)
            ));
        }
    }
}

/// Marks the traces that answer to what a process did which theirs had started before (`timeout`, a shell): one of another
/// program that differs, too.
pub(crate) fn answer(findings: &mut [Finding], faulty: &Run) {
    let process = |name: ProcessName| faulty.processes.iter().find(|it| it.name == name);
    let tells = |it: &&Finding| !it.reason.is_alike() && !it.is_usual();
    let named = findings.iter().filter(tells).map(|it| it.trace.process);
    let named: BTreeSet<ProcessName> = named.collect();
    let programs: Vec<(&str, ProcessName)> = (named.into_iter())
        .filter_map(|name| Some((process(name)?.program.as_str(), name)))
        .collect();
    let starts: FxHashSet<FunctionId> = (faulty.functions.iter().zip(0..))
        .filter(|(it, _)| matches!(threads::meaning(&it.name).does, Does::Start { .. }))
        .map(|(_, number)| FunctionId(number))
        .collect();
    for finding in findings {
        finding.blame.answers = false;
        let name = finding.trace.process;
        let own = process(name).map_or("", |it| it.program.as_str());
        // Processes are numbered as they start.
        let has_other = programs
            .iter()
            .any(|(it, other)| *it != own && *other > name);
        let (Some(event), Some(thread), true) =
            (finding.event(), faulty.trace(finding.trace), has_other)
        else {
            continue;
        };
        let before = usize::try_from(event).unwrap_or(usize::MAX);
        finding.blame.answers = (thread.events().take(before))
            .any(|it| matches!(it, Event::Call(function) if starts.contains(&function)));
    }
}

/// How unusual the main threads are that make another call, and where they parted: the threads that they start do what they are told.
fn leaders(findings: &[Finding]) -> FxHashMap<ProcessName, (Rarity, Vec<u64>)> {
    let main = findings.iter().filter(|finding| {
        finding.trace.thread == ThreadName::Main(0)
            && finding.reason == Reason::OtherCall
            && !finding.is_usual()
    });
    main.map(|finding| {
        (
            finding.trace.process,
            (finding.rarity(), finding.coordinate()),
        )
    })
    .collect()
}

/// Puts the most suspicious first.
fn sort(findings: &mut [Finding], likeness: &Likeness, by_score: bool) {
    let leaders = leaders(findings);
    let steps = findings
        .iter()
        .filter(|it| it.reason == Reason::OtherCall && !it.shared && !it.is_usual());
    let first_step = steps.filter_map(|it| it.causal.time).min();
    // That an argument leaves its series may follow from another call that somebody made before.
    let reason = |it: &Finding| {
        let wrong = it.wrong.as_ref().filter(|it| it.leaves_series);
        let before = it
            .causal
            .time
            .zip(first_step)
            .is_some_and(|(own, step)| step < own);
        match wrong.is_some() && before && it.reason == Reason::Arguments {
            true => Reason::OtherCall,
            false => it.reason,
        }
    };
    findings.sort_by_cached_key(|finding| {
        let leader = leaders
            .get(&finding.trace.process)
            .filter(|_| finding.follows());
        (
            (finding.shared, finding.is_usual(), finding.blame.answers),
            // A crash is no matter of degree: only a wrong argument says more.
            !(finding.blame.has_crashed || reason(finding) == Reason::Arguments),
            finding.is_behind_culprits(by_score),
            if by_score {
                reason(finding).apart_from_noise()
            } else {
                reason(finding)
            },
            finding.joins(),
            finding.waits(),
            by_score.then(|| leader.map_or_else(|| finding.rarity(), |(rarity, _)| *rarity)),
            leader.map_or_else(
                || finding.coordinate(),
                |(_, coordinate)| coordinate.clone(),
            ),
            leader.is_some(),
            Reverse((likeness.row_sum(finding.trace) * 1e9) as u64),
            finding.trace,
        )
    });
}

/// Marks those that can have heard of the first one before they differ themselves.
fn hear(findings: &mut [Finding], order: &dyn CausalOrder) {
    if let Some((first, others)) = findings.split_first_mut()
        && let Some(event) = first.event()
    {
        let heard = order.heard_of(first.trace, event);
        for other in others {
            let since = heard.get(&other.trace);
            other.causal.heard =
                since.is_some_and(|since| other.event().is_some_and(|it| it >= *since));
        }
    }
}

/// For each of some findings how many of them are where it is, or before. O(n log n).
fn as_early(findings: &[Finding]) -> Vec<usize> {
    let places: Vec<Vec<u64>> = findings.iter().map(Finding::coordinate).collect();
    let mut sorted: Vec<&Vec<u64>> = places.iter().collect();
    sorted.sort_unstable();
    let before = |place| sorted.partition_point(|it| *it <= place);
    places.iter().map(before).collect()
}

fn suspect(
    finding: &Finding,
    as_early: usize,
    first: Option<TraceName>,
    likeness: &Likeness,
) -> Suspect {
    let standing = finding.standing.as_ref();
    let p = standing.map_or(0.0, |it| it.p);
    let after = first.filter(|_| finding.causal.heard);
    let mut reasons = reasons(finding, likeness);
    reasons.extend(after.map(|first| {
        format!(
            "messages from {first} can have told it before of what is wrong there: perhaps a consequence"
        )
    }));
    Suspect {
        trace: finding.trace,
        process: finding.trace.process,
        confidence: finding.weight() / as_early.max(1) as f64 * (1.0 - p),
        after,
        p: standing.map(|it| it.p),
        score: standing.map(|it| it.score),
        stability: standing.map(|it| it.stability),
        role: standing.and_then(|it| it.role.clone()),
        evidence: standing.map_or_else(Vec::new, |it| it.evidence.clone()),
        is_culprit: finding.blame.is_culprit,
        reasons,
        reason: finding.reason,
        row_sum: likeness.row_sum(finding.trace),
        phases: finding.beside.phases.clone(),
        divergence: finding.divergence().cloned(),
        wrong_at: (finding.wrong.as_ref())
            .filter(|_| finding.reason == Reason::Arguments)
            .map(|it| it.event),
    }
}

fn reasons(finding: &Finding, likeness: &Likeness) -> Vec<String> {
    let mut reasons = Vec::new();
    reasons.push(clause::clause(finding));
    if finding.blame.is_culprit && finding.told.is_some() {
        reasons.push(clause::parts(finding));
    } else if finding.blame.is_culprit && !finding.blame.has_crashed {
        reasons.push("the others wait for it, and it waits for none of them".to_owned());
    }
    if let Some(standing) = &finding.standing {
        let told = standing.evidence.iter().map(Evidence::clause);
        reasons.extend(
            told.filter(|clause| *clause != reasons[0])
                .collect::<Vec<_>>(),
        );
        let role = match &standing.role {
            Some(role) => format!(", of the role {role}"),
            None => String::new(),
        };
        reasons.push(format!(
            "{}: so often a normal run has a trace as unusual (score {:.1}{role}); it is among the first three in {:.0} % of resamples of the normal runs",
            p_in_words(standing.p),
            standing.score,
            100.0 * standing.stability
        ));
    }
    match &finding.wrong {
        Some(_) if finding.reason == Reason::Arguments && finding.divergence().is_some() => {
            reasons.push(clause::parts(finding));
        }
        Some(wrong) if wrong.told != reasons[0] => reasons.push(wrong.told.clone()),
        _ => {}
    }
    reasons.extend(finding.beside.phases.as_ref().and_then(Phases::sentence));
    if let Some((filter, parting)) = &finding.beside.parting {
        reasons.push(format!(
            "under the filter {filter} it was `{}` and is `{}`",
            parting.normal, parting.faulty
        ));
    }
    let row_sum = likeness.row_sum(finding.trace);
    if row_sum > 0.0 {
        let candidates = likeness.candidates.get(&finding.trace);
        let (candidate, rows) = (candidates.copied().unwrap_or_default(), likeness.rows);
        reasons.push(format!(
            "its likeness to the other traces changed by {row_sum:.2} in sum; it is a candidate in {candidate} of {rows} rows of the ranking table"
        ));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::finding::Causal;
    use crate::findings::wrong::Wrong;

    fn at_time(time: u64) -> Causal {
        Causal {
            time: Some(time),
            heard: false,
        }
    }

    #[test]
    fn as_early_counts_those_at_the_same_place_too() {
        let at = |time: u64| Finding {
            causal: at_time(time),
            ..Finding::new(TraceName::new(0, 0), Reason::OtherCall)
        };
        let findings = [3, 1, 3, 7, 0, 7].map(at);
        assert_eq!(as_early(&findings), [4, 2, 4, 6, 1, 6]);
    }

    /// A trace whose argument leaves its series.
    fn leaver(rank: u32, time: u64) -> Finding {
        Finding {
            causal: at_time(time),
            wrong: Some(Wrong {
                trace: TraceName::new(rank, 0),
                event: time,
                function: "MPI_Irecv".into(),
                told: "calls MPI_Irecv with tag=5 where the normal run says 4".into(),
                is_mismatch: false,
                is_weak: false,
                leaves_series: true,
            }),
            ..Finding::new(TraceName::new(rank, 0), Reason::Arguments)
        }
    }

    #[test]
    fn who_says_what_it_said_is_not_blamed_for_what_another_says_otherwise() {
        let culprits = [Culprit {
            process: ProcessName::rank(2),
            deed: Some("sent rank 3 a message with tag 4 instead of 5".into()),
        }];
        let waits = || Finding::new(TraceName::new(2, 0), Reason::EndsEarly);
        let mut findings = [waits(), leaver(3, 7)];
        blame(&mut findings, &culprits, false);
        assert!(!findings[0].blame.is_culprit && findings[0].told.is_none());
        let mut findings = [waits()];
        blame(&mut findings, &culprits, false);
        assert!(findings[0].blame.is_culprit && findings[0].told.is_some());
    }

    #[test]
    fn an_argument_comes_behind_another_call_that_was_made_before() {
        let step = |time| Finding {
            causal: at_time(time),
            ..Finding::new(TraceName::new(0, 0), Reason::OtherCall)
        };
        let likeness = Likeness {
            row_sums: FxHashMap::default(),
            candidates: FxHashMap::default(),
            rows: 0,
        };
        for (time, first) in [(3, 0), (9, 1)] {
            let mut findings = [leaver(1, 7), step(time)];
            sort(&mut findings, &likeness, false);
            assert_eq!(findings[0].trace.process.rank, first, "{time}");
        }
    }
}
