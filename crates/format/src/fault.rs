//! A fault that is put into a program (`lockstep inject`): how it is described to planner and probe,
//! and what a process tells of it.
//!
//! The description is the value of [`VARIABLE`]: lines of `KEY=VALUE`. The planner reads which function
//! is meant and *where* the fault happens; the probe reads everything else.

use core::fmt;

/// The environment variable that describes the fault.
pub const VARIABLE: &str = "LOCKSTEP_FAULT";

/// What happens at the chosen call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The thread never goes on.
    Hang,
    /// The thread sleeps, then goes on.
    Delay,
    /// The call returns at once.
    Skip,
    /// The process ends.
    Exit,
    /// The call is made after the next one.
    Swap,
    /// The call gets another argument.
    Argument,
    /// Another function is called.
    Redirect,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Hang,
        Self::Delay,
        Self::Skip,
        Self::Exit,
        Self::Swap,
        Self::Argument,
        Self::Redirect,
    ];

    /// Its word on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hang => "hang",
            Self::Delay => "delay",
            Self::Skip => "skip",
            Self::Exit => "exit",
            Self::Swap => "swap",
            Self::Argument => "argument",
            Self::Redirect => "redirect",
        }
    }

    /// The kind with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Whether the program does not make the call, there and then: the fault comes before anything is
    /// recorded. The others come when the call has been recorded.
    #[must_use]
    pub const fn is_instead(self) -> bool {
        matches!(self, Self::Skip | Self::Swap | Self::Redirect)
    }
}

/// What the probe does, where and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// What happens.
    pub kind: Kind,
    /// At which call of the function, counted in each thread from 1.
    pub call: u64,
    /// In which process; any, if `None`.
    pub process: Option<u32>,
    /// In which thread; the first that comes there, if `None`.
    pub thread: Option<u32>,
    /// Whether calls and returns are recorded.
    pub records: bool,
    /// Of a hang: computing, not sleeping.
    pub spins: bool,
    /// Of a delay: how long.
    pub nanoseconds: u64,
    /// The status of an exit, the value that a skipped call returns, or the new argument.
    pub value: i64,
    /// The same as a floating-point number's bits.
    pub float: u64,
    /// Which argument, from 1.
    pub argument: u32,
}

/// An [`Order`] with the functions that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault<'a> {
    /// What to do.
    pub order: Order,
    /// The function's name.
    pub at: &'a str,
    /// Of a redirection: the function that is called instead.
    pub to: &'a str,
}

impl<'a> Fault<'a> {
    /// Reads what [`fmt::Display`] wrote.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let value = |key: &str| {
            text.split('\n')
                .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        };
        let number = |key| value(key).and_then(|text| text.parse::<u64>().ok());
        let one_of = |key| match value(key) {
            None => Some(None),
            Some(text) => text.parse::<u32>().ok().map(Some),
        };
        Some(Self {
            order: Order {
                kind: Kind::from_word(value("kind")?)?,
                call: number("call")?,
                process: one_of("process")?,
                thread: one_of("thread")?,
                records: value("records").is_some(),
                spins: value("spins").is_some(),
                nanoseconds: number("nanoseconds").unwrap_or(0),
                value: value("value").and_then(|v| v.parse().ok()).unwrap_or(0),
                float: number("float").unwrap_or(0),
                argument: one_of("argument")?.unwrap_or(0),
            },
            at: value("at")?,
            to: value("to").unwrap_or(""),
        })
    }
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = &self.order;
        write!(f, "kind={}\ncall={}\n", order.kind.word(), order.call)?;
        for (key, value) in [("process", order.process), ("thread", order.thread)] {
            if let Some(value) = value {
                writeln!(f, "{key}={value}")?;
            }
        }
        for (key, set) in [("records", order.records), ("spins", order.spins)] {
            if set {
                writeln!(f, "{key}=1")?;
            }
        }
        write!(
            f,
            "nanoseconds={}\nvalue={}\nfloat={}\nargument={}\nat={}",
            order.nanoseconds, order.value, order.float, order.argument, self.at
        )?;
        if self.to.is_empty() {
            Ok(())
        } else {
            write!(f, "\nto={}", self.to)
        }
    }
}

