//! The functions of MPI 4.1, a row each, and those of older versions that libraries still have.
//!
//! A row is a name without `MPI_`, the parameters in the standard's order, `name:letter` by the letters of
//! [`Kind`](super::Kind), and what the function does. Nonblocking and persistent forms of sends and collective operations
//! and forms with large counts (`_c`) follow from the plain one. Fortran has the same parameters.

mod collectives;
mod communicators;
mod datatypes;
mod environment;
mod files;
mod messages;
mod requests;
mod tools;
mod windows;

use super::meaning::{Does, Form};

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub name: &'static str,
    pub parameters: &'static str,
    pub does: Does,
    pub anytime: bool,
}

const fn row(name: &'static str, parameters: &'static str, does: Does) -> Row {
    Row {
        name,
        parameters,
        does,
        anytime: false,
    }
}

impl Row {
    /// How it begins what it does.
    pub(super) fn form(&self) -> Form {
        let gives = |letter: &str| self.parameters.split(' ').any(|it| it.ends_with(letter));
        let is_persistent = self.name.ends_with("_init");
        match self.does {
            Does::Receive | Does::PartitionedSend | Does::PartitionedReceive if is_persistent => {
                Form::Persistent
            }
            Does::Probe | Does::MatchedProbe if gives(":f") => Form::Nonblocking,
            _ if gives(":q") => Form::Nonblocking,
            _ => Form::Blocking,
        }
    }

    /// It may be called before MPI begins and after it ends, by any thread.
    const fn anytime(self) -> Self {
        Self {
            anytime: true,
            ..self
        }
    }
}

/// All rows, by chapter, each with its title.
pub(super) const CHAPTERS: [(&str, &[Row]); 9] = [
    ("Messages", messages::ROWS),
    ("Requests and statuses", requests::ROWS),
    ("Collective operations", collectives::ROWS),
    ("Communicators, groups and topologies", communicators::ROWS),
    ("Datatypes, reductions and packing", datatypes::ROWS),
    ("One-sided communication", windows::ROWS),
    ("Files", files::ROWS),
    (
        "Environment, errors, attributes and sessions",
        environment::ROWS,
    ),
    ("Tool information", tools::ROWS),
];

/// All rows.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    CHAPTERS.into_iter().flat_map(|(_, rows)| rows)
}
