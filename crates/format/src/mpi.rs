//! The functions of MPI and what each of their parameters is, for C and Fortran, MPI 3.1 and the
//! additions of MPI 4 that programs use; and the *capture program* by which the probe takes a call's
//! arguments without knowing the function.
//!
//! Pure data. Both languages have the same parameters at the same places; Fortran passes every one
//! by reference, has integers for handles, and an error code behind the last.
//!
//! # Capture program
//!
//! Behind the code of an import's stub: what to take at the entry, [`op::END`], what to take at the
//! return, [`op::END`]. An instruction is two bytes: in the first, the operation (low 4 bits) and the
//! parameter that counts an array (high 4 bits); in the second, the parameter. Each gives one value,
//! but arrays: a number of elements, then the first [`MOST_ELEMENTS`] of them. Buffers come behind all else that is
//! taken at the entry, so that tuples from before they were taken are the same without them.

mod table;

use table::FUNCTIONS;

/// Elements of an array that are kept.
pub const MOST_ELEMENTS: usize = 64;
/// Most bytes of a capture program.
pub const MOST_CAPTURE: usize = 40;
/// Most parameters of a function, Fortran's error code left out.
pub const MOST_PARAMETERS: usize = 14;

/// Instructions of a capture program. "At" is through a pointer; null gives 0, or no elements.
pub mod op {
    /// End of the entry's or of the return's part.
    pub const END: u8 = 0;
    /// An `int`.
    pub const INT: u8 = 1;
    /// A 64-bit integer.
    pub const LONG: u8 = 2;
    /// A handle of C: 8 bytes (Open MPI) or 4.
    pub const HANDLE: u8 = 3;
    /// An `int` at the address.
    pub const INT_AT: u8 = 4;
    /// A handle of C at the address.
    pub const HANDLE_AT: u8 = 5;
    /// Handles of C at the address, counted by an `int`.
    pub const HANDLES_AT: u8 = 6;
    /// `int`s at the address, counted by an `int`.
    pub const INTS_AT: u8 = 7;
    /// `int`s at the address, counted by the `int` at an address.
    pub const INTS_COUNTED_AT: u8 = 8;
    /// An `int` at the address; where it is 0, statuses that follow are not there.
    pub const FLAG_AT: u8 = 9;
    /// Source, tag and bytes of the status at the address; no value where it is ignored or not there.
    pub const STATUS_AT: u8 = 10;
    /// Source and tag of each status at the address, counted by an `int`.
    pub const STATUSES_AT: u8 = 11;
    /// The same, counted by the `int` at an address.
    pub const STATUSES_COUNTED_AT: u8 = 12;
    /// A 64-bit integer at the address.
    pub const LONG_AT: u8 = 13;
    /// The address itself: 0 is null or `MPI_BOTTOM`, 1 `MPI_IN_PLACE`.
    pub const BUFFER: u8 = 14;
    /// One of [`super::wide`], which the high 4 bits of the second byte say.
    pub const WIDE: u8 = 15;
}

