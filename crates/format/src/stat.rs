//! What the kernel tells of a process in a line: `/proc/PID/stat`.
//!
//! Process files and records of ends name a process by its number and when it started, as numbers come again; readers
//! ask the kernel whether that process is still there.
//!
//! *Guarantees*: no panic on any bytes. *Costs*: one pass over the line.

/// Some fields of the line, which are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Field 3: `R` runs, `S` sleeps, `T` is stopped by a signal, `t` by a debugger, `Z` has ended and nobody asked how.
    pub state: u8,
    /// Field 4: the number of its parent; 0 of one that has none here.
    pub parent: i32,
    /// Fields 14 and 15: processor time in clock ticks, the program's and the kernel's.
    pub ticks: u64,
    /// Field 22: clock ticks from boot to its start.
    pub start: u64,
    /// Field 52 of a process that has ended, as `wait` codes it: how it ended, where we may know that.
    pub status: Option<i32>,
}

impl Stat {
    /// Takes a line apart; `None` of what is none.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        // Field 2, a name in parentheses, may hold anything.
        let name = line.iter().rposition(|byte| *byte == b')')?;
        let fields = line.get(name..)?.split(|byte| *byte == b' ');
        let mut fields = fields.skip(1);
        let state = *fields.next()?.first()?;
        let parent = number(fields.next()?)?;
        let (user, system) = (number(fields.nth(9)?)?, number(fields.next()?)?);
        let start = number(fields.nth(6)?)?;
        let mut it = Self {
            state,
            parent: i32::try_from(parent).ok()?,
            ticks: user.checked_add(system)?,
            start,
            status: None,
        };
        if it.is_over() {
            let last = fields.nth(29).map(<[u8]>::trim_ascii_end);
            let status = last.and_then(number).and_then(|it| i32::try_from(it).ok());
            // Whoever may not know it is told 0, as of a process that ended well.
            it.status = status.filter(|it| *it != 0);
        }
        Some(it)
    }

    /// Whether nothing of the process is left but how it ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.first()?;
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|it| *it < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

#[cfg(test)]
mod tests {
    use super::Stat;

    #[test]
    fn a_line_with_any_name() {
        let line = b"7 (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 30 12 13 14 15 16 17 18 4242 20";
        let found = Stat {
            state: b'S',
            parent: 1,
            ticks: 42,
            start: 4242,
            status: None,
        };
        assert_eq!(Stat::parse(line), Some(found));
        assert!(!found.is_over());
        for broken in [
            "",
            ")",
            "7 (a) ",
            "7 (a) S 1 2 3",
            "7 (a)  1 2 3 4 5 6 7 8 9 10 11",
        ] {
            assert_eq!(Stat::parse(broken.as_bytes()), None, "{broken}");
        }
        let over = |state: char, status: &str| {
            let line = format!(
                "7 (a) {state} 1 2 3 4 5 6 7 8 9 10 30 12 13 14 15 16 17 18 4242 {} {status}\n",
                "0 ".repeat(29).trim_end()
            );
            Stat::parse(line.as_bytes()).and_then(|it| it.status)
        };
        assert_eq!(over('Z', "139"), Some(139));
        assert_eq!([over('Z', "0"), over('S', "139"), over('Z', "")], [None; 3]);
        let own = std::fs::read("/proc/self/stat").unwrap_or_default();
        assert!(Stat::parse(&own).is_some_and(|it| !it.is_over() && it.start > 0));
    }
}
