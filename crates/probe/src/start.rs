//! The constructor: finds the images, has their plans made or reads them, applies them.
//!
//! What it needs to know of the process it reads from `/proc/self`: the arguments that a dynamic
//! linker gives to constructors differ between C libraries.

use crate::arena;
use crate::budget::Budget;
use crate::image::{self, Image};
use crate::process::Process;
use crate::setup::Setup;
use crate::syscall::{self, Fd, O_RDONLY};
use crate::text::{Text, decimal, file_name, until_zero};
use crate::x86_64::spawn::spawn;
use core::ptr::null;
use lockstep_format::codec::Kind;
use lockstep_format::digest::Digest;
use lockstep_format::launcher::LAUNCHERS;
use lockstep_format::plan::{Plan, Role};
use lockstep_format::process::fact;
use lockstep_format::symbol::FIRST_FUNCTION;

/// Most images that are patched.
const MOST_PLANS: usize = 16;
/// Stack of the planner until it has its own program.
const PLANNER_STACK: usize = 16 * 1024;
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

impl Drop for Contents {
    fn drop(&mut self) {
        // SAFETY: no reference outlives it.
        unsafe { syscall::unmap(self.at, self.room) };
    }
}

/// The value of `name` in `environment`.
fn variable<'a>(environment: &'a Contents, name: &str) -> Option<&'a [u8]> {
    environment
        .strings()
        .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

/// The constructor. Does nothing unless `LOCKSTEP_RUN` is set.
pub extern "C" fn start() {
    let Some(environment) = Contents::read(b"/proc/self/environ\0") else {
        return;
    };
    let Some(run) = variable(&environment, "LOCKSTEP_RUN").filter(|run| run.starts_with(b"/"))
    else {
        return;
    };
    // SAFETY: this is the constructor.
    let setup = unsafe { Setup::get_mut() };
    setup.run.push(run);
    if !setup.run.is_whole() || Process::reserve().is_err() {
        return;
    }
    setup.codec = variable(&environment, "LOCKSTEP_CODEC")
        .and_then(|name| core::str::from_utf8(name).ok())
        .and_then(Kind::from_name)
        .unwrap_or(Kind::None);
    setup.low_memory = variable(&environment, "LOCKSTEP_MEMORY") == Some(b"low");
    setup.redact = variable(&environment, "LOCKSTEP_REDACT").is_some();
    describe(setup, &environment);
    if bound(setup, &environment).is_none() {
        return;
    }
    choose(setup, &environment);
    let Some(process) = Process::get() else {
        return;
    };
    if process.claim().is_err() {
        return;
    }
    if syscall::has_shadow_stack() {
        // Frames that are restored, and calls that are skipped, return elsewhere than they were
        // called from.
        untraced_program(setup, "it runs with a hardware shadow stack");
    } else {
        patch(setup, &environment);
    }
    let _ = process.open(0);
}

/// How large files may become. `None` where there is a bound that cannot be kept.
fn bound(setup: &mut Setup, environment: &Contents) -> Option<()> {
    let Some(limit) = variable(environment, "LOCKSTEP_MAX_SIZE").map(decimal) else {
        return Some(());
    };
    let number = |name: &str| {
        variable(environment, name)
            .filter(|value| value.first().is_some_and(u8::is_ascii_digit))
            .map(decimal)
    };
    let ranks = LAUNCHERS
        .iter()
        .find(|launcher| number(launcher.rank).is_some())
        .and_then(|launcher| number(launcher.size));
    setup.budget = Budget::open(setup.run.bytes(), setup.host.bytes(), limit, ranks)?;
    Some(())
}

/// Says that the program is not recorded, and why.
fn untraced_program(setup: &mut Setup, reason: &str) {
    let mut path = [0u8; image::PATH];
    let length = syscall::read_link(b"/proc/self/exe\0", &mut path);
    let path = path.get(..length).unwrap_or(&[]);
    setup.fact(fact::UNTRACED, &[path, reason.as_bytes()]);
}

