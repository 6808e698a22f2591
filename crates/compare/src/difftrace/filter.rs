//! Which functions count: the filters by name, the papers' spelling of them, and their test.

use crate::Error;
use lockstep_trace::threads::{self, Does, Lock};
use lockstep_trace::{c_name, mpi};
use regex::Regex;
use std::fmt;

/// A named group of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // each is described by its line of `TABLE`
pub enum FilterName {
    Mpi,
    MpiAll,
    MpiInternal,
    MpiCollectives,
    MpiP2p,
    Omp,
    OmpCritical,
    OmpMutex,
    Memory,
    Network,
    Poll,
    String,
    Plt,
    Custom,
    Everything,
}

use FilterName as F;

/// Filter, its name, the papers' name, and its regular expression on the function's name in C spelling; empty if it goes by
/// something else.
const TABLE: [(FilterName, &str, &str, &str); 15] = [
    (F::Mpi, "mpi", "mpi", r"^MPI_"),
    (
        F::MpiAll,
        "mpi-all",
        "mpiall",
        r"^(MPI|PMPI|MPID|MPIR|MPIDI|MPL)_",
    ),
    (
        F::MpiInternal,
        "mpi-internal",
        "mpiint",
        r"^(ompi|opal|orte|prte|mca|pmix|ucp|uct|fi)_",
    ),
    (F::MpiCollectives, "mpi-collectives", "mpicol", ""),
    (F::MpiP2p, "mpi-p2p", "mpisr", ""),
    (F::Omp, "omp", "ompall", ""),
    (F::OmpCritical, "omp-critical", "ompcrit", ""),
    (F::OmpMutex, "omp-mutex", "ompmutex", ""),
    (
        F::Memory,
        "memory",
        "mem",
        r"^(mem(cpy|move|set|cmp|chr)|malloc|calloc|realloc|free|aligned_alloc|posix_memalign|mmap|munmap|brk)|^operator (new|delete)|^_Z(n[wa]|d[la])",
    ),
    (
        F::Network,
        "network",
        "net",
        r"^(__)?(socket|socketpair|bind|listen|accept4?|connect|shutdown|getaddrinfo|gethostby\w+|getsockname|getpeername|[gs]etsockopt|send(to|msg|mmsg)?|recv(from|msg|mmsg)?)$|(?i)^(tcp|ibv|fi|ucx|ucp|uct)_|network",
    ),
    (
        F::Poll,
        "poll",
        "poll",
        r"(?i)^(__)?p?select$|poll|progress|yield",
    ),
    (F::String, "string", "str", r"^(str|wcs|index)"),
    (F::Plt, "plt", "plt", r"@plt$"),
    (F::Custom, "custom", "cust", ""),
    (F::Everything, "everything", "incEveryth", ""),
];

/// The filters that keep a function for what it means, as bits.
fn meant(name: &str) -> u16 {
    use mpi::Does as Mpi;
    let call = threads::meaning(name);
    let is_lock = |wanted: fn(Lock) -> bool| match call.does {
        Does::Take(lock) | Does::Give(lock) => wanted(lock),
        _ => false,
    };
    let is_own = |it| matches!(it, Lock::OpenMp | Lock::OpenMpNest | Lock::Mutex);
    // Not what stands between a program and MPI.
    let of_mpi = match mpi::is_called_by_programs(name.as_bytes()) {
        true => mpi::meaning(name),
        false => mpi::Meaning::UNKNOWN,
    };
    let is_message = match of_mpi.does {
        Mpi::Wait(_) | Mpi::Test(_) | Mpi::Start(_) | Mpi::Ready(_) | Mpi::Arrived => true,
        _ => of_mpi.sends() || of_mpi.receives(),
    };
    let kept = [
        (
            F::MpiCollectives,
            matches!(of_mpi.does, Mpi::Collective(..)),
        ),
        (F::MpiP2p, is_message),
        (
            F::Omp,
            call.is_openmp() || threads::outlined(name).is_some(),
        ),
        (F::OmpCritical, is_lock(Lock::is_critical)),
        (
            F::OmpMutex,
            call.is_openmp() && (call.does == Does::Object || is_lock(is_own)),
        ),
    ];
    let kept = kept.iter().filter(|it| it.1);
    kept.fold(0, |bits, it| bits | it.0.bit())
}

/// Images that make up an MPI library, for [`FilterName::MpiInternal`].
const MPI_IMAGES: &str = r"^(lib)?(mpi|mpich|mpicxx|mpifort|pmpi|open-pal|open-rte|openmpi|prrte|pmix|ucp|uct|ucs|ucm|fabric|psm2|mca_)";

