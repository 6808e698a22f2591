//! Who differs, how, and in what order of suspicion.

use crate::disagreement::Wrong;
use crate::flat::{self, Iterations, Parting};
use crate::normality::{Evidence, Normality};
use crate::object::{serialize_maybe_trace, serialize_process, serialize_trace};
use crate::phases::Phases;
use crate::sequence::Trees;
use crate::sweep::Pair;
use crate::totals::Change;
use crate::{Divergence, DivergenceKind, ObjectName};
use lockstep_diagnosis::Certainty;
use lockstep_trace::threads::{self, Does, Meaning};
use lockstep_trace::{Frame, ProcessName, Run, SourceLine, ThreadName, TraceName, mpi};
use serde::Serialize;
use std::cmp::Reverse;

mod fact;
mod order;

pub(crate) use fact::fact;
pub(crate) use order::{answer, rank};

/// A trace that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suspect {
    /// The trace.
    #[serde(serialize_with = "serialize_trace")]
    pub trace: TraceName,
    /// Its process.
    #[serde(serialize_with = "serialize_process")]
    pub process: ProcessName,
    /// 0..1, a judgement and no probability: the weight of the kind of its first divergence (wrong
    /// arguments 0.97, another call 0.95, the others wait for it 0.9, in one run only 0.8, ends early 0.5, trip counts 0.2, timing 0.1), divided by the number of
    /// traces of that kind which diverge as early; a quarter of it where all traces diverge alike; with
    /// several normal runs times 1 - p.
    pub confidence: f64,
    /// The first suspect, where this trace differs only after it can have heard of that: perhaps a
    /// consequence. Known where arguments of MPI calls are recorded.
    #[serde(serialize_with = "serialize_maybe_trace")]
    pub after: Option<TraceName>,
    /// With several normal runs: how often a normal run has a trace as unusual as this one.
    pub p: Option<f64>,
    /// With several normal runs: how unusual it is, in standard deviations of its role.
    pub score: Option<f64>,
    /// With several normal runs: the share of resamples of them in which it is among the first three.
    pub stability: Option<f64>,
    /// With several normal runs: the role that it plays in them.
    pub role: Option<String>,
    /// With several normal runs: what is unusual in it.
    pub evidence: Vec<Evidence>,
    /// Whether the others wait for it, or it did what makes them wait.
    #[serde(skip)]
    pub is_culprit: bool,
    /// Why, strongest first, in sentences.
    pub reasons: Vec<String>,
    /// The kind of the strongest reason.
    pub reason: Reason,
    /// Sum of its row of the JSM_D, mean over filters and attributes.
    pub row_sum: f64,
    /// The iterations of its outermost loop beside those of the normal runs, if they have such a loop. Where they are not
    /// alike in it, no body is new.
    pub phases: Option<Phases>,
    /// Its first divergence, unless it is in one run only.
    pub divergence: Option<Divergence>,
    /// The event of a call whose argument is its strongest reason.
    #[serde(skip)]
    pub wrong_at: Option<u64>,
}

impl Suspect {
    /// How certain it is that it is to blame, beside what others find.
    #[must_use]
    pub fn certainty(&self) -> Certainty {
        match self.reason {
            Reason::EndsEarly if !self.is_culprit => Certainty::EndsEarly,
            _ => Certainty::Differs,
        }
    }
}

/// In what way a trace differs; earlier ones are more suspicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It passes what the others of a collective do not, or a reduction or datatype that is new.
    Arguments,
    /// It makes another call than before.
    OtherCall,
    /// It exists in one run only.
    Unmatched,
    /// It ends early: perhaps a victim of another.
    EndsEarly,
    /// It is nowhere unlike all normal runs, and unusual as a whole.
    Unusual,
    /// Only trip counts differ.
    Counts,
    /// Only what depends on timing differs, and trip counts.
    Timing,
}

impl Reason {
    pub(crate) fn of(kind: DivergenceKind) -> Self {
        match kind {
            DivergenceKind::OtherCall | DivergenceKind::GoesOn => Self::OtherCall,
            DivergenceKind::EndsEarly => Self::EndsEarly,
            DivergenceKind::Counts => Self::Counts,
            DivergenceKind::Timing => Self::Timing,
        }
    }

    /// In a program that never does the same twice, a trace may be as unusual without another call; an early end, or a trace that is
    /// not there, says more than how often something came.
    const fn apart_from_noise(self) -> Self {
        match self {
            Self::Unusual => Self::OtherCall,
            other => other,
        }
    }

