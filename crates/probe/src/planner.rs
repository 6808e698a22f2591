//! Plans of images: found in the run, or made by the planner, a program of its own.

use crate::image::{self, Image};
use crate::process::Process;
use crate::setup::{PATH, Setup};
use crate::shortage::{self, MEMORY, PLANNER_DESCRIPTORS, PLANNER_LIBRARIES, PLANNER_MEMORY};
use crate::syscall::{self, AS_IT_IS, Fd, O_RDONLY};
use crate::text::Text;
use crate::x86_64::check;
use crate::x86_64::spawn::{NOT_EXECUTED, SIGNALLED, run};
use core::ffi::CStr;
use core::ptr::null;
use lockstep_format::plan::{Plan, Role, planner};

/// Stacks of the planner and its parent until the planner has its own program.
const STACK: usize = 16 * 1024;

/// An image that is to have a plan.
#[derive(Clone, Copy)]
pub struct Candidate {
    /// Where it is.
    pub image: Image,
    /// What it is.
    pub role: Role,
    /// Path of its file; a zero follows.
    pub path: &'static [u8],
    /// The dynamic linker's entry, as a number; 0 for the main program.
    pub link: u64,
    /// Nothing of it is patched: it is asked for its closed functions alone.
    pub is_only_called: bool,
}

/// The environment that the process was started with, as the kernel keeps it.
#[derive(Clone, Copy)]
pub struct Environment {
    /// Strings, each with a zero behind it.
    bytes: &'static [u8],
    /// What tells the choice of functions from others, which every plan's name ends with.
    choice: Option<&'static [u8]>,
}

impl Environment {
    /// That of these strings, each with a zero behind it.
    pub fn new(bytes: &'static [u8]) -> Self {
        let environment = Self {
            bytes,
            choice: None,
        };
        Self {
            choice: environment.variable("LOCKSTEP_CHOICE"),
            ..environment
        }
    }

    /// All of it.
    pub fn strings(self) -> impl Iterator<Item = &'static [u8]> {
        self.bytes.split_inclusive(|byte| *byte == 0)
    }

    /// The value of `name`.
    pub fn variable(self, name: &str) -> Option<&'static [u8]> {
        self.strings()
            .map(crate::text::until_zero)
            .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    }
}

/// A plan, mapped until dropped, with the name of its file.
pub struct Found {
    /// The plan.
    pub plan: Plan<'static>,
    /// Name of its file in the run's `plans`.
    pub name: Text<192>,
    at: *mut u8,
    size: usize,
}

impl Drop for Found {
    fn drop(&mut self) {
        // SAFETY: the plan goes with it.
        unsafe { syscall::unmap(self.at, self.size) };
    }
}

/// The file name of an image's plan: as `lockstep_patch::plan_name` has it.
fn plan_name(environment: Environment, candidate: &Candidate) -> Result<Text<192>, &'static str> {
    if candidate.path.len() >= image::PATH {
        return Err("its path is too long");
    }
    let key = candidate
        .image
        .key(candidate.path)
        .ok_or("its file cannot be read")?;
    let mut name = Text::new();
    name.push(key.bytes());
    name.push(b"-");
    name.push(candidate.role.name().as_bytes());
    if let Some(choice) = environment.choice {
        name.push(b"-");
        name.push(choice);
    }
    name.push(b".plan");
    Ok(name)
}

fn open(name: &Text<192>) -> Result<Fd, syscall::Errno> {
    let mut path = Text::<{ PATH + 256 }>::new();
    path.push(Setup::get().run.bytes());
    path.push(b"/plans/");
    path.push(name.bytes());
    path.push(b"\0");
    syscall::open(path.bytes(), O_RDONLY | AS_IT_IS)
}

/// Why there is no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Nobody has made it yet, or nobody could write it.
    NotMade,
    /// What is there is not to be used: another may be made in its place.
    NotUsable(&'static str),
    /// It cannot be used, or there can be none.
    Because(&'static str),
}

impl Missing {
    /// In words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotMade => NONE,
            Self::NotUsable(reason) | Self::Because(reason) => reason,
        }
    }

    /// Whether the planner may help.
    pub fn may_be_made(self) -> bool {
        !matches!(self, Self::Because(_))
    }
}

const NONE: &str = "no plan could be made for it";

/// The plan of a candidate.
pub fn find(environment: Environment, candidate: &Candidate) -> Result<Found, Missing> {
    let name = plan_name(environment, candidate).map_err(Missing::Because)?;
    let found = read(name)?;
    if found.plan.role() != candidate.role {
        return Err(Missing::Because("its plan is for another role"));
    }
    if found.plan.build_id() != candidate.image.build_id() {
        return Err(Missing::Because("its plan is for another build"));
    }
    Ok(found)
}

