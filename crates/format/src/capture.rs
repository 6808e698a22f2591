//! The *capture program* by which the probe takes the arguments of a call of MPI without knowing the function.
//!
//! It stands behind the code of an import's stub: what to take at the entry, [`op::END`], what to take at the
//! return, [`op::END`]. An instruction is two bytes: in the first, the operation (low 4 bits) and the
//! parameter that counts an array (high 4 bits); in the second, the parameter. Each gives one value,
//! but arrays: a number of elements, then the first [`MOST_ELEMENTS`] of them. Buffers come behind all else that is
//! taken at the entry, so that tuples from before they were taken are the same without them.

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
    /// The error code that the function returns, as [`super::code`]; no value if it is 0. It comes last. The whole byte counts,
    /// so that it is no `END`.
    pub const CODE: u8 = 1 << 4;
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

/// The value that stands for an error code: such as no other has.
#[must_use]
pub const fn code(returned: i32) -> i64 {
    i64::MIN + returned as u32 as i64
}

/// The error code that a value stands for, if it is one.
#[must_use]
pub const fn returned(value: i64) -> Option<i32> {
    let above = value.wrapping_sub(i64::MIN) as u64;
    if above >> 32 == 0 {
        Some(above as i32)
    } else {
        None
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_are_told_from_other_values() {
        for one in [1, 15, -1, i32::MAX, i32::MIN] {
            assert_eq!(returned(code(one)), Some(one));
        }
        for other in [0, -1, i64::MAX, i64::MIN + (1 << 32), 0x7fff_ffff_f000] {
            assert_eq!(returned(other), None);
        }
    }
}
