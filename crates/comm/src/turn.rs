//! What a thread says again and again in the same way, kept as one word.
//!
//! A *turn* is what a thread does from a moment at which no request of it runs to the next such moment: one
//! `MPI_Sendrecv`, or `MPI_Irecv`, `MPI_Isend` and `MPI_Waitall`. Its calls and what they gave back are recorded as numbers of
//! records, so a turn that came before is known by these numbers alone:
//!
//! ```text
//!  (MPI_Irecv, #4, #5) ──► (MPI_Isend, #6, #7) ──► (MPI_Waitall, #8, #9) ──► turn 2      a tree of such triples
//! ```
//! *Guarantees*: a turn that is known by its numbers began and completed what it did the first time. *Costs*: one
//! look-up a call; 12 bytes for each call that is kept. *Not for*: calls that ask ([`crate::poll`]), persistent requests, windows.

use crate::communicators::Unresolved;
use crate::conversation::Conversation;
use crate::message::{Mode, Operation, Part, PartKind, Peer, Waits};
use crate::recent::MOST_KEPT;
use lockstep_trace::{FunctionId, RecordKey};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::Arc;

/// Calls and parts of one turn: parts are bits of a word.
const MOST: usize = 64;
/// So many different calls are known; then it begins anew.
const MOST_KNOWN: usize = 1 << 14;

/// A call of a turn: what it begins and waits for, of the parts of the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub name: Arc<str>,
    /// It begins the parts before this one that none before it began.
    pub until: usize,
    pub waits: Waits,
    /// The same as bits.
    pub needs: u64,
}

/// What a thread does from a moment without requests to the next: all of it is complete then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub steps: Vec<Step>,
    pub parts: Vec<PartKind>,
    /// How often the whole world met.
    pub met: usize,
    /// Whether it may bring what others did beside that.
    pub hears: bool,
}

/// Whether it is clear whose part belongs to it.
fn is_clear(kind: &PartKind) -> bool {
    match kind {
        PartKind::Send { to, mode, .. } => {
            matches!(to, Peer::Task(_) | Peer::Nobody) && *mode != Mode::Buffered
        }
        PartKind::Receive { from, wildcard, .. } => {
            wildcard.is_none() && matches!(from, Peer::Task(_) | Peer::Nobody)
        }
        PartKind::Collective(share) => share.communicator.is_some(),
        PartKind::Own => true,
        PartKind::Probe { .. } | PartKind::Epoch { .. } => false,
    }
}

impl Turn {
    /// The operations of a conversation from `operation` on, and the parts from `part` on; `None` where these are no
    /// turn.
    pub fn new(
        said: &Conversation,
        (operation, part): (usize, usize),
        met: usize,
        hears: bool,
    ) -> Option<Self> {
        let (operations, parts) = (said.operations.get(operation..)?, said.parts.get(part..)?);
        let is_whole = parts.iter().all(|it| it.complete && is_clear(&it.kind));
        if !is_whole || operations.len() > MOST || parts.len() > MOST {
            return None;
        }
        let mut steps = Vec::with_capacity(operations.len());
        let mut waited = 0;
        for (index, it) in (operation..).zip(operations) {
            let mut needs = 0;
            let waits = match &it.waits {
                Waits::No => Waits::No,
                Waits::All(list) => {
                    let list: Option<Vec<usize>> =
                        list.iter().map(|it| it.checked_sub(part)).collect();
                    let list = list?;
                    list.iter().all(|it| *it < parts.len()).then_some(())?;
                    needs = list.iter().fold(0, |bits, it| bits | 1 << it);
                    Waits::All(list)
                }
                Waits::Any(_) | Waits::Found(_) | Waits::Unknown => return None,
            };
            waited |= needs;
            let until = parts.partition_point(|it| it.operation <= index);
            it.returned.then_some(())?;
            steps.push(Step {
                name: it.name.clone(),
                until,
                waits,
                needs,
            });
        }
        let all = (0..parts.len()).fold(0, |bits, it| bits | 1u64 << it);
        (waited == all).then(|| Self {
            steps,
            parts: parts.iter().map(|it| it.kind.clone()).collect(),
            met,
            hears,
        })
    }
}

/// Turns that were not said in detail, in order: numbers of the turns, and the events of their calls.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    /// All that are known.
    pub known: Vec<Arc<Turn>>,
    pub turns: VecDeque<u32>,
    pub events: VecDeque<u64>,
}

impl Tail {
    pub fn turn(&self, number: u32) -> Option<&Arc<Turn>> {
        self.known.get(number as usize)
    }

