//! Which returns nobody saw (`lockstep_format::side`): a side stream of their numbers among the thread's symbols.
//!
//! Most come from calls whose returns are never seen ([`crate::pending`]). The fast path tells of those by itself, in a *window* of
//! the stream: the room that is left in the chunk at work. Each number is told by one store of [`Window::at`]:
//!
//! ```text
//!  bytes at `at` ── next ── at ╴told╶── symbols ── settled ── word ╴for readers╶
//! ```
//! A handler that jumps away in between leaves `at` ahead of `settled`, so that [`Inferred::catch_up`] finds in `next` what belongs to it.

use crate::process::Process;
use crate::side::{Bytes, Stream, end_segment};
use crate::thread::Thread;
use core::ptr::null_mut;
use lockstep_format::process::kind;
use lockstep_format::side::put_varint;

/// More bytes than an inferred return takes.
const GAP_BYTES: usize = 10;

/// Returns that nobody saw; zeros are none yet.
#[repr(C)]
pub struct Inferred {
    stream: Stream,
    /// Symbols up to the last one, that one included.
    pub symbols: u64,
    pub window: Window,
}

/// Where the fast path writes; zeros have no room.
#[repr(C)]
pub struct Window {
    /// Where the next byte goes.
    pub at: *mut u8,
    /// From here on the slow path looks for room.
    pub end: *mut u8,
    /// Where the stream would begin, if all of it lay before `at`.
    pub origin: *mut u8,
    /// The word that commits it.
    pub word: *mut u64,
    /// What [`Inferred::symbols`] is about to become.
    pub next: u64,
    /// `at` when `symbols` was right.
    pub settled: *mut u8,
}

impl Window {
    const NONE: Self = Self {
        at: null_mut(),
        end: null_mut(),
        origin: null_mut(),
        word: null_mut(),
        next: 0,
        settled: null_mut(),
    };

    /// On what is left of a stream's chunk.
    fn on(stream: &Stream) -> Self {
        let room = stream.room.saturating_sub(2 * GAP_BYTES);
        Self {
            at: stream.at,
            end: stream.at.wrapping_add(room),
            origin: stream.at.wrapping_sub(stream.bytes as usize),
            word: stream.word,
            next: 0,
            settled: stream.at,
        }
    }
}

impl Inferred {
    pub const NEW: Self = Self {
        stream: Stream::NEW,
        symbols: 0,
        window: Window::NONE,
    };

    /// In this stream, which is empty.
    pub fn within(stream: Stream) -> Self {
        Self {
            window: Window::on(&stream),
            stream,
            symbols: 0,
        }
    }

    /// Bytes that the fast path has written.
    fn ahead(&self) -> usize {
        self.window.at as usize - self.stream.at as usize
    }

    /// Whether there is room for one more.
    pub fn has_room(&self) -> bool {
        self.stream.has_room(self.ahead() + GAP_BYTES)
    }

    /// Takes in what the fast path has written.
    pub fn catch_up(&mut self) {
        if self.window.at != self.window.settled {
            self.symbols = self.window.next;
        }
        let ahead = self.ahead();
        self.stream.at = self.window.at;
        self.stream.room -= ahead;
        self.stream.bytes += ahead as u64;
        self.window = Window::on(&self.stream);
    }
}

/// The next symbol is a return that nobody saw. On the slow path only.
pub fn tell(thread: &mut Thread, process: &Process) {
    thread.is_unmeasured = true;
    let (index, symbols) = (thread.index(), thread.symbols());
    let inferred = &mut thread.inferred;
    inferred.catch_up();
    let stream = &mut inferred.stream;
    stream.grow(process, index, kind::INFERRED, GAP_BYTES);
    if !stream.has_room(GAP_BYTES) {
        return;
    }
    let mut bytes = Bytes::<GAP_BYTES>::NONE;
    put_varint(&mut bytes, symbols.wrapping_sub(inferred.symbols));
    inferred.symbols = symbols + 1;
    stream.append(bytes.all());
    stream.commit(0);
    inferred.window = Window::on(stream);
    end_segment(thread);
}