/// Facts about the process.
fn describe(setup: &mut Setup, environment: &Contents) {
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
            if let Some(value) = variable(environment, name)
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
fn choose(setup: &mut Setup, environment: &Contents) {
    let names = [
        (fact::TRACE, "LOCKSTEP_TRACE"),
        (fact::SKIP, "LOCKSTEP_SKIP"),
    ];
    for (word, name) in names {
        let patterns = variable(environment, name).unwrap_or(&[]);
        for pattern in patterns.split(|byte| *byte == b'\n') {
            if !pattern.is_empty() {
                setup.fact(word, &[pattern]);
            }
        }
    }
}

/// An image with a plan, in the order in which they are patched: the main program first.
#[derive(Clone, Copy)]
struct Candidate {
    image: Image,
    role: Role,
    path: Text<{ image::PATH }>,
}

/// Patches the main program and the libraries that have a role.
fn patch(setup: &mut Setup, environment: &Contents) {
    let Ok(memory) = syscall::map(MOST_PLANS * size_of::<Option<Candidate>>()) else {
        return;
    };
    // SAFETY: just mapped, page-aligned; every element is written before it is read.
    let candidates = unsafe {
        let first = memory.cast::<Option<Candidate>>();
        for index in 0..MOST_PLANS {
            first.add(index).write(None);
        }
        core::slice::from_raw_parts_mut(first, MOST_PLANS)
    };
    let mut count = 0;
    let _ = image::each(|image, path, is_main| {
        let role = if is_main {
            Some(Role::Main)
        } else {
            core::str::from_utf8(file_name(path))
                .ok()
                .and_then(Role::of_library)
        };
        if let (Some(role), Some(place)) = (role, candidates.get_mut(count)) {
            let mut whole = Text::new();
            whole.push(path);
            *place = Some(Candidate {
                image,
                role,
                path: whole,
            });
            count += 1;
        }
    });
    // The libraries first: once the main program's calls are redirected, whoever unwinds must
    // restore. But the main program's symbols come first.
    let mut first = FIRST_FUNCTION;
    let mut main_patched = Err("the dynamic linker's list of images was not found");
    let main_plan = candidates
        .first()
        .and_then(Option::as_ref)
        .map(|main| (main, prepare(setup, environment, main)));
    if let Some((_, Ok(plan))) = &main_plan {
        first += plan.plan.symbols();
        if first - 1 > setup.codec.largest() {
            setup.codec = Kind::Lockstep;
        }
    }
    let mut libraries_patched = true;
    for candidate in candidates.iter().skip(1).flatten() {
        let result = prepare(setup, environment, candidate).and_then(|found| {
            let result = install(setup, candidate, &found, first);
            first += found.plan.symbols();
            result
        });
        if let Err(reason) = result {
            setup.fact(fact::UNTRACED, &[candidate.path.bytes(), reason.as_bytes()]);
            libraries_patched &= candidate.role != Role::Unwinder;
        }
    }
    if let Some((main, plan)) = main_plan {
        main_patched = plan.and_then(|plan| {
            if libraries_patched {
                install(setup, main, &plan, FIRST_FUNCTION)
            } else {
                Err("its unwinder could not be patched")
            }
        });
    }
    if let Err(reason) = main_patched {
        untraced_program(setup, reason);
    }
}

/// A plan, mapped, with the name of its file.
struct Found {
    plan: Plan<'static>,
    name: Text<160>,
}

/// Finds an image's plan, or has it made.
fn prepare(
    setup: &Setup,
    environment: &Contents,
    candidate: &Candidate,
) -> Result<Found, &'static str> {
    if !candidate.path.is_whole() {
        return Err("its path is too long");
    }
    let key = candidate
        .image
        .key(candidate.path.bytes())
        .ok_or("its file cannot be read")?;
    let mut name = Text::new();
    name.push(key.bytes());
    if let Some(choice) = variable(environment, "LOCKSTEP_CHOICE") {
        name.push(b"-");
        name.push(choice);
    }
    name.push(b".plan");
    let mut path = Text::<{ crate::setup::PATH + 256 }>::new();
    path.push(setup.run.bytes());
    path.push(b"/plans/");
    path.push(name.bytes());
    path.push(b"\0");
    let file = match syscall::open(path.bytes(), O_RDONLY) {
        Ok(file) => file,
        Err(_) => {
            make(setup, environment, candidate)?;
            syscall::open(path.bytes(), O_RDONLY).map_err(|_| "no plan could be made for it")?
        }
    };
    let plan = read(&file)?;
    if plan.role() != candidate.role {
        return Err("its plan is for another role");
    }
    if plan.build_id() != candidate.image.build_id() {
        return Err("its plan is for another build");
    }
    Ok(Found { plan, name })
}

