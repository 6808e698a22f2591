//! What the constructor found out: the run directory, the codec, the facts. Shared by a process and
//! its forked children. Written while there is one thread; facts about images that are loaded later
//! are added while the dynamic linker lets nobody else load any.

use crate::budget::Budget;
use crate::text::Text;
use core::cell::UnsafeCell;
use core::sync::atomic::AtomicU64;
use lockstep_format::codec::Kind;
use lockstep_format::process::SUFFIX;

/// Longest path of a run directory, in bytes.
pub const PATH: usize = 4096;
/// Most bytes of facts: they share the first extent with the first threads.
pub const FACTS: usize = 160 * 1024;

/// The directory, the codec, the facts.
pub struct Setup {
    /// The run directory, absolute.
    pub run: Text<PATH>,
    /// Where process files are made, if not in the run: absolute.
    pub buffer: Text<PATH>,
    /// Host name, with what cannot stand in a file name replaced.
    pub host: Text<65>,
    /// How streams are stored.
    pub codec: Kind,
    /// How large files may become.
    pub budget: Budget,
    /// Whether the last events are kept where they may not grow, and not the first.
    pub keep_last: bool,
    /// Whether a thread's memory is bounded to 0.5 MB (`--memory low`).
    pub low_memory: bool,
    /// Whether arguments, environment and host are left out.
    pub redact: bool,
    /// Whether return addresses stay where they are, since a library would unwind without asking.
    pub plain: bool,
    /// Whether arguments of MPI calls are recorded.
    pub arguments: bool,
    /// Whether times are recorded.
    pub times: bool,
    /// Whether they are of every event.
    pub every_time: bool,
    /// Patch sites that were left alone.
    pub unexpected_text: AtomicU64,
    /// Lines about the process.
    pub facts: Text<FACTS>,
}

struct Place(UnsafeCell<Setup>);

// SAFETY: written in the constructor, before anything else of ours can run; facts are appended later,
// their length last.
unsafe impl Sync for Place {}

static SETUP: Place = Place(UnsafeCell::new(Setup {
    run: Text::new(),
    buffer: Text::new(),
    host: Text::new(),
    codec: Kind::None,
    budget: Budget::NONE,
    keep_last: false,
    low_memory: false,
    redact: false,
    plain: false,
    arguments: false,
    times: false,
    every_time: false,
    unexpected_text: AtomicU64::new(0),
    facts: Text::new(),
}));

impl Setup {
    /// What is known.
    pub fn get() -> &'static Self {
        // SAFETY: nobody writes after the constructor, but to append facts.
        unsafe { &*SETUP.0.get() }
    }

    /// To write it.
    ///
    /// # Safety
    /// In the constructor, or to append facts while images are being loaded; one at a time.
    pub unsafe fn get_mut() -> &'static mut Self {
        // SAFETY: the caller's promise.
        unsafe { &mut *SETUP.0.get() }
    }

    /// Adds a line of facts; it is left out as a whole where it does not fit.
    pub fn fact(&mut self, word: &str, values: &[&[u8]]) {
        self.facts.push_line(word, values);
    }

    /// The process file's path, zero-terminated.
    pub fn process_path(&self, pid: u32, start: u64, count: u32) -> Text<4352> {
        let mut path = Text::new();
        if self.buffer.bytes().is_empty() {
            path.push(self.run.bytes());
            path.push(b"/processes/");
        } else {
            path.push(self.buffer.bytes());
            path.push(b"/");
        }
        path.push(self.host.bytes());
        for number in [u64::from(pid), start, u64::from(count)] {
            path.push(b"-");
            path.push_decimal(number);
        }
        path.push(SUFFIX.as_bytes());
        path.push(b"\0");
        path
    }
}
