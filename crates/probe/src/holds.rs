//! What a thread holds (`lockstep_format::hold`): kept in its block, and told in its chunk.
//!
//! *Costs*: a look through a few rows and up to three stores for each such call; no system call, no memory. *Not for*: what a
//! library takes inside, nor calls that are not recorded.
//!
//! A call that never came back (it was left by a jump, or its thread was cancelled) leaves its row, which the next such call from above
//! finds: it took nothing. Where return addresses stay in place no return is seen, and such a row was taken.

use crate::setup::Setup;
use crate::thread::Thread;
use lockstep_format::hold::{
    FIRST_ADDRESS, ONCE, ROWS, UNKNOWN, What, code, got, place, row, state,
};
use lockstep_format::process::thread as layout;

/// Of an object that was taken once, [`ONCE`].
const HELD_ONCE: u64 = What {
    symbols: 0,
    times: 1,
    state: state::HELD,
    shared: false,
}
.to_word();

/// The table of a thread; zeros are an empty one.
#[repr(C)]
pub struct Holds {
    /// Addresses of the rows, 0 in a free one: what is looked through lies in one cache line.
    addresses: [u64; ROWS],
    /// Bits of the rows that are not free.
    used: u32,
    /// How many calls are open that take something, or wait.
    open: u32,
    /// The row of the latest call that took something.
    latest: u32,
    /// Objects that found no row.
    more: u64,
    rows: [Row; ROWS],
}

/// What else a row says.
#[derive(Clone, Copy)]
struct Row {
    behind: u64,
    /// [`What`] as a word.
    what: u64,
    /// Of the call that took it, or waits.
    slot: u64,
    /// Of a wait: the lock that was given back meanwhile.
    lock: u64,
    /// Which result says that the call got it.
    success: u8,
    /// Whether its return will be seen.
    is_seen: bool,
}

/// A call of a function that takes or gives back an object.
#[derive(Clone, Copy)]
pub struct Step {
    /// Where its return address lies.
    pub slot: u64,
    /// Where it returns to.
    pub behind: u64,
    /// What its stub says.
    pub code: [u8; 2],
    /// The argument that is the object's address, where it has that in one.
    pub object: u64,
    /// Its second argument.
    pub second: u64,
    /// Whether its return will be seen.
    pub is_seen: bool,
}

impl Step {
    fn address(&self) -> u64 {
        let [_, lies] = self.code;
        match lies & code::ONLY {
            0 => self.object,
            _ => u64::from(lies & !code::ONLY),
        }
    }

    /// The lock that is given back while it waits.
    fn lock(&self) -> u64 {
        if self.code[0] & 15 != code::AWAIT_THROUGH || self.second < FIRST_ADDRESS {
            return self.second;
        }
        // SAFETY: the function reads the same word.
        unsafe { (self.second as *const u64).read_unaligned() }
    }
}

/// A call begins, and was recorded.
#[inline]
pub fn enter(thread: &mut Thread, step: &Step) {
    let address = step.address();
    let does = step.code[0] & 15;
    let latest = thread.holds.latest as usize;
    // Nearly all: a lock is taken, and then that lock is given back.
    if thread.holds.open > 0 || address == 0 {
        return enter_slowly(thread, step);
    }
    if does != code::GIVE {
        return match does {
            code::TAKE | code::SHARE => put(thread, step, state::WANTED, 0),
            _ => enter_slowly(thread, step),
        };
    }
    let is_it = address_of(thread, latest) == address;
    if is_it && word_of(thread, latest) & ONCE == HELD_ONCE {
        free(thread, latest);
    } else {
        give(thread, address);
    }
}

#[cold]
#[inline(never)]
fn enter_slowly(thread: &mut Thread, step: &Step) {
    settle(thread, step.slot);
    let address = step.address();
    // Nothing lies there.
    if address == 0 {
        return;
    }
    match step.code[0] & 15 {
        code::GIVE => give(thread, address),
        code::TAKE | code::SHARE => put(thread, step, state::WANTED, 0),
        _ => {
            let lock = step.lock();
            exchange(thread, lock, state::HELD, state::ASIDE);
            put(thread, step, state::AWAITED, lock);
        }
    }
}

/// A call that began at this slot is over, and gave back `result`.
#[inline]
pub fn exit(thread: &mut Thread, slot: u64, result: u64) {
    let latest = thread.holds.latest as usize;
    let is_it = |index: usize| is_open(thread, index) && slot_of(thread, index) == slot;
    let is_alone = thread.holds.used == 1 << latest;
    if thread.holds.open != 1 || !is_alone || !is_it(latest) {
        return exit_slowly(thread, slot, result);
    }
    end(thread, latest, |it| got(it.success, result));
}

#[cold]
#[inline(never)]
fn exit_slowly(thread: &mut Thread, slot: u64, result: u64) {
    let is_it = |index: &usize| is_open(thread, *index) && slot_of(thread, *index) == slot;
    if let Some(index) = (0..ROWS).find(is_it) {
        end(thread, index, |it| got(it.success, result));
    }
}

/// Tells the table in a chunk that has just begun. What was taken before is at no place in this stream.
pub fn begin(thread: &mut Thread) {
    for index in 0..ROWS {
        if address_of(thread, index) != 0 {
            change(thread, index, |it| it.symbols = 0);
            tell(thread, index);
        }
    }
    if thread.holds.more > 0 {
        thread.tell(layout::MORE_HOLDS, thread.holds.more);
    }
}