    /// As JSON has it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Arguments => "arguments",
            Self::OtherCall => "other-call",
            Self::Unmatched => "unmatched",
            Self::EndsEarly => "ends-early",
            Self::Unusual => "unusual",
            Self::Counts => "counts",
            Self::Timing => "timing",
        }
    }

    /// Whether the trace does what it did, but for how often and for what depends on timing.
    pub(crate) const fn is_alike(self) -> bool {
        matches!(self, Self::Counts | Self::Timing)
    }

    const fn weight(self) -> f64 {
        match self {
            Self::Arguments => 0.97,
            Self::OtherCall => 0.95,
            Self::Unmatched => 0.8,
            Self::EndsEarly => 0.5,
            Self::Unusual => 0.5,
            Self::Counts => 0.2,
            Self::Timing => 0.1,
        }
    }
}

/// An open call.
pub(crate) struct Stuck {
    pub(crate) function: String,
    /// What it does.
    pub(crate) meaning: Meaning,
    /// Where it was called, if known.
    pub(crate) line: Option<SourceLine>,
}

impl Stuck {
    /// The call that a thread is in.
    pub(crate) fn of(run: &Run, frame: &Frame) -> Self {
        let function = run.function(frame.function);
        Self {
            function: function.name.clone(),
            meaning: match function.imported {
                true => threads::guess(&function.name),
                false => threads::meaning(&function.name),
            },
            line: frame.called_at.clone(),
        }
    }

    /// Whether it is a call that waits for others.
    fn waits(&self) -> bool {
        let it = self.meaning;
        it.waits_for_others() || it.is_openmp() || mpi::is_mpi(self.function.as_bytes())
    }
}

/// A trace that differs, and all that is known of it.
pub(crate) struct Finding {
    pub(crate) trace: TraceName,
    pub(crate) reason: Reason,
    pub(crate) divergence: Option<Divergence>,
    /// The normal run whose trace explains most of it.
    pub(crate) nearest: usize,
    /// Whether all traces of its kind diverge so, and it in no other way.
    pub(crate) shared: bool,
    /// The same divergence under the MPI filter, if that shows it: its calls and loops are those that
    /// people know.
    pub(crate) by_mpi: Option<Divergence>,
    /// The innermost call that is open at the end of the trace.
    pub(crate) stuck: Option<Stuck>,
    /// How far the normal trace was when they parted, 0..1.
    pub(crate) progress: f64,
    /// The filter of the short diffNLR, and itself.
    pub(crate) parting: Option<(String, Parting)>,
    /// An argument that is wrong, in words, and its event.
    pub(crate) wrong: Option<Wrong>,
    /// The logical time of the place where it differs, and whether it can have heard of the first suspect's.
    pub(crate) time: Option<u64>,
    pub(crate) heard: bool,
    /// The iterations of its outermost loop, beside those of the normal runs.
    pub(crate) phases: Option<Phases>,
    /// How its process ended, if it did so by itself and not well: `ended (exit 1)`.
    pub(crate) ended: Option<String>,
    /// Whether the other traces wait for it, by the analysis of who waits for whom.
    pub(crate) is_culprit: bool,
    /// Whether its process crashed in it, as none does in normal runs.
    pub(crate) has_crashed: bool,
    /// Whether it differs after it started a process of another program that differs, too: it answers to how that went.
    pub(crate) answers: bool,
    /// Functions that it calls more often than in the normal runs, or less, if somebody looked; what says most first.
    pub(crate) changes: Vec<Change>,
    /// Instead of a divergence: what the trace does, in words.
    pub(crate) told: Option<String>,
    /// Beside several normal runs: how unusual it is.
    pub(crate) standing: Option<Standing>,
}

/// A trace beside several normal runs.
pub(crate) struct Standing {
    pub(crate) p: f64,
    /// Whether normal runs have traces as unusual, by the level.
    pub(crate) is_usual: bool,
    /// Whether normal runs do the same each time: then its first divergence is no chance.
    pub(crate) is_steady: bool,
    /// Whether it is the order of its calls that is unusual.
    pub(crate) is_out_of_order: bool,
    pub(crate) score: f64,
    pub(crate) stability: f64,
    pub(crate) role: Option<String>,
    pub(crate) evidence: Vec<Evidence>,
}

