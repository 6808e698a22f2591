//! Starts the command under the probe, passes signals on and waits.
#![allow(unsafe_code)]

use crate::directory::Directory;
use crate::error::Error;
use crate::images::{self, Images};
use crate::plan::{CHOICE, SILENT};
use crate::probe::{Placed, is_probe};
use crate::program::{Program, plain};
use crate::{Bound, Keep, Memory, Options};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, waitid};
use std::ffi::{OsStr, OsString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

/// Where the dynamic loader looks by itself.
const LIBRARIES: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// `LD_PRELOAD`: the unwinder, whose entries must be there to be patched before anybody throws; the
/// probe; what was there. The address sanitizer's library brings the unwinder along, and puts its own
/// entries before it: its place is the earlier one. A container may have no such library, which the dynamic
/// linker would complain about.
fn preload(probe: &Placed, has_sanitizer: bool) -> OsString {
    let mut value = OsString::new();
    let searched = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let found = std::env::split_paths(&searched)
        .chain(LIBRARIES.iter().map(PathBuf::from))
        .any(|directory| directory.join("libgcc_s.so.1").exists());
    if found && !has_sanitizer && !probe.is_contained {
        value.push("libgcc_s.so.1:");
    }
    value.push(&probe.name);
    let before = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let separators = |byte: &u8| b" :".contains(byte);
    for entry in before.as_bytes().split(separators) {
        let entry = Path::new(OsStr::from_bytes(entry));
        if !entry.as_os_str().is_empty() && entry != probe.name && !is_probe(entry) {
            value.push(":");
            value.push(entry);
        }
    }
    value
}

/// What the address sanitizer is told.
const SANITIZER_OPTIONS: &str = "ASAN_OPTIONS";

/// It ends programs where something is preloaded before its own library; we replace no function.
fn sanitizer_options() -> OsString {
    let mut options = std::env::var_os(SANITIZER_OPTIONS).unwrap_or_default();
    if !options.is_empty() {
        options.push(":");
    }
    options.push("verify_asan_link_order=0");
    options
}

/// The command, ready to be started under the probe.
pub(crate) fn command(
    options: &Options,
    choice: &lockstep_patch::Options,
    images: &Images,
    program: &Program,
    directory: &Directory,
    bound: Option<Bound>,
    probe: &Placed,
) -> Command {
    let mut command = plain_command(options, &program.path);
    command
        .env("LD_PRELOAD", preload(probe, program.has_sanitizer))
        .env("LOCKSTEP_RUN", &directory.path)
        .env("LOCKSTEP_CODEC", options.codec.name());
    if program.has_sanitizer {
        command.env(SANITIZER_OPTIONS, sanitizer_options());
    }
    let digest = choice.digest();
    let values = [&choice.trace.join("\n"), &choice.skip.join("\n"), &digest];
    for (name, value) in CHOICE.iter().zip(values) {
        // What an outer recorder chose is not for this run.
        if value.is_empty() {
            command.env_remove(name);
        } else {
            command.env(name, value);
        }
    }
    let memory = match options.memory {
        Memory::Normal => None,
        Memory::Low => Some("low".to_owned()),
    };
    let settings = [
        ("LOCKSTEP_MEMORY", memory),
        (lockstep_format::fault::VARIABLE, None),
        (
            "LOCKSTEP_NO_ARGUMENTS",
            (!options.arguments).then(|| "1".to_owned()),
        ),
        ("LOCKSTEP_NO_TIME", (!options.time).then(|| "1".to_owned())),
        (
            "LOCKSTEP_EVERY_TIME",
            options.every_time.then(|| "1".to_owned()),
        ),
        (SILENT, (!options.events).then(|| "1".to_owned())),
        ("LOCKSTEP_REDACT", options.redact.then(|| "1".to_owned())),
        (images::VARIABLE, images.variable()),
        // What an outer recorder buffers is not this run's.
        (lockstep_format::buffer::VARIABLE, None),
        ("LOCKSTEP_MAX_SIZE", bound.map(|bound| bound.variable())),
        (
            "LOCKSTEP_KEEP",
            bound
                .filter(|bound| bound.keep == Keep::Last)
                .map(|_| "last".to_owned()),
        ),
    ];
    for (name, value) in settings {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(planner) = &probe.planner {
        command.env("LOCKSTEP_PLANNER", planner);
    }
    if let Some(list) = forwarded(&options.command) {
        command.env(OPEN_MPI_FORWARD, list);
    }
    command
}

/// The command as it is.
pub(crate) fn plain_command(options: &Options, path: &Path) -> Command {
    let mut command = Command::new(path);
    if let [name, arguments @ ..] = &options.command[..] {
        command.arg0(name).args(arguments);
    }
    command
}

/// The variable by which Open MPI passes others on to other nodes.
const OPEN_MPI_FORWARD: &str = "OMPI_MCA_mca_base_env_list";

/// What it passes on for us.
const FORWARDED: &str = "LD_PRELOAD;LOCKSTEP_RUN;LOCKSTEP_PLANNER;LOCKSTEP_CODEC;LOCKSTEP_TRACE;LOCKSTEP_SKIP;LOCKSTEP_CHOICE;\
     LOCKSTEP_MEMORY;LOCKSTEP_NO_ARGUMENTS;LOCKSTEP_NO_TIME;LOCKSTEP_EVERY_TIME;LOCKSTEP_REDACT;LOCKSTEP_MAX_SIZE;LOCKSTEP_KEEP;LOCKSTEP_IMAGES;LOCKSTEP_FAULT;LOCKSTEP_SILENT;LOCKSTEP_BUFFER";

/// Open MPI passes no environment on to other nodes unless told; the variable and its `-x` option
/// exclude each other, so that it is set only where the command line names hosts and has no `-x`.
fn forwarded(command: &[OsString]) -> Option<&'static str> {
    let taken = has(command, &["-x"]) || std::env::var_os(OPEN_MPI_FORWARD).is_some();
    (has_other_nodes(command) && !taken).then_some(FORWARDED)
}

fn has(command: &[OsString], options: &[&str]) -> bool {
    command
        .iter()
        .any(|argument| options.iter().any(|option| argument == option))
}

/// Whether the command is a launcher that starts programs on other nodes.
pub(crate) fn has_other_nodes(command: &[OsString]) -> bool {
    let program = command.first().and_then(|it| Path::new(it).file_name());
    let is_launcher = ["mpirun", "mpiexec", "orterun", "prterun"]
        .iter()
        .any(|name| program == Some(OsStr::new(name)));
    let hosts = [
        "-H",
        "-host",
        "--host",
        "-hostfile",
        "--hostfile",
        "-machinefile",
        "--machinefile",
    ];
    is_launcher
        && (has(command, &hosts)
            || std::env::var("SLURM_JOB_NUM_NODES").is_ok_and(|nodes| nodes != "1")
            || std::env::var_os("PBS_NODEFILE").is_some())
}

/// Signals that are passed on.
const PASSED_ON: [Signal; 6] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
];

