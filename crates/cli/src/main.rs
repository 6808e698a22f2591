//! `lockstep`: the command line over the libraries. One file a subcommand; each turns options into
//! the arguments of a library, and what comes back into text or JSON. No analysis happens here.
//!
//! *Guarantees*: results go to stdout, everything else to stderr; a failure is one line that says
//! what was expected, what was found, and where; exit statuses as in the table below. *Costs*:
//! nothing of its own. *Not for*: use as a library.
//!
//! | status | meaning |
//! |---|---|
//! | 0 | done; nothing wrong found |
//! | 1 | done; runs or traces differ (`compare`, `diff`), a task hangs (`progress`, `record --on-hang stop`), or a bug was found (`go test`) |
//! | 2 | it could not be done |
//! | 125, 126, 127, 128 + n | of `record`, `inject`, `go run` and `go replay`: not started, not executable, not found, killed by signal n |

mod arguments;
mod hang;
mod output;
mod run;
mod unseen;
mod words;

mod analysed;
mod baseline;
mod calls;
mod compare;
mod completions;
mod conclusion;
mod context;
mod diff;
mod doctor;
mod events;
mod export;
mod go;
mod import;
mod info;
mod inject;
mod lattice;
mod loops;
mod man;
mod options;
mod outliers;
mod plan;
mod probe;
mod progress;
mod prune;
mod record;
mod report;
mod runs;
mod said;
mod schema;
mod seal;
mod similarity;
mod sources;
mod spot;
mod stack;
mod tables;
mod threads;
mod tree;

use lockstep_record::thread;
use rustix::process::{Resource, getrlimit};
use std::process::ExitCode;

/// Bytes of stack below which a thread with a stack of its own does the work: a small limit is meant for the
/// program that is recorded, which inherits it from us, as what makes its plans does from it.
const ENOUGH_STACK: u64 = 1 << 20;

#[global_allocator]
static HEAP: lockstep_record::Heap = lockstep_record::Heap;

fn main() -> ExitCode {
    let is_small = |limit: u64| limit < ENOUGH_STACK;
    if !getrlimit(Resource::Stack).current.is_some_and(is_small) {
        return perform();
    }
    let started = thread(8 * ENOUGH_STACK as usize).and_then(|it| it.spawn(perform));
    match started.map(std::thread::JoinHandle::join) {
        Ok(Ok(status)) => status,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        // No memory for another thread.
        Err(_) => perform(),
    }
}

fn perform() -> ExitCode {
    let command = match arguments::parse() {
        Ok(command) => command,
        Err(status) => return status,
    };
    let failed = command.failure_status();
    lockstep_record::Heap::exhausted_means(failed);
    let ready = if command.is_parallel() {
        threads::start()
    } else {
        Ok(())
    };
    ready.and_then(|()| command.run()).unwrap_or_else(|error| {
        output::complain(&output::with_causes(&error));
        ExitCode::from(failed)
    })
}
