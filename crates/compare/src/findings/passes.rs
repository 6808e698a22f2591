//! What is added to traces that differ, one kind of knowledge after another.

use super::disagreement;
use super::finding::{Beside, Finding, Reason};
use super::unended;
use crate::Options;
use crate::difftrace::sweep::{self, Pair};
use crate::difftrace::trees::Trees;
use crate::naming::told;
use crate::structure::phases::{Phases, phases};
use crate::structure::teams::{Teams, processes_share};
use crate::structure::timing::Timing;
use crate::structure::totals::{self, Change};
use lockstep_calltree::NodeId;
use lockstep_trace::{EndKind, Run, ThreadName, TraceName};
use rustc_hash::FxHashMap;

/// Traces that go as normal ones go but for the share that they have in the work of a team, or in handing it over: how large it is,
/// timing says.
pub(super) fn shared_work(findings: &[Finding], trees: &Trees) -> Vec<TraceName> {
    let alike = || findings.iter().filter(|it| it.reason.is_alike());
    if trees.runs.len() < 3 || alike().next().is_none() {
        return Vec::new();
    }
    let timing = Timing::of(&trees.forest, &trees.roots());
    let all = trees.roots_of_runs();
    let teams = Teams::of(trees, &all);
    let processes_share = processes_share(trees, &all, &timing);
    let has_share = |finding: &&Finding| {
        let is_timed = match finding.divergence() {
            // How often it goes round elsewhere is its own.
            Some(it) if finding.reason == Reason::Counts => it
                .caller()
                .is_none_or(|caller| timing.waits.contains(&caller)),
            _ => true,
        };
        let shares = |root: NodeId| {
            teams.is_in(finding.trace.process) || timing.shares_work(&trees.forest, root)
        };
        let is_main = finding.trace.thread == ThreadName::Main(0);
        let root = trees.last().root(finding.trace);
        (processes_share && is_main) || (is_timed && root.is_some_and(shares))
    };
    alike().filter(has_share).map(|it| it.trace).collect()
}

/// Adds what is wrong in the arguments of MPI calls; gives whether ranks disagree within one call, or one leaves its own series.
pub(super) fn pass_arguments(findings: &mut Vec<Finding>, trees: &Trees) -> bool {
    let normals = trees.normal_runs();
    let last = trees.last();
    let wrong = disagreement::wrong(&normals, last.run).into_iter();
    // Without one in the normal run, a trace is told as new.
    let wrong = wrong.filter(|wrong| last.place(wrong.trace).is_some());
    // Of a part of a trace what lies in it.
    let wrong = wrong.filter_map(|mut wrong| {
        if let Some(cut) = last.cut(wrong.trace) {
            wrong.event = cut.of_part(wrong.event)?;
        }
        Some(wrong)
    });
    let mut mismatch = false;
    // What may depend on data is no difference by itself where one normal run cannot tell.
    let alike = normals.len() == 1 && findings.iter().all(|it| it.reason.is_alike());
    for wrong in wrong.filter(|wrong| !(wrong.is_weak && alike)) {
        mismatch |= wrong.is_mismatch || (wrong.leaves_series && !wrong.is_weak);
        let place = findings
            .iter()
            .position(|finding| finding.trace == wrong.trace);
        let place = place.unwrap_or_else(|| {
            findings.push(Finding::new(wrong.trace, Reason::Arguments));
            findings.len() - 1
        });
        findings[place].pass(wrong);
    }
    mismatch
}

/// Adds what else is to be told of traces that differ, and gives their events the numbers of whole traces. `given` is what the given
/// filter leaves, which shows what all traces share before it shows what one does, if there is such (`is_shared`).
pub(super) fn describe(
    findings: &mut [Finding],
    trees: &Trees,
    given: &Pair,
    is_shared: bool,
    options: &Options,
) {
    let by_mpi = findings.iter().any(|finding| finding.by_mpi().is_some());
    let last = trees.runs.len() - 1;
    let mpi = by_mpi.then(|| Pair::new(trees, 0, last, sweep::mpi(options)));
    let parting = |finding: &Finding| match mpi.as_ref().filter(|_| finding.by_mpi().is_some()) {
        _ if finding.reason == Reason::Unusual => None,
        Some(mpi) => finding.parting(mpi, trees),
        None if !is_shared || finding.shared => finding.parting(given, trees),
        None => None,
    };
    let mut looked = Looked::default();
    for finding in findings {
        finding.beside = Beside {
            parting: parting(finding),
            phases: looked.phases(finding, trees),
            changes: looked.changes(finding, trees),
            ended: match options.part.to {
                None => ended(finding, trees.last().run),
                Some(_) => None,
            },
        };
        finding.place(trees);
    }
}