/// The command's process, 0 before it is there and after it ended.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// Whether SIGINT or SIGTERM came, from whomever.
static IS_ASKED_TO_END: AtomicBool = AtomicBool::new(false);
/// Signals that came before it was there, by number.
static PENDING: AtomicU64 = AtomicU64::new(0);

/// `struct sigaction` of the C library on x86-64 Linux.
#[repr(C)]
#[derive(Default)]
struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

const SA_SIGINFO: c_int = 4;
const SA_RESTART: c_int = 0x1000_0000;
const SIG_IGN: usize = 1;

unsafe extern "C" {
    fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int;
    fn sigprocmask(how: c_int, new: *const [u64; 16], old: *mut [u64; 16]) -> c_int;
}

const SIGPIPE: c_int = 13;
const SIGXFSZ: c_int = 25;
const SIG_DFL: usize = 0;
const SIG_SETMASK: c_int = 2;

/// Whether whoever started us ignores SIGPIPE.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);
/// Whether we ignore SIGXFSZ, and whoever started us does not.
static FILE_LIMIT_IGNORED: AtomicBool = AtomicBool::new(false);

/// Where files must not grow beyond a limit (`ulimit -f`), whoever writes beyond it is told by an error from here on, and
/// not ended by a signal. Commands that are started by [`start`] have the signal as it was.
pub fn file_limit_is_an_error() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
    if limit.current.is_some() && handler_of(SIGXFSZ) == Some(SIG_DFL) {
        set_handler(SIGXFSZ, SIG_IGN);
        FILE_LIMIT_IGNORED.store(true, Ordering::Relaxed);
    }
}

