//! Tasks that wait without a call that does: they ask for a message or a request again and again.

use crate::conversation::left;
use crate::message::PartKind;
use crate::routines::Routine;
use lockstep_api::mpi::{Does, Scope};
use lockstep_trace::{Annotated, RecordKey, SourceLine};
use std::sync::Arc;

/// As often in a row without an answer, asking is waiting.
const OFTEN: u64 = 100;
/// So many different things asked for in turn are kept; who asks for more is not taken to wait.
const MOST: usize = 16;

/// What a thread asked for in vain since it last did anything else that others could notice.
#[derive(Debug, Clone, Default)]
pub struct Polls {
    asked: Vec<Asked>,
    times: u64,
    too_many: bool,
    /// By which functions, in the order in which each was first called.
    askers: Vec<Asker>,
    /// Calls, and what they gave back, that ask for one of these, and by which function: as long as nothing but such came
    /// since, they change nothing but how often it was asked.
    idle: Vec<((RecordKey, RecordKey), usize)>,
}

/// A function that asks.
#[derive(Debug, Clone)]
struct Asker {
    name: Arc<str>,
    /// Its first call: the event, and the line, where that was recorded.
    event: u64,
    line: Option<Arc<SourceLine>>,
    times: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    parts: Vec<usize>,
    probes: Vec<PartKind>,
    /// Whether it asks for all of them together (`MPI_Testall`).
    together: bool,
}

/// What a thread that polls waits for: any of these.
pub struct Polled {
    pub parts: Vec<usize>,
    /// Of these, such as it asks for together.
    pub together: Vec<Vec<usize>>,
    pub probes: Vec<PartKind>,
    /// The function by which it asks.
    pub name: Arc<str>,
    /// Its first call since the thread did anything else: there it stands.
    pub event: u64,
    pub line: Option<Arc<SourceLine>>,
}

impl Polls {
    /// It asked in vain.
    pub fn ask(
        &mut self,
        (routine, event, line): (&Routine, u64, Option<&Arc<SourceLine>>),
        parts: Vec<usize>,
        probes: Vec<PartKind>,
    ) {
        self.times += 1;
        match self.askers.iter_mut().find(|it| it.name == routine.name) {
            Some(asker) => asker.times += 1,
            None => self.askers.push(Asker {
                name: routine.name.clone(),
                event,
                line: line.cloned(),
                times: 1,
            }),
        }
        let asked = Asked {
            parts,
            probes,
            together: matches!(
                routine.meaning.does,
                Does::Test(Scope::All) | Does::Status(Scope::All)
            ),
        };
        if self.asked.contains(&asked) {
            return;
        }
        self.too_many |= self.asked.len() == MOST;
        if !self.too_many {
            self.asked.push(asked);
        }
    }

    /// A call of a function that asked in vain just now.
    pub fn remember(&mut self, name: &Arc<str>, call: Option<RecordKey>, given: Option<RecordKey>) {
        let asker = self.askers.iter().position(|it| it.name == *name);
        if self.idle.len() < MOST && !self.too_many {
            self.idle.extend(call.zip(given).zip(asker));
        }
    }

    /// The first `parts` of the task are left out.
    pub fn leave_out(&mut self, parts: usize) {
        for asked in &mut self.asked {
            left(&mut asked.parts, parts);
        }
    }

    /// Something else came: what requests stand for may be another thing now.
    pub fn doubt(&mut self) {
        self.idle.clear();
    }

    /// Whether a call asks in vain once more; takes it in then.
    pub fn again(&mut self, call: &Annotated, given: &Annotated) -> bool {
        if self.idle.is_empty() {
            return false;
        }
        let pair = call.key().zip(given.key());
        let known = self.idle.iter().find(|it| Some(&it.0) == pair.as_ref());
        let Some((_, asker)) = known else {
            return false;
        };
        self.times += 1;
        if let Some(asker) = self.askers.get_mut(*asker) {
            asker.times += 1;
        }
        true
    }

    /// How often it asked, by each function.
    pub fn count(&self) -> Vec<u64> {
        self.askers.iter().map(|it| it.times).collect()
    }

    /// What it asked since `count`, and nothing else, comes so many times more.
    pub fn repeat(&mut self, count: &[u64], times: u64) {
        for (asker, before) in self.askers.iter_mut().zip(count) {
            let more = (asker.times - before) * times;
            asker.times += more;
            self.times += more;
        }
    }

    /// It did something else, or got an answer.
    pub fn forget(&mut self) {
        if self.times > 0 {
            *self = Self::default();
        }
    }

    /// What it waits for, if it asked often enough.
    pub fn lasting(&self) -> Option<Polled> {
        // Who asks by two functions in turn asks by the first of them, whenever that is looked at.
        let most = self.askers.iter().map(|it| it.times).max()?;
        let asker = self.askers.iter().find(|it| it.times > most / 2)?;
        let is_waiting = self.times >= OFTEN && !self.too_many;
        is_waiting.then(|| Polled {
            parts: self.asked.iter().flat_map(|it| it.parts.clone()).collect(),
            together: (self.asked.iter().filter(|it| it.together))
                .map(|it| it.parts.clone())
                .collect(),
            probes: self.asked.iter().flat_map(|it| it.probes.clone()).collect(),
            name: asker.name.clone(),
            event: asker.event,
            line: asker.line.clone(),
        })
    }
}