/// The plan in the file of this name.
pub fn read(name: Text<192>) -> Result<Found, Missing> {
    const UNREADABLE: Missing = Missing::Because("its plan cannot be read");
    let short = |error| shortage::of(error).map(Missing::Because);
    let file = open(&name).map_err(|error| short(error).unwrap_or(Missing::NotMade))?;
    let stat = file.stat().map_err(|_| UNREADABLE)?;
    if !stat.is_trusted(|| Process::get()?.makes()) {
        return Err(Missing::NotUsable(
            "its plan is somebody else's, or others may write it",
        ));
    }
    let size = stat.size as usize;
    if size == 0 {
        return Err(Missing::Because(NONE));
    }
    let at = file
        .map_private(size)
        .map_err(|error| short(error).unwrap_or(UNREADABLE))?;
    // SAFETY: mapped until `Found` is dropped; a plan in place is never written to.
    let bytes: &'static [u8] = unsafe { core::slice::from_raw_parts(at, size) };
    let Ok(plan) = Plan::checked_by(bytes, check::extend) else {
        // SAFETY: nothing of it is kept.
        unsafe { syscall::unmap(at, size) };
        // Of a run that has been recorded, or damaged.
        return Err(Missing::NotUsable("its plan does not hold"));
    };
    Ok(Found {
        plan,
        name,
        at,
        size,
    })
}

fn c_name(role: Role) -> &'static CStr {
    match role {
        Role::Main => c"main",
        Role::Unwinder => c"unwinder",
        Role::Mpi => c"mpi",
        Role::Libc => c"libc",
        Role::Library => c"library",
        Role::Linker => c"linker",
    }
}

/// Runs `PLANNER __plan --run RUN [ROLE NAME PATH]...` and waits for it: plans for those of
/// `candidates` that `wanted` accepts. It inherits no descriptor, and says nothing.
///
/// # Errors
/// Why not all of them were made.
pub fn make(
    environment: Environment,
    candidates: &[Candidate],
    wanted: impl Fn(usize) -> bool,
) -> Result<(), &'static str> {
    let mut planner = Text::<{ PATH + 1 }>::new();
    let path = environment.variable("LOCKSTEP_PLANNER");
    planner.push(path.ok_or("there is no planner")?);
    planner.push(b"\0");
    let mut run_path = Text::<{ PATH + 1 }>::new();
    run_path.push(Setup::get().run.bytes());
    run_path.push(b"\0");
    // Two arrays of pointers, with their nulls; names; a stack.
    let variables = environment.strings().count() + 1;
    let words = 4 + 3 * candidates.len() + 1 + variables;
    let names = words * 8;
    let room = (names + candidates.len() * size_of::<Text<192>>()).next_multiple_of(4096) + STACK;
    let memory = syscall::map(room).map_err(|_| MEMORY)?;
    let mut at = memory.cast::<*const u8>();
    let mut push = |pointer: *const u8| {
        // SAFETY: no more than `words` are pushed.
        unsafe {
            at.write(pointer);
            at = at.add(1);
            at
        }
    };
    let arguments = memory.cast::<*const u8>();
    push(planner.bytes().as_ptr());
    push(c"__plan".as_ptr().cast());
    push(c"--run".as_ptr().cast());
    push(run_path.bytes().as_ptr());
    for (index, candidate) in candidates.iter().enumerate() {
        if wanted(index) {
            let Ok(mut name) = plan_name(environment, candidate) else {
                continue;
            };
            name.push(b"\0");
            push(c_name(candidate.role).as_ptr().cast());
            // SAFETY: room for as many names as there are candidates.
            unsafe {
                let place = memory.add(names).cast::<Text<192>>().add(index);
                place.write(name);
                push((*place).bytes().as_ptr());
            }
            push(candidate.path.as_ptr());
        }
    }
    let pointers = push(null());
    // The same environment without the probe: the planner is not part of the run.
    for entry in environment.strings() {
        if entry.last() == Some(&0) && !entry.starts_with(b"LD_PRELOAD=") {
            push(entry.as_ptr());
        }
    }
    push(null());
    // SAFETY: strings end with zeros, arrays with null; the stack is ours.
    let status = unsafe {
        run(
            planner.bytes().as_ptr(),
            arguments,
            pointers,
            memory.add(room),
        )
    };
    // SAFETY: nobody uses it any more.
    unsafe { syscall::unmap(memory, room) };
    outcome(status)
}

/// What the planner's end says.
fn outcome(status: isize) -> Result<(), &'static str> {
    /// The dynamic linker's own.
    const NOT_LOADED: u8 = 127;
    /// Rust's, where an allocation fails.
    const ABORTED: u8 = SIGNALLED + 6;
    const NOT_STARTED: &str = "the planner could not be started";
    let Ok(status) = u8::try_from(status) else {
        return Err(NOT_STARTED);
    };
    match status {
        planner::DONE => Ok(()),
        planner::DESCRIPTORS => Err(PLANNER_DESCRIPTORS),
        planner::MEMORY | planner::NOT_BEGUN | ABORTED => Err(PLANNER_MEMORY),
        planner::DISK => Err("the planner found no room on the disk"),
        NOT_EXECUTED => Err(NOT_STARTED),
        NOT_LOADED => Err(PLANNER_LIBRARIES),
        SIGNALLED.. => Err(shortage::PLANNER_ENDED),
        _ => Err(NONE),
    }
}