/// Nothing is recorded any more.
pub fn stop(thread: &mut Thread) {
    if thread.hot.attached != 0 {
        thread.tell(layout::MORE_HOLDS, UNKNOWN);
    }
}

fn address_of(thread: &Thread, index: usize) -> u64 {
    thread.holds.addresses.get(index).copied().unwrap_or(0)
}

fn slot_of(thread: &Thread, index: usize) -> u64 {
    thread.holds.rows.get(index).map_or(0, |it| it.slot)
}

fn word_of(thread: &Thread, index: usize) -> u64 {
    thread.holds.rows.get(index).map_or(0, |it| it.what)
}

fn what_of(thread: &Thread, index: usize) -> What {
    What::from_word(word_of(thread, index))
}

fn is_open(thread: &Thread, index: usize) -> bool {
    let state = what_of(thread, index).state;
    address_of(thread, index) != 0 && matches!(state, state::WANTED | state::AWAITED)
}

/// Calls that began at `slot` or below are over when another begins there.
fn settle(thread: &mut Thread, slot: u64) {
    for index in 0..ROWS {
        if is_open(thread, index) && slot_of(thread, index) <= slot {
            end(thread, index, |it| !it.is_seen);
        }
    }
}

/// An open call is over.
fn end(thread: &mut Thread, index: usize, got: impl Fn(&Row) -> bool) {
    let Some(row) = thread.holds.rows.get(index).copied() else {
        return;
    };
    thread.holds.open -= 1;
    if What::from_word(row.what).state == state::AWAITED {
        exchange(thread, row.lock, state::ASIDE, state::HELD);
        return free(thread, index);
    }
    if !got(&row) {
        return free(thread, index);
    }
    // Taken once more.
    let is_alone = thread.holds.used == 1 << index;
    let address = address_of(thread, index);
    match (!is_alone)
        .then(|| held(thread, address, state::HELD))
        .flatten()
    {
        Some(held) => {
            change(thread, held, |it| it.times += 1);
            free(thread, index);
        }
        None => change(thread, index, |it| it.state = state::HELD),
    }
}

#[inline(never)]
fn give(thread: &mut Thread, address: u64) {
    match held(thread, address, state::HELD) {
        Some(index) if what_of(thread, index).times > 1 => {
            change(thread, index, |it| it.times -= 1);
        }
        Some(index) => free(thread, index),
        None if thread.holds.more > 0 => {
            thread.holds.more -= 1;
            thread.tell(layout::MORE_HOLDS, thread.holds.more);
        }
        None => {}
    }
}

/// The row of an object in a state.
fn held(thread: &Thread, address: u64, state: u64) -> Option<usize> {
    let rows = thread.holds.addresses.iter().enumerate();
    let mut rows = rows.filter(|(_, it)| **it == address);
    let row = rows.find(|(index, _)| what_of(thread, *index).state == state);
    row.map(|(index, _)| index)
}

/// Begins an open call.
fn put(thread: &mut Thread, step: &Step, state: u64, lock: u64) {
    let what = What {
        // Where the last events are kept, those of each segment are counted by themselves.
        symbols: match Setup::get().keep_last {
            true => 0,
            false => thread.symbols(),
        },
        times: 1,
        state,
        shared: step.code[0] & 15 == code::SHARE,
    };
    let holds = &mut thread.holds;
    let index = holds.used.trailing_ones() as usize;
    let (Some(address), Some(row)) = (holds.addresses.get_mut(index), holds.rows.get_mut(index))
    else {
        holds.more += 1;
        return thread.tell(layout::MORE_HOLDS, thread.holds.more);
    };
    *address = step.address();
    *row = Row {
        behind: step.behind,
        what: what.to_word(),
        slot: step.slot,
        lock,
        success: step.code[0] >> 4,
        is_seen: step.is_seen,
    };
    holds.used |= 1 << index;
    holds.open += 1;
    holds.latest = index as u32;
    tell(thread, index);
}

/// Frees a row. Its address goes first, so that no reader finds half of it.
fn free(thread: &mut Thread, index: usize) {
    if let Some(place) = thread.holds.addresses.get_mut(index) {
        *place = 0;
        thread.holds.used &= !(1 << index);
    }
    let at = place(index);
    for field in [row::ADDRESS, row::BEHIND, row::WHAT] {
        thread.tell(at + field, 0);
    }
}

/// Changes the state of an object.
fn exchange(thread: &mut Thread, address: u64, from: u64, to: u64) {
    if let Some(index) = held(thread, address, from) {
        change(thread, index, |it| it.state = to);
    }
}

fn change(thread: &mut Thread, index: usize, change: impl Fn(&mut What)) {
    let mut what = what_of(thread, index);
    change(&mut what);
    let word = what.to_word();
    if let Some(row) = thread.holds.rows.get_mut(index) {
        row.what = word;
        thread.tell(place(index) + row::WHAT, word);
    }
}

/// Writes a row, its address last.
fn tell(thread: &mut Thread, index: usize) {
    let Some(row) = thread.holds.rows.get(index).copied() else {
        return;
    };
    let (at, address) = (place(index), address_of(thread, index));
    thread.tell(at + row::WHAT, row.what);
    thread.tell(at + row::BEHIND, row.behind);
    thread.tell(at + row::ADDRESS, address);
}
