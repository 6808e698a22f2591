//! Keeps the recorder in the environment of programs that a recorded one starts.
//!
//! Whoever replaces `LD_PRELOAD` (`mpirun -x LD_PRELOAD=libdarshan.so`, `env LD_PRELOAD=... ./app`, a script that empties it) means
//! other libraries than us. So where libc is about to execute a program, our entries go before what the environment has:
//!
//! ```text
//!  LD_PRELOAD of the new program       LOCKSTEP_RUN is there        it is not
//!  has our library                     as it is                     as it is
//!  other libraries                     ours before them             ours before them, and our variables
//!  empty, or none                      ours                         as it is: an environment of its own
//! ```
//! *Not for*: programs that are executed by a bare system call, or by `execveat`.

use crate::planner::Environment;
use crate::process::Process;
use crate::program;
use crate::syscall;
use crate::text::{Text, until_zero};
use crate::thread::Thread;
use crate::x86_64::slow::Frame;
use core::sync::atomic::{AtomicPtr, Ordering};
use lockstep_format::process::fact;

const PRELOAD: &[u8] = b"LD_PRELOAD=";
const RUN: &[u8] = b"LOCKSTEP_RUN=";
const OURS: &[u8] = b"LOCKSTEP_";
/// The environment is `execve`'s third argument, and `fexecve`'s.
const ENVIRONMENT: u32 = 3;

/// What we were started with.
struct Start {
    environment: Environment,
    /// Our entries of `LD_PRELOAD`: the unwinder and the recorder.
    entries: &'static [u8],
    /// The recorder's alone.
    probe: &'static [u8],
}

static START: AtomicPtr<Start> = AtomicPtr::new(core::ptr::null_mut());

/// Remembers the environment; `probe` is the path from which we were loaded. In the constructor.
pub fn know(environment: Environment, probe: &'static [u8]) {
    let Some(value) = environment.variable("LD_PRELOAD") else {
        return;
    };
    let mut end = 0;
    let found = entries(value).any(|entry| {
        end = entry.as_ptr() as usize + entry.len() - value.as_ptr() as usize;
        entry == probe
    });
    let (true, Some(entries), Ok(at)) = (found, value.get(..end), syscall::map(size_of::<Start>()))
    else {
        return;
    };
    let at = at.cast::<Start>();
    // SAFETY: just mapped, for ever.
    unsafe {
        at.write(Start {
            environment,
            entries,
            probe,
        });
    }
    START.store(at, Ordering::Release);
}

fn entries(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_separator = |byte: &u8| matches!(byte, b':' | b' ');
    value.split(is_separator).filter(|entry| !entry.is_empty())
}

/// Longer names of variables are none of ours.
const HEAD: usize = 64;
/// The kernel takes no longer string.
const LONGEST: usize = 128 << 10;
/// Pointers that are read at a time.
const BLOCK: usize = 32;
/// More of our variables are not told apart.
const MOST_OURS: usize = 64;

/// The environment that a program gives to libc: an array of pointers to strings, which a null ends. Any of it may not be there:
/// what the kernel says then is the kernel's to say.
#[derive(Clone, Copy)]
struct Strings(u64);

impl Strings {
    /// Gives each pointer to `take`; nothing if the array cannot be read up to its end, or `take` gives nothing.
    fn each(self, mut take: impl FnMut(u64) -> Option<()>) -> Option<()> {
        let mut at = self.0;
        if at == 0 {
            return Some(());
        }
        loop {
            let mut block = [0; 8 * BLOCK];
            let known = program::bytes(at, &mut block);
            let (words, _) = block.get(..known)?.as_chunks::<8>();
            for word in words {
                match u64::from_le_bytes(*word) {
                    0 => return Some(()),
                    string => take(string)?,
                }
            }
            if known < block.len() {
                return None;
            }
            at = at.wrapping_add(block.len() as u64);
        }
    }
}

/// What an environment holds.
struct Found {
    strings: usize,
    has_run: bool,
    /// Where the first `LD_PRELOAD` stands, which counts; 0 if there is none.
    preload: u64,
    /// Of our variables, by their numbers: those that are there.
    ours: u64,
}

fn names(start: &Start) -> impl Iterator<Item = (u64, &'static [u8])> {
    let strings = start.environment.strings();
    let ours = strings.filter(|string| string.starts_with(OURS));
    let bits = (0..MOST_OURS).map(|number| 1 << number);
    bits.zip(ours)
}

