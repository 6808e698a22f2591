//! What values are called that the standard predefines, by what each library shows.
//!
//! Open MPI's handles of C are addresses of objects that its symbols name; its handles of Fortran are
//! indices. MPICH's handles are integers that are part of its binary interface, in both languages, and the interface is
//! that of Intel MPI, MVAPICH and Cray MPICH. The values are those of Open MPI 1.10 to 5.0, and of MPICH 3.1 to 4.2.

use super::{Kind, Language};

/// Libraries that agree in all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Library {
    /// Open MPI.
    OpenMpi,
    /// MPICH and what shares its binary interface.
    Mpich,
}

/// What a handle is a handle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named after the standard's objects.
pub enum Class {
    Comm,
    Datatype,
    Op,
    Group,
    Window,
    Request,
    Message,
    File,
    Info,
    Errhandler,
}

impl Class {
    /// Of a parameter, where that is a handle.
    #[must_use]
    pub const fn of(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::Comm | Kind::CommAt | Kind::NewComm => Self::Comm,
            Kind::Datatype | Kind::DatatypeAt | Kind::Datatypes | Kind::NewDatatype => {
                Self::Datatype
            }
            Kind::Op | Kind::OpAt | Kind::NewOp => Self::Op,
            Kind::Group | Kind::GroupAt | Kind::NewGroup => Self::Group,
            Kind::Window | Kind::WindowAt | Kind::NewWindow => Self::Window,
            Kind::Request | Kind::RequestAt | Kind::NewRequest | Kind::Requests => Self::Request,
            Kind::MessageAt | Kind::NewMessage => Self::Message,
            Kind::File | Kind::FileAt | Kind::NewFile => Self::File,
            Kind::InfoAt | Kind::NewInfo => Self::Info,
            Kind::ErrhandlerAt | Kind::NewErrhandler => Self::Errhandler,
            _ => return None,
        })
    }
}

impl Library {
    /// The standard's name of a predefined handle; of Open MPI's in C there is none: they are addresses.
    #[must_use]
    pub fn handle(self, class: Class, raw: i64, language: Language) -> Option<&'static str> {
        let table = match (self, language) {
            (Self::OpenMpi, Language::C) => return None,
            (Self::OpenMpi, Language::Fortran) => OPEN_MPI,
            (Self::Mpich, _) => MPICH,
        };
        // An `int` that was sign-extended.
        let raw = u32::try_from(raw).unwrap_or(raw as i32 as u32);
        let row = table.iter().find(|row| (row.0, row.1) == (class, raw))?;
        Some(row.2)
    }

    /// The standard's name of the class of an error code. MPICH has the class in the low bits of a code, and says more in the others.
    #[must_use]
    pub fn error_class(self, code: i32) -> Option<&'static str> {
        let is_it = |(_, of_open_mpi, of_mpich): &&(&str, i32, i32)| match self {
            Self::OpenMpi => *of_open_mpi == code,
            Self::Mpich => *of_mpich == code & MPICH_CLASS,
        };
        let row = ERROR_CLASSES.iter().find(is_it)?;
        Some(row.0)
    }

    /// The standard's name of a special rank.
    #[must_use]
    pub const fn rank(self, rank: i64) -> Option<&'static str> {
        match (self, rank) {
            (Self::OpenMpi, -1) | (Self::Mpich, -2) => Some(ANY_SOURCE),
            (Self::OpenMpi, -2) | (Self::Mpich, -1) => Some(PROC_NULL),
            (Self::OpenMpi, -4) | (Self::Mpich, -3) => Some(ROOT),
            (_, -32766) => Some(UNDEFINED),
            _ => None,
        }
    }
}

/// The bits of an error code of MPICH that say its class.
const MPICH_CLASS: i32 = 0x7f;

