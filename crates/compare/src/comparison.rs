//! `lockstep compare`: whether a run differs from normal ones, who fell out of step, and why.

use crate::builds::{self, Builds};
use crate::disagreement;
use crate::findings::findings;
use crate::internals;
use crate::normality::{Normality, Role};
use crate::notes;
use crate::object::serialize_traces;
use crate::phases::phases;
use crate::sequence::{Lens, Trees};
use crate::steady;
use crate::suspect::{Finding, Reason, Suspect, answer, fact, rank, weigh};
use crate::sweep::{self, Pair, Top};
use crate::teams::{Teams, processes_share};
use crate::timing::Timing;
use crate::totals::{self, Change};
use crate::unended;
use crate::verdict::Case;
use crate::{CausalOrder, Dendrogram, Error, Options, Phases, Row, Similarity};
use lockstep_calltree::{NodeId, Trace};
use lockstep_trace::{End, EndKind, Fact, Run, ThreadName, TraceName, in_short};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// What came of comparing a run with normal ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Whether they differ, by the rule of the command line.
    pub differs: bool,
    /// One sentence: who, where, what.
    pub verdict: String,
    /// The same as values, most suspicious first; of more than [`FACTS`] traces these.
    pub facts: Vec<Fact>,
    /// With several normal runs: how often one of them, beside the others, is as unusual as the faulty
    /// run; `None` with one.
    pub p: Option<f64>,
    /// With several normal runs: the roles that traces play in them.
    pub roles: Vec<Role>,
    /// Traces that differ, most suspicious first.
    pub suspects: Vec<Suspect>,
    /// The ranking table, lowest B-score first.
    pub table: Vec<Row>,
    /// Its closing row: who is a candidate most often.
    pub top: Top,
    /// What could not be compared, or should be known when reading the rest.
    pub notes: Vec<String>,
    /// Functions that were left out of the search for the first divergence, since all traces call them
    /// otherwise in the same way (see `notes`).
    pub left_out: Vec<String>,
    /// Of two builds of a program, what is compared by another name and what is not compared; `None` where there is but one.
    pub builds: Option<Builds>,
    /// Traces of the normal run without a partner in the faulty one.
    #[serde(serialize_with = "serialize_traces")]
    pub missing: Vec<TraceName>,
    /// Traces of the faulty run without a partner in the normal one.
    #[serde(serialize_with = "serialize_traces")]
    pub extra: Vec<TraceName>,
    /// The matrices and trees under the given options (outside a sweep: its only row). Of more than [`WRITTEN`] traces
    /// it is not written: a matrix has a number for each pair.
    #[serde(skip_serializing_if = "View::is_large")]
    pub view: View,
}

/// So many traces are told of as values: where a call was made is looked up for each.
const FACTS: usize = 64;

/// Traces whose matrices are written.
const WRITTEN: usize = 1024;

impl View {
    fn is_large(&self) -> bool {
        self.normal.traces.len() > WRITTEN
    }
}

/// Both runs under one set of options: what the pictures show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct View {
    /// The filter in the papers' form.
    pub filter: String,
    /// Likeness of the normal run's traces.
    pub normal: Similarity,
    /// Likeness of the faulty run's traces.
    pub faulty: Similarity,
    /// Absolute difference of the two (JSM_D).
    pub difference: Similarity,
    /// Clustering of the normal run.
    pub normal_tree: Dendrogram,
    /// Clustering of the faulty run.
    pub faulty_tree: Dendrogram,
    /// Clustering of the difference.
    pub difference_tree: Dendrogram,
}

