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
use crate::syscall;
use crate::text::{Text, until_zero};
use crate::thread::Thread;
use crate::x86_64::slow::Frame;
use core::ffi::{CStr, c_char};
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

/// The strings that a program gives to libc.
#[derive(Clone, Copy)]
struct Strings(*const *const c_char);

impl Iterator for Strings {
    type Item = &'static CStr;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: an array of strings that ends with a null, as libc asks for.
        unsafe {
            let string = *self.0;
            if string.is_null() {
                return None;
            }
            self.0 = self.0.add(1);
            Some(CStr::from_ptr(string))
        }
    }
}

/// What becomes of an environment.
#[derive(PartialEq, Eq)]
enum Change {
    None,
    /// Our entries are added.
    Ours,
    /// It is one of the program's own, without us.
    Without,
}

fn change(strings: Strings, start: &Start) -> Change {
    let mut has_run = false;
    let mut preload: &[u8] = &[];
    strings.map(CStr::to_bytes).for_each(|string| {
        has_run |= string.starts_with(RUN);
        // The first one counts.
        if let Some(value) = string.strip_prefix(PRELOAD)
            && preload.is_empty()
        {
            preload = value;
        }
    });
    if entries(preload).any(|entry| entry == start.probe) {
        Change::None
    } else if has_run || entries(preload).next().is_some() {
        Change::Ours
    } else {
        Change::Without
    }
}

/// Before `execve` and `fexecve`: gives them an environment in which we are.
pub fn exec(thread: &mut Thread, process: &Process, frame: &mut Frame) {
    // SAFETY: null, or written by `know` for ever.
    let Some(start) = (unsafe { START.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let [path, _, strings, ..] = frame.arguments();
    let strings = Strings(strings as *const _);
    match change(strings, start) {
        Change::None => {}
        Change::Ours => {
            if let Some(at) = with_ours(thread, strings, start) {
                frame.set_argument(ENVIRONMENT, at);
            }
        }
        Change::Without => tell(process, path),
    }
}

/// The environment with our entries and those of our variables that it lacks, in memory of the thread; its address.
fn with_ours(thread: &mut Thread, strings: Strings, start: &Start) -> Option<u64> {
    let name = |string: &'static [u8]| string.split_inclusive(|byte| *byte == b'=').next();
    let lacks = |string: &&'static [u8]| {
        let name = name(string).unwrap_or(&[]);
        let is_there = |it: &CStr| it.to_bytes().starts_with(name);
        string.starts_with(OURS) && !{ strings }.any(is_there)
    };
    let is_preload = |it: &&CStr| it.to_bytes().starts_with(PRELOAD);
    let theirs = { strings }.find(is_preload);
    let theirs = theirs.map_or(&[][..], |it| {
        it.to_bytes().get(PRELOAD.len()..).unwrap_or(&[])
    });
    let missing = || start.environment.strings().filter(lacks);
    let pointers = strings.count() + missing().count() + 2;
    let length = PRELOAD.len() + start.entries.len() + theirs.len() + 2;
    let size = (8 * pointers + length).next_multiple_of(4096);
    let at = room(thread, size)?;
    // SAFETY: `size` bytes of ours: as many pointers, and the text behind them.
    unsafe {
        let text = at.add(8 * pointers);
        let mut end = text;
        for part in [PRELOAD, start.entries, b":", theirs] {
            if part != b":" || !theirs.is_empty() {
                core::ptr::copy_nonoverlapping(part.as_ptr(), end, part.len());
                end = end.add(part.len());
            }
        }
        end.write(0);
        let mut place = at.cast::<*const u8>();
        let mut push = |pointer: *const u8| {
            place.write(pointer);
            place = place.add(1);
        };
        push(text);
        strings
            .filter(|it| !is_preload(it))
            .for_each(|it| push(it.as_ptr().cast()));
        missing().for_each(|it| push(it.as_ptr()));
        push(core::ptr::null());
    }
    Some(at as u64)
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
fn tell(process: &Process, path: u64) {
    const WHY: &[u8] =
        b"it was started with an environment of its own, in which the recorder is not";
    if path < 4096 {
        return;
    }
    // SAFETY: the path that libc was given; `fexecve` has a small number in its place.
    let path = unsafe { CStr::from_ptr(path as *const c_char) };
    let mut line = Text::<4608>::new();
    line.push_line(fact::UNTRACED, &[until_zero(path.to_bytes()), WHY]);
    let _ = process.add_facts(line.bytes());
}