/// Instructions behind [`op::WIDE`].
pub mod wide {
    /// 64-bit integers at the address, counted by an `int`.
    pub const LONGS_AT: u8 = 0;
    /// The same, counted by the `int` at an address.
    pub const LONGS_COUNTED_AT: u8 = 1;
    /// `int`s at the address, one for each rank of the communicator that the first byte's parameter is a handle of. Only of
    /// `MPI_COMM_WORLD`, once its size was asked for; and none where the parameter before says `MPI_IN_PLACE`: then the address
    /// need not be one.
    pub const INTS_OF_RANKS: u8 = 2;
    /// The same, where that parameter is the address of an `int`.
    pub const INTS_OF_RANKS_AT: u8 = 3;
    /// The same at the root, which the parameter before the communicator says: for others the address need not be one.
    pub const INTS_AT_ROOT: u8 = 4;
    /// The same, where both are addresses of an `int`.
    pub const INTS_AT_ROOT_AT: u8 = 5;
    /// No value: the `int` at the address is the size of that communicator.
    pub const SIZE: u8 = 6;
    /// The same, where that parameter is the address of an `int`.
    pub const SIZE_AT: u8 = 7;
    /// No value: the `int` at the address is the rank in that communicator.
    pub const RANK: u8 = 8;
    /// The same, where that parameter is the address of an `int`.
    pub const RANK_AT: u8 = 9;
    /// Three `int`s at the address for each that an `int` counts.
    pub const TRIPLES_AT: u8 = 10;
    /// The same, counted by the `int` at an address.
    pub const TRIPLES_COUNTED_AT: u8 = 11;
    /// `int`s at the address, one for each dimension of the communicator that the first byte's parameter is a handle of. Only where
    /// a call made it a grid, which [`GRID`] saw.
    pub const INTS_OF_DIMENSIONS: u8 = 12;
    /// The same, where that parameter is the address of an `int`.
    pub const INTS_OF_DIMENSIONS_AT: u8 = 13;
    /// No value: the handle at the address is of a communicator with as many dimensions as the first byte's parameter says.
    pub const GRID: u8 = 14;
    /// The same, where that parameter is the address of an `int`, and the handle is an `int`.
    pub const GRID_AT: u8 = 15;
}

/// What a parameter is. The letters are those of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `.`: not recorded: an array, an info object.
    Ignored,
    /// `B`: a buffer. Not recorded of Fortran's interface that passes descriptors (`_f08ts`).
    Buffer,
    /// `i`: an integer.
    Int,
    /// `l`: an integer of the size of an address (`MPI_Aint`).
    Long,
    /// `p`: a rank in the communicator of the call, or a special value for one.
    Peer,
    /// `g`: a tag.
    Tag,
    /// `r`: the root's rank in the communicator.
    Root,
    /// `C`: a communicator.
    Comm,
    /// `b`: a communicator, by reference.
    CommAt,
    /// `T`: a datatype.
    Datatype,
    /// `d`: a datatype, by reference.
    DatatypeAt,
    /// `O`: a reduction.
    Op,
    /// `a`: a reduction, by reference.
    OpAt,
    /// `G`: a group.
    Group,
    /// `v`: a group, by reference.
    GroupAt,
    /// `W`: a window.
    Window,
    /// `V`: a window, by reference.
    WindowAt,
    /// `R`: a request.
    Request,
    /// `Q`: a request, by reference.
    RequestAt,
    /// `N`: a matched message, by reference.
    MessageAt,
    /// `D`: a file.
    File,
    /// `F`: a file, by reference.
    FileAt,
    /// `I`: an info object, by reference.
    InfoAt,
    /// `E`: an error handler, by reference.
    ErrhandlerAt,
    /// `K`: an attribute key, by reference.
    KeyvalAt,
    /// `A`: requests, as many as the first integer says.
    Requests,
    /// `z`: datatypes, likewise.
    Datatypes,
    /// `Y`: integers, as many as the integer before them says.
    Ints,
    /// `X`: integers, as many as the first integer says.
    Places,
    /// `Z`: integers of the size of an address, likewise.
    Displacements,
    /// `J`: ranges of ranks, first, last and stride of each, as many as the first integer says.
    Ranges,
    /// `L`: an integer of the size of an address.
    Distance,
    /// `M`: integers, one for each rank of the communicator of the call.
    Shares,
    /// `H`: integers, one for each dimension of the communicator of the call.
    Dimensions,
    /// `q`: a request, given back.
    NewRequest,
    /// `c`: a communicator, given back.
    NewComm,
    /// `t`: a datatype, given back.
    NewDatatype,
    /// `u`: a group, given back.
    NewGroup,
    /// `w`: a window, given back.
    NewWindow,
    /// `m`: a matched message, given back.
    NewMessage,
    /// `o`: a reduction, given back.
    NewOp,
    /// `e`: a file, given back.
    NewFile,
    /// `j`: an info object, given back.
    NewInfo,
    /// `h`: an error handler, given back.
    NewErrhandler,
    /// `y`: an attribute key, given back.
    NewKeyval,
    /// `n`: an integer, given back.
    Result,
    /// `f`: whether something happened, given back: statuses that follow count only if so.
    Flag,
    /// `k`: how many elements of the arrays that follow are given back.
    ResultCount,
    /// `x`: integers, given back.
    Results,
    /// `s`: a status, given back.
    Status,
    /// `S`: statuses, given back: as many as was said before.
    Statuses,
}