impl FilterName {
    /// Every filter, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(filter, ..)| *filter)
    }

    /// Its name on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The papers' name; of one that they do not have, a name in their manner.
    #[must_use]
    pub const fn paper(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// Whether this is its name, or one that the papers have for it.
    fn is_called(self, word: &str) -> bool {
        let in_full = self == F::Everything && word == "incEverything";
        word == self.word() || word == self.paper() || in_full
    }

    const fn bit(self) -> u16 {
        1 << self as u8
    }
}

impl fmt::Display for FilterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A union of filters. Empty, it keeps nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Filter {
    /// Its parts, in the order in which they were told, each once.
    pub names: Vec<FilterName>,
    /// What [`FilterName::Custom`] keeps: a regular expression on the function's name.
    pub custom: Option<String>,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            names: vec![FilterName::Everything],
            custom: None,
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.names.iter().map(|name| name.word()).collect();
        f.pad(&words.join(","))
    }
}

/// A `--filter` value: the filter, and from the papers' form also (keep returns, keep `@plt`, K).
pub(crate) struct Parsed {
    pub(crate) filter: Filter,
    pub(crate) paper: Option<(bool, bool, usize)>,
}

impl Filter {
    /// A union of these.
    #[must_use]
    pub fn of(names: impl IntoIterator<Item = FilterName>) -> Self {
        let mut each_once: Vec<FilterName> = Vec::new();
        for name in names {
            if !each_once.contains(&name) {
                each_once.push(name);
            }
        }
        Self {
            names: each_once,
            custom: None,
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Parsed, Error> {
        let refuse = |found: &str| Error::Value {
            option: "--filter",
            expected: format!(
                "one or more of {}, joined by commas; or the papers' form, such as 11.mpi.cust.0K10",
                FilterName::all()
                    .map(FilterName::word)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            found: found.to_owned(),
        };
        if let Some(parsed) = parse_paper(text) {
            return parsed.ok_or_else(|| refuse(text));
        }
        let names = text
            .split(',')
            .map(str::trim)
            .map(|word| {
                FilterName::all()
                    .find(|filter| filter.is_called(word))
                    .ok_or_else(|| refuse(word))
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Parsed {
            filter: Self::of(names),
            paper: None,
        })
    }

    /// In the papers' form: two digits (returns, `@plt` names: 1 = removed), short names, whether
    /// everything is included, and K.
    #[must_use]
    pub fn paper(&self, keep_returns: bool, keep_plt: bool, k: usize) -> String {
        let mut text = format!("{}{}", u8::from(!keep_returns), u8::from(!keep_plt));
        for name in &self.names {
            if *name != FilterName::Everything {
                text.push('.');
                text.push_str(name.paper());
            }
        }
        let everything = u8::from(self.names.contains(&FilterName::Everything));
        text.push_str(&format!(".{everything}K{k}"));
        text
    }

    /// Bits of its parts, to be tested against [`Groups`].
    pub(crate) fn bits(&self) -> u16 {
        self.names.iter().fold(0, |bits, name| bits | name.bit())
    }
}

/// `11.mem.ompcrit.cust.0K10`. `None` if it is not meant so, `Some(None)` if it is and has a mistake.
#[allow(clippy::option_option)]
fn parse_paper(text: &str) -> Option<Option<Parsed>> {
    let digit = |digit: u8| match digit {
        b'0' => Some(true),
        b'1' => Some(false),
        _ => None,
    };
    let (digits, rest) = text.split_once('.')?;
    let [returns, plt] = digits.as_bytes() else {
        return None;
    };
    let (keep_returns, keep_plt) = (digit(*returns)?, digit(*plt)?);
    let parse = || {
        let mut parts: Vec<&str> = rest.split('.').collect();
        let (everything, k) = parts.pop()?.split_once('K')?;
        let k = k.parse().ok().filter(|k| *k >= 1)?;
        let mut names = Vec::new();
        for part in parts {
            names.push(FilterName::all().find(|filter| filter.paper() == part)?);
        }
        match everything {
            "0" => {}
            "1" => names.push(FilterName::Everything),
            _ => return None,
        }
        Some(Parsed {
            filter: Filter::of(names),
            paper: Some((keep_returns, keep_plt, k)),
        })
    };
    Some(parse())
}

/// The expressions of every filter, compiled once for a comparison.
pub(crate) struct Groups {
    patterns: Vec<(FilterName, Regex)>,
    mpi_images: Regex,
    ignore: Vec<Regex>,
}

impl Groups {
    /// # Errors
    /// A pattern that does not parse.
    pub(crate) fn new(custom: Option<&str>, ignore: &[String]) -> Result<Self, Error> {
        let mut patterns = Vec::new();
        for (filter, _, _, pattern) in TABLE {
            if !pattern.is_empty() {
                patterns.push((filter, compile("--filter", pattern)?));
            }
        }
        if let Some(pattern) = custom {
            patterns.push((FilterName::Custom, compile("--custom", pattern)?));
        }
        Ok(Self {
            patterns,
            mpi_images: compile("--filter", MPI_IMAGES)?,
            ignore: ignore
                .iter()
                .map(|pattern| compile("--ignore", pattern))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The filters that keep a function, by its name and image, as bits; 0 if it is ignored.
    pub(crate) fn of(&self, recorded: &str, image: &str) -> u16 {
        let name = c_name(recorded);
        if self
            .ignore
            .iter()
            .any(|regex| regex.is_match(recorded) || regex.is_match(&name))
        {
            return 0;
        }
        let mut bits = FilterName::Everything.bit() | meant(&name);
        for (filter, regex) in &self.patterns {
            let subject = if *filter == FilterName::Plt {
                recorded
            } else {
                &name
            };
            if regex.is_match(subject) {
                bits |= filter.bit();
            }
        }
        if self.mpi_images.is_match(image) {
            bits |= FilterName::MpiInternal.bit();
        }
        bits
    }
}

/// Compiles a pattern that somebody typed.
pub(crate) fn compile(option: &'static str, pattern: &str) -> Result<Regex, Error> {
    Regex::new(pattern).map_err(|error| Error::Pattern {
        option,
        pattern: pattern.to_owned(),
        reason: match &error {
            // The parser draws the place over several lines; its last line says what is wrong.
            regex::Error::Syntax(text) => text
                .lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned(),
            other => other.to_string(),
        },
    })
}

/// The same of one that need not be there.
pub(crate) fn maybe(option: &'static str, pattern: Option<&str>) -> Result<Option<Regex>, Error> {
    pattern.map(|pattern| compile(option, pattern)).transpose()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Options;

    fn groups(name: &str) -> Vec<&'static str> {
        let groups = Groups::new(Some("^CPU_Exec$"), &[]).unwrap();
        let bits = groups.of(name, "program");
        FilterName::all()
            .filter(|filter| bits & filter.bit() != 0)
            .map(FilterName::word)
            .filter(|word| *word != "everything")
            .collect()
    }

    #[test]
    fn table_is_in_the_order_of_the_names() {
        for (index, (filter, ..)) in TABLE.iter().enumerate() {
            assert_eq!(*filter as usize, index);
        }
    }

    #[test]
    fn fortran_names_fold_to_c() {
        for (name, c) in [
            ("mpi_send_", "MPI_Send"),
            ("mpi_send__", "MPI_Send"),
            ("mpi_send_f08_", "MPI_Send"),
            ("mpi_send_f08ts_", "MPI_Send"),
            ("mpi_comm_rank_", "MPI_Comm_rank"),
            ("pmpi_reduce_scatter_block_", "PMPI_Reduce_scatter_block"),
            ("MPI_Send@plt", "MPI_Send"),
            ("mpi_sort", "mpi_sort"),
            ("mpi_", "mpi_"),
            ("mpi__", "mpi__"),
        ] {
            assert_eq!(c_name(name), c, "{name}");
        }
    }

    #[test]
    fn names_fall_into_their_groups() {
        assert_eq!(groups("MPI_Init"), ["mpi", "mpi-all"]);
        assert_eq!(groups("mpi_isend_"), ["mpi", "mpi-all", "mpi-p2p"]);
        assert_eq!(
            groups("MPI_Iallreduce"),
            ["mpi", "mpi-all", "mpi-collectives"]
        );
        assert_eq!(groups("MPI_Waitall"), ["mpi", "mpi-all", "mpi-p2p"]);
        assert_eq!(groups("MPI_Comm_rank"), ["mpi", "mpi-all"]);
        assert_eq!(groups("PMPI_Send"), ["mpi-all"]);
        assert_eq!(groups("GOMP_critical_start"), ["omp", "omp-critical"]);
        assert_eq!(groups("main._omp_fn.0"), ["omp"]);
        assert_eq!(groups("omp_set_lock"), ["omp", "omp-mutex"]);
        assert_eq!(groups("memcpy"), ["memory"]);
        assert_eq!(groups("operator new(unsigned long)"), ["memory"]);
        assert_eq!(groups("strlen@plt"), ["string", "plt"]);
        assert_eq!(groups("CPU_Exec"), ["custom"]);
        assert_eq!(groups("opal_progress"), ["mpi-internal", "poll"]);
        assert_eq!(groups("exchange"), [""; 0]);
    }

    /// What is in them beside is younger than the papers.
    #[test]
    fn groups_of_mpi_are_those_of_the_papers() {
        let papers = [
            (
                F::MpiCollectives,
                r"^MPI_I?(barrier|bcast|reduce|allreduce|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|scan|exscan|reduce_scatter(_block)?|neighbor_\w+)(_init)?$",
            ),
            (
                F::MpiP2p,
                r"^MPI_(I?[bsr]?send|I?m?recv|I?sendrecv(_replace)?|I?m?probe|(wait|test)(all|any|some)?|start(all)?)(_init)?$",
            ),
        ];
        let papers =
            papers.map(|(it, pattern)| (it, Regex::new(&format!("(?i){pattern}")).unwrap()));
        let forms = mpi::functions().flat_map(|it| {
            let base = it.base;
            let later = format!("MPI_I{}", base.to_lowercase());
            [format!("MPI_{base}"), later, format!("MPI_{base}_init")]
        });
        let mut younger = Vec::new();
        for name in forms.filter(|it| mpi::Function::of(it.as_bytes()).is_some()) {
            for (filter, pattern) in &papers {
                match (meant(&name) & filter.bit() != 0, pattern.is_match(&name)) {
                    (true, false) => younger.push(name.clone()),
                    (is_kept, is_meant) => assert_eq!(is_kept, is_meant, "{name}"),
                }
            }
        }
        let partitioned = [
            "Psend_init",
            "Precv_init",
            "Pready",
            "Pready_range",
            "Pready_list",
            "Parrived",
        ];
        assert_eq!(younger, partitioned.map(|it| format!("MPI_{it}")));
    }

    #[test]
    fn the_papers_form_reads_and_prints() {
        for text in [
            "11.mem.ompcrit.cust.0K10",
            "01.mem.ompmutex.cust.0K10",
            "01.mem.ompall.cust.0K10",
            "11.plt.mem.mpi.ompcrit.cust.0K10",
            "01.plt.mem.cust.0K10",
            "11.mpiall.cust.0K10",
            "01.mpicol.cust.0K10",
            "11.mpisr.net.poll.str.0K50",
            "10.mpi.cust.1K10",
            "00.1K2",
        ] {
            let mut options = Options::default();
            options.set_filter(text).unwrap();
            let Options {
                keep_returns,
                keep_plt,
                k,
                ..
            } = options;
            assert_eq!(options.filter.paper(keep_returns, keep_plt, k), text);
        }
        let mut options = Options::default();
        options.set_filter("01.mpi.0K7").unwrap();
        assert!(options.keep_returns && !options.keep_plt);
        assert_eq!(options.k, 7);
    }

    #[test]
    fn each_filter_is_known_in_both_spellings() {
        for filter in FilterName::all() {
            let read = |text: &str| {
                let mut options = Options::default();
                options.set_filter(text).map(|()| options.filter.names)
            };
            assert_eq!(read(filter.word()).unwrap(), [filter]);
            assert_eq!(read(filter.paper()).unwrap(), [filter]);
            let paper = match filter {
                F::Everything => "11.1K10".to_owned(),
                other => format!("11.{}.0K10", other.paper()),
            };
            assert_eq!(read(&paper).unwrap(), [filter]);
        }
        let mut options = Options::default();
        options.set_filter("mem,ompcrit,custom,mem").unwrap();
        assert_eq!(
            options.filter.paper(false, false, 10),
            "11.mem.ompcrit.cust.0K10"
        );
    }

    #[test]
    fn mistakes_are_told() {
        let mut options = Options::default();
        for text in [
            "",
            "mpy",
            "11.mpi",
            "11.mpi.0K0",
            "11.mpi.2K10",
            "11.mqi.0K10",
            "mpi,",
        ] {
            let message = options.set_filter(text).unwrap_err().to_string();
            assert!(
                message.contains("--filter: expected one or more of mpi"),
                "{message}"
            );
        }
        let error = compile("--custom", "a(").unwrap_err().to_string();
        assert_eq!(
            error,
            "--custom: `a(` is not a regular expression: unclosed group"
        );
    }
}