/// What a process tells of the fault: a file in the directory [`report::DIRECTORY`] of the run, shared
/// memory of the process for as long as it lives. Offsets in it.
pub mod report {
    /// Where reports lie in the run.
    pub const DIRECTORY: &str = "faults";
    /// In that directory: made by the process in which the fault happens, so that it does in one.
    pub const CLAIM: &str = "happened";
    /// In that directory: the processes by start, [`ORDER_ROW`] bytes each: id (`u64`), start (`u64`).
    pub const ORDER: &str = "order";
    /// Bytes of a row of [`ORDER`].
    pub const ORDER_ROW: usize = 16;
    /// Name ending of a report.
    pub const SUFFIX: &str = ".fault";

    /// `[u8; 8]`
    pub const MAGIC: usize = 0;
    /// First bytes of a report.
    pub const MAGIC_VALUE: [u8; 8] = *b"LSFAULT1";
    /// `u32`, one of the states below.
    pub const STATE: usize = 8;
    /// `u32`, the process's number plus 1; 0 where it has none.
    pub const PROCESS: usize = 12;
    /// `u32`, number of the thread in which the fault happened.
    pub const THREAD: usize = 16;
    /// `u32`, rows in use.
    pub const ROWS: usize = 20;
    /// `u64`, at which call of it.
    pub const CALL: usize = 24;
    /// Where rows begin.
    pub const FIRST_ROW: usize = 64;
    /// Rows: of threads that called the function, as long as there is room.
    pub const MOST_ROWS: usize = (SIZE - FIRST_ROW) / ROW;
    /// In a row: `u64`, calls of the function.
    pub const ROW_CALLS: usize = 0;
    /// The number of a thread that never ran the program's own code, only a library's.
    pub const HELPER: u32 = u32::MAX;
    /// In a row: `u32`, the thread's number plus 1; 0 of a [`HELPER`].
    pub const ROW_THREAD: usize = 8;
    /// Size of a row.
    pub const ROW: usize = 16;
    /// Size of the file.
    pub const SIZE: usize = 16384;

    /// The fault has not happened.
    pub const COUNTING: u32 = 0;
    /// It has.
    pub const HAPPENED: u32 = 1;
    /// Of a swap: the call is postponed.
    pub const POSTPONED: u32 = 2;
    /// Of a swap: no call came after it from where it was made.
    pub const ALONE: u32 = 3;
    /// Of a swap: its arguments on the stack are out of reach.
    pub const REFUSED: u32 = 4;
}

/// Behind a call of FAULT: what the planner knows of the place.
pub mod place {
    /// From the routine's return address to a `u32` with the flags below, inside an instruction that
    /// does nothing.
    pub const FLAGS: usize = 3;
    /// From there to what follows.
    pub const NEXT: usize = 7;
    /// From there, of a redirection, to the jump to the other function.
    pub const OTHER: usize = 12;
    /// Arguments are passed by reference (Fortran).
    pub const BY_REFERENCE: u32 = 1;
    /// The call is one of a library.
    pub const LIBRARY: u32 = 2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_word(kind.word()), Some(kind));
            let fault = Fault {
                order: Order {
                    kind,
                    call: 7,
                    process: (kind == Kind::Hang).then_some(3),
                    thread: Some(0),
                    records: kind == Kind::Skip,
                    spins: true,
                    nanoseconds: 1_500_000_000,
                    value: -3,
                    float: 2.5f64.to_bits(),
                    argument: 4,
                },
                at: "operator=(int, a::b)",
                to: if kind == Kind::Redirect { "other" } else { "" },
            };
            assert_eq!(Fault::parse(&fault.to_string()), Some(fault));
        }
    }

    #[test]
    fn what_is_damaged_is_nothing() {
        for text in [
            "",
            "kind=hang",
            "kind=melt\ncall=1\nat=f",
            "kind=hang\ncall=x\nat=f",
        ] {
            assert_eq!(Fault::parse(text), None);
        }
        assert_eq!(Fault::parse("kind=hang\ncall=1\nprocess=-1\nat=f"), None);
    }
}