/// How many different traces are divided into phases: each direct call of a frame is looked at.
const WITH_PHASES: usize = 64;

/// So many traces are looked at for what they call more often, or less.
const WITH_CHANGES: usize = 8;

/// What was looked at in the trees of traces.
#[derive(Default)]
struct Looked {
    phases: FxHashMap<(Vec<NodeId>, NodeId), Option<Phases>>,
    changes: usize,
}

impl Looked {
    /// The iterations of the outermost loop of a trace that differs in structure.
    fn phases(&mut self, finding: &Finding, trees: &Trees) -> Option<Phases> {
        if finding.reason.is_alike() || finding.reason == Reason::Unmatched {
            return None;
        }
        let normals = trees.normals().iter();
        let before: Vec<NodeId> = normals.filter_map(|it| it.root(finding.trace)).collect();
        let key = (before, trees.last().root(finding.trace)?);
        if !self.phases.contains_key(&key) && self.phases.len() == WITH_PHASES {
            return None;
        }
        let found = self.phases.entry(key);
        found
            .or_insert_with_key(|(before, faulty)| phases(trees, before, *faulty, finding.event()))
            .clone()
    }

    /// What a trace calls more often, or less, that is unlike normal ones in no other way, or is unusual as a whole.
    fn changes(&mut self, finding: &Finding, trees: &Trees) -> Vec<Change> {
        let is_asked = finding.reason.is_alike() || finding.standing.is_some();
        if !is_asked || self.changes == WITH_CHANGES {
            return Vec::new();
        }
        self.changes += 1;
        let mut changes = totals::changes(trees, finding.trace);
        // What it had not come to yet it does not call.
        let is_over = finding.stuck().is_none();
        changes.retain(|it| is_over || !it.is_gone());
        changes.truncate(WITH_CHANGES);
        changes
    }
}

/// How the process of a trace ended, if it did so by itself, and not well. What many share comes from their launcher, and so does that
/// one ended in a call that waits when its launcher was killed.
fn ended(finding: &Finding, faulty: &Run) -> Option<String> {
    let mut processes = faulty.processes.iter();
    let process = processes.find(|it| it.name == finding.trace.process)?;
    let end = process.end;
    let alike = faulty.processes.iter().filter(|it| it.end == end).count();
    let is_alone = faulty.processes.len() == 1 || 2 * alike <= faulty.processes.len();
    let is_lost = (faulty.is_mpi && end.tells_of_a_lost_launcher())
        || (end.kind == EndKind::Exited && faulty.lost_its_launcher());
    if !is_alone || (is_lost && finding.is_waiting()) {
        return None;
    }
    match (end.kind, end.code?) {
        (EndKind::Exited, code) if code != 0 => Some(format!("ended (exit {code})")),
        (_, signal) if unended::is_crash(&end) => {
            // Its call and its return were recorded together.
            let thread = process.threads.iter().find(|it| it.name == finding.trace);
            let leaf = thread.and_then(|it| it.open_leaf);
            let leaf = leaf.map(|id| told(&faulty.function(id).name).into_owned());
            let last = leaf.map(|name| format!(", perhaps in its last call of {name}"));
            Some(format!(
                "ended (signal {signal}{})",
                last.unwrap_or_default()
            ))
        }
        _ => None,
    }
}

/// Traces of one run only. Of several normal runs one that agrees is enough.
pub(super) fn unmatched(trees: &Trees, missing: &[TraceName], extra: &[TraceName]) -> Vec<Finding> {
    let have = |name: TraceName| {
        trees
            .normals()
            .iter()
            .map(move |it| it.place(name).is_some())
    };
    let missing = missing.iter().filter(|name| have(**name).all(|it| it));
    let missing = missing.map(|name| (*name, "is missing: the normal run has it"));
    let extra = extra.iter().filter(|name| !have(**name).any(|it| it));
    let extra = extra.map(|name| (*name, "is new: the normal run does not have it"));
    missing
        .chain(extra)
        .map(|(trace, what)| Finding {
            told: Some(what.to_owned()),
            ..Finding::new(trace, Reason::Unmatched)
        })
        .collect()
}
