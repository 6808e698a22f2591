//! The command line as a contract: one file a subject, all of them one binary, since each further one would link the whole
//! house again. One file: `cargo test -p lockstep --test commands export::`.

mod architecture;
mod command_line;
mod compare;
mod export;
mod go;
mod go_coverage;
mod go_interrupted;
mod go_together;
mod import;
mod messages;
mod recorded;
mod schemas;
