//! The part of `lockstep` that lives inside the traced program: a shared library, preloaded, that
//! applies patch plans to the program's images and writes every call and return to a process file.
//!
//! It has two doors: the constructor ([`start::start`]), which patches, and the routines
//! ([`x86_64::routines`]), which the patched program calls on every event. The file's layout, the
//! plan and the stubs are `lockstep_format`'s; nothing is decoded here.
//!
//! *Guarantees*: no allocation, lock, system call or libc call on the fast path; no libc at all;
//! errno, signal mask and registers are the program's; nothing that steers the program is ever read
//! from the shared mapping; what fails is counted with its reason, and the program goes on.
//! *Costs*: one store and a few private ones an event, about 240 kB of address space a thread.
//! *Not for*: deciding what to patch (that is `patch`), or reading what it wrote (`trace`).
//!
//! # Environment
//!
//! | variable | meaning |
//! |---|---|
//! | `LOCKSTEP_RUN` | the run directory, absolute; without it the probe does nothing |
//! | `LOCKSTEP_BUFFER` | a host's name and a directory: there process files are made, on that host |
//! | `LOCKSTEP_PLANNER` | the executable that makes plans (`PLANNER __plan ...`) |
//! | `LOCKSTEP_FAULT` | a fault to put in, see `lockstep_format::fault` |
//! | `LOCKSTEP_NO_ARGUMENTS`, `LOCKSTEP_NO_TIME` | if set, arguments of MPI calls, times are not recorded |
//! | `LOCKSTEP_CODEC` | how streams are stored, by name; `none` if unset |
//! | `LOCKSTEP_IMAGES` | which libraries' own functions are recorded: `all`, or patterns for the planner; none if unset |
//! | `LOCKSTEP_STALL` | for measuring: a file for what each slow path took (`stall`) |
#![no_std]

mod arena;
mod budget;
mod closed;
mod debugger;
mod encoder;
mod entry;
mod event;
mod exec;
mod fault;
mod handlers;
mod handles;
mod holds;
mod image;
mod imported;
mod inferred;
mod load;
mod lock;
mod maps;
mod origins;
mod pending;
mod place;
mod planner;
mod process;
mod program;
mod recover;
mod ring;
mod scratch;
mod setup;
mod shortage;
mod side;
mod signals;
mod sites;
mod stack;
mod stall;
mod start;
mod syscall;
mod text;
mod thread;
mod x86_64;

/// Called by the dynamic linker before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = start::start;

/// By which a recorder of another build knows us.
#[used]
static STAMP: [u8; lockstep_format::stamp::SIZE] = lockstep_format::stamp::stamp();

/// Called by `exit`.
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: unsafe extern "C" fn() = x86_64::routines::finish;

/// There is no way to go on, and going on wrongly is worse.
fn die() -> ! {
    // SAFETY: ends the process with SIGILL, at a place that names the culprit.
    unsafe { core::arch::asm!("ud2", options(noreturn)) }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    die()
}