/// Gives a signal the handler [`SIG_IGN`] or [`SIG_DFL`].
fn set_handler(signal: c_int, handler: usize) {
    let action = Action {
        handler,
        ..Action::default()
    };
    // SAFETY: the structure is the C library's; no code of ours is called.
    unsafe { sigaction(signal, &raw const action, std::ptr::null_mut()) };
}

/// Runs before Rust's own start, which ignores SIGPIPE in every program.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = look_at_pipe;

extern "C" fn look_at_pipe() {
    PIPE_IGNORED.store(handler_of(SIGPIPE) == Some(SIG_IGN), Ordering::Relaxed);
}

fn handler_of(signal: c_int) -> Option<usize> {
    let mut old = Action::default();
    // SAFETY: the structure is the C library's; nothing is changed.
    let found = unsafe { sigaction(signal, std::ptr::null(), &raw mut old) };
    (found == 0).then_some(old.handler)
}

/// A child of Rust's has no signal blocked and SIGPIPE at its default: gives it what we were given.
fn inherit_signals(command: &mut Command) {
    let mut mask = [0; 16];
    // SAFETY: the C library's signal set is 128 bytes; nothing is changed.
    let known = unsafe { sigprocmask(SIG_SETMASK, std::ptr::null(), &raw mut mask) } == 0;
    let blocked = known && mask[0] != 0;
    let pipe_ignored = PIPE_IGNORED.load(Ordering::Relaxed);
    let file_limit_ignored = FILE_LIMIT_IGNORED.load(Ordering::Relaxed);
    if !blocked && !pipe_ignored && !file_limit_ignored {
        return;
    }
    let restore = move || {
        if pipe_ignored {
            set_handler(SIGPIPE, SIG_IGN);
        }
        if file_limit_ignored {
            set_handler(SIGXFSZ, SIG_DFL);
        }
        if blocked {
            // SAFETY: a system call in the child, on a structure of its own.
            unsafe { sigprocmask(SIG_SETMASK, &raw const mask, std::ptr::null_mut()) };
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(restore) };
}

extern "C" fn pass_on(signal: c_int, information: *const c_int, _: *mut c_void) {
    // SAFETY: the kernel gives a `siginfo_t`, whose third field is the code.
    let code = unsafe { *information.add(2) };
    if signal == Signal::INT.as_raw() || signal == Signal::TERM.as_raw() {
        IS_ASKED_TO_END.store(true, Ordering::Release);
    }
    // What the terminal sends, the command gets itself: it is in the same foreground group.
    if code > 0 {
        return;
    }
    let child = CHILD.load(Ordering::Acquire);
    if child == 0 {
        PENDING.fetch_or(1 << signal, Ordering::Release);
    } else {
        send(child, signal);
    }
}

fn send(child: i32, signal: c_int) {
    if let (Some(pid), Some(signal)) = (Pid::from_raw(child), Signal::from_named_raw(signal)) {
        let _ = kill_process(pid, signal);
    }
}

/// From here on signals are for the command. What is ignored stays so.
pub(crate) fn catch_signals() {
    for signal in PASSED_ON {
        catch(signal, pass_on);
    }
}

fn catch(signal: Signal, handler: extern "C" fn(c_int, *const c_int, *mut c_void)) {
    let number = signal.as_raw();
    let new = Action {
        handler: handler as *const () as usize,
        flags: SA_SIGINFO | SA_RESTART,
        ..Action::default()
    };
    if handler_of(number).is_some_and(|handler| handler != SIG_IGN) {
        // SAFETY: the structure is the C library's; the handlers do nothing but atomics and a system call.
        unsafe { sigaction(number, &raw const new, std::ptr::null_mut()) };
    }
}

/// A signal that asked this process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Its number.
    pub signal: i32,
    /// Whether others have it, too: the terminal sends to all of the foreground.
    pub is_shared: bool,
    /// How many there were.
    pub count: u32,
}

