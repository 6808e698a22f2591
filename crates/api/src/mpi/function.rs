//! From a name, as a program or a library spells it, to a function and its row.

use super::meaning::{Does, Form, Meaning};
use super::parameter::{Kind, Parameter};
use super::rows::{CHAPTERS, Row, rows};

/// The language that a function is called from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// C and what calls like it.
    C,
    /// Fortran, by any of its interfaces.
    Fortran,
}

/// A function that has a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// From where it is called.
    pub language: Language,
    /// Its name in C without `MPI_`; of a derived function (`Isend`, `Send_init`), the name of what it is
    /// derived from.
    pub base: &'static str,
    row: &'static Row,
    form: Form,
    /// What a derived function has behind the row's parameters.
    more: &'static str,
    /// Counts have 64 bits.
    is_large: bool,
    /// Buffers are passed as descriptors.
    describes: bool,
}

/// Whether programs call MPI by this name: `MPI_Send`, `mpi_send_`. Not by `PMPI_Send`, which is for what stands between them and MPI.
#[must_use]
pub fn is_called_by_programs(linkage: &[u8]) -> bool {
    linkage.starts_with(b"MPI_") || linkage.starts_with(b"mpi_") && Function::of(linkage).is_some()
}

/// Whether a function is MPI's, by whatever name: `MPI_Send`, `PMPI_Send`, `mpi_send_`, `MPI_Of_another_version`.
#[must_use]
pub fn is_mpi(linkage: &[u8]) -> bool {
    let plain = linkage.strip_prefix(b"P").unwrap_or(linkage);
    plain.starts_with(b"MPI_") || Function::of(linkage).is_some()
}

/// What a function does, by its name in C, `MPI_Send`; [`Meaning::UNKNOWN`] if it has no row.
#[must_use]
pub fn meaning(name: &str) -> Meaning {
    Function::of(name.as_bytes()).map_or(Meaning::UNKNOWN, |it| it.meaning())
}

/// All functions that have a row of their own, in C.
pub fn functions() -> impl Iterator<Item = Function> {
    chapters().flat_map(|(_, functions)| functions)
}

/// The same by chapter, each with its title.
pub fn chapters() -> impl Iterator<Item = (&'static str, impl Iterator<Item = Function>)> {
    let functions = |rows: &'static [Row]| rows.iter().map(|row| Function::new(row, Language::C));
    CHAPTERS
        .into_iter()
        .map(move |(title, rows)| (title, functions(rows)))
}

impl Function {
    fn new(row: &'static Row, language: Language) -> Self {
        Self {
            language,
            base: row.name,
            row,
            form: row.form(),
            more: "",
            is_large: false,
            describes: false,
        }
    }

    /// The function with this linkage name: `MPI_Send`, `PMPI_Send`, `mpi_send_`, `MPI_SEND`,
    /// `mpi_send_f08_`...
    #[must_use]
    pub fn of(linkage: &[u8]) -> Option<Self> {
        let name = linkage
            .strip_prefix(b"P")
            .or_else(|| linkage.strip_prefix(b"p"))
            .unwrap_or(linkage);
        let rest = name
            .strip_prefix(b"MPI_")
            .or_else(|| name.strip_prefix(b"mpi_"))?;
        // Libraries have `MPI_Init_f` beside `mpi_init_`.
        let is_fortran = rest.ends_with(b"_f") || rest.ends_with(b"_f08");
        let is_c = name.starts_with(b"MPI_") && rest.iter().any(u8::is_ascii_lowercase);
        let is_c = is_c && !is_fortran;
        if is_c {
            let large = rest.strip_suffix(b"_c");
            let own = || find(rest, Language::C);
            let plain = || find(large?, Language::C);
            // Few have other parameters there, and rows of their own.
            return Some(Self {
                is_large: large.is_some(),
                ..own().or_else(plain)?
            });
        }
        let describes = rest.windows(6).any(|it| it == b"_f08ts");
        let mut rest = rest;
        for suffix in [&b"_"[..], b"_", b"_f08ts", b"_f08", b"_f"] {
            rest = rest.strip_suffix(suffix).unwrap_or(rest);
        }
        let function = find(rest, Language::Fortran)?;
        Some(Self {
            describes,
            ..function
        })
    }

    /// What it does.
    #[must_use]
    pub const fn meaning(&self) -> Meaning {
        Meaning {
            does: self.row.does,
            form: self.form,
            anytime: self.row.anytime,
        }
    }

    /// Whether its counts have 64 bits.
    #[must_use]
    pub const fn has_large_counts(&self) -> bool {
        self.is_large
    }