/// Error classes: the standard's name, the number of Open MPI, and that of MPICH; 0 where there is none.
const ERROR_CLASSES: &[(&str, i32, i32)] = &[
    ("MPI_ERR_BUFFER", 1, 1),
    ("MPI_ERR_COUNT", 2, 2),
    ("MPI_ERR_TYPE", 3, 3),
    ("MPI_ERR_TAG", 4, 4),
    ("MPI_ERR_COMM", 5, 5),
    ("MPI_ERR_RANK", 6, 6),
    ("MPI_ERR_REQUEST", 7, 19),
    ("MPI_ERR_ROOT", 8, 7),
    ("MPI_ERR_GROUP", 9, 8),
    ("MPI_ERR_OP", 10, 9),
    ("MPI_ERR_TOPOLOGY", 11, 10),
    ("MPI_ERR_DIMS", 12, 11),
    ("MPI_ERR_ARG", 13, 12),
    ("MPI_ERR_UNKNOWN", 14, 13),
    ("MPI_ERR_TRUNCATE", 15, 14),
    ("MPI_ERR_OTHER", 16, 15),
    ("MPI_ERR_INTERN", 17, 16),
    ("MPI_ERR_IN_STATUS", 18, 17),
    ("MPI_ERR_PENDING", 19, 18),
    ("MPI_ERR_ACCESS", 20, 20),
    ("MPI_ERR_AMODE", 21, 21),
    ("MPI_ERR_ASSERT", 22, 53),
    ("MPI_ERR_BAD_FILE", 23, 22),
    ("MPI_ERR_BASE", 24, 46),
    ("MPI_ERR_CONVERSION", 25, 23),
    ("MPI_ERR_DISP", 26, 52),
    ("MPI_ERR_DUP_DATAREP", 27, 24),
    ("MPI_ERR_FILE_EXISTS", 28, 25),
    ("MPI_ERR_FILE_IN_USE", 29, 26),
    ("MPI_ERR_FILE", 30, 27),
    ("MPI_ERR_INFO_KEY", 31, 29),
    ("MPI_ERR_INFO_NOKEY", 32, 31),
    ("MPI_ERR_INFO_VALUE", 33, 30),
    ("MPI_ERR_INFO", 34, 28),
    ("MPI_ERR_IO", 35, 32),
    ("MPI_ERR_KEYVAL", 36, 48),
    ("MPI_ERR_LOCKTYPE", 37, 47),
    ("MPI_ERR_NAME", 38, 33),
    ("MPI_ERR_NO_MEM", 39, 34),
    ("MPI_ERR_NOT_SAME", 40, 35),
    ("MPI_ERR_NO_SPACE", 41, 36),
    ("MPI_ERR_NO_SUCH_FILE", 42, 37),
    ("MPI_ERR_PORT", 43, 38),
    ("MPI_ERR_QUOTA", 44, 39),
    ("MPI_ERR_READ_ONLY", 45, 40),
    ("MPI_ERR_RMA_CONFLICT", 46, 49),
    ("MPI_ERR_RMA_SYNC", 47, 50),
    ("MPI_ERR_SERVICE", 48, 41),
    ("MPI_ERR_SIZE", 49, 51),
    ("MPI_ERR_SPAWN", 50, 42),
    ("MPI_ERR_UNSUPPORTED_DATAREP", 51, 43),
    ("MPI_ERR_UNSUPPORTED_OPERATION", 52, 44),
    ("MPI_ERR_WIN", 53, 45),
    ("MPI_ERR_RMA_RANGE", 68, 55),
    ("MPI_ERR_RMA_ATTACH", 69, 56),
    ("MPI_ERR_RMA_FLAVOR", 70, 58),
    ("MPI_ERR_RMA_SHARED", 71, 57),
    ("MPI_ERR_SESSION", 0, 75),
    ("MPI_ERR_PROC_ABORTED", 0, 76),
    ("MPI_ERR_VALUE_TOO_LARGE", 0, 77),
];

/// `MPI_COMM_WORLD`.
pub const COMM_WORLD: &str = "MPI_COMM_WORLD";
/// `MPI_COMM_SELF`.
pub const COMM_SELF: &str = "MPI_COMM_SELF";
/// `MPI_COMM_NULL`.
pub const COMM_NULL: &str = "MPI_COMM_NULL";
/// `MPI_GROUP_EMPTY`.
pub const GROUP_EMPTY: &str = "MPI_GROUP_EMPTY";
/// `MPI_IN_PLACE`.
pub const IN_PLACE: &str = "MPI_IN_PLACE";
/// `MPI_ANY_TAG`.
pub const ANY_TAG: &str = "MPI_ANY_TAG";
/// `MPI_REQUEST_NULL`.
pub const REQUEST_NULL: &str = "MPI_REQUEST_NULL";
/// `MPI_ANY_SOURCE`.
pub const ANY_SOURCE: &str = "MPI_ANY_SOURCE";
/// `MPI_PROC_NULL`.
pub const PROC_NULL: &str = "MPI_PROC_NULL";
/// `MPI_ROOT`.
pub const ROOT: &str = "MPI_ROOT";
/// `MPI_UNDEFINED`.
pub const UNDEFINED: &str = "MPI_UNDEFINED";