impl Kind {
    const fn of(letter: u8) -> Self {
        match letter {
            b'B' => Self::Buffer,
            b'i' => Self::Int,
            b'l' => Self::Long,
            b'p' => Self::Peer,
            b'g' => Self::Tag,
            b'r' => Self::Root,
            b'C' => Self::Comm,
            b'b' => Self::CommAt,
            b'T' => Self::Datatype,
            b'd' => Self::DatatypeAt,
            b'O' => Self::Op,
            b'a' => Self::OpAt,
            b'G' => Self::Group,
            b'v' => Self::GroupAt,
            b'W' => Self::Window,
            b'V' => Self::WindowAt,
            b'R' => Self::Request,
            b'Q' => Self::RequestAt,
            b'N' => Self::MessageAt,
            b'D' => Self::File,
            b'F' => Self::FileAt,
            b'I' => Self::InfoAt,
            b'E' => Self::ErrhandlerAt,
            b'K' => Self::KeyvalAt,
            b'A' => Self::Requests,
            b'z' => Self::Datatypes,
            b'Y' => Self::Ints,
            b'X' => Self::Places,
            b'Z' => Self::Displacements,
            b'J' => Self::Ranges,
            b'L' => Self::Distance,
            b'M' => Self::Shares,
            b'H' => Self::Dimensions,
            b'q' => Self::NewRequest,
            b'c' => Self::NewComm,
            b't' => Self::NewDatatype,
            b'u' => Self::NewGroup,
            b'w' => Self::NewWindow,
            b'm' => Self::NewMessage,
            b'o' => Self::NewOp,
            b'e' => Self::NewFile,
            b'j' => Self::NewInfo,
            b'h' => Self::NewErrhandler,
            b'y' => Self::NewKeyval,
            b'n' => Self::Result,
            b'f' => Self::Flag,
            b'k' => Self::ResultCount,
            b'x' => Self::Results,
            b's' => Self::Status,
            b'S' => Self::Statuses,
            _ => Self::Ignored,
        }
    }

    /// Whether its value comes behind those of all others.
    #[must_use]
    pub const fn is_behind(self) -> bool {
        matches!(
            self,
            Self::Buffer
                | Self::Places
                | Self::Displacements
                | Self::Ranges
                | Self::Distance
                | Self::Shares
                | Self::Dimensions
        )
    }

    /// Whether its value is known at the return only.
    #[must_use]
    pub const fn is_result(self) -> bool {
        matches!(
            self,
            Self::NewRequest
                | Self::NewComm
                | Self::NewDatatype
                | Self::NewGroup
                | Self::NewWindow
                | Self::NewMessage
                | Self::NewOp
                | Self::NewFile
                | Self::NewInfo
                | Self::NewErrhandler
                | Self::NewKeyval
                | Self::Result
                | Self::Flag
                | Self::ResultCount
                | Self::Results
                | Self::Status
                | Self::Statuses
        )
    }
}

/// A parameter of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in the standard.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Where it stands, from 0.
    pub position: usize,
}

/// The language that a function is called from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// C and what calls like it.
    C,
    /// Fortran, by any of its interfaces.
    Fortran,
}

/// A function whose parameters are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// From where it is called.
    pub language: Language,
    /// Its name in C without `MPI_`; of a derived function (`Isend`, `Send_init`), the name of what it is
    /// derived from.
    pub base: &'static str,
    /// Its row's parameters.
    parameters: &'static str,
    /// What a derived function has behind them.
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

/// Whether a function, by its name in C, asks whether something has come, and does not wait for it.
#[must_use]
pub fn asks(name: &str) -> bool {
    const ASKS: [&str; 7] = [
        "MPI_Test",
        "MPI_Testall",
        "MPI_Testany",
        "MPI_Testsome",
        "MPI_Iprobe",
        "MPI_Improbe",
        "MPI_Request_get_status",
    ];
    ASKS.contains(&name)
}

