//! Reasons that a limit of the process may be behind, and that limit in words.

use crate::syscall::{Errno, limit};
use crate::text::Text;

/// No memory could be had.
pub const MEMORY: &str = "out of memory";
/// A file could not be opened for that reason alone.
pub const NO_DESCRIPTOR: &str = "no file descriptor was free to read its plan";
/// The planner could not open its files.
pub const PLANNER_DESCRIPTORS: &str = "the planner had too few file descriptors";
/// The planner could not have the memory that it asked for.
pub const PLANNER_MEMORY: &str = "the planner ran out of memory";
/// The planner's program was started, its libraries found no place.
pub const PLANNER_LIBRARIES: &str = "the planner's libraries could not be loaded";
/// Or its memory was not enough to begin with.
pub const PLANNER_ENDED: &str = "the planner was ended by a signal";

const RLIMIT_NOFILE: usize = 7;
const RLIMIT_AS: usize = 9;
/// In bytes, of what `ulimit -v` counts.
const KIBIBYTE: u64 = 1024;

/// The reason, with the limit that is in force where one may be behind it:
/// `out of memory (ulimit -v is 4000)`.
pub fn in_words(reason: &str) -> Text<160> {
    let mut text = Text::new();
    text.push(reason.as_bytes());
    let (which, name, unit) = match reason {
        NO_DESCRIPTOR | PLANNER_DESCRIPTORS => (RLIMIT_NOFILE, "n", 1),
        MEMORY | PLANNER_MEMORY | PLANNER_LIBRARIES | PLANNER_ENDED => (RLIMIT_AS, "v", KIBIBYTE),
        _ => return text,
    };
    if let Some(limit) = limit(which) {
        text.push(b" (ulimit -");
        text.push(name.as_bytes());
        text.push(b" is ");
        text.push_decimal(limit / unit);
        text.push(b")");
    }
    text
}

/// Why a plan that is there could not be opened or mapped, if a limit may be behind it.
pub fn of(error: Errno) -> Option<&'static str> {
    match error {
        Errno::EMFILE | Errno::ENFILE => Some(NO_DESCRIPTOR),
        Errno::ENOMEM => Some(MEMORY),
        _ => None,
    }
}