/// `MPI_FILE_NULL`.
pub const FILE_NULL: &str = "MPI_FILE_NULL";

/// Whether this is the name of a null handle.
#[must_use]
pub fn is_null(name: &str) -> bool {
    name.ends_with("_NULL")
}

/// Levels of thread support, from `MPI_THREAD_SINGLE`, which is 0.
pub const THREAD_LEVELS: [&str; 4] = [
    "MPI_THREAD_SINGLE",
    "MPI_THREAD_FUNNELED",
    "MPI_THREAD_SERIALIZED",
    "MPI_THREAD_MULTIPLE",
];
/// `MPI_THREAD_SERIALIZED`.
pub const THREAD_SERIALIZED: i64 = 2;

/// `MPI_MODE_CREATE`, of every library.
pub const MODE_CREATE: i64 = 1;
/// `MPI_MODE_RDONLY`, of every library.
pub const MODE_RDONLY: i64 = 2;
/// `MPI_MODE_WRONLY`, of every library.
pub const MODE_WRONLY: i64 = 4;
/// `MPI_MODE_RDWR`, of every library.
pub const MODE_RDWR: i64 = 8;
/// `MPI_MODE_EXCL`, of every library.
pub const MODE_EXCL: i64 = 64;
/// `MPI_MODE_SEQUENTIAL`, of every library.
pub const MODE_SEQUENTIAL: i64 = 256;

/// Whether this is `MPI_ORDER_C`, of Open MPI or of MPICH: the last dimension is dense.
#[must_use]
pub const fn is_order_of_c(order: i64) -> bool {
    matches!(order, 0 | 56)
}

/// Whether this is `MPI_LOCK_EXCLUSIVE` of some library: no library has the same value for `MPI_LOCK_SHARED`.
#[must_use]
pub const fn is_exclusive(lock_type: i64) -> bool {
    matches!(lock_type, 1 | 234)
}

/// Whether a fence with this assertion says `MPI_MODE_NOSUCCEED`: it begins no epoch.
///
/// Open MPI's assertions are the bits 0 to 4, MPICH's 10 to 14.
#[must_use]
pub const fn has_no_successor(assertion: i64) -> bool {
    asserts(assertion, 4, 14)
}

/// Whether a fence says that no access comes before it (`MPI_MODE_NOPRECEDE`).
#[must_use]
pub const fn has_no_predecessor(assertion: i64) -> bool {
    asserts(assertion, 1, 13)
}

/// Whether an assertion has this bit of Open MPI's, or that of MPICH's.
const fn asserts(assertion: i64, open_mpi: u32, mpich: u32) -> bool {
    let is_mpich = assertion & ((1 << 10) - 1) == 0;
    let (bit, last) = if is_mpich { (mpich, 14) } else { (open_mpi, 4) };
    assertion < 1 << (last + 1) && assertion & 1 << bit != 0
}

/// The standard's name, in any case and without `MPI_`, of what a symbol of Open MPI holds: `comm_world` of `ompi_mpi_comm_world`.
#[must_use]
pub fn name_of_symbol(symbol: &str) -> &str {
    let rest = symbol
        .strip_prefix("ompi_mpi_")
        .or_else(|| symbol.strip_prefix("ompi_"))
        .unwrap_or(symbol);
    match SYMBOLS.iter().find(|it| it.0 == rest) {
        Some((_, name)) => name,
        None => rest.strip_prefix("op_").unwrap_or(rest),
    }
}