    /// Says it in detail.
    pub fn tell(&self, said: &mut Conversation) {
        let mut events = self.events.iter().copied();
        for turn in self.turns.iter().filter_map(|it| self.turn(*it)) {
            let (operation, part) = (said.operations.len(), said.parts.len());
            let mut begun = 0;
            for (index, (step, event)) in turn.steps.iter().zip(&mut events).enumerate() {
                let waits = match &step.waits {
                    Waits::All(list) => Waits::All(list.iter().map(|it| it + part).collect()),
                    _ => Waits::No,
                };
                said.operations.push(Operation {
                    name: step.name.clone(),
                    event,
                    returned: true,
                    waits,
                });
                let kinds = turn.parts.get(begun..step.until).unwrap_or(&[]);
                said.parts.extend(kinds.iter().map(|kind| Part {
                    operation: operation + index,
                    kind: kind.clone(),
                    complete: true,
                    completed_at: None,
                }));
                begun = step.until;
            }
        }
    }

    /// How many operations it is.
    pub fn operations(&self) -> usize {
        self.events.len()
    }

    /// Leaves out the first turns, which are settled.
    pub fn leave_out(&mut self, turns: usize, said: &mut Conversation) {
        let mut steps = 0;
        let mut remembered = FxHashSet::default();
        let turns = turns.min(self.turns.len());
        for (at, number) in self.turns.drain(..turns).enumerate() {
            let Some(turn) = self.known.get(number as usize) else {
                continue;
            };
            steps += turn.steps.len();
            turn.parts.iter().for_each(|it| said.count(it));
            if remembered.insert(number) {
                turn.parts.iter().for_each(|it| said.remember(it));
            }
            if at + MOST_KEPT >= turns {
                turn.parts.iter().for_each(|it| said.follow(it));
            }
        }
        self.events.drain(..steps.min(self.events.len()));
        said.is_cut |= steps > 0;
    }

    /// The turns that are so many operations; `None` where these end within one.
    pub fn turns_of(&self, operations: usize) -> Option<usize> {
        let mut left = operations;
        let mut turns = 0;
        for number in &self.turns {
            if left == 0 {
                break;
            }
            left = left.checked_sub(self.turn(*number)?.steps.len())?;
            turns += 1;
        }
        (left == 0).then_some(turns)
    }
}

/// A call and what it gave back, by the numbers of their records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Exchange {
    function: u32,
    given: usize,
    got: usize,
}

impl Exchange {
    pub fn new(call: &Unresolved, got: &Unresolved) -> Self {
        Self {
            function: call.function.map_or(u32::MAX, |FunctionId(id)| id),
            given: call.annotated.key_number(),
            got: got.annotated.key_number(),
        }
    }
}

/// What comes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Nothing that others could notice; whether it raises doubts about what is asked, and may bring what others did.
    Nothing { doubts: bool, hears: bool },
    /// It is so far within a turn.
    Within(u32),
    /// This turn is over.
    Over(u32),
}

/// Nothing was said of a turn yet.
pub const BEGIN: u32 = 0;
/// Wherever it is.
const ANYWHERE: u32 = u32::MAX;

/// Turns that came before, by what was recorded of them.
#[derive(Debug, Default)]
pub struct Turns {
    next: FxHashMap<(u32, Exchange), Then>,
    places: u32,
    /// Their records, so that no others get their numbers.
    kept: Vec<RecordKey>,
}

impl Turns {
    /// What comes of a call, so far within a turn.
    pub fn then(&self, place: u32, exchange: Exchange) -> Option<Then> {
        let then = self.next.get(&(place, exchange));
        then.or_else(|| self.next.get(&(ANYWHERE, exchange)))
            .copied()
    }

    pub fn is_full(&self) -> bool {
        self.next.len() > MOST_KNOWN
    }

    /// A call that nobody could notice.
    pub fn learn_nothing(&mut self, exchange: Exchange, records: Vec<RecordKey>, then: Then) {
        self.kept.extend(records);
        self.next.insert((ANYWHERE, exchange), then);
    }

    /// A turn of these calls gets this number.
    pub fn learn(&mut self, exchanges: &[Exchange], records: Vec<RecordKey>, turn: u32) {
        let Some((last, before)) = exchanges.split_last() else {
            return;
        };
        let mut place = BEGIN;
        for exchange in before {
            let next = self.places + 1;
            place = match self
                .next
                .entry((place, *exchange))
                .or_insert(Then::Within(next))
            {
                Then::Within(place) => *place,
                _ => return,
            };
            self.places = self.places.max(place);
        }
        self.next.entry((place, *last)).or_insert(Then::Over(turn));
        self.kept.extend(records);
    }
}
