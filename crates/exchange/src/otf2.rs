//! OTF2 archives: a subset that OTF2's own tools read, and that we read of theirs.
//!
//! ```text
//! DIR/traces.otf2      anchor: version, chunk sizes, numbers of locations and definitions, texts
//! DIR/traces.def       global definitions: clock, strings, system tree, location groups, locations, regions, and whom messages
//!                      and collective operations are among: paradigms, groups, communicators
//! DIR/traces/N.def     definitions of location N's own: none
//! DIR/traces/N.evt     events of location N: enter and leave, messages, and shares of collective operations (written only)
//! ```
//! A file is a row of chunks of the size that the anchor tells, the last one shorter. A chunk is a header (3, byte order, numbers of its
//! first and last event), records, and zeros where no further record has room. A record is its type, its length, and its
//! fields; what has one number only (enter, leave, and some that name a request) has no length. Behind the last record stand 2 and 1.
//!
//! A number is how many bytes it has, then those bytes, the low ones first; 0 is one byte, and all ones (`undefined`) are
//! the byte 255. Established by comparing archives that OTF2 3.0.2 wrote, byte by byte.

pub(crate) mod read;
mod record;
mod spoken;
pub(crate) mod write;

/// Byte order of the machine that wrote it: little endian.
const LITTLE_ENDIAN: u8 = b'B';
/// Chunks of events and of definitions, as OTF2's tools write them.
const EVENT_CHUNK: u64 = 1 << 20;
const DEFINITION_CHUNK: u64 = 4 << 20;
/// What stands at a chunk's beginning.
const CHUNK_HEADER: usize = 18;
/// An undefined reference.
const UNDEFINED: u8 = 0xff;
/// A longer record has 255 there, and its length in eight bytes.
const LONG: u8 = 0xff;
/// A location that is a thread of a processor.
const CPU_THREAD: u8 = 1;

/// Paradigms of regions and groups.
const PARADIGM_MPI: u8 = 4;
const NO_PARADIGM: u8 = 22;

/// Types of records in all files.
mod buffer {
    /// Nothing more in this chunk.
    pub const PADDING: u8 = 0;
    pub const END_OF_FILE: u8 = 1;
    pub const END_OF_CHUNK: u8 = 2;
    pub const CHUNK: u8 = 3;
    /// The time of the events that follow, in eight bytes.
    pub const TIME: u8 = 5;
}

/// Types of events.
mod event {
    pub const ENTER: u8 = 12;
    pub const LEAVE: u8 = 13;
    // Receiver or sender by its rank, communicator, tag, bytes; of what has a request, that.
    pub const SEND: u8 = 14;
    pub const ISEND: u8 = 15;
    pub const ISEND_COMPLETE: u8 = 16;
    pub const IRECV_REQUEST: u8 = 17;
    pub const RECEIVE: u8 = 18;
    pub const IRECV: u8 = 19;
    // What ends has operation, communicator, root, bytes sent and received.
    pub const COLLECTIVE_BEGIN: u8 = 22;
    pub const COLLECTIVE_END: u8 = 23;
    pub const ICOLLECTIVE_REQUEST: u8 = 85;
    pub const ICOLLECTIVE_COMPLETE: u8 = 86;
}

/// Types of global definitions.
mod definition {
    pub const CLOCK: u8 = 5;
    pub const PARADIGM: u8 = 6;
    pub const STRING: u8 = 10;
    pub const TREE_NODE: u8 = 12;
    pub const GROUP: u8 = 13;
    pub const LOCATION: u8 = 14;
    pub const REGION: u8 = 15;
    /// OTF2's groups; those above are groups of locations.
    pub const SET: u8 = 18;
    pub const COMMUNICATOR: u8 = 22;
}
