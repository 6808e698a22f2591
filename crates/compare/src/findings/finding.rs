//! A trace that differs, and all that is known of it.

use super::wrong::Wrong;
use crate::difftrace::parting::{self, Iterations, Parting};
use crate::difftrace::sweep::Pair;
use crate::difftrace::trees::Trees;
use crate::statistics::normality::Standing;
use crate::statistics::normality::evidence::Evidence;
use crate::structure::phases::Phases;
use crate::structure::totals::Change;
use crate::{Divergence, DivergenceKind, ObjectName};
use lockstep_trace::threads::{self, Does, Meaning};
use lockstep_trace::{Frame, Run, SourceLine, ThreadName, TraceName, mpi};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;

/// How a trace differs; the first value is the most suspicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// An MPI argument is wrong: it differs from the other ranks in a collective call, or from the normal runs.
    Arguments,
    /// The trace makes another call than the normal runs, or continues where they end.
    OtherCall,
    /// Only one of the runs has the trace.
    Unmatched,
    /// The trace ends early. Another trace may be the cause.
    EndsEarly,
    /// No single place is unlike all normal runs, but the trace as a whole is unusual.
    Unusual,
    /// Only numbers of loop iterations differ.
    Counts,
    /// Only timing differs, and perhaps numbers of loop iterations.
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
    pub(crate) const fn apart_from_noise(self) -> Self {
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

    pub(crate) const fn weight(self) -> f64 {
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
    pub(crate) fn waits(&self) -> bool {
        let it = self.meaning;
        it.waits_for_others() || it.is_openmp() || mpi::is_mpi(self.function.as_bytes())
    }
}

/// A trace that differs, and all that is known of it.
pub(crate) struct Finding {
    pub(crate) trace: TraceName,
    pub(crate) reason: Reason,
    /// Where it leaves the normal runs.
    pub(crate) parted: Option<Parted>,
    /// Whether all traces of its kind diverge so, and it in no other way.
    pub(crate) shared: bool,
    /// An argument that is wrong.
    pub(crate) wrong: Option<Wrong>,
    /// Beside several normal runs: how unusual it is.
    pub(crate) standing: Option<Standing>,
    pub(crate) beside: Beside,
    /// Instead of a divergence: what the trace does, in words.
    pub(crate) told: Option<String>,
    pub(crate) blame: Blame,
    pub(crate) causal: Causal,
}

/// Where a trace leaves the normal runs.
pub(crate) struct Parted {
    pub(crate) divergence: Divergence,
    /// The same divergence under the MPI filter, if that shows it: its calls and loops are those that
    /// people know.
    pub(crate) by_mpi: Option<Divergence>,
    /// The normal run whose trace explains most of it.
    pub(crate) nearest: usize,
    /// How far the normal trace was when they parted, 0..1.
    pub(crate) progress: f64,
    /// The innermost call that is open at the end of the trace.
    pub(crate) stuck: Option<Stuck>,
}

/// What else is to be told of a trace.
#[derive(Default)]
pub(crate) struct Beside {
    /// The filter of the short diffNLR, and itself.
    pub(crate) parting: Option<(String, Parting)>,
    /// The iterations of its outermost loop, beside those of the normal runs.
    pub(crate) phases: Option<Phases>,
    /// Functions that it calls more often than in the normal runs, or less, if somebody looked; what says most first.
    pub(crate) changes: Vec<Change>,
    /// How its process ended, if it did so by itself and not well: `ended (exit 1)`.
    pub(crate) ended: Option<String>,
}

/// Whether others differ because of a trace, or it because of others.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Blame {
    /// Whether it differs after it started a process of another program that differs, too: it answers to how that went.
    pub(crate) answers: bool,
    /// Whether its process crashed in it, as none does in normal runs.
    pub(crate) has_crashed: bool,
    /// Whether the other traces wait for it, by the analysis of who waits for whom.
    pub(crate) is_culprit: bool,
}

/// The place where a trace differs, in the causal order.
#[derive(Default)]
pub(crate) struct Causal {
    /// Its logical time.
    pub(crate) time: Option<u64>,
    /// Whether it can have heard of the first suspect's.
    pub(crate) heard: bool,
}

/// How unusual a trace is: lower is more.
pub(crate) type Rarity = (u64, Reverse<u64>);