/// How unusual a trace is: lower is more.
type Rarity = (u64, Reverse<u64>);

/// How many traces have evidence: it is looked for in the events.
const WITH_EVIDENCE: usize = 8;

impl Finding {
    /// Events of a part of the trace as those of the trace, or where the part is the trace, nothing.
    pub(crate) fn place(&mut self, trees: &Trees) {
        let last = trees.runs.len() - 1;
        let of = |run: usize, event: &mut u64| {
            if let Some(cut) = trees.cut(run, self.trace) {
                *event = cut.of_trace(*event);
            }
        };
        let told = [&mut self.divergence, &mut self.by_mpi];
        for divergence in told.into_iter().flatten() {
            of(last, &mut divergence.event);
            of(self.nearest, &mut divergence.normal_event);
        }
        if let Some(wrong) = &mut self.wrong {
            of(last, &mut wrong.event);
        }
    }

    /// The event at which it differs.
    pub(crate) fn event(&self) -> Option<u64> {
        let wrong = self
            .wrong
            .as_ref()
            .filter(|_| self.reason == Reason::Arguments);
        let divergence = self.divergence.as_ref().map(|it| it.event);
        wrong.map(|it| it.event).or(divergence)
    }

    /// Its logical time, where messages were matched and the trace did something: when one began to wait says nothing
    /// of who made it wait. Else where in its loops the trace was, as far as traces can be compared in that: iterations, outermost
    /// loop first. What lies outside of loops comes before all of them or after, by how far the
    /// normal trace was.
    fn coordinate(&self) -> Vec<u64> {
        if let Some(time) = self.time
            && self.reason != Reason::EndsEarly
        {
            return vec![time];
        }
        match (self.loops().is_empty(), self.progress < 0.5) {
            (false, _) => self
                .loops()
                .iter()
                .map(|(_, iteration)| *iteration)
                .collect(),
            (true, true) => vec![0],
            (true, false) => vec![u64::MAX],
        }
    }

    /// The loops around the divergence, outermost first, and the iteration, from 1.
    pub(crate) fn loops(&self) -> &[(String, u64)] {
        let divergence = self.by_mpi.as_ref().or(self.divergence.as_ref());
        divergence.map_or(&[], |divergence| &divergence.loops)
    }

    /// What these loops call, if somebody looked.
    pub(crate) fn around(&self) -> &[String] {
        let divergence = self.by_mpi.as_ref().or(self.divergence.as_ref());
        divergence.map_or(&[], |divergence| &divergence.around)
    }

    /// A trace that differs, of which no more is known.
    pub(crate) fn new(trace: TraceName, reason: Reason, divergence: Option<Divergence>) -> Self {
        Self {
            trace,
            reason,
            divergence,
            nearest: 0,
            by_mpi: None,
            stuck: None,
            shared: false,
            progress: 0.0,
            parting: None,
            changes: Vec::new(),
            told: None,
            time: None,
            heard: false,
            phases: None,
            ended: None,
            is_culprit: false,
            has_crashed: false,
            answers: false,
            wrong: None,
            standing: None,
        }
    }

    /// Whether it comes after the traces that the others wait for: those come before all that end early, too, and before
    /// all that differ in runs that never do the same.
    fn is_behind_culprits(&self, by_score: bool) -> bool {
        let before = match self.reason {
            Reason::Arguments => true,
            Reason::OtherCall | Reason::Unmatched => !by_score,
            _ => false,
        };
        !before && !self.is_culprit
    }

    /// Whether it only waits for another thread's end, which then never came.
    pub(crate) fn joins(&self) -> bool {
        let stuck = self.stuck.as_ref();
        self.reason == Reason::EndsEarly && stuck.is_some_and(|it| it.meaning.does == Does::Join)
    }

    /// Whether its last call is one that waits for others.
    pub(crate) fn is_waiting(&self) -> bool {
        self.stuck.as_ref().is_some_and(Stuck::waits)
    }

    /// Whether it only waits for others, who then never came.
    fn waits(&self) -> bool {
        self.reason == Reason::EndsEarly && self.is_waiting()
    }

    /// Whether it is a thread that does what the main one of its process tells it.
    fn follows(&self) -> bool {
        self.trace.thread != ThreadName::Main(0) && self.reason == Reason::OtherCall
    }