/// Symbols of Open MPI that are not spelled as the standard's names are.
const SYMBOLS: &[(&str, &str)] = &[
    ("op_null", "OP_NULL"),
    ("longdbl_int", "LONG_DOUBLE_INT"),
    ("2cplex", "2COMPLEX"),
    ("2dblcplex", "2DOUBLE_COMPLEX"),
    ("dblprec", "DOUBLE_PRECISION"),
    ("2dblprec", "2DOUBLE_PRECISION"),
    ("cplex", "COMPLEX"),
    ("dblcplex", "DOUBLE_COMPLEX"),
    ("c_float_complex", "C_COMPLEX"),
    ("cxx_cplex", "CXX_FLOAT_COMPLEX"),
    ("cxx_dblcplex", "CXX_DOUBLE_COMPLEX"),
    ("cxx_ldblcplex", "CXX_LONG_DOUBLE_COMPLEX"),
];

/// Integers of MPICH and of what shares its binary interface (Intel MPI, MVAPICH, Cray MPICH).
const MPICH: &[(Class, u32, &str)] = &[
    (Class::Datatype, 0x0c00_0000, "MPI_DATATYPE_NULL"),
    (Class::Datatype, 0x4c00_0010, "MPI_LB"),
    (Class::Datatype, 0x4c00_0011, "MPI_UB"),
    (Class::Datatype, 0x4c00_0101, "MPI_CHAR"),
    (Class::Datatype, 0x4c00_0102, "MPI_UNSIGNED_CHAR"),
    (Class::Datatype, 0x4c00_010d, "MPI_BYTE"),
    (Class::Datatype, 0x4c00_010f, "MPI_PACKED"),
    (Class::Datatype, 0x4c00_0118, "MPI_SIGNED_CHAR"),
    (Class::Datatype, 0x4c00_011a, "MPI_CHARACTER"),
    (Class::Datatype, 0x4c00_012d, "MPI_INTEGER1"),
    (Class::Datatype, 0x4c00_0133, "MPI_CXX_BOOL"),
    (Class::Datatype, 0x4c00_0137, "MPI_INT8_T"),
    (Class::Datatype, 0x4c00_013b, "MPI_UINT8_T"),
    (Class::Datatype, 0x4c00_013f, "MPI_C_BOOL"),
    (Class::Datatype, 0x4c00_0203, "MPI_SHORT"),
    (Class::Datatype, 0x4c00_0204, "MPI_UNSIGNED_SHORT"),
    (Class::Datatype, 0x4c00_022f, "MPI_INTEGER2"),
    (Class::Datatype, 0x4c00_0238, "MPI_INT16_T"),
    (Class::Datatype, 0x4c00_023c, "MPI_UINT16_T"),
    (Class::Datatype, 0x4c00_0405, "MPI_INT"),
    (Class::Datatype, 0x4c00_0406, "MPI_UNSIGNED"),
    (Class::Datatype, 0x4c00_040a, "MPI_FLOAT"),
    (Class::Datatype, 0x4c00_040e, "MPI_WCHAR"),
    (Class::Datatype, 0x4c00_041b, "MPI_INTEGER"),
    (Class::Datatype, 0x4c00_041c, "MPI_REAL"),
    (Class::Datatype, 0x4c00_041d, "MPI_LOGICAL"),
    (Class::Datatype, 0x4c00_0427, "MPI_REAL4"),
    (Class::Datatype, 0x4c00_0430, "MPI_INTEGER4"),
    (Class::Datatype, 0x4c00_0439, "MPI_INT32_T"),
    (Class::Datatype, 0x4c00_043d, "MPI_UINT32_T"),
    (Class::Datatype, 0x4c00_0807, "MPI_LONG"),
    (Class::Datatype, 0x4c00_0808, "MPI_UNSIGNED_LONG"),
    (Class::Datatype, 0x4c00_0809, "MPI_LONG_LONG_INT"),
    (Class::Datatype, 0x4c00_080b, "MPI_DOUBLE"),
    (Class::Datatype, 0x4c00_0816, "MPI_2INT"),
    (Class::Datatype, 0x4c00_0819, "MPI_UNSIGNED_LONG_LONG"),
    (Class::Datatype, 0x4c00_081e, "MPI_COMPLEX"),
    (Class::Datatype, 0x4c00_081f, "MPI_DOUBLE_PRECISION"),
    (Class::Datatype, 0x4c00_0820, "MPI_2INTEGER"),
    (Class::Datatype, 0x4c00_0821, "MPI_2REAL"),
    (Class::Datatype, 0x4c00_0828, "MPI_COMPLEX8"),
    (Class::Datatype, 0x4c00_0829, "MPI_REAL8"),
    (Class::Datatype, 0x4c00_0831, "MPI_INTEGER8"),
    (Class::Datatype, 0x4c00_0834, "MPI_CXX_FLOAT_COMPLEX"),
    (Class::Datatype, 0x4c00_083a, "MPI_INT64_T"),
    (Class::Datatype, 0x4c00_083e, "MPI_UINT64_T"),
    (Class::Datatype, 0x4c00_0840, "MPI_C_FLOAT_COMPLEX"),
    (Class::Datatype, 0x4c00_0843, "MPI_AINT"),
    (Class::Datatype, 0x4c00_0844, "MPI_OFFSET"),
    (Class::Datatype, 0x4c00_0845, "MPI_COUNT"),
    (Class::Datatype, 0x4c00_100c, "MPI_LONG_DOUBLE"),
    (Class::Datatype, 0x4c00_1022, "MPI_DOUBLE_COMPLEX"),
    (Class::Datatype, 0x4c00_1023, "MPI_2DOUBLE_PRECISION"),
    (Class::Datatype, 0x4c00_102a, "MPI_COMPLEX16"),
    (Class::Datatype, 0x4c00_102b, "MPI_REAL16"),
    (Class::Datatype, 0x4c00_1035, "MPI_CXX_DOUBLE_COMPLEX"),
    (Class::Datatype, 0x4c00_1041, "MPI_C_DOUBLE_COMPLEX"),
    (Class::Datatype, 0x4c00_202c, "MPI_COMPLEX32"),
    (Class::Datatype, 0x4c00_2036, "MPI_CXX_LONG_DOUBLE_COMPLEX"),
    (Class::Datatype, 0x4c00_2042, "MPI_C_LONG_DOUBLE_COMPLEX"),
    (Class::Datatype, 0x8c00_0000, "MPI_FLOAT_INT"),
    (Class::Datatype, 0x8c00_0001, "MPI_DOUBLE_INT"),
    (Class::Datatype, 0x8c00_0002, "MPI_LONG_INT"),
    (Class::Datatype, 0x8c00_0003, "MPI_SHORT_INT"),
    (Class::Datatype, 0x8c00_0004, "MPI_LONG_DOUBLE_INT"),
    (Class::Op, 0x1800_0000, "MPI_OP_NULL"),
    (Class::Op, 0x5800_0001, "MPI_MAX"),
    (Class::Op, 0x5800_0002, "MPI_MIN"),
    (Class::Op, 0x5800_0003, "MPI_SUM"),
    (Class::Op, 0x5800_0004, "MPI_PROD"),
    (Class::Op, 0x5800_0005, "MPI_LAND"),
    (Class::Op, 0x5800_0006, "MPI_BAND"),
    (Class::Op, 0x5800_0007, "MPI_LOR"),
    (Class::Op, 0x5800_0008, "MPI_BOR"),
    (Class::Op, 0x5800_0009, "MPI_LXOR"),
    (Class::Op, 0x5800_000a, "MPI_BXOR"),
    (Class::Op, 0x5800_000b, "MPI_MINLOC"),
    (Class::Op, 0x5800_000c, "MPI_MAXLOC"),
    (Class::Op, 0x5800_000d, "MPI_REPLACE"),
    (Class::Op, 0x5800_000e, "MPI_NO_OP"),
    (Class::Comm, 0x0400_0000, "MPI_COMM_NULL"),
    (Class::Comm, 0x4400_0000, "MPI_COMM_WORLD"),
    (Class::Comm, 0x4400_0001, "MPI_COMM_SELF"),
    (Class::Group, 0x0800_0000, "MPI_GROUP_NULL"),
    (Class::Group, 0x4800_0000, "MPI_GROUP_EMPTY"),
    (Class::Request, 0x2c00_0000, "MPI_REQUEST_NULL"),
    (Class::Window, 0x2000_0000, "MPI_WIN_NULL"),
    (Class::Message, 0x2c00_0000, "MPI_MESSAGE_NULL"),
    (Class::Message, 0x6c00_0000, "MPI_MESSAGE_NO_PROC"),
];

