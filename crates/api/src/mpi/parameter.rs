//! What parameters of MPI's functions are.

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
    /// `P`: a rank in the communicator of the call, given back; or a special value for one.
    NewPeer,
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
    pub(super) const fn of(letter: u8) -> Self {
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
            b'P' => Self::NewPeer,
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
                | Self::NewPeer
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
