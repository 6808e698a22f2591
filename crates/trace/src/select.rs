//! Which traces a command looks at: `-t 6.4`, `-t '6.*'`, `-t 0-3.1-4`, `-t '5~1.0'`, `-t 1:6.4`,
//! `-t 6.h1`, lists of these; and the same thing the other way round, [`ranges`].

use crate::{ProcessName, Run, Thread, ThreadName, TraceName};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A pattern over trace names. Where no job (or sibling) is written, it means the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selection {
    job: u32,
    rank: Range,
    sibling: u32,
    thread: Range,
    helper: bool,
}

/// First and last, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range(u32, u32);

impl Range {
    const ALL: Self = Self(0, u32::MAX);

    fn contains(self, number: u32) -> bool {
        (self.0..=self.1).contains(&number)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            &Self::ALL => f.write_str("*"),
            Self(first, last) if first == last => write!(f, "{first}"),
            Self(first, last) => write!(f, "{first}-{last}"),
        }
    }
}

impl FromStr for Range {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text == "*" {
            return Ok(Self::ALL);
        }
        let number = |text: &str| text.parse::<u32>().map_err(|_| ());
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range = Self(number(first)?, number(last)?);
        if range.0 > range.1 {
            Err(())
        } else {
            Ok(range)
        }
    }
}

/// A text that is not a selection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a trace such as 6.4, 6.*, 0-3.1-4, 5~1.0, 1:6.4 or 6.h1, found '{0}'")]
pub struct NotASelection(pub String);

impl FromStr for Selection {
    type Err = NotASelection;