/// Compares a run with one or more normal ones. `progress` is told how many sets of options are done,
/// of how many, from any thread.
///
/// The first normal run is the one that similarities, pictures and notes refer to. The others widen
/// what is normal: what a trace does is accepted if one of them does it, and a p-value tells whether it
/// is more unusual than they are among themselves, in what it calls, how often, in what order, and in
/// what its MPI calls are given. Then that value decides, not structure.
///
/// # Errors
/// No normal run; a pattern that does not parse; a filter that keeps nothing; runs without a common
/// trace.
pub fn compare(
    normals: &[&Run],
    faulty: &Run,
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Comparison, Error> {
    compare_in_order(normals, faulty, options, None, progress)
}

/// [`compare`], with the causal order of the faulty run's events: of traces that differ in the same way
/// the earliest in that order comes first, and those that can have heard of it are called its
/// consequences.
///
/// # Errors
/// As [`compare`].
pub fn compare_in_order(
    normals: &[&Run],
    faulty: &Run,
    options: &Options,
    order: Option<&dyn CausalOrder>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Comparison, Error> {
    let Some(normal) = normals.first() else {
        return Err(Error::Nothing("expected a normal run, found none".into()));
    };
    let runs: Vec<&Run> = normals.iter().copied().chain([faulty]).collect();
    let last = runs.len() - 1;
    let mut trees = Trees::new(&runs, options)?;
    let builds = builds::leave_out(&mut trees, &runs, options);
    let missing = notes::unmatched(&trees, 0, last);
    let extra = notes::unmatched(&trees, last, 0);
    let compared = trees.runs[0].len() - missing.len();
    if compared == 0 {
        return Err(Error::Nothing(format!(
            "expected traces of the same names in both runs, found {} in the normal run and {} in the faulty one, with none in common",
            trees.runs[0].len(),
            trees.runs[last].len()
        )));
    }
    let (mut findings, commons) = findings(&mut trees, &runs, options);
    findings.extend(unmatched(&trees, &missing, &extra));
    let mismatch = pass_arguments(&mut findings, &trees, normals, faulty);

    let ranking = sweep::sweep(&trees, (0, last), options, progress)?;
    let given = Pair::new(&trees, 0, last, Lens::of(options));
    if given.is_empty() {
        return Err(given.lens.keeps_nothing());
    }
    let by_mpi = findings.iter().any(|finding| finding.by_mpi.is_some());
    let mpi = by_mpi.then(|| Pair::new(&trees, 0, last, sweep::mpi(options)));
    for finding in &mut findings {
        match mpi.as_ref().filter(|_| finding.by_mpi.is_some()) {
            Some(mpi) => finding.part(mpi, &trees),
            // The given filter shows what all traces share before it shows what this one does.
            None if commons.is_empty() || finding.shared => finding.part(&given, &trees),
            None => {}
        }
    }
    let some_alone = findings.iter().any(|finding| !finding.shared);
    findings.retain(|finding| !(finding.shared && some_alone));
    // What all traces do otherwise is no sign of one of them, and all that there is if there is no other.
    let left_out: Vec<String> = commons.iter().map(|it| it.left_out.clone()).collect();
    let left_out = if some_alone { left_out.as_slice() } else { &[] };
    let shared = shared_work(&findings, &trees);
    let normality = Normality::new(&mut trees, &runs, options, left_out, shared);
    if let Some(normality) = &normality {
        weigh(&mut findings, normality, &trees, faulty, options.level);
    }
    add_phases(&mut findings, &trees);
    add_changes(&mut findings, &trees, &runs);
    for finding in &mut findings {
        finding.place(&trees);
    }
    if options.part.to.is_none() {
        add_ends(&mut findings, faulty);
    }
    let p = normality.as_ref().map(Normality::smallest);
    let unmatched = findings.iter().any(|it| it.reason == Reason::Unmatched);
    let mut differs = match p {
        Some(p) => p < options.level || unmatched || mismatch,
        None => findings
            .iter()
            .any(|finding| !finding.reason.is_alike() || options.counts),
    };
    answer(&mut findings, faulty);
    // Who waits for a thread's end tells no more than that it did not come, and who started the process no more than how it ended.
    let mut told = findings.iter().filter(|it| !it.is_usual());
    let asks = p.is_some() && (!differs || told.all(|it| it.joins() || it.answers));
    let mut by_steps = false;
    if asks && findings.iter().any(steady::is_step) {
        let steady = steady::go_the_same_way(normals, options)?;
        let timing = Timing::of(&trees.forest, &trees.roots());
        by_steps = findings
            .iter()
            .any(|it| it.is_usual() && steady.tells(it, &timing));
        if by_steps {
            steady::suspect(&mut findings, steady, &timing);
            differs = true;
        }
    }
    if options.part.to.is_none() {
        let mut unended = unended::unended(normals, faulty);
        // A crash is told whatever else differs, a hang where nothing else does.
        unended.retain(|_, end| (asks && !by_steps) || unended::is_crash(end));
        unended::suspect(&mut findings, &unended, faulty);
        differs |= !unended.is_empty();
    }
    // What differs by now may be another's.
    answer(&mut findings, faulty);
    let suspects = rank(&mut findings, &ranking, order, faulty);

    let mut notes = notes::notes(normal, faulty, &missing, &extra, builds.as_ref());
    let empty = trees.without_part(last);
    if let (Some(from), false) = (&options.part.from, empty.is_empty()) {
        notes.push(format!(
            "nothing is looked at of {}, which never call {from} (--from) in the faulty run",
            in_short(&empty)
        ));
    }
    notes.extend(trees.left_out());
    notes.extend(own(&trees, last));
    if let Some(p) = p {
        notes.extend(notes::estimated(p, normals.len(), options.level));
    }
    notes.extend(by_steps.then(|| steady::note(normals.len())));
    if let (false, Some(normality)) = (differs, &normality) {
        notes.extend(normality.new_orders(&trees, faulty));
    }
    if p.is_none() && differs && wavers(&findings) {
        notes.push(
            "several threads do something else, and one normal run does not tell what varies from run to run anyway: more of them (--normal) would"
                .to_owned(),
        );
    }
    let case = Case {
        faulty,
        differs,
        findings: &findings,
        compared,
    };
    let mut verdict = case.sentence();
    let is_timed = p.is_some() || findings.iter().any(|it| it.reason == Reason::Timing);
    if !differs && is_timed {
        notes.extend(in_sum(&trees, &runs));
    }
    if !differs && trees.left_out().is_some() {
        verdict.push_str(" (as far as was looked at: see the notes)");
    }
    if some_alone {
        let strangers = builds.as_ref().and_then(|it| it.strangers);
        let at = usize::from(strangers.is_some());
        notes.splice(at..at, commons.iter().map(|common| case.common(common)));
    }
    let told = findings.iter().take(FACTS);
    let view = view(&trees, &given, options)?;
    if view.is_large() {
        notes.push(format!(
            "of more than {WRITTEN} traces the matrices (`view`) are not in the JSON"
        ));
    }
    Ok(Comparison {
        differs,
        verdict,
        facts: told.map(|it| fact(it, faulty)).collect(),
        p,
        roles: normality.map_or_else(Vec::new, |it| it.roles),
        suspects,
        top: Top::of(&ranking.rows),
        table: ranking.rows,
        notes,
        left_out: commons.into_iter().map(|common| common.left_out).collect(),
        builds,
        missing,
        extra,
        view,
    })
}

/// Traces that go as normal ones go but for the share that they have in the work of a team, or in handing it over: how large it is,
/// timing says.
fn shared_work(findings: &[Finding], trees: &Trees) -> Vec<TraceName> {
    let alike = || findings.iter().filter(|it| it.reason.is_alike());
    if trees.runs.len() < 3 || alike().next().is_none() {
        return Vec::new();
    }
    let timing = Timing::of(&trees.forest, &trees.roots());
    let all: Vec<Vec<NodeId>> = (trees.runs.iter())
        .map(|run| run.iter().map(|it| it.root).collect())
        .collect();
    let teams = Teams::of(trees, &all);
    let processes_share = processes_share(trees, &all, &timing);
    let last = trees.runs.last().map_or(&[][..], Vec::as_slice);
    let has_share = |finding: &&Finding| {
        let place = last.binary_search_by_key(&finding.trace, |it| it.name);
        let is_timed = match &finding.divergence {
            // How often it goes round elsewhere is its own.
            Some(it) if finding.reason == Reason::Counts => it
                .caller()
                .is_none_or(|caller| timing.waits.contains(&caller)),
            _ => true,
        };
        let shares = |place: usize| {
            let trace = &last[place];
            teams.is_in(trace.name.process) || timing.shares_work(&trees.forest, trace.root)
        };
        let is_main = finding.trace.thread == ThreadName::Main(0);
        (processes_share && is_main) || (is_timed && place.is_ok_and(shares))
    };
    alike().filter(has_share).map(|it| it.trace).collect()
}

/// Adds what is wrong in the arguments of MPI calls; gives whether ranks disagree within one call, or one leaves its own series.
fn pass_arguments(
    findings: &mut Vec<Finding>,
    trees: &Trees,
    normals: &[&Run],
    faulty: &Run,
) -> bool {
    let compared = trees.runs.last().map_or(&[][..], Vec::as_slice);
    let wrong = disagreement::wrong(normals, faulty).into_iter();
    // Without one in the normal run, a trace is told as new.
    let wrong = wrong.filter(|wrong| compared.iter().any(|trace| trace.name == wrong.trace));
    // Of a part of a trace what lies in it.
    let wrong = wrong.filter_map(|mut wrong| {
        if let Some(cut) = trees.cut(trees.runs.len() - 1, wrong.trace) {
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
            findings.push(Finding::new(wrong.trace, Reason::Arguments, None));
            findings.len() - 1
        });
        findings[place].pass(wrong);
    }
    mismatch
}

/// Traces of which somebody says something else in the faulty run are told, up to so many.
const OTHERWISE: usize = 6;

/// What somebody says of traces of one run only.
fn own(trees: &Trees, last: usize) -> Vec<String> {
    let mut told = Vec::new();
    for (name, normal) in trees.own_of(0) {
        let faulty = trees.own_of(last).find(|(other, _)| *other == name);
        let faulty = faulty.map_or(&[][..], |(_, set)| set);
        for (set, other, which) in [(normal, faulty, "normal"), (faulty, normal, "faulty")] {
            let only = set.iter().filter(|it| !other.contains(it));
            told.extend(only.map(|it| format!("`{it}` of {name} in the {which} run only")));
        }
    }
    let more = told.len().saturating_sub(OTHERWISE);
    told.truncate(OTHERWISE);
    match (told.is_empty(), more) {
        (true, _) => Vec::new(),
        (_, 0) => vec![format!("own attributes: {}", told.join(", "))],
        _ => vec![format!(
            "own attributes: {} and {more} more",
            told.join(", ")
        )],
    }
}

/// How many different traces are divided into phases: each direct call of a frame is looked at.
const WITH_PHASES: usize = 64;

/// Adds the iterations of the outermost loop to traces that differ in structure.
fn add_phases(findings: &mut [Finding], trees: &Trees) {
    let Some((last, normals)) = trees.runs.split_last() else {
        return;
    };
    let root = |run: &[Trace], name: TraceName| {
        let place = run.binary_search_by_key(&name, |trace| trace.name).ok()?;
        Some(run[place].root)
    };
    let mut known: FxHashMap<(Vec<NodeId>, NodeId), Option<Phases>> = FxHashMap::default();
    for finding in findings {
        let structural = !finding.reason.is_alike() && finding.reason != Reason::Unmatched;
        let Some(faulty) = root(last, finding.trace).filter(|_| structural) else {
            continue;
        };
        let before: Vec<NodeId> = normals
            .iter()
            .filter_map(|run| root(run, finding.trace))
            .collect();
        let key = (before, faulty);
        if !known.contains_key(&key) && known.len() == WITH_PHASES {
            continue;
        }
        let found = known
            .entry(key)
            .or_insert_with_key(|(before, faulty)| phases(trees, before, *faulty, finding.event()));
        finding.phases.clone_from(found);
    }
}

/// So many traces are looked at for what they call more often, or less.
const WITH_CHANGES: usize = 8;

/// Adds what they call more often, or less, to traces that are unlike normal ones in no other way, or are unusual as a whole.
fn add_changes(findings: &mut [Finding], trees: &Trees, runs: &[&Run]) {
    let is_asked = |it: &&mut Finding| it.reason.is_alike() || it.standing.is_some();
    for finding in findings.iter_mut().filter(is_asked).take(WITH_CHANGES) {
        finding.changes = totals::changes(trees, runs, finding.trace);
        // What it had not come to yet it does not call.
        let is_over = finding.stuck.is_none();
        finding.changes.retain(|it| is_over || !it.is_gone());
        finding.changes.truncate(WITH_CHANGES);
    }
}

/// Whether several traces do something else, and timing has a part in others: what one of them does may be chance, too.
fn wavers(findings: &[Finding]) -> bool {
    let count = |reason: Reason| findings.iter().filter(|it| it.reason == reason).count();
    let is_sure = findings.iter().any(|it| it.is_culprit || it.has_crashed);
    count(Reason::OtherCall) > 1 && count(Reason::Timing) > 0 && !is_sure
}

/// What is called much more or less in all traces together, never any more, or was never before: a note beside a verdict that finds no
/// difference, since which trace does it depends on timing.
fn in_sum(trees: &Trees, runs: &[&Run]) -> Option<String> {
    let changes = totals::together(trees, runs);
    let told: Vec<String> = changes
        .iter()
        .take(FEW_CHANGES)
        .map(Change::clause)
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "no difference by itself, since it depends on timing who does what; but all traces together do otherwise: the run {}",
            told.join("; it ")
        )
    })
}