/// Indices of Open MPI's handles in Fortran.
const OPEN_MPI: &[(Class, u32, &str)] = &[
    (Class::Datatype, 0, "MPI_DATATYPE_NULL"),
    (Class::Datatype, 1, "MPI_BYTE"),
    (Class::Datatype, 2, "MPI_PACKED"),
    (Class::Datatype, 3, "MPI_UB"),
    (Class::Datatype, 4, "MPI_LB"),
    (Class::Datatype, 5, "MPI_CHARACTER"),
    (Class::Datatype, 6, "MPI_LOGICAL"),
    (Class::Datatype, 7, "MPI_INTEGER"),
    (Class::Datatype, 8, "MPI_INTEGER1"),
    (Class::Datatype, 9, "MPI_INTEGER2"),
    (Class::Datatype, 10, "MPI_INTEGER4"),
    (Class::Datatype, 11, "MPI_INTEGER8"),
    (Class::Datatype, 12, "MPI_INTEGER16"),
    (Class::Datatype, 13, "MPI_REAL"),
    (Class::Datatype, 14, "MPI_REAL4"),
    (Class::Datatype, 15, "MPI_REAL8"),
    (Class::Datatype, 16, "MPI_REAL16"),
    (Class::Datatype, 17, "MPI_DOUBLE_PRECISION"),
    (Class::Datatype, 18, "MPI_COMPLEX"),
    (Class::Datatype, 19, "MPI_COMPLEX8"),
    (Class::Datatype, 20, "MPI_COMPLEX16"),
    (Class::Datatype, 21, "MPI_COMPLEX32"),
    (Class::Datatype, 22, "MPI_DOUBLE_COMPLEX"),
    (Class::Datatype, 23, "MPI_2REAL"),
    (Class::Datatype, 24, "MPI_2DOUBLE_PRECISION"),
    (Class::Datatype, 25, "MPI_2INTEGER"),
    (Class::Datatype, 26, "MPI_2COMPLEX"),
    (Class::Datatype, 27, "MPI_2DOUBLE_COMPLEX"),
    (Class::Datatype, 28, "MPI_REAL2"),
    (Class::Datatype, 29, "MPI_LOGICAL1"),
    (Class::Datatype, 30, "MPI_LOGICAL2"),
    (Class::Datatype, 31, "MPI_LOGICAL4"),
    (Class::Datatype, 32, "MPI_LOGICAL8"),
    (Class::Datatype, 33, "MPI_WCHAR"),
    (Class::Datatype, 34, "MPI_CHAR"),
    (Class::Datatype, 35, "MPI_UNSIGNED_CHAR"),
    (Class::Datatype, 36, "MPI_SIGNED_CHAR"),
    (Class::Datatype, 37, "MPI_SHORT"),
    (Class::Datatype, 38, "MPI_UNSIGNED_SHORT"),
    (Class::Datatype, 39, "MPI_INT"),
    (Class::Datatype, 40, "MPI_UNSIGNED"),
    (Class::Datatype, 41, "MPI_LONG"),
    (Class::Datatype, 42, "MPI_UNSIGNED_LONG"),
    (Class::Datatype, 43, "MPI_LONG_LONG_INT"),
    (Class::Datatype, 44, "MPI_UNSIGNED_LONG_LONG"),
    (Class::Datatype, 45, "MPI_FLOAT"),
    (Class::Datatype, 46, "MPI_DOUBLE"),
    (Class::Datatype, 47, "MPI_LONG_DOUBLE"),
    (Class::Datatype, 48, "MPI_FLOAT_INT"),
    (Class::Datatype, 49, "MPI_DOUBLE_INT"),
    (Class::Datatype, 50, "MPI_LONG_DOUBLE_INT"),
    (Class::Datatype, 51, "MPI_LONG_INT"),
    (Class::Datatype, 52, "MPI_2INT"),
    (Class::Datatype, 53, "MPI_SHORT_INT"),
    (Class::Datatype, 54, "MPI_CXX_BOOL"),
    (Class::Datatype, 55, "MPI_CXX_FLOAT_COMPLEX"),
    (Class::Datatype, 56, "MPI_CXX_DOUBLE_COMPLEX"),
    (Class::Datatype, 57, "MPI_CXX_LONG_DOUBLE_COMPLEX"),
    (Class::Datatype, 58, "MPI_INT8_T"),
    (Class::Datatype, 59, "MPI_UINT8_T"),
    (Class::Datatype, 60, "MPI_INT16_T"),
    (Class::Datatype, 61, "MPI_UINT16_T"),
    (Class::Datatype, 62, "MPI_INT32_T"),
    (Class::Datatype, 63, "MPI_UINT32_T"),
    (Class::Datatype, 64, "MPI_INT64_T"),
    (Class::Datatype, 65, "MPI_UINT64_T"),
    (Class::Datatype, 66, "MPI_AINT"),
    (Class::Datatype, 67, "MPI_OFFSET"),
    (Class::Datatype, 68, "MPI_C_BOOL"),
    (Class::Datatype, 69, "MPI_C_COMPLEX"),
    (Class::Datatype, 70, "MPI_C_DOUBLE_COMPLEX"),
    (Class::Datatype, 71, "MPI_C_LONG_DOUBLE_COMPLEX"),
    (Class::Datatype, 72, "MPI_COUNT"),
    (Class::Op, 0, "MPI_OP_NULL"),
    (Class::Op, 1, "MPI_MAX"),
    (Class::Op, 2, "MPI_MIN"),
    (Class::Op, 3, "MPI_SUM"),
    (Class::Op, 4, "MPI_PROD"),
    (Class::Op, 5, "MPI_LAND"),
    (Class::Op, 6, "MPI_BAND"),
    (Class::Op, 7, "MPI_LOR"),
    (Class::Op, 8, "MPI_BOR"),
    (Class::Op, 9, "MPI_LXOR"),
    (Class::Op, 10, "MPI_BXOR"),
    (Class::Op, 11, "MPI_MAXLOC"),
    (Class::Op, 12, "MPI_MINLOC"),
    (Class::Op, 13, "MPI_REPLACE"),
    (Class::Op, 14, "MPI_NO_OP"),
    (Class::Comm, 0, "MPI_COMM_WORLD"),
    (Class::Comm, 1, "MPI_COMM_SELF"),
    (Class::Comm, 2, "MPI_COMM_NULL"),
    (Class::Group, 0, "MPI_GROUP_NULL"),
    (Class::Group, 1, "MPI_GROUP_EMPTY"),
    (Class::Message, 0, "MPI_MESSAGE_NULL"),
    (Class::Message, 1, "MPI_MESSAGE_NO_PROC"),
    (Class::Request, 0, "MPI_REQUEST_NULL"),
    (Class::Window, 0, "MPI_WIN_NULL"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_either_library() {
        let name = |class, raw| Library::Mpich.handle(class, raw, Language::C);
        assert_eq!(name(Class::Comm, 0x4400_0000), Some("MPI_COMM_WORLD"));
        // Sign-extended, as an int is.
        let sign_extended = 0x8c00_0001_u32 as i32 as i64;
        assert_eq!(name(Class::Datatype, sign_extended), Some("MPI_DOUBLE_INT"));
        let fortran = Library::OpenMpi.handle(Class::Datatype, 7, Language::Fortran);
        assert_eq!(fortran, Some("MPI_INTEGER"));
        assert_eq!(Library::Mpich.rank(-2), Some(ANY_SOURCE));
        assert_eq!(Library::OpenMpi.rank(-2), Some(PROC_NULL));
    }

    #[test]
    fn symbols_of_open_mpi() {
        assert_eq!(name_of_symbol("ompi_request_null"), "request_null");
        assert_eq!(name_of_symbol("ompi_mpi_op_null"), "OP_NULL");
        assert_eq!(name_of_symbol("ompi_mpi_op_sum"), "sum");
        assert_eq!(name_of_symbol("ompi_mpi_dblprec"), "DOUBLE_PRECISION");
    }

    #[test]
    fn assertions_of_either_library() {
        assert!(has_no_successor(1 << 4) && has_no_successor(1 << 14 | 1 << 13));
        assert!(!has_no_successor(0) && !has_no_successor(1 << 3) && !has_no_successor(1 << 13));
        assert!(has_no_predecessor(1 << 1) && has_no_predecessor(1 << 14 | 1 << 13));
        assert!(!has_no_predecessor(0) && !has_no_predecessor(1 << 4 | 1));
    }
}