impl Function {
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
        let is_c = name.starts_with(b"MPI_") && rest.iter().any(u8::is_ascii_lowercase);
        if is_c {
            let large = rest.strip_suffix(b"_c");
            return find(large.unwrap_or(rest), Language::C, large.is_some());
        }
        let describes = rest.windows(6).any(|it| it == b"_f08ts");
        let mut rest = rest;
        for suffix in [&b"_"[..], b"_", b"_f08ts", b"_f08", b"_f"] {
            rest = rest.strip_suffix(suffix).unwrap_or(rest);
        }
        let function = find(rest, Language::Fortran, false)?;
        Some(Self {
            describes,
            ..function
        })
    }

    /// Its parameters, in order; Fortran's error code left out.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> + use<> {
        // Fortran has no command line to pass on.
        let skipped = match self.language {
            Language::Fortran if self.parameters.starts_with("argc:") => 2,
            _ => 0,
        };
        let words = self.parameters.split(' ').chain(self.more.split(' '));
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

    /// Its capture program; `None` where the row says nothing of how many results there are.
    #[must_use]
    pub fn capture(&self) -> Option<Capture> {
        let mut capture = Capture {
            bytes: [0; MOST_CAPTURE],
            length: 0,
        };
        let is_c = self.language == Language::C;
        let mut counts = Counts::default();
        for parameter in self.parameters().filter(|it| !it.kind.is_result()) {
            let code = match parameter.kind {
                Kind::Ignored => continue,
                behind if behind.is_behind() => continue,
                Kind::Int | Kind::Peer | Kind::Tag | Kind::Root => {
                    counts.see(parameter.position);
                    match (is_c, self.is_large && parameter.name.ends_with("count")) {
                        (true, false) => op::INT,
                        (true, true) => op::LONG,
                        (false, _) => op::INT_AT,
                    }
                }
                Kind::CommAt
                | Kind::DatatypeAt
                | Kind::OpAt
                | Kind::GroupAt
                | Kind::WindowAt
                | Kind::RequestAt
                | Kind::MessageAt
                | Kind::InfoAt
                | Kind::ErrhandlerAt
                    if is_c =>
                {
                    op::HANDLE_AT
                }
                Kind::Long if is_c => op::LONG,
                Kind::Long => op::LONG_AT,
                // A pointer with every library.
                Kind::File if is_c => op::LONG,
                Kind::FileAt if is_c => op::LONG_AT,
                Kind::KeyvalAt => op::INT_AT,
                Kind::Requests | Kind::Datatypes if is_c => op::HANDLES_AT | counts.first << 4,
                Kind::Requests | Kind::Datatypes => op::INTS_COUNTED_AT | counts.first << 4,
                Kind::Ints if is_c => op::INTS_AT | counts.last << 4,
                Kind::Ints => op::INTS_COUNTED_AT | counts.last << 4,
                _ if is_c => op::HANDLE,
                _ => op::INT_AT,
            };
            capture.put(code, parameter.position);
        }
        let comm = self.parameters().find(|it| it.kind == Kind::Comm);
        let comm = comm.map_or(0, |it| (it.position as u8) << 4);
        let has_root = self.parameters().any(|it| it.kind == Kind::Root);
        let second = |which: u8, position: usize| (which + u8::from(!is_c)) << 4 | position as u8;
        for parameter in self.parameters().filter(|it| it.kind.is_behind()) {
            let position = parameter.position;
            let (code, place) = match parameter.kind {
                Kind::Places if is_c => (op::INTS_AT | counts.first << 4, position as u8),
                Kind::Places => (op::INTS_COUNTED_AT | counts.first << 4, position as u8),
                Kind::Displacements => (
                    op::WIDE | counts.first << 4,
                    second(wide::LONGS_AT, position),
                ),
                Kind::Ranges => (
                    op::WIDE | counts.first << 4,
                    second(wide::TRIPLES_AT, position),
                ),
                Kind::Shares if has_root => (op::WIDE | comm, second(wide::INTS_AT_ROOT, position)),
                Kind::Shares => (op::WIDE | comm, second(wide::INTS_OF_RANKS, position)),
                Kind::Dimensions => (op::WIDE | comm, second(wide::INTS_OF_DIMENSIONS, position)),
                Kind::Distance if is_c => (op::LONG, position as u8),
                Kind::Distance => (op::LONG_AT, position as u8),
                _ => (op::BUFFER, position as u8),
            };
            capture.put(code, place.into());
        }
        capture.end();
        let mut given = None;
        for parameter in self.parameters().filter(|it| it.kind.is_result()) {
            let code = match parameter.kind {
                Kind::Result | Kind::NewKeyval => op::INT_AT,
                Kind::NewFile if is_c => op::LONG_AT,
                Kind::Flag => op::FLAG_AT,
                Kind::ResultCount => {
                    given = Some((parameter.position as u8) << 4);
                    op::INT_AT
                }
                Kind::Results => op::INTS_COUNTED_AT | given?,
                Kind::Status => op::STATUS_AT,
                Kind::Statuses => match given {
                    Some(count) => op::STATUSES_COUNTED_AT | count,
                    None if is_c => op::STATUSES_AT | counts.first << 4,
                    None => op::STATUSES_COUNTED_AT | counts.first << 4,
                },
                _ if is_c => op::HANDLE_AT,
                _ => op::INT_AT,
            };
            capture.put(code, parameter.position);
            let (learns, of) = match self.base {
                "Comm_size" => (wide::SIZE, comm),
                "Comm_rank" => (wide::RANK, comm),
                "Cart_create" => (wide::GRID, counts.first << 4),
                _ => continue,
            };
            capture.put(op::WIDE | of, second(learns, parameter.position).into());
        }
        capture.end();
        Some(capture)
    }
}