/// So many changes are told.
const FEW_CHANGES: usize = 3;

/// Adds how processes ended that did so by themselves, and not well. What many share comes from their launcher, and so does that one
/// ended in a call that waits when its launcher was killed.
fn add_ends(findings: &mut [Finding], faulty: &Run) {
    let lost = faulty.lost_its_launcher();
    let alone = |end: &End| {
        let alike = faulty.processes.iter().filter(|it| it.end == *end).count();
        faulty.processes.len() == 1 || 2 * alike <= faulty.processes.len()
    };
    for finding in findings {
        let mut processes = faulty.processes.iter();
        let process = processes.find(|it| it.name == finding.trace.process);
        let ended = process.map(|it| it.end);
        let is_left = |end: &End| {
            let tells = faulty.is_mpi && end.tells_of_a_lost_launcher();
            let lost = tells || (lost && end.kind == EndKind::Exited);
            lost && finding.is_waiting()
        };
        let ended = ended.filter(|end| alone(end) && !is_left(end));
        finding.ended = ended.and_then(|end| match (end.kind, end.code?) {
            (EndKind::Exited, code) if code != 0 => Some(format!("ended (exit {code})")),
            (_, signal) if unended::is_crash(&end) => {
                // Its call and its return were recorded together.
                let thread = process?.threads.iter().find(|it| it.name == finding.trace);
                let leaf = thread.and_then(|it| it.open_leaf);
                let leaf = leaf.map(|id| internals::told(&faulty.function(id).name));
                let last = leaf.map(|name| format!(", perhaps in its last call of {name}"));
                Some(format!(
                    "ended (signal {signal}{})",
                    last.unwrap_or_default()
                ))
            }
            _ => None,
        });
    }
}

