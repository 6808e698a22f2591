//! Whether a signal handler can run in the middle of the slow path.
//!
//! Nothing of a thread may be met half done by another event of that thread, and the only other events are
//! those of a signal handler. The slow path keeps them out by blocking signals, two system calls a batch,
//! which cost more than all else that a batch costs. Where no signal has a handler nothing can come between,
//! and it blocks none:
//!
//! ```text
//!              libc tells before it sets one,             libc sets one, or another libc
//!              and none was set before                    comes that does not tell
//!  BLOCKED ───────────────────────────────────► QUIET ───────────────────────────────────► BLOCKED for good
//! ```
//! Fast paths do not ask; they have [`crate::thread::Hot::busy`].
//!
//! Handlers of signals that a thread sends itself by what it does (a bad access, `abort`) do not count, since
//! the slow path does nothing of the kind, nor does the one that glibc has for the identity of threads. Such a
//! signal can be sent from elsewhere all the same; a handler can be set by a bare system call; and a thread can
//! be in the slow path while another sets a handler. Then the handler's events find
//! [`crate::thread::Thread::at_work`] set, and come to [`crate::event::nested`]:
//!
//! ```text
//!  slow path ── event ── encode ───────────────╴interrupted╶──────────────── commit ──► the program
//!                                 handler ── calls: counted as lost ── ret ┘
//!                                       └─── siglongjmp: the thread records no more, which is counted
//! ```
//! Return addresses are put back for unwinders there too. What holds the process's lock, moves the shadow
//! stack, or is not brief ([`crate::event::BRIEF`]) blocks signals always.

use crate::program;
use crate::syscall;
use core::sync::atomic::{AtomicU64, Ordering};

/// 1 where the slow path need not block signals.
pub static QUIET: AtomicU64 = AtomicU64::new(0);
/// C libraries in the process, and those among them that tell.
static LIBCS: AtomicU64 = AtomicU64::new(0);
static WATCHED: AtomicU64 = AtomicU64::new(0);
/// Whether libc told of one, which the kernel may not know yet.
static TOLD: AtomicU64 = AtomicU64::new(0);

/// A C library was found.
pub fn found_libc() {
    LIBCS.fetch_add(1, Ordering::Relaxed);
    QUIET.store(0, Ordering::SeqCst);
}

/// It tells from now on.
pub fn watch_libc() {
    WATCHED.fetch_add(1, Ordering::Relaxed);
}

/// At the end of the constructor: libraries that were initialised before may have set handlers.
pub fn start() {
    let libcs = LIBCS.load(Ordering::Relaxed);
    let is_handled = |signal| matters(signal) && syscall::handler(signal) > IGNORED;
    if libcs > 0 && libcs == WATCHED.load(Ordering::Relaxed) && !(1..=MOST).any(is_handled) {
        QUIET.store(1, Ordering::SeqCst);
        if TOLD.load(Ordering::SeqCst) != 0 {
            QUIET.store(0, Ordering::SeqCst);
        }
    }
}

/// A handler may be about to be set: by a `struct sigaction` at `action`, if there is one, which begins with the handler.
pub fn set(signal: u32, action: u64) {
    // Asked without one, and what is read for a stack pointer of 0 is all that lies near it.
    let action = Some(action).filter(|action| *action != 0);
    let handler = action
        .and_then(|action| program::read(action, 0))
        .unwrap_or(0);
    if matters(signal) && handler > IGNORED {
        TOLD.store(1, Ordering::SeqCst);
        QUIET.store(0, Ordering::SeqCst);
    }
}

/// The largest signal.
const MOST: u32 = 64;
/// `SIG_IGN`; `SIG_DFL` is 0.
const IGNORED: u64 = 1;

/// Whether a handler of this signal counts.
fn matters(signal: u32) -> bool {
    // SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS; glibc's SIGSETXID.
    const NOT: [u32; 8] = [4, 5, 6, 7, 8, 11, 31, 33];
    !NOT.contains(&signal)
}
