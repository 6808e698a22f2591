//! What a thread holds and waits for at the end of its trace: locks, by their addresses.
//!
//! *Guarantees*: what is held is not in doubt where [`Holds::is_whole`]. *Costs*: nothing when a run is opened; a pass over a
//! thread's events for where it took something ([`Run::taken`]). *Not for*: what a library takes inside, and calls of the image's own.

use crate::catalogue::Image;
use crate::container::{HoldRow, Side};
use crate::frames::Frames;
use crate::model::{Event, Frame, Run, SourceLine, Thread};
use lockstep_format::hold::{FIRST_ADDRESS, What, state};
use std::sync::Arc;

/// What a thread holds and waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holds {
    /// One for each object, in no order.
    pub all: Vec<Hold>,
    /// Whether there is nothing else.
    pub is_whole: bool,
    /// Whether addresses were not recorded: then kinds stand for them, as far as the calls tell what is held.
    pub are_kinds: bool,
}

/// An object that threads wait for each other by, and a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Its address; a small number of what exists once in a process.
    pub address: u64,
    /// How the thread has it.
    pub state: HoldState,
    /// Whether others may have it as well.
    pub shared: bool,
    /// Where the call stands that took it, or waits.
    pub called_at: Option<SourceLine>,
    /// Symbols that the thread had stored with that call; 0 where nobody knows.
    symbols: u64,
}

/// How a thread has an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldState {
    /// It is in a call that is to take it.
    Wanted,
    /// It has it.
    Held,
    /// It has it but for a wait for a condition, in which it is.
    Aside,
    /// It waits for it to be signalled.
    Awaited,
}

impl Hold {
    /// An object at this address.
    #[must_use]
    pub const fn new(address: u64, state: HoldState) -> Self {
        Self {
            address,
            state,
            shared: false,
            called_at: None,
            symbols: 0,
        }
    }

    /// Whether it may be another's of the same address in another process.
    #[must_use]
    pub const fn has_address(&self) -> bool {
        self.address >= FIRST_ADDRESS
    }

    fn of(row: &HoldRow, images: &[(u64, Arc<Image>)]) -> Option<Self> {
        let what = What::from_word(row.what);
        let state = match what.state {
            state::WANTED => HoldState::Wanted,
            state::HELD => HoldState::Held,
            state::ASIDE => HoldState::Aside,
            state::AWAITED => HoldState::Awaited,
            _ => return None,
        };
        let mut lines = images.iter();
        Some(Self {
            address: row.address,
            state,
            shared: what.shared,
            called_at: lines
                .find_map(|(bias, image)| image.any_line_behind(row.behind.wrapping_sub(*bias))),
            symbols: what.symbols,
        })
    }
}

impl Holds {
    /// What the call takes in which the thread is.
    #[must_use]
    pub fn wanted(&self) -> Option<&Hold> {
        let wanted = self.all.iter().filter(|it| it.state == HoldState::Wanted);
        // One that a signal handler makes comes later.
        wanted.max_by_key(|it| it.symbols)
    }

    /// The thread's hold of what stands at an address, if it has that.
    #[must_use]
    pub fn held(&self, address: u64) -> Option<&Hold> {
        let mut all = self.all.iter();
        all.find(|it| it.address == address && it.state == HoldState::Held)
    }

    /// What stands beside the events of a thread.
    pub(crate) fn of(side: &Side, images: &[(u64, Arc<Image>)]) -> Self {
        let all: Vec<Hold> = side
            .holds
            .iter()
            .filter_map(|row| Hold::of(row, images))
            .collect();
        Self {
            is_whole: side.more_holds == 0 && all.len() == side.holds.len(),
            are_kinds: false,
            all,
        }
    }
}

impl Run {
    /// The calls that were open when a thread took what it holds, outermost first, that one last; lines where they are known. `None`
    /// where nobody knows when that was.
    #[must_use]
    pub fn taken(&self, thread: &Thread, hold: &Hold) -> Option<Vec<Frame>> {
        if hold.symbols == 0 {
            return None;
        }
        let mut frames = Frames::default();
        let mut events = thread.events();
        loop {
            let event = events.next()?;
            frames.apply(event);
            if events.symbols() >= hold.symbols && matches!(event, Event::Call(_)) {
                break;
            }
        }
        let mut frames = frames.into_frames();
        let callers: Vec<_> = frames.iter().map(|it| it.function).collect();
        for (caller, frame) in callers.iter().zip(frames.iter_mut().skip(1)) {
            let calls = &self.function(*caller).calls;
            let mut lines = calls.iter().filter(|it| it.0 == frame.function);
            let first = lines.next().map(|it| &it.1);
            frame.called_at = first
                .filter(|it| lines.all(|other| other.1 == **it))
                .cloned();
        }
        if let Some(last) = frames.last_mut() {
            last.called_at = hold.called_at.clone().or(last.called_at.take());
        }
        Some(frames)
    }
}