/// Traces of one run only. Of several normal runs one that agrees is enough.
fn unmatched(trees: &Trees, missing: &[TraceName], extra: &[TraceName]) -> Vec<Finding> {
    let normals = &trees.runs[..trees.runs.len() - 1];
    let has =
        |run: &[Trace], name: TraceName| run.binary_search_by_key(&name, |it| it.name).is_ok();
    let missing = missing
        .iter()
        .filter(|name| normals.iter().all(|run| has(run, **name)))
        .map(|name| (*name, "is missing: the normal run has it"));
    let extra = extra
        .iter()
        .filter(|name| !normals.iter().any(|run| has(run, **name)))
        .map(|name| (*name, "is new: the normal run does not have it"));
    missing
        .chain(extra)
        .map(|(trace, what)| Finding {
            told: Some(what.to_owned()),
            ..Finding::new(trace, Reason::Unmatched, None)
        })
        .collect()
}

fn view(trees: &Trees, pair: &Pair, options: &Options) -> Result<View, Error> {
    let subjects = pair.subjects(trees, options.attributes)?;
    let matrices = pair.matrices(&subjects, options.frequency);
    let [normal_tree, faulty_tree, difference_tree] =
        sweep::trees(&matrices, options.linkage, options).map(|tree| tree.dendrogram());
    let [normal, faulty, difference] = matrices.map(|matrix| matrix.named(&pair.names));
    Ok(View {
        filter: pair.lens.paper(),
        normal,
        faulty,
        difference,
        normal_tree,
        faulty_tree,
        difference_tree,
    })
}