fn look(strings: Strings, start: &Start) -> Option<Found> {
    let mut found = Found {
        strings: 0,
        has_run: false,
        preload: 0,
        ours: 0,
    };
    strings.each(|string| {
        let mut head = [0; HEAD];
        let known = program::bytes(string, &mut head);
        let head = until_zero(head.get(..known).filter(|it| !it.is_empty())?);
        found.strings += 1;
        found.has_run |= head.starts_with(RUN);
        if head.starts_with(PRELOAD) && found.preload == 0 {
            found.preload = string;
        }
        if head.starts_with(OURS) {
            let name = |string: &'static [u8]| string.split_inclusive(|byte| *byte == b'=').next();
            let is_it =
                |ours: &(u64, &'static [u8])| name(ours.1).is_some_and(|it| head.starts_with(it));
            names(start)
                .filter(is_it)
                .for_each(|ours| found.ours |= ours.0);
        }
        Some(())
    })?;
    Some(found)
}

/// Before `execve` and `fexecve`: gives them an environment in which we are.
pub fn exec(thread: &mut Thread, process: &Process, frame: &mut Frame) {
    // SAFETY: null, or written by `know` for ever.
    let Some(start) = (unsafe { START.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let [path, _, strings, ..] = frame.arguments();
    let strings = Strings(strings);
    let Some(found) = look(strings, start) else {
        return;
    };
    let length = match found.preload {
        0 => Some(0),
        at => program::length(at + PRELOAD.len() as u64, LONGEST),
    };
    if found.preload == 0 && !found.has_run {
        return tell(thread, process, path);
    }
    let Some(made) = length.and_then(|length| Made::new(thread, &found, length, start)) else {
        return;
    };
    let theirs = made.theirs();
    if entries(theirs).any(|entry| entry == start.probe) {
        return;
    }
    if !found.has_run && entries(theirs).next().is_none() {
        return tell(thread, process, path);
    }
    if made.fill(strings, &found, start).is_some() {
        frame.set_argument(ENVIRONMENT, made.at as u64);
    }
}

/// An environment with our entries and those of our variables that it lacks, in memory of the thread.
///
/// ```text
///  at                        text                                  value
///  | pointers ... | null |   LD_PRELOAD= our entries : | their value | 0
/// ```
struct Made {
    at: *mut u8,
    pointers: usize,
    value: *mut u8,
    length: usize,
}

impl Made {
    /// Takes memory, and their value of `LD_PRELOAD` into it.
    fn new(thread: &mut Thread, found: &Found, length: usize, start: &Start) -> Option<Self> {
        let missing = names(start).filter(|ours| found.ours & ours.0 == 0);
        let pointers = found.strings + missing.count() + 2;
        let before = PRELOAD.len() + start.entries.len() + 1;
        let size = (8 * pointers + before + length + 1).next_multiple_of(4096);
        let at = room(thread, size)?;
        // SAFETY: `size` bytes of ours.
        let value = unsafe { at.add(8 * pointers + before) };
        if length > 0 {
            // SAFETY: behind `value`.
            let place = unsafe { core::slice::from_raw_parts_mut(value, length) };
            if program::bytes(found.preload + PRELOAD.len() as u64, place) < length {
                return None;
            }
        }
        Some(Self {
            at,
            pointers,
            value,
            length,
        })
    }

    fn theirs(&self) -> &[u8] {
        // SAFETY: written by `new`.
        unsafe { core::slice::from_raw_parts(self.value, self.length) }
    }

    /// Writes the rest. The array may have changed meanwhile: nothing then.
    fn fill(&self, strings: Strings, found: &Found, start: &Start) -> Option<()> {
        // SAFETY: `new` left room for both.
        let (text, places) = unsafe {
            let text = self.at.add(8 * self.pointers);
            let places = self.at.cast::<u64>();
            (text, core::slice::from_raw_parts_mut(places, self.pointers))
        };
        let separator: &[u8] = if self.length > 0 { b":" } else { b"\0" };
        let mut end = text;
        for part in [PRELOAD, start.entries, separator] {
            // SAFETY: up to `value`, as `new` has it.
            unsafe {
                core::ptr::copy_nonoverlapping(part.as_ptr(), end, part.len());
                end = end.add(part.len());
            }
        }
        // SAFETY: one byte more than their value has.
        unsafe { self.value.add(self.length).write(0) };
        let mut places = places.iter_mut();
        let mut push = |pointer: u64| places.next().map(|place| *place = pointer);
        push(text as u64)?;
        strings.each(|string| match string == found.preload {
            true => Some(()),
            false => push(string),
        })?;
        let mut missing = names(start).filter(|ours| found.ours & ours.0 == 0);
        missing.try_for_each(|(_, string)| push(string.as_ptr() as u64))?;
        push(0)
    }
}

/// Memory of the thread for one environment. A child of `vfork` runs as the thread that waits for it, and uses the same.
fn room(thread: &mut Thread, size: usize) -> Option<*mut u8> {
    let (at, has) = thread.environment;
    if size <= has {
        return Some(at);
    }
    let fresh = syscall::map(size).ok()?;
    if !at.is_null() {
        // SAFETY: its own, and of no use any more.
        unsafe { syscall::unmap(at, has) };
    }
    thread.environment = (fresh, size);
    Some(fresh)
}

/// Says that a program is started without us.
fn tell(thread: &mut Thread, process: &Process, path: u64) {
    const WHY: &[u8] =
        b"it was started with an environment of its own, in which the recorder is not";
    const LONGEST_PATH: usize = 4095;
    // `fexecve` has a small number in its place.
    let (Some(length), Some(at)) = (
        program::length(path, LONGEST_PATH),
        room(thread, LONGEST_PATH + 1),
    ) else {
        return;
    };
    // SAFETY: ours, and long enough.
    let place = unsafe { core::slice::from_raw_parts_mut(at, length) };
    if program::bytes(path, place) < length {
        return;
    }
    let mut line = Text::<4608>::new();
    line.push_line(fact::UNTRACED, &[place, WHY]);
    let _ = process.add_facts(line.bytes());
}
