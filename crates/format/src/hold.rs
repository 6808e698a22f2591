//! What a thread holds: locks that it took and did not give back, and what it waits for.
//!
//! A thread's [chunk](crate::process::thread) has a table of *holds*, which says what is true now: a lock that was given back is not
//! in it. So it costs a program that locks a million times a second no bytes. Each hold is written with its address last and
//! erased with its address first: a row with an address is whole.
//!
//! The stub of a function that takes or gives back an object has two bytes that say how ([`code`]).

/// A row of the table; [`row::SIZE`] bytes.
pub mod row {
    /// `u64`, the object's address; a number below [`super::FIRST_ADDRESS`] of what exists once in a process; 0 in a free row.
    pub const ADDRESS: usize = 0;
    /// `u64`, where the call returns to that took it, or waits.
    pub const BEHIND: usize = 8;
    /// `u64`: how many symbols the thread had stored with that call (low 48 bits; 0 where nobody knows), how often it took
    /// the object (8 bits), its [`super::state`] (4 bits), and in the highest bit whether others may have it as well.
    pub const WHAT: usize = 16;
    /// Size of a row.
    pub const SIZE: usize = 24;
}

/// States of a hold.
pub mod state {
    /// A call that is not over is to take it.
    pub const WANTED: u64 = 1;
    /// The thread has it.
    pub const HELD: u64 = 2;
    /// It has it, but for as long as it waits for a condition.
    pub const ASIDE: u64 = 3;
    /// A call that is not over waits for it to be signalled.
    pub const AWAITED: u64 = 4;
}

/// Rows of a table.
pub const ROWS: usize = 7;
/// Rows of its first part.
const FIRST_ROWS: usize = 2;
/// Addresses begin here.
pub const FIRST_ADDRESS: u64 = 4096;
/// What [`crate::process::thread::MORE_HOLDS`] says where the table is not kept any more.
pub const UNKNOWN: u64 = u64::MAX;

/// Bits of [`row::WHAT`] that tell how often an object was taken, and its state.
pub const ONCE: u64 = MOST_TIMES << SYMBOLS | 15 << 56;

/// Bits of a position in [`row::WHAT`].
const SYMBOLS: u32 = 48;
/// Most times that are counted.
const MOST_TIMES: u64 = 255;

/// Where row `index` lies in a thread's chunk.
#[must_use]
pub const fn place(index: usize) -> usize {
    use crate::process::thread::{HOLDS, MORE_ROWS};
    if index < FIRST_ROWS {
        HOLDS + index * row::SIZE
    } else {
        MORE_ROWS + (index - FIRST_ROWS) * row::SIZE
    }
}

// The table lies between others.
const _: () = {
    use crate::process::{clock, thread};
    assert!(place(0) >= thread::SEGMENT_TIMES + 8);
    assert!(place(FIRST_ROWS - 1) + row::SIZE <= thread::MORE_HOLDS);
    assert!(thread::MORE_HOLDS + 8 <= thread::CLOCKS);
    assert!(place(FIRST_ROWS) >= thread::CLOCKS + thread::CLOCK_COUNT * clock::SIZE);
    assert!(place(ROWS - 1) + row::SIZE <= thread::STAGING);
};

/// What [`row::WHAT`] says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct What {
    /// Symbols that the thread had stored; 0 where nobody knows.
    pub symbols: u64,
    /// How often it was taken.
    pub times: u64,
    /// One of [`state`].
    pub state: u64,
    /// Whether others may have it as well.
    pub shared: bool,
}

impl What {
    /// As it stands in a row.
    #[must_use]
    pub const fn to_word(self) -> u64 {
        let times = if self.times < MOST_TIMES {
            self.times
        } else {
            MOST_TIMES
        };
        let symbols = if self.symbols >> SYMBOLS == 0 {
            self.symbols
        } else {
            0
        };
        symbols | times << SYMBOLS | (self.state & 15) << 56 | (self.shared as u64) << 63
    }

    /// From a row.
    #[must_use]
    pub const fn from_word(word: u64) -> Self {
        Self {
            symbols: word & ((1 << SYMBOLS) - 1),
            times: word >> SYMBOLS & MOST_TIMES,
            state: word >> 56 & 15,
            shared: word >> 63 == 1,
        }
    }
}

/// The two bytes of a stub ([`crate::plan::stub::OBJECT`]): in the first what the call does (low 4 bits) and which result says that it
/// got the object (high 4 bits); in the second the argument that is its address, or [`code::ONLY`] and the number of what exists once.
pub mod code {
    /// Takes it.
    pub const TAKE: u8 = 1;
    /// Takes it among others.
    pub const SHARE: u8 = 2;
    /// Gives it back.
    pub const GIVE: u8 = 3;
    /// Waits for a signal, and gives back the lock in the second argument meanwhile.
    pub const AWAIT: u8 = 4;
    /// The same, where that argument is the address of the lock's address.
    pub const AWAIT_THROUGH: u8 = 5;
    /// Any result will do.
    pub const ALWAYS: u8 = 0;
    /// An `int`: 0, or `EOWNERDEAD`.
    pub const ZERO: u8 = 1;
    /// An `int` other than 0.
    pub const NOT_ZERO: u8 = 2;
    /// The lowest byte of it.
    pub const TRUE: u8 = 3;
    /// In the second byte: there is no argument.
    pub const ONLY: u8 = 0x80;
}

/// Whether a call that gave back `result` got what it was to take.
#[must_use]
pub const fn got(success: u8, result: u64) -> bool {
    const OWNER_DEAD: u32 = 130;
    match success {
        code::ZERO => result as u32 == 0 || result as u32 == OWNER_DEAD,
        code::NOT_ZERO => result as u32 != 0,
        code::TRUE => result as u8 != 0,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let what = What {
            symbols: 1 << 40,
            times: 3,
            state: state::ASIDE,
            shared: true,
        };
        assert_eq!(What::from_word(what.to_word()), what);
        let many = What {
            symbols: 1 << 60,
            times: 1000,
            ..what
        };
        let (symbols, times) = (0, 255);
        let kept = What {
            symbols,
            times,
            ..what
        };
        assert_eq!(What::from_word(many.to_word()), kept);
    }

    #[test]
    fn results_that_say_yes() {
        assert!(got(code::ZERO, 0) && got(code::ZERO, 130) && !got(code::ZERO, 16));
        assert!(got(code::NOT_ZERO, 256) && !got(code::NOT_ZERO, 1 << 32));
        assert!(got(code::TRUE, 1) && !got(code::TRUE, 256));
        assert!(got(code::ALWAYS, 7));
    }
}
