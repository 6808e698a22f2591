//! What the datatypes and the reductions are that the standard predefines.

/// Kinds of predefined datatypes (MPI 4.1, 6.9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named after the standard's groups.
pub enum Sort {
    Integer,
    Floating,
    Complex,
    Logical,
    Byte,
    /// A value and its place.
    Pair,
    /// Of reductions the standard does not allow it. Libraries do.
    Character,
    /// What `MPI_Pack` wrote.
    Packed,
    /// A bound of older versions, without data.
    Bound,
}

impl Sort {
    /// Whether it stands for data of any datatype.
    #[must_use]
    pub const fn is_anything(self) -> bool {
        matches!(self, Self::Byte | Self::Packed)
    }

    /// Whether it says which data there are.
    #[must_use]
    pub const fn is_certain(self) -> bool {
        !matches!(self, Self::Character | Self::Packed | Self::Bound)
    }
}

/// A predefined datatype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datatype {
    name: &'static str,
    /// Its kind.
    pub sort: Sort,
    bytes: u8,
}

impl Datatype {
    /// The one with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let found = DATATYPES.binary_search_by(|it| it.name.cmp(name));
        found.ok().and_then(|at| DATATYPES.get(at))
    }

    /// How many bytes one has, where compilers agree and nothing lies between its parts.
    #[must_use]
    pub const fn bytes(&self) -> Option<i64> {
        match self.bytes {
            0 => None,
            bytes => Some(bytes as i64),
        }
    }

    /// Where one may begin in a structure: at a multiple of so many bytes.
    #[must_use]
    pub const fn alignment(&self) -> Option<i64> {
        match (self.sort, self.bytes()) {
            (Sort::Complex | Sort::Pair, Some(bytes)) => Some(bytes / 2),
            (_, bytes) => bytes,
        }
    }

    /// What it is two of, if it is two of a kind.
    #[must_use]
    pub fn half(&self) -> Option<&'static str> {
        match self.name {
            "MPI_2INT" => Some("MPI_INT"),
            "MPI_2INTEGER" => Some("MPI_INTEGER"),
            "MPI_2REAL" => Some("MPI_REAL"),
            "MPI_2DOUBLE_PRECISION" => Some("MPI_DOUBLE_PRECISION"),
            _ => None,
        }
    }

    /// Whether a predefined reduction is for it, which may be that of an accumulation; `None` where that is not known.
    #[must_use]
    pub fn is_for(&self, reduction: &str, accumulates: bool) -> Option<bool> {
        use Sort::{Byte, Complex, Floating, Integer, Logical, Pair};
        let sorts: &[Sort] = match reduction {
            "MPI_MAX" | "MPI_MIN" => &[Integer, Floating],
            "MPI_SUM" | "MPI_PROD" => &[Integer, Floating, Complex],
            "MPI_LAND" | "MPI_LOR" | "MPI_LXOR" => &[Integer, Logical],
            "MPI_BAND" | "MPI_BOR" | "MPI_BXOR" => &[Integer, Byte],
            "MPI_MAXLOC" | "MPI_MINLOC" => &[Pair],
            "MPI_REPLACE" | NO_OP => return self.sort.is_certain().then_some(accumulates),
            _ => return None,
        };
        (self.sort.is_certain()).then(|| sorts.contains(&self.sort))
    }
}

/// `MPI_NO_OP`.
pub const NO_OP: &str = "MPI_NO_OP";

/// `MPI_DATATYPE_NULL`.
pub const DATATYPE_NULL: &str = "MPI_DATATYPE_NULL";

const fn datatype(name: &'static str, sort: Sort, bytes: u8) -> Datatype {
    Datatype { name, sort, bytes }
}