fn read(file: &Fd) -> Result<Plan<'static>, &'static str> {
    const UNREADABLE: &str = "its plan cannot be read";
    let size = file.stat().map_err(|_| UNREADABLE)?.size as usize;
    if size == 0 {
        return Err(UNREADABLE);
    }
    let at = file.map_private(size).map_err(|_| UNREADABLE)?;
    // SAFETY: mapped for ever; a plan in place is never written to.
    Plan::new(unsafe { core::slice::from_raw_parts(at, size) }).map_err(|_| UNREADABLE)
}

/// Runs `PLANNER __plan --run RUN --role ROLE IMAGE` and waits for it.
fn make(setup: &Setup, environment: &Contents, candidate: &Candidate) -> Result<(), &'static str> {
    let mut planner = Text::<{ crate::setup::PATH + 1 }>::new();
    planner.push(variable(environment, "LOCKSTEP_PLANNER").ok_or("there is no planner")?);
    planner.push(b"\0");
    let mut run = Text::<{ crate::setup::PATH + 1 }>::new();
    run.push(setup.run.bytes());
    run.push(b"\0");
    let mut role = Text::<16>::new();
    role.push(candidate.role.name().as_bytes());
    role.push(b"\0");
    let mut path = Text::<{ image::PATH + 1 }>::new();
    path.push(candidate.path.bytes());
    path.push(b"\0");
    let arguments = [
        planner.bytes().as_ptr(),
        c"__plan".as_ptr().cast(),
        c"--run".as_ptr().cast(),
        run.bytes().as_ptr(),
        c"--role".as_ptr().cast(),
        role.bytes().as_ptr(),
        path.bytes().as_ptr(),
        null(),
    ];
    // The same environment without the probe: the planner is not part of the run.
    let count = environment.strings().count() + 1;
    let pointers = syscall::map(count * 8).map_err(|_| "out of memory")?;
    let stack = syscall::map(PLANNER_STACK).map_err(|_| "out of memory")?;
    let kept = environment
        .strings()
        .filter(|entry| !entry.starts_with(b"LD_PRELOAD="));
    for (index, entry) in kept.enumerate() {
        // SAFETY: room for all of them and the null at the end.
        unsafe {
            pointers
                .cast::<*const u8>()
                .add(index)
                .write(entry.as_ptr())
        };
    }
    // SAFETY: strings end with zeros (`Contents` keeps a zero behind its last byte), arrays with
    // null; the stack is ours.
    let child = unsafe {
        spawn(
            planner.bytes().as_ptr(),
            arguments.as_ptr(),
            pointers.cast(),
            stack.add(PLANNER_STACK),
        )
    };
    if child > 0 {
        // Where the host ignores SIGCHLD this waits too, and then says that there is no child.
        let _ = syscall::wait(child as usize);
    }
    // SAFETY: the child has its own program by now, or is gone.
    unsafe {
        syscall::unmap(pointers, count * 8);
        syscall::unmap(stack, PLANNER_STACK);
    }
    if child > 0 {
        Ok(())
    } else {
        Err("the planner could not be started")
    }
}

/// Applies a plan and says so in the facts.
fn install(
    setup: &mut Setup,
    candidate: &Candidate,
    found: &Found,
    first: u32,
) -> Result<(), &'static str> {
    let applied = arena::apply(&found.plan, &candidate.image, candidate.path.bytes(), first)?;
    setup
        .unexpected_text
        .fetch_add(applied.unexpected, core::sync::atomic::Ordering::Relaxed);
    let mut numbers = [Text::<24>::new(), Text::new(), Text::new()];
    numbers[0].push_decimal(u64::from(first));
    numbers[1].push_decimal(u64::from(found.plan.symbols()));
    numbers[2].push_hexadecimal(candidate.image.bias);
    setup.fact(
        fact::IMAGE,
        &[
            candidate.path.bytes(),
            found.name.bytes(),
            candidate.role.name().as_bytes(),
            numbers[0].bytes(),
            numbers[1].bytes(),
            numbers[2].bytes(),
        ],
    );
    Ok(())
}