    /// How unusual it is beside several normal runs.
    fn rarity(&self) -> Rarity {
        let (p, score) = (self.standing.as_ref()).map_or((0.0, 0.0), |it| (it.p, it.score));
        ((p * 1e12) as u64, Reverse((score * 1e6) as u64))
    }

    /// Whether normal runs differ from each other as much.
    pub(crate) fn is_usual(&self) -> bool {
        self.standing.as_ref().is_some_and(|it| it.is_usual)
    }

    /// What is most unusual in a trace that never does the same: its first divergence says nothing.
    pub(crate) fn oddity(&self) -> Option<&Evidence> {
        let standing = self.standing.as_ref()?;
        let without =
            (self.divergence.is_none() && self.told.is_none()) || self.reason == Reason::Timing;
        // Timing is no part of where it first differs.
        let is_found = standing.is_out_of_order && self.reason == Reason::OtherCall;
        (without || !(standing.is_steady || is_found))
            .then(|| standing.evidence.first())
            .flatten()
    }

    /// Takes in a wrong argument; what comes before it stays the reason, and that it is the argument of another call: what a trace
    /// made instead of the call that the others made says less than where it left the way.
    pub(crate) fn pass(&mut self, wrong: Wrong) {
        let before = self.divergence.as_ref().is_some_and(|divergence| {
            self.reason == Reason::OtherCall && divergence.event <= wrong.event
        });
        // What all traces do otherwise says nothing of this one.
        if !before || self.shared {
            self.reason = Reason::Arguments;
            self.shared = false;
        }
        self.wrong = Some(wrong);
    }

    fn weight(&self) -> f64 {
        let weight = match self.is_culprit {
            true => self.reason.weight().max(0.9),
            false => self.reason.weight(),
        };
        if self.shared { weight / 4.0 } else { weight }
    }

    /// Adds the short diffNLR under a pair's filter.
    pub(crate) fn part(&mut self, pair: &Pair, trees: &Trees) {
        let object = ObjectName::from(self.trace);
        let Some(place) = pair.names.iter().position(|name| *name == object) else {
            return;
        };
        let (normal, faulty) = (pair.normal[place], pair.faulty[place]);
        self.parting = flat::parting(normal.sequence, faulty.sequence, &pair.folding, trees)
            .map(|parting| (pair.lens.filter.to_string(), parting));
    }

    /// The loop in which the traces parted, if the short diffNLR shows the same one.
    pub(crate) fn iterations(&self) -> Option<&Iterations> {
        let (_, parting) = self.parting.as_ref()?;
        let iterations = parting.iterations.as_ref()?;
        let [(_, at)] = self.loops() else {
            return None;
        };
        (iterations.done.checked_add(1) == Some(*at)).then_some(iterations)
    }
}

/// Adds traces that are unusual as a whole, and how unusual each one is.
pub(crate) fn weigh(
    findings: &mut Vec<Finding>,
    normality: &Normality,
    trees: &Trees,
    faulty: &Run,
    level: f64,
) {
    for trace in normality.beyond(level) {
        if findings.iter().all(|finding| finding.trace != trace) {
            findings.push(Finding::new(trace, Reason::Unusual, None));
        }
    }
    findings.sort_by(|a, b| {
        let score = |finding: &Finding| normality.score(finding.trace.into());
        score(b).total_cmp(&score(a)).then(a.trace.cmp(&b.trace))
    });
    for (place, finding) in findings.iter_mut().enumerate() {
        let object = finding.trace.into();
        let p = normality.p(object);
        let evidence = match place {
            0..WITH_EVIDENCE => normality.evidence(trees, faulty, finding.trace),
            _ => Vec::new(),
        };
        finding.standing = Some(Standing {
            p,
            // A trace that no normal run has cannot be judged.
            is_usual: p >= level
                && match finding.reason {
                    Reason::Unmatched => false,
                    Reason::Arguments => finding.wrong.as_ref().is_some_and(|it| it.is_weak),
                    _ => true,
                },
            is_steady: normality.is_steady(object),
            is_out_of_order: normality.is_out_of_order(object, level),
            score: normality.score(object),
            stability: normality.stability(object),
            role: normality.role(object).map(str::to_owned),
            evidence,
        });
    }
}

/// `p = 0.031`, `p < 0.001`.
#[must_use]
pub fn p_in_words(p: f64) -> String {
    match p < 0.001 {
        true => "p < 0.001".to_owned(),
        false => format!("p = {p:.3}"),
    }
}