    /// Its parameters, in order; Fortran's error code left out.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> + use<> {
        // Fortran has no command line to pass on.
        let skipped = match self.language {
            Language::Fortran if self.row.parameters.starts_with("argc:") => 2,
            _ => 0,
        };
        let words = self.row.parameters.split(' ').chain(self.more.split(' '));
        let (describes, is_large) = (self.describes, self.is_large);
        words
            .filter_map(|word| word.split_once(':'))
            .skip(skipped)
            .enumerate()
            .map(move |(position, (name, kind))| Parameter {
                name,
                kind: match Kind::of(kind.bytes().next().unwrap_or(b'.')) {
                    Kind::Buffer if describes => Kind::Ignored,
                    // Their elements have 64 bits.
                    Kind::Shares | Kind::Places | Kind::Ints if is_large => Kind::Ignored,
                    kind => kind,
                },
                position,
            })
    }
}

fn find(name: &[u8], language: Language) -> Option<Function> {
    let row = |name: &[u8]| {
        let is_it = |it: &&Row| {
            it.name.len() == name.len() && it.name.as_bytes().eq_ignore_ascii_case(name)
        };
        rows().find(is_it)
    };
    if let Some(row) = row(name) {
        return Some(Function::new(row, language));
    }
    let derives = |it: &&Row| matches!(it.does, Does::Send(_) | Does::Collective(..));
    let made = |row: &'static Row, form, more| Function {
        form,
        more,
        ..Function::new(row, language)
    };
    if let Some(rest) = name.strip_prefix(b"I").or_else(|| name.strip_prefix(b"i"))
        && let Some(row) = row(rest).filter(derives)
    {
        return Some(made(row, Form::Nonblocking, "request:q"));
    }
    let persistent = name
        .strip_suffix(b"_init")
        .or_else(|| name.strip_suffix(b"_INIT"))?;
    let row = row(persistent).filter(derives)?;
    // Persistent point-to-point operations are older than info objects.
    let more = match row.does {
        Does::Send(_) => "request:q",
        _ => "info:. request:q",
    };
    Some(made(row, Form::Persistent, more))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::print_stderr)]
    use super::super::{Counts, Mode, Scope, Shape};
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_in_every_spelling() {
        let c = Function::of(b"MPI_Send").unwrap();
        assert_eq!(c.language, Language::C);
        assert_eq!(Function::of(b"PMPI_Send"), Some(c));
        let fortran = Function::of(b"mpi_send_").unwrap();
        assert_eq!(fortran.language, Language::Fortran);
        for name in [
            "mpi_send",
            "mpi_send__",
            "MPI_SEND",
            "pmpi_send_",
            "mpi_send_f08_",
        ] {
            assert_eq!(Function::of(name.as_bytes()), Some(fortran), "{name}");
        }
        // Its buffer is a descriptor.
        let described = Function::of(b"mpi_send_f08ts_").unwrap();
        let kinds = [described, fortran].map(|it| it.parameters().next().unwrap().kind);
        assert_eq!(described.base, fortran.base);
        assert_eq!(kinds, [Kind::Ignored, Kind::Buffer]);
        for name in ["MPI_Checkpoint", "MPI_Ifinalize", "send", "mpi_"] {
            assert_eq!(Function::of(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn derived_functions_have_a_request() {
        for name in ["MPI_Isend", "MPI_Send_init", "MPI_Ibarrier", "mpi_ibcast_"] {
            let function = Function::of(name.as_bytes()).unwrap();
            assert_eq!(
                function.parameters().last().unwrap().kind,
                Kind::NewRequest,
                "{name}"
            );
        }
        let bcast = Function::of(b"MPI_Bcast_init").unwrap();
        assert_eq!(bcast.parameters().nth(5).unwrap().kind, Kind::Ignored);
        assert_eq!(Function::of(b"MPI_Irecv_init"), None);
    }

    #[test]
    fn places_as_the_standard_has_them() {
        let place = |function: &str, name| {
            let function = Function::of(function.as_bytes())?;
            function.parameters().position(|found| found.name == name)
        };
        assert_eq!(place("MPI_Send", "dest"), Some(3));
        assert_eq!(place("PMPI_Recv", "source"), Some(3));
        assert_eq!(place("MPI_Sendrecv", "status"), Some(11));
        assert_eq!(place("MPI_Reduce", "root"), Some(5));
        assert_eq!(place("MPI_Ibcast", "request"), Some(5));
        assert_eq!(place("MPI_Bcast", "dest"), None);
        assert_eq!(place("memcpy", "dest"), None);
    }

    #[test]
    fn what_functions_do() {
        let of = |name| (meaning(name).does, meaning(name).form);
        let standard = Does::Send(Mode::Standard);
        assert_eq!(of("MPI_Send"), (standard, Form::Blocking));
        assert_eq!(of("MPI_Isend_c"), (standard, Form::Nonblocking));
        assert_eq!(of("MPI_Send_init"), (standard, Form::Persistent));
        assert_eq!(of("MPI_Recv_init"), (Does::Receive, Form::Persistent));
        assert_eq!(of("MPI_Iprobe"), (Does::Probe, Form::Nonblocking));
        assert_eq!(
            of("MPI_Testsome"),
            (Does::Test(Scope::Some), Form::Blocking)
        );
        let gather = Does::Collective(Shape::ToRoot, Counts::OneBlock);
        assert_eq!(of("MPI_Gather_init"), (gather, Form::Persistent));
        assert_eq!(meaning("MPIX_Stream_create"), Meaning::UNKNOWN);
    }

    #[test]
    fn who_asks_does_not_wait() {
        let asks = |name| meaning(name).asks();
        assert!(["MPI_Test", "MPI_Improbe", "MPI_Request_get_status"].map(asks) == [true; 3]);
        assert!(["MPI_Wait", "MPI_Probe", "MPI_Test_cancelled"].map(asks) == [false; 3]);
    }

    #[test]
    fn who_reads_a_clock_or_waits_for_any() {
        let those = |is: fn(Meaning) -> bool| -> Vec<&str> {
            let all = functions().filter(|it| is(it.meaning()));
            all.map(|it| it.base).collect()
        };
        assert_eq!(those(Meaning::reads_clock), ["Wtime", "Wtick"]);
        let any = ["Probe", "Mprobe", "Waitany", "Waitsome"];
        assert_eq!(those(Meaning::waits_for_any), any);
    }

    #[test]
    fn a_function_has_one_row_with_known_letters() {
        let names: Vec<String> = rows().map(|it| it.name.to_lowercase()).collect();
        let distinct: BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        for row in rows() {
            for word in row.parameters.split_whitespace() {
                let (_, letter) = word.split_once(':').unwrap();
                let known = letter == "." || Kind::of(letter.as_bytes()[0]) != Kind::Ignored;
                assert!(known && letter.len() == 1, "{}: {word}", row.name);
            }
        }
    }

    /// Every prototype of the installed libraries has a row, with as many parameters.
    #[test]
    fn installed_headers_agree() {
        let headers = [
            "/usr/include/x86_64-linux-gnu/mpich/mpi_proto.h",
            "/usr/include/x86_64-linux-gnu/mpich/mpio.h",
            "/usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h",
        ];
        let mut asked = 0;
        let mut unlike = Vec::new();
        for header in headers {
            let Ok(text) = std::fs::read_to_string(header) else {
                eprintln!("SKIPPED {header}: not installed");
                continue;
            };
            for (name, parameters) in prototypes(&text) {
                let function = Function::of(name.as_bytes());
                let known = function.map(|it| it.parameters().count());
                asked += 1;
                if known != Some(parameters) {
                    unlike.push((name.to_owned(), known, parameters));
                }
            }
        }
        assert!(unlike.is_empty(), "{unlike:?}");
        assert!(asked == 0 || asked > 300, "{asked} prototypes");
    }

    /// Functions that a header declares, and how many parameters each has.
    fn prototypes(text: &str) -> Vec<(&str, usize)> {
        let mut found = Vec::new();
        for declaration in text.split(';') {
            let Some(at) = declaration.find(" MPI_").map(|it| it + 1) else {
                continue;
            };
            let before = declaration[..at].lines().last().unwrap_or_default();
            let is_type = ["typedef", "#", "*", "("]
                .iter()
                .any(|it| before.contains(it));
            let Some((name, rest)) = declaration[at..].split_once('(') else {
                continue;
            };
            let is_function = name.len() > 5
                && name
                    .bytes()
                    .all(|it| it.is_ascii_alphanumeric() || it == b'_')
                && !name.to_ascii_lowercase().ends_with("_fn");
            let Some((given, _)) = rest.split_once(')') else {
                continue;
            };
            if is_type || !is_function || given.contains('(') {
                continue;
            }
            let count = match given.trim() {
                "void" | "" => 0,
                // What comes behind the level is nobody's.
                given => given.split(',').filter(|it| it.trim() != "...").count(),
            };
            found.push((name, count));
        }
        found
    }
}
