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

mod baseline;
mod calls;
mod compare;
mod completions;
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
mod progress;
mod record;
mod report;
mod runs;
mod seal;
mod similarity;
mod stack;
mod tree;

use std::process::ExitCode;

fn main() -> ExitCode {
    let command = match arguments::parse() {
        Ok(command) => command,
        Err(status) => return status,
    };
    let failed = command.failure_status();
    command.run().unwrap_or_else(|error| {
        output::complain(&output::with_causes(&error));
        ExitCode::from(failed)
    })
}