/// Which parameters count arrays.
#[derive(Default)]
struct Counts {
    seen: bool,
    first: u8,
    last: u8,
}

impl Counts {
    fn see(&mut self, position: usize) {
        if !self.seen {
            self.first = position as u8;
        }
        self.seen = true;
        self.last = position as u8;
    }
}

/// A capture program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    bytes: [u8; MOST_CAPTURE],
    length: usize,
}

impl Capture {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    fn put(&mut self, code: u8, parameter: usize) {
        // Room for both ends stays.
        if self.length + 4 <= MOST_CAPTURE
            && let Some([first, second]) = self.bytes.get_mut(self.length..self.length + 2)
        {
            (*first, *second) = (code, parameter as u8);
            self.length += 2;
        }
    }

    fn end(&mut self) {
        if let Some(byte) = self.bytes.get_mut(self.length) {
            *byte = op::END;
            self.length += 1;
        }
    }
}

fn find(name: &[u8], language: Language, is_large: bool) -> Option<Function> {
    let row = |name: &[u8]| {
        let found = FUNCTIONS
            .iter()
            .find(|(it, _)| it.as_bytes().eq_ignore_ascii_case(name))?;
        Some(*found)
    };
    let make = |(base, parameters), more| Function {
        language,
        base,
        parameters,
        more,
        is_large,
        describes: false,
    };
    if let Some(row) = row(name) {
        return Some(make(row, ""));
    }
    let lacks_request =
        |(_, parameters): &(_, &str)| !parameters.contains(":s") && !parameters.contains(":q");
    let base = |name: &[u8]| row(name).filter(lacks_request);
    if let Some(rest) = name.strip_prefix(b"I").or_else(|| name.strip_prefix(b"i"))
        && let Some(row) = base(rest)
    {
        return Some(make(row, "request:q"));
    }
    let persistent = name
        .strip_suffix(b"_init")
        .or_else(|| name.strip_suffix(b"_INIT"))?;
    let row = base(persistent)?;
    // Persistent point-to-point operations are older than info objects.
    let more = if row.1.contains("dest:") {
        "request:q"
    } else {
        "info:. request:q"
    };
    Some(make(row, more))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn capture(name: &str) -> Vec<u8> {
        let function = Function::of(name.as_bytes()).unwrap();
        function.capture().unwrap().bytes().to_vec()
    }

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
        for name in ["MPI_Wtime", "MPI_Pcontrol", "send", "mpi_"] {
            assert_eq!(Function::of(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn who_asks_does_not_wait() {
        assert!(["MPI_Test", "MPI_Improbe", "MPI_Request_get_status"].map(asks) == [true; 3]);
        assert!(["MPI_Wait", "MPI_Probe", "MPI_Test_cancelled"].map(asks) == [false; 3]);
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
    fn capture_programs() {
        use op::*;
        assert_eq!(
            capture("MPI_Send"),
            [
                INT, 1, HANDLE, 2, INT, 3, INT, 4, HANDLE, 5, BUFFER, 0, END, END
            ]
        );
        assert_eq!(
            capture("mpi_isend_"),
            [
                INT_AT, 1, INT_AT, 2, INT_AT, 3, INT_AT, 4, INT_AT, 5, BUFFER, 0, END, INT_AT, 6,
                END
            ]
        );
        assert_eq!(
            capture("MPI_Waitall"),
            [INT, 0, HANDLES_AT, 1, END, STATUSES_AT, 2, END]
        );
        assert_eq!(
            capture("mpi_waitsome_"),
            [
                INT_AT,
                0,
                INTS_COUNTED_AT,
                1,
                END,
                INT_AT,
                2,
                INTS_COUNTED_AT | 2 << 4,
                3,
                STATUSES_COUNTED_AT | 2 << 4,
                4,
                END
            ]
        );
        assert_eq!(capture("MPI_Send_c")[..2], [LONG, 1]);
        // Their arrays have elements of 64 bits.
        assert!(capture("MPI_Alltoallv").contains(&(WIDE | 8 << 4)));
        assert!(!capture("MPI_Alltoallv_c").contains(&(WIDE | 8 << 4)));
        assert_eq!(
            capture("mpi_type_create_struct_"),
            [
                INT_AT,
                0,
                INTS_COUNTED_AT,
                1,
                INTS_COUNTED_AT,
                3,
                WIDE,
                wide::LONGS_COUNTED_AT << 4 | 2,
                END,
                INT_AT,
                4,
                END
            ]
        );
        assert_eq!(
            capture("MPI_Comm_size"),
            [HANDLE, 0, END, INT_AT, 1, WIDE, wide::SIZE << 4 | 1, END]
        );
        assert_eq!(
            capture("MPI_Cart_sub"),
            [
                HANDLE,
                0,
                WIDE,
                wide::INTS_OF_DIMENSIONS << 4 | 1,
                END,
                HANDLE_AT,
                2,
                END
            ]
        );
        let grid = capture("mpi_cart_create_");
        assert!(grid.ends_with(&[END, INT_AT, 5, WIDE | 1 << 4, wide::GRID_AT << 4 | 5, END]));
        let scattered = capture("MPI_Scatterv");
        assert!(scattered.ends_with(&[
            BUFFER,
            0,
            WIDE | 8 << 4,
            wide::INTS_AT_ROOT << 4 | 1,
            BUFFER,
            4,
            END,
            END
        ]));
        assert_eq!(
            capture("mpi_init_thread_"),
            [INT_AT, 0, END, INT_AT, 1, END]
        );
    }

    #[test]
    fn every_row_fits() {
        for (name, _) in FUNCTIONS {
            for name in [
                format!("MPI_{name}"),
                format!("mpi_{}_", name.to_lowercase()),
            ] {
                let function = Function::of(name.as_bytes()).unwrap();
                assert!(function.parameters().count() <= MOST_PARAMETERS, "{name}");
                // The program never ends early.
                let program = function.capture().unwrap();
                let captured = function
                    .parameters()
                    .filter(|it| it.kind != Kind::Ignored)
                    .count();
                // These are learnt from besides.
                let learns = ["Comm_size", "Comm_rank", "Cart_create"].contains(&function.base);
                let captured = captured + usize::from(learns);
                assert_eq!(program.bytes().len(), 2 * captured + 2, "{name}");
            }
        }
    }
}
