//! Tasks that wait without a call that does: they ask for a message or a request again and again.

use crate::message::{PartKind, left};
use lockstep_trace::{Annotated, RecordKey};
use std::sync::Arc;

/// As often in a row without an answer, asking is waiting.
const OFTEN: u64 = 100;
/// So many different things asked for in turn are kept; who asks for more is not taken to wait.
const MOST: usize = 16;

/// What a thread asked for in vain since it last did anything else that others could notice.
#[derive(Debug, Clone, Default)]
pub(crate) struct Polls {
    asked: Vec<Asked>,
    times: u64,
    too_many: bool,
    last: Last,
    /// Calls, and what they gave back, that ask for one of these: as long as nothing but such came since, they
    /// change nothing but how often it was asked.
    idle: Vec<(RecordKey, RecordKey)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    parts: Vec<usize>,
    probes: Vec<PartKind>,
}

/// What a thread that polls waits for: any of these.
pub(crate) struct Polled {
    pub parts: Vec<usize>,
    pub probes: Vec<PartKind>,
    /// The function by which it asked last, and its event.
    pub name: Arc<str>,
    pub event: u64,
}

/// The last call.
type Last = Option<(Arc<str>, u64)>;

impl Polls {
    /// It asked in vain.
    pub fn ask(&mut self, name: &Arc<str>, event: u64, parts: Vec<usize>, probes: Vec<PartKind>) {
        self.times += 1;
        self.last = Some((name.clone(), event));
        let asked = Asked { parts, probes };
        if self.asked.contains(&asked) {
            return;
        }
        self.too_many |= self.asked.len() == MOST;
        if !self.too_many {
            self.asked.push(asked);
        }
    }

    /// A call that asked in vain just now.
    pub fn remember(&mut self, call: Option<RecordKey>, given: Option<RecordKey>) {
        if self.idle.len() < MOST && !self.too_many {
            self.idle.extend(call.zip(given));
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
        let is_idle = pair.is_some_and(|it| self.idle.contains(&it));
        if is_idle {
            self.times += 1;
            if let Some((_, event)) = &mut self.last {
                *event = call.index;
            }
        }
        is_idle
    }

    /// It did something else, or got an answer.
    pub fn forget(&mut self) {
        if self.times > 0 {
            *self = Self::default();
        }
    }

    /// What it waits for, if it asked often enough.
    pub fn lasting(&self) -> Option<Polled> {
        let (name, event) = self.last.clone()?;
        let is_waiting = self.times >= OFTEN && !self.too_many;
        is_waiting.then(|| Polled {
            parts: self.asked.iter().flat_map(|it| it.parts.clone()).collect(),
            probes: self.asked.iter().flat_map(|it| it.probes.clone()).collect(),
            name,
            event,
        })
    }
}
