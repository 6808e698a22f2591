//! How large the rooms are.

use crate::Source;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The rooms whose sum the issue of the rebuilt analyses limits.
pub const ANALYSES: [&str; 8] = [
    "trace",
    "comm",
    "waitfor",
    "progress",
    "check",
    "compare",
    "diagnosis",
    "wording",
];

/// Lines of the checkout.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Code of each room, without tests and tables.
    pub rooms: BTreeMap<String, usize>,
    /// All lines of all Rust files: blank ones, comments and tests, too.
    pub everything: usize,
}

impl Sizes {
    /// Counts.
    #[must_use]
    pub fn of(sources: &[Source]) -> Self {
        let mut sizes = Self::default();
        for source in sources {
            sizes.everything += source.text.lines().count();
            if let Some(room) = &source.room
                && !source.is_test()
                && !source.is_table()
            {
                *sizes.rooms.entry(room.clone()).or_default() += source.code_lines();
            }
        }
        sizes
    }

    /// Code of all rooms.
    #[must_use]
    pub fn product(&self) -> usize {
        self.rooms.values().sum()
    }

    /// Code of the analyses.
    #[must_use]
    pub fn analyses(&self) -> usize {
        let of = |room: &&str| self.rooms.get(*room).copied();
        ANALYSES.iter().filter_map(of).sum()
    }

    /// A table for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (room, lines) in &self.rooms {
            let _ = writeln!(text, "{lines:>8}  {room}");
        }
        let _ = writeln!(
            text,
            "{:>8}  product: code without blanks, comments, tests, rows of api, testkit",
            self.product()
        );
        let _ = writeln!(
            text,
            "{:>8}  analyses: {}",
            self.analyses(),
            ANALYSES.join(", ")
        );
        let _ = writeln!(
            text,
            "{:>8}  every line of every Rust file",
            self.everything
        );
        text
    }
}