/// The last one: `count << 32 | shared << 8 | signal`.
static ASKED: AtomicU64 = AtomicU64::new(0);
const SHARED: u64 = 1 << 8;

extern "C" fn remember(signal: c_int, information: *const c_int, _: *mut c_void) {
    // SAFETY: the kernel gives a `siginfo_t`, whose third field is the code.
    let code = unsafe { *information.add(2) };
    let count = (ASKED.load(Ordering::Relaxed) >> 32) + 1;
    let shared = if code > 0 { SHARED } else { 0 };
    let signal = u64::from(signal.unsigned_abs());
    ASKED.store(count << 32 | shared | signal, Ordering::Release);
}

/// From here on SIGINT, SIGTERM and SIGHUP do not end this process: [`asked`] tells of them. What is ignored stays so.
/// Not for a process that passes signals on, as [`run`](crate::run) does.
pub fn remember_signals() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        catch(signal, remember);
    }
}

/// The last signal that was remembered.
#[must_use]
pub fn asked() -> Option<Asked> {
    let word = ASKED.load(Ordering::Acquire);
    (word != 0).then_some(Asked {
        signal: (word & 0xff) as i32,
        is_shared: word & SHARED != 0,
        count: (word >> 32) as u32,
    })
}

/// Starts it.
pub(crate) fn start(command: &mut Command) -> Result<Child, Error> {
    inherit_signals(command);
    let child = command.spawn().map_err(|error| {
        let program = command.get_program().display();
        let said = plain(&error);
        match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::OutOfMemory => Error::own(format!(
                "expected to start {program}, found no process or no memory for it (ulimit -u, ulimit -v): {said}"
            )),
            std::io::ErrorKind::NotFound => Error::new(127, format!("{program}: {said}")),
            _ => Error::new(126, format!("{program}: {said}")),
        }
    })?;
    CHILD.store(child.id().cast_signed(), Ordering::Release);
    let pending = PENDING.swap(0, Ordering::AcqRel);
    for signal in 1..64 {
        if pending & (1 << signal) != 0 {
            send(child.id().cast_signed(), signal);
        }
    }
    Ok(child)
}

/// Whether whoever started us wants it to end.
pub(crate) fn is_asked_to_end() -> bool {
    IS_ASKED_TO_END.load(Ordering::Acquire)
}

/// Waits for its end, and takes those of other children meanwhile: processes that lost their parents. Not what another
/// thread stops to look at: that is left for it, so there is a look first.
pub(crate) fn wait(child: &Child) -> Result<ExitStatus, Error> {
    let own = Pid::from_raw(child.id().cast_signed());
    let status = loop {
        let ended = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        match ended.map(|it| it.filter(|it| !it.trapped() && !it.stopped())) {
            Ok(Some(_)) => {}
            Ok(None) => {
                std::thread::sleep(LOOKED_AT);
                continue;
            }
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => break Err(std::io::Error::from(error)),
        }
        if let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG)
            && Some(pid) == own
            && !status.stopped()
        {
            break Ok(ExitStatus::from_raw(status.as_raw()));
        }
    };
    CHILD.store(0, Ordering::Release);
    status.map_err(|error| Error::own(format!("the command is lost: {}", plain(&error))))
}

/// About as long a thread is stopped when it is looked at.
const LOOKED_AT: Duration = Duration::from_millis(1);