impl Finding {
    /// Events of a part of the trace as those of the trace, or where the part is the trace, nothing.
    pub(crate) fn place(&mut self, trees: &Trees) {
        let last = trees.runs.len() - 1;
        let of = |run: usize, event: &mut u64| {
            *event = trees.runs[run].of_trace(self.trace, *event);
        };
        if let Some(parted) = &mut self.parted {
            for divergence in [&mut parted.divergence]
                .into_iter()
                .chain(&mut parted.by_mpi)
            {
                of(last, &mut divergence.event);
                of(parted.nearest, &mut divergence.normal_event);
            }
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
        let divergence = self.divergence().map(|it| it.event);
        wrong.map(|it| it.event).or(divergence)
    }

    /// Its logical time, where messages were matched and the trace did something: when one began to wait says nothing
    /// of who made it wait. Else where in its loops the trace was, as far as traces can be compared in that: iterations, outermost
    /// loop first. What lies outside of loops comes before all of them or after, by how far the
    /// normal trace was.
    pub(crate) fn coordinate(&self) -> Vec<u64> {
        if let Some(time) = self.causal.time
            && self.reason != Reason::EndsEarly
        {
            return vec![time];
        }
        let progress = self.parted.as_ref().map_or(0.0, |it| it.progress);
        match self.loops() {
            [] if progress < 0.5 => vec![0],
            [] => vec![u64::MAX],
            loops => loops.iter().map(|(_, iteration)| *iteration).collect(),
        }
    }

    /// The loops around the divergence, outermost first, and the iteration, from 1.
    pub(crate) fn loops(&self) -> &[(String, u64)] {
        let divergence = self.by_mpi().or(self.divergence());
        divergence.map_or(&[], |divergence| &divergence.loops)
    }

    /// What these loops call, if somebody looked.
    pub(crate) fn around(&self) -> &[String] {
        let divergence = self.by_mpi().or(self.divergence());
        divergence.map_or(&[], Divergence::around)
    }

    /// A trace that differs, of which no more is known.
    pub(crate) fn new(trace: TraceName, reason: Reason) -> Self {
        Self {
            trace,
            reason,
            parted: None,
            shared: false,
            wrong: None,
            standing: None,
            beside: Beside::default(),
            told: None,
            blame: Blame::default(),
            causal: Causal::default(),
        }
    }

    /// Where it leaves the normal runs.
    pub(crate) fn divergence(&self) -> Option<&Divergence> {
        Some(&self.parted.as_ref()?.divergence)
    }

    /// The same under the MPI filter.
    pub(crate) fn by_mpi(&self) -> Option<&Divergence> {
        self.parted.as_ref()?.by_mpi.as_ref()
    }

    /// The innermost call that is open at its end.
    pub(crate) fn stuck(&self) -> Option<&Stuck> {
        self.parted.as_ref()?.stuck.as_ref()
    }

    /// Whether it comes after the traces that the others wait for: those come before all that end early, too, and before
    /// all that differ in runs that never do the same.
    pub(crate) fn is_behind_culprits(&self, by_score: bool) -> bool {
        let before = match self.reason {
            Reason::Arguments => true,
            Reason::OtherCall | Reason::Unmatched => !by_score,
            _ => false,
        };
        !before && !self.blame.is_culprit
    }

    /// Whether it only waits for another thread's end, which then never came.
    pub(crate) fn joins(&self) -> bool {
        let stuck = self.stuck();
        self.reason == Reason::EndsEarly && stuck.is_some_and(|it| it.meaning.does == Does::Join)
    }

    /// Whether its last call is one that waits for others.
    pub(crate) fn is_waiting(&self) -> bool {
        self.stuck().is_some_and(Stuck::waits)
    }

    /// Whether it only waits for others, who then never came.
    pub(crate) fn waits(&self) -> bool {
        self.reason == Reason::EndsEarly && self.is_waiting()
    }

    /// Whether it is a thread that does what the main one of its process tells it.
    pub(crate) fn follows(&self) -> bool {
        self.trace.thread != ThreadName::Main(0) && self.reason == Reason::OtherCall
    }

    /// How unusual it is beside several normal runs.
    pub(crate) fn rarity(&self) -> Rarity {
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
            (self.divergence().is_none() && self.told.is_none()) || self.reason == Reason::Timing;
        // Timing is no part of where it first differs.
        let is_found = standing.is_out_of_order && self.reason == Reason::OtherCall;
        (without || !(standing.is_steady || is_found))
            .then(|| standing.evidence.first())
            .flatten()
    }

    /// Takes in a wrong argument; what comes before it stays the reason, and that it is the argument of another call: what a trace
    /// made instead of the call that the others made says less than where it left the way.
    pub(crate) fn pass(&mut self, wrong: Wrong) {
        let before = self.divergence().is_some_and(|divergence| {
            self.reason == Reason::OtherCall && divergence.event <= wrong.event
        });
        // What all traces do otherwise says nothing of this one.
        if !before || self.shared {
            self.reason = Reason::Arguments;
            self.shared = false;
        }
        self.wrong = Some(wrong);
    }

    pub(crate) fn weight(&self) -> f64 {
        let weight = match self.blame.is_culprit {
            true => self.reason.weight().max(0.9),
            false => self.reason.weight(),
        };
        if self.shared { weight / 4.0 } else { weight }
    }

    /// The short diffNLR under a pair's filter.
    pub(crate) fn parting(&self, pair: &Pair, trees: &Trees) -> Option<(String, Parting)> {
        let object = ObjectName::from(self.trace);
        let place = pair.names.iter().position(|name| *name == object)?;
        let (normal, faulty) = (pair.normal[place], pair.faulty[place]);
        let parting = parting::parting(normal.sequence, faulty.sequence, &pair.folding, trees)?;
        Some((pair.lens.filter.to_string(), parting))
    }

    /// The loop in which the traces parted, if the short diffNLR shows the same one.
    pub(crate) fn iterations(&self) -> Option<&Iterations> {
        let (_, parting) = self.beside.parting.as_ref()?;
        let iterations = parting.iterations.as_ref()?;
        let [(_, at)] = self.loops() else {
            return None;
        };
        (iterations.done.checked_add(1) == Some(*at)).then_some(iterations)
    }
}