    fn from_str(text: &str) -> Result<Self, NotASelection> {
        parse(text).ok_or_else(|| NotASelection(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Selection> {
    let (process, thread) = text.split_once('.')?;
    let (job, process) = match process.split_once(':') {
        Some((job, process)) => (job.parse().ok()?, process),
        None => (0, process),
    };
    let (rank, sibling) = match process.split_once('~') {
        Some((rank, sibling)) => (rank, sibling.parse().ok()?),
        None => (process, 0),
    };
    let (helper, thread) = match thread.strip_prefix('h') {
        Some(thread) => (true, thread),
        None => (false, thread),
    };
    Some(Selection {
        job,
        rank: rank.parse().ok()?,
        sibling,
        thread: thread.parse().ok()?,
        helper,
    })
}

/// Several selections in one text, as [`in_short`] and our messages write them: `6.4,7.0`,
/// `0-3,7.0-4`, `0.0 5~1.0`. In a word with one dot the commas make lists of processes and of threads;
/// in a word with several they stand between traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selections(Vec<Selection>);

impl Selections {
    /// Each by itself.
    pub fn iter(&self) -> impl Iterator<Item = Selection> + '_ {
        self.0.iter().copied()
    }
}

impl FromStr for Selections {
    type Err = NotASelection;

    fn from_str(text: &str) -> Result<Self, NotASelection> {
        let wrong = || NotASelection(text.to_owned());
        let mut all = Vec::new();
        for word in text.split_whitespace() {
            let word = word.strip_suffix(',').unwrap_or(word);
            match word.split_once('.') {
                Some((processes, threads)) if !threads.contains('.') => {
                    let mut job = None;
                    for process in processes.split(',') {
                        // A job stands before its first process: 1:2,3.0.
                        let (here, process) = match process.split_once(':') {
                            Some((here, process)) => (Some(here), process),
                            None => (job, process),
                        };
                        job = here;
                        let job = job.map(|job| format!("{job}:")).unwrap_or_default();
                        let helper = if threads.starts_with('h') { "h" } else { "" };
                        for thread in threads.strip_prefix('h').unwrap_or(threads).split(',') {
                            let name = format!("{job}{process}.{helper}{thread}");
                            all.push(parse(&name).ok_or_else(wrong)?);
                        }
                    }
                }
                _ => {
                    for name in word.split(',') {
                        all.push(parse(name).ok_or_else(wrong)?);
                    }
                }
            }
        }
        if all.is_empty() {
            return Err(wrong());
        }
        Ok(Self(all))
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.job > 0 {
            write!(f, "{}:", self.job)?;
        }
        write!(f, "{}", self.rank)?;
        if self.sibling > 0 {
            write!(f, "~{}", self.sibling)?;
        }
        let helper = if self.helper { "h" } else { "" };
        write!(f, ".{helper}{}", self.thread)
    }
}

impl Selection {
    /// Whether traces of a process of this name are meant.
    pub(crate) fn means(&self, name: ProcessName) -> bool {
        let ProcessName { job, rank, sibling } = name;
        job == self.job && sibling == self.sibling && self.rank.contains(rank)
    }

    /// Whether a trace of this name is meant.
    #[must_use]
    pub fn matches(&self, name: TraceName) -> bool {
        let thread = match name.thread {
            ThreadName::Main(number) => !self.helper && self.thread.contains(number),
            ThreadName::Helper(number) => self.helper && self.thread.contains(number),
        };
        self.means(name.process) && thread
    }
}

impl Run {
    /// The same run with no process hidden (`--all-processes`).
    #[must_use]
    pub fn with_all_processes(mut self) -> Self {
        self.is_mpi = false;
        self
    }

    /// The traces that any of `selections` means, in the order of the run; those that commands look
    /// at without being told ([`Run::traces`]) where there is no selection. A selection that names a
    /// hidden process finds it; `*` does not.
    pub fn select<'a, 'b>(
        &'a self,
        selections: &'b [Selection],
    ) -> impl Iterator<Item = &'a Thread> + use<'a, 'b> {
        self.processes
            .iter()
            .flat_map(|process| process.threads.iter().map(move |thread| (process, thread)))
            .filter(move |(process, thread)| {
                let visible = self.is_visible(process);
                if selections.is_empty() {
                    visible
                } else {
                    selections.iter().any(|wanted| {
                        (visible || wanted.rank != Range::ALL) && wanted.matches(thread.name)
                    })
                }
            })
            .map(|(_, thread)| thread)
    }
}

/// Numbers as people write them: `0-3,7`. They need not be sorted; duplicates count once.
#[must_use]
pub fn ranges(numbers: &[u32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
        .chunk_by(|a, b| a.checked_add(1) == Some(*b))
        .map(|run| match run {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// Trace names as people write them, processes with the same threads together: `0-3,7.0-4 5~1.0`.
#[must_use]
pub fn in_short(traces: &[TraceName]) -> String {
    // Numbers of threads of each process, then processes with equal ones.
    let mut threads: BTreeMap<(bool, ProcessName), Vec<u32>> = BTreeMap::new();
    for trace in traces {
        let (helper, number) = match trace.thread {
            ThreadName::Main(number) => (false, number),
            ThreadName::Helper(number) => (true, number),
        };
        threads
            .entry((helper, trace.process))
            .or_default()
            .push(number);
    }
    let mut groups: Vec<(ProcessName, String, Vec<u32>)> = Vec::new();
    for ((helper, process), numbers) in threads {
        let text = format!("{}{}", if helper { "h" } else { "" }, ranges(&numbers));
        let alike = |(other, other_text, _): &&mut (ProcessName, String, Vec<u32>)| {
            (other.job, other.sibling) == (process.job, process.sibling) && *other_text == text
        };
        match groups.iter_mut().find(alike) {
            Some((_, _, ranks)) => ranks.push(process.rank),
            None => groups.push((process, text, vec![process.rank])),
        }
    }
    groups
        .into_iter()
        .map(|(process, threads, ranks)| {
            let job = match process.job {
                0 => String::new(),
                job => format!("{job}:"),
            };
            let sibling = match process.sibling {
                0 => String::new(),
                sibling => format!("~{sibling}"),
            };
            format!("{job}{}{sibling}.{threads}", ranges(&ranks))
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// [`in_short`] of names as text; as they stand where one is more than a trace (a piece, `P.T@k`).
#[must_use]
pub fn names_in_short(names: &[String]) -> String {
    let traces: Option<Vec<TraceName>> = names.iter().map(|name| name.parse().ok()).collect();
    traces.map_or_else(|| names.join(" "), |traces| in_short(&traces))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn means(selection: &str, name: &str) -> bool {
        let wanted: Selection = selection.parse().unwrap();
        wanted.matches(name.parse().unwrap())
    }

    #[test]
    fn selections_of_the_contract() {
        assert!(means("6.4", "6.4") && !means("6.4", "6.3"));
        assert!(means("6.*", "6.0") && !means("6.*", "6.h1") && !means("6.*", "6~1.0"));
        assert!(means("*.0", "11.0") && !means("*.0", "11.1"));
        assert!(means("0-3.1-4", "3.1") && !means("0-3.1-4", "3.0") && !means("0-3.1-4", "4.1"));
        assert!(means("5~1.0", "5~1.0") && !means("5~1.0", "5.0"));
        assert!(means("1:6.4", "1:6.4") && !means("1:6.4", "6.4"));
        assert!(means("6.h1", "6.h1") && !means("6.h1", "6.1"));
        assert!(means("*.h*", "3.h2"));
    }

    #[test]
    fn selections_print_as_they_were_written() {
        for text in ["6.4", "6.*", "*.0", "0-3.1-4", "5~1.0", "1:6.4", "6.h1"] {
            assert_eq!(text.parse::<Selection>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn lists_are_read_as_they_are_printed() {
        let means = |text: &str| -> Vec<String> {
            let list: Selections = text.parse().unwrap();
            list.iter().map(|one| one.to_string()).collect()
        };
        assert_eq!(means("6.4"), ["6.4"]);
        assert_eq!(means("6.4,7.0"), ["6.4", "7.0"]);
        assert_eq!(means("6.4, 7.h1"), ["6.4", "7.h1"]);
        assert_eq!(means("0-3,7.0-2,5"), ["0-3.0-2", "0-3.5", "7.0-2", "7.5"]);
        assert_eq!(
            means("0.0 5~1.0 1:2,3.0 0.h1,2"),
            ["0.0", "5~1.0", "1:2.0", "1:3.0", "0.h1", "0.h2"]
        );
        for text in ["", ",", "6,7", "6.4,5,7.0", "6.4,,7.0", "6.hh1"] {
            assert!(text.parse::<Selections>().is_err(), "{text}");
        }
        let names: Vec<TraceName> = ["0.0", "0.1", "2.0", "2.1", "1:3.0", "4~1.0", "4.h1", "4.h3"]
            .iter()
            .map(|name| name.parse().unwrap())
            .collect();
        let list: Selections = in_short(&names).parse().unwrap();
        for name in names {
            assert!(list.iter().any(|one| one.matches(name)), "{name}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "", "6", "6.", ".4", "a.b", "4-2.0", "1-.0", "-1.0", "6.4.2", "6.+1x", "~.0",
        ] {
            assert!(text.parse::<Selection>().is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_as_ranges() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[7, 3, 2, 1, 0]), "0-3,7");
        assert_eq!(ranges(&[1, 2, 2, 9, u32::MAX]), "1-2,9,4294967295");
    }

    #[test]
    fn trace_names_in_short() {
        let short = |names: &[&str]| {
            in_short(
                &names
                    .iter()
                    .map(|name| name.parse().unwrap())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(short(&["0.0"]), "0.0");
        assert_eq!(short(&["2.0", "0.0", "1.0", "7.0"]), "0-2,7.0");
        assert_eq!(
            short(&["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]),
            "0-1.0-2"
        );
        assert_eq!(
            short(&["0.0", "0.h1", "5~1.0", "1:2.0"]),
            "0.0 5~1.0 1:2.0 0.h1"
        );
    }
}