/// By name. No bytes: not known, or not the same everywhere.
const DATATYPES: &[Datatype] = &[
    datatype("MPI_2COMPLEX", Sort::Complex, 0),
    datatype("MPI_2DOUBLE_COMPLEX", Sort::Complex, 0),
    datatype("MPI_2DOUBLE_PRECISION", Sort::Pair, 0),
    datatype("MPI_2INT", Sort::Pair, 8),
    datatype("MPI_2INTEGER", Sort::Pair, 0),
    datatype("MPI_2REAL", Sort::Pair, 0),
    datatype("MPI_AINT", Sort::Integer, 8),
    datatype("MPI_BYTE", Sort::Byte, 1),
    datatype("MPI_CHAR", Sort::Character, 1),
    datatype("MPI_CHARACTER", Sort::Character, 1),
    datatype("MPI_COMPLEX", Sort::Complex, 8),
    datatype("MPI_COMPLEX16", Sort::Complex, 0),
    datatype("MPI_COMPLEX32", Sort::Complex, 0),
    datatype("MPI_COMPLEX4", Sort::Complex, 0),
    datatype("MPI_COMPLEX8", Sort::Complex, 0),
    datatype("MPI_COUNT", Sort::Integer, 8),
    datatype("MPI_CXX_BOOL", Sort::Logical, 1),
    datatype("MPI_CXX_DOUBLE_COMPLEX", Sort::Complex, 0),
    datatype("MPI_CXX_FLOAT_COMPLEX", Sort::Complex, 0),
    datatype("MPI_CXX_LONG_DOUBLE_COMPLEX", Sort::Complex, 0),
    datatype("MPI_C_BOOL", Sort::Logical, 1),
    datatype("MPI_C_COMPLEX", Sort::Complex, 8),
    datatype("MPI_C_DOUBLE_COMPLEX", Sort::Complex, 16),
    datatype("MPI_C_FLOAT_COMPLEX", Sort::Complex, 8),
    datatype("MPI_C_LONG_DOUBLE_COMPLEX", Sort::Complex, 0),
    datatype("MPI_DOUBLE", Sort::Floating, 8),
    datatype("MPI_DOUBLE_COMPLEX", Sort::Complex, 16),
    datatype("MPI_DOUBLE_INT", Sort::Pair, 0),
    datatype("MPI_DOUBLE_PRECISION", Sort::Floating, 8),
    datatype("MPI_FLOAT", Sort::Floating, 4),
    datatype("MPI_FLOAT_INT", Sort::Pair, 8),
    datatype("MPI_INT", Sort::Integer, 4),
    datatype("MPI_INT16_T", Sort::Integer, 2),
    datatype("MPI_INT32_T", Sort::Integer, 4),
    datatype("MPI_INT64_T", Sort::Integer, 8),
    datatype("MPI_INT8_T", Sort::Integer, 1),
    datatype("MPI_INTEGER", Sort::Integer, 4),
    datatype("MPI_INTEGER1", Sort::Integer, 1),
    datatype("MPI_INTEGER2", Sort::Integer, 2),
    datatype("MPI_INTEGER4", Sort::Integer, 4),
    datatype("MPI_INTEGER8", Sort::Integer, 8),
    datatype("MPI_LB", Sort::Bound, 0),
    datatype("MPI_LOGICAL", Sort::Logical, 4),
    datatype("MPI_LONG", Sort::Integer, 8),
    datatype("MPI_LONG_DOUBLE", Sort::Floating, 0),
    datatype("MPI_LONG_DOUBLE_INT", Sort::Pair, 0),
    datatype("MPI_LONG_INT", Sort::Pair, 0),
    datatype("MPI_LONG_LONG", Sort::Integer, 8),
    datatype("MPI_LONG_LONG_INT", Sort::Integer, 8),
    datatype("MPI_OFFSET", Sort::Integer, 8),
    datatype("MPI_PACKED", Sort::Packed, 1),
    datatype("MPI_REAL", Sort::Floating, 4),
    datatype("MPI_REAL16", Sort::Floating, 0),
    datatype("MPI_REAL4", Sort::Floating, 4),
    datatype("MPI_REAL8", Sort::Floating, 8),
    datatype("MPI_SHORT", Sort::Integer, 2),
    datatype("MPI_SHORT_INT", Sort::Pair, 0),
    datatype("MPI_SIGNED_CHAR", Sort::Character, 1),
    datatype("MPI_UB", Sort::Bound, 0),
    datatype("MPI_UINT16_T", Sort::Integer, 2),
    datatype("MPI_UINT32_T", Sort::Integer, 4),
    datatype("MPI_UINT64_T", Sort::Integer, 8),
    datatype("MPI_UINT8_T", Sort::Integer, 1),
    datatype("MPI_UNSIGNED", Sort::Integer, 4),
    datatype("MPI_UNSIGNED_CHAR", Sort::Character, 1),
    datatype("MPI_UNSIGNED_LONG", Sort::Integer, 8),
    datatype("MPI_UNSIGNED_LONG_LONG", Sort::Integer, 8),
    datatype("MPI_UNSIGNED_SHORT", Sort::Integer, 2),
    datatype("MPI_WCHAR", Sort::Character, 4),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_are_for_some_datatypes() {
        let is_for = |op, name, accumulates| Datatype::named(name)?.is_for(op, accumulates);
        let of = |op, name| is_for(op, name, false);
        assert_eq!(of("MPI_SUM", "MPI_DOUBLE"), Some(true));
        assert_eq!(of("MPI_SUM", "MPI_C_DOUBLE_COMPLEX"), Some(true));
        assert_eq!(of("MPI_MAX", "MPI_C_DOUBLE_COMPLEX"), Some(false));
        assert_eq!(of("MPI_MAXLOC", "MPI_DOUBLE"), Some(false));
        assert_eq!(of("MPI_MAXLOC", "MPI_DOUBLE_INT"), Some(true));
        assert_eq!(of("MPI_BAND", "MPI_FLOAT"), Some(false));
        assert_eq!(of("MPI_BOR", "MPI_BYTE"), Some(true));
        assert_eq!(of("MPI_LOR", "MPI_C_BOOL"), Some(true));
        assert_eq!(of("MPI_REPLACE", "MPI_INT"), Some(false));
        assert_eq!(is_for("MPI_REPLACE", "MPI_INT", true), Some(true));
        // Libraries take characters, too.
        assert_eq!(of("MPI_SUM", "MPI_CHAR"), None);
        assert_eq!(of("0x1234", "MPI_INT"), None);
    }

    #[test]
    fn every_name_is_found() {
        assert!(DATATYPES.is_sorted_by(|a, b| a.name < b.name));
        for it in DATATYPES {
            assert_eq!(Datatype::named(it.name), Some(it));
            assert!(it.half().is_none_or(|half| Datatype::named(half).is_some()));
        }
    }
}
