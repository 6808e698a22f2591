//! The constructor: describes the process, has its images patched, makes its file.
//!
//! What it needs to know of the process it reads from `/proc/self`: the arguments that a dynamic
//! linker gives to constructors differ between C libraries.

use crate::budget::Budget;
use crate::fault;
use crate::handles;
use crate::image;
use crate::load;
use crate::planner::Environment;
use crate::process::Process;
use crate::setup::Setup;
use crate::shortage;
use crate::signals;
use crate::stall;
use crate::syscall::{self, O_RDONLY};
use crate::text::{decimal, until_zero};
use crate::thread::Thread;
use lockstep_format::buffer;
use lockstep_format::codec::Kind;
use lockstep_format::digest::Digest;
use lockstep_format::launcher::LAUNCHERS;
use lockstep_format::process::fact;

/// Most bytes of arguments that are kept.
const MOST_ARGUMENTS: usize = 64 * 1024;

/// The whole of a file in `/proc`, in memory of its own, with a zero behind it.
struct Contents {
    at: *mut u8,
    length: usize,
    room: usize,
}

impl Contents {
    fn read(path: &[u8]) -> Option<Self> {
        let mut room = 256 * 1024;
        loop {
            let file = syscall::open(path, O_RDONLY).ok()?;
            let at = syscall::map(room).ok()?;
            let mut contents = Self {
                at,
                length: 0,
                room,
            };
            // SAFETY: just mapped.
            let memory = unsafe { core::slice::from_raw_parts_mut(at, room) };
            while let Some(free) = memory.get_mut(contents.length..room - 2)
                && !free.is_empty()
            {
                match file.read(free) {
                    Ok(0) | Err(_) => return Some(contents),
                    Ok(read) => contents.length += read,
                }
            }
            // These files tell no size: once more from the start, with more room.
            if room >= 16 << 20 {
                return Some(contents);
            }
            room *= 8;
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped, written up to here.
        unsafe { core::slice::from_raw_parts(self.at, self.length) }
    }

    /// Its zero-terminated strings, without the zeros.
    fn strings(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes()
            .split_inclusive(|byte| *byte == 0)
            .map(until_zero)
    }
}

impl Contents {
    /// An environment that stays.
    fn keep(self) -> Environment {
        let contents = core::mem::ManuallyDrop::new(self);
        // SAFETY: mapped for ever, with a zero behind it.
        let bytes = unsafe { core::slice::from_raw_parts(contents.at, contents.length) };
        Environment::new(bytes)
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        // SAFETY: no reference outlives it.
        unsafe { syscall::unmap(self.at, self.room) };
    }
}

/// The constructor. Does nothing unless `LOCKSTEP_RUN` is set.
pub extern "C" fn start() {
    let Some(environment) = Contents::read(b"/proc/self/environ\0").map(Contents::keep) else {
        return;
    };
    let Some(run) = environment
        .variable("LOCKSTEP_RUN")
        .filter(|run| run.starts_with(b"/"))
    else {
        return;
    };
    // SAFETY: this is the constructor, and the reference ends before others are made.
    let setup = unsafe { Setup::get_mut() };
    setup.run.push(run);
    if !setup.run.is_whole() || Process::reserve().is_err() {
        return;
    }
    setup.codec = environment
        .variable("LOCKSTEP_CODEC")
        .and_then(|name| core::str::from_utf8(name).ok())
        .and_then(Kind::from_name)
        .unwrap_or(Kind::None);
    setup.low_memory = environment.variable("LOCKSTEP_MEMORY") == Some(b"low");
    if setup.low_memory {
        setup.codec = setup.codec.low();
    }
    setup.redact = environment.variable("LOCKSTEP_REDACT").is_some();
    setup.arguments = environment.variable("LOCKSTEP_NO_ARGUMENTS").is_none();
    setup.times = environment.variable("LOCKSTEP_NO_TIME").is_none();
    setup.every_time = setup.times && environment.variable("LOCKSTEP_EVERY_TIME").is_some();
    describe(setup, environment);
    let buffer = environment.variable(buffer::VARIABLE);
    if let Some(place) = buffer.and_then(|value| buffer::place(value, setup.host.bytes())) {
        setup.buffer.push(place);
        if !setup.buffer.is_whole() {
            return;
        }
    }
    if bound(setup, environment).is_none() {
        return;
    }
    if setup.arguments {
        handles::know_main(|word, values| setup.fact(word, values));
    }
    choose(setup, environment);
    if !take_fault_on(environment) {
        return;
    }
    let Some(process) = Process::get() else {
        return;
    };
    let records = fault::records();
    if records && process.claim().is_err() {
        return;
    }
    stall::start(environment);
    let patched = if syscall::has_shadow_stack() {
        // Frames that are restored, and calls that are skipped, return elsewhere than they were
        // called from.
        Err("it runs with a hardware shadow stack")
    } else {
        load::start(environment)
    };
    if let Err(reason) = patched {
        untraced_program(reason);
    }
    if records && process.open(0).is_ok() && patched.is_ok() {
        Thread::prepare_first(process);
    }
    signals::start();
}

/// Takes on the fault that is to be put in, if there is one. False where nothing must be done: its
/// description is damaged.
fn take_fault_on(environment: Environment) -> bool {
    let Some(text) = environment.variable(lockstep_format::fault::VARIABLE) else {
        return true;
    };
    let rank = LAUNCHERS
        .iter()
        .find_map(|launcher| fault::number(environment.variable(launcher.rank)?));
    let mut path = [0u8; image::PATH];
    let length = syscall::read_link(b"/proc/self/exe\0", &mut path);
    // SAFETY: this is the constructor.
    unsafe { fault::take_on(text, rank, path.get(..length).unwrap_or(&[])) }
}

/// How large files may become. `None` where there is a bound that cannot be kept, and the user asked for it.
fn bound(setup: &mut Setup, environment: Environment) -> Option<()> {
    let Some(limit) = environment.variable("LOCKSTEP_MAX_SIZE") else {
        return Some(());
    };
    let (is_asked, limit) = match limit.strip_prefix(b"~") {
        Some(limit) => (false, decimal(limit)),
        None => (true, decimal(limit)),
    };
    let number = |name: &str| {
        environment
            .variable(name)
            .filter(|value| value.first().is_some_and(u8::is_ascii_digit))
            .map(decimal)
    };
    let ranks = LAUNCHERS
        .iter()
        .find(|launcher| number(launcher.rank).is_some())
        .and_then(|launcher| number(launcher.size));
    setup.keep_last = environment.variable("LOCKSTEP_KEEP") == Some(b"last");
    match Budget::open(setup.run.bytes(), setup.host.bytes(), limit, ranks) {
        Some(budget) => setup.budget = budget,
        None if is_asked => return None,
        None => {}
    }
    Some(())
}

/// Says that the program is not recorded, and why.
fn untraced_program(reason: &str) {
    let mut path = [0u8; image::PATH];
    let length = syscall::read_link(b"/proc/self/exe\0", &mut path);
    let path = path.get(..length).unwrap_or(&[]);
    // SAFETY: this is the constructor, and nobody holds another reference.
    let setup = unsafe { Setup::get_mut() };
    setup.fact(fact::UNTRACED, &[path, shortage::in_words(reason).bytes()]);
}

/// Facts about the process.
fn describe(setup: &mut Setup, environment: Environment) {
    let host = syscall::host_name();
    let digest = Digest::of(until_zero(&host));
    let host = if setup.redact {
        &digest
    } else {
        until_zero(&host)
    };
    for byte in host {
        let safe = byte.is_ascii_alphanumeric() || b"._".contains(byte);
        setup.host.push(if safe {
            core::slice::from_ref(byte)
        } else {
            b"_"
        });
    }
    setup.fact(fact::HOST, &[host]);
    let mut path = [0u8; image::PATH];
    let length = syscall::read_link(b"/proc/self/exe\0", &mut path);
    setup.fact(fact::PROGRAM, &[path.get(..length).unwrap_or(&[])]);
    if !setup.redact
        && let Some(arguments) = Contents::read(b"/proc/self/cmdline\0")
    {
        let mut room = MOST_ARGUMENTS;
        for argument in arguments.strings() {
            if argument.len() > room {
                break;
            }
            room -= argument.len();
            setup.fact(fact::ARGUMENT, &[argument]);
        }
    }
    for (index, launcher) in LAUNCHERS.iter().enumerate() {
        let names = [launcher.rank, launcher.size];
        for name in names.iter().chain(launcher.token) {
            // A variable that several launchers use is told once.
            let told = LAUNCHERS.iter().take(index).any(|earlier| {
                earlier.rank == *name || earlier.size == *name || earlier.token.contains(name)
            });
            if let Some(value) = environment.variable(name)
                && !told
            {
                // Ranks are needed to name processes; what tells jobs apart may hold a host's name.
                let is_number = names.contains(name);
                let digest = Digest::of(value);
                let value = if setup.redact && !is_number {
                    &digest
                } else {
                    value
                };
                setup.fact(fact::ENVIRONMENT, &[name.as_bytes(), value]);
            }
        }
    }
}

/// Which functions are recorded, by name: the plans are made so, here it is told.
fn choose(setup: &mut Setup, environment: Environment) {
    let names = [
        (fact::TRACE, "LOCKSTEP_TRACE"),
        (fact::SKIP, "LOCKSTEP_SKIP"),
    ];
    for (word, name) in names {
        let patterns = environment.variable(name).unwrap_or(&[]);
        for pattern in patterns.split(|byte| *byte == b'\n') {
            if !pattern.is_empty() {
                setup.fact(word, &[pattern]);
            }
        }
    }
}
