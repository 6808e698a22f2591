//! The process file: every event of every thread of one traced process.
//!
//! ```text
//!  0        4096                              first extent ends at 256 KiB, then every 1 MiB
//!  ┌────────┬────────┬────────┬──────────────┬───┬──────────────────
//!  │ header │ facts  │ thread │ data         │ 0 │ data ...
//!  └────────┴────────┴────────┴──────────────┴───┴──────────────────
//!            chunks: 4 KiB aligned, never across an extent boundary; a zero magic ends an extent
//! ```
//!
//! The file is grown by extents ([`extent_end`]), each allocated and mapped before use. A reader
//! finds chunks by walking: a chunk header names its size; where no chunk header stands, the walk
//! goes on at the next extent boundary.
//!
//! # What survives a kill
//!
//! The probe stores each event into the *staging area* of its thread's [`THREAD`](kind::THREAD)
//! chunk, by one store that makes it valid ([`crate::symbol::staging_word`]); a full staging area is
//! encoded and *committed*. The commit protocol (a redo log of one entry):
//!
//! 1. the return addresses of the open calls go to the mirror, encoded bytes are written beyond `committed.bytes` of the stream;
//! 2. the [`intent`](thread::INTENT) state is written: what `committed` shall become;
//! 3. `phase = 1` (release): **this store is the commit**;
//! 4. `committed` = `intent`; the staging area is cleared to zeros;
//! 5. `phase = 0` (release).
//!
//! A reader takes `intent` and ignores staging where `phase` is 1, else takes `committed` and then
//! the staging words up to the first whose low half is zero. Stores of one thread become visible in program order,
//! so nothing but the event in flight can be missing after `SIGKILL`.
//!
//! The stream of a thread is the data area of its thread chunk followed by the payloads of its data
//! chunks in the order of their sequence numbers. `committed.bytes` of it are valid, and their
//! CRC-32C is `committed.check`. They decode together with the `tail` (the bytes that would end the
//! stream here: an open match, an unfinished group), which is kept in the state itself so that the
//! codec never has to flush.
//!
//! # What `--keep last` drops
//!
//! Where the file may not grow and the last events are to be kept, a thread's trace is a row of
//! *segments*: thread chunks of [`DATA_CHUNK`] bytes without data chunks, each with an index of its
//! own, [`thread::FIRST`] telling whose it is and [`thread::SEGMENT`] its place in the row. Each begins
//! with the calls that were open ([`thread::INHERITED`]), so that it can be read without those before
//! it; where they are there, these calls are passed over. The oldest complete segments become zeros.
//! A segment is complete when its successor has been written with all its inherited calls.

/// First bytes of a process file.
pub const MAGIC: [u8; 8] = *b"LOCKSTEP";
/// Version of everything in this module; a reader refuses any other.
pub const VERSION: u32 = 7;
/// The oldest version that readers understand: that of the first release.
pub const OLDEST: u32 = 7;
/// Stored as written by the host, to refuse a file of the other byte order.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// Size of the header and unit of chunk sizes and offsets, in bytes.
pub const PAGE: u64 = 4096;
/// Size of the first extent, header included.
pub const FIRST_EXTENT: u64 = 256 * 1024;
/// Size of every later extent, and the boundary at which each ends.
pub const EXTENT: u64 = 1024 * 1024;
/// Size of a data chunk, header included.
pub const DATA_CHUNK: u64 = 64 * 1024;
/// Size of a thread chunk.
pub const THREAD_CHUNK: u64 = 3 * PAGE;
/// Suffix of a process file's name, which is `HOST-PID-STARTTIME-K` + this.
pub const SUFFIX: &str = ".lockstep";

/// Where the extent that contains `offset` ends: 256 KiB, 1 MiB, 2 MiB, ...
#[must_use]
pub const fn extent_end(offset: u64) -> u64 {
    if offset < FIRST_EXTENT {
        FIRST_EXTENT
    } else {
        (offset / EXTENT + 1) * EXTENT
    }
}

/// Offsets in the header page.
pub mod header {
    /// `[u8; 8]`, [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// `u32`, [`super::VERSION`].
    pub const VERSION: usize = 8;
    /// `u32`, [`super::BYTE_ORDER`].
    pub const BYTE_ORDER: usize = 12;
    /// `u32`, which codec: [`crate::codec::Kind`] as a number.
    pub const CODEC: usize = 16;
    /// `u32`, process id.
    pub const PID: usize = 20;
    /// `u32`, parent's process id.
    pub const PARENT: usize = 24;
    /// `u32`, how many programs this process ran before this one (exec), from 0.
    pub const EXEC_COUNT: usize = 28;
    /// `u64`, start time in clock ticks since boot (field 22 of /proc/self/stat).
    pub const START_TIME: usize = 32;
    /// `u64`, nanoseconds since the epoch at which the file was made.
    pub const CREATED: usize = 40;
    /// `u32`, CRC-32C of bytes 0 to 48.
    pub const CHECK: usize = 48;
    /// `u64`, nanoseconds on the monotonic clock at the moment of [`CREATED`]; 0 where that is no date. No check covers it.
    pub const CREATED_CLOCK: usize = 56;

    // Below here: rewritten while the process runs, so outside the check.

    /// `u32`, bit 0: MPI was initialised in this process ([`super::flag`]).
    pub const FLAGS: usize = 64;
    /// `u32`, how the process ended, as it told itself: [`super::end`].
    pub const END_KIND: usize = 72;
    /// `u32`, its exit status where [`END_KIND`] is [`super::end::EXITED`].
    pub const END_CODE: usize = 76;
    /// `u64`, where the chunk lies that becomes zeros right now; 0 where none does.
    pub const CLEARING: usize = 80;
    /// `u64` x 16, events and functions lost, by [`super::loss`].
    pub const LOSSES: usize = 128;
    /// Number of loss counters.
    pub const LOSS_COUNT: usize = 16;
    /// `u64` x 480, calls of functions that are not recorded: [`super::fact::COUNTERS`] tells which.
    pub const COUNTERS: usize = 256;
    /// Number of such counters. The last is for all that have none of their own.
    pub const COUNTER_COUNT: usize = 480;
}

/// Bits of [`header::FLAGS`].
pub mod flag {
    /// `MPI_Init` or `MPI_Init_thread` was called.
    pub const MPI: u32 = 1;
    /// This file begins in a forked child: each thread's first events are its inherited stack.
    pub const FORKED: u32 = 2;
    /// The last events are kept (`--keep last`).
    pub const KEEPS_LAST: u32 = 4;
    /// What threads hold is recorded ([`crate::hold`]).
    pub const HOLDS: u32 = 8;
}

/// Values of [`header::END_KIND`].
pub mod end {
    /// No end seen by the process itself.
    pub const NONE: u32 = 0;
    /// `_exit` was called with the status in [`super::header::END_CODE`].
    pub const EXITED: u32 = 1;
    /// The process replaced itself by `exec` (written before the call; cleared if it fails).
    pub const EXEC: u32 = 2;
    /// It is over, and nobody knows how: the trace was another tool's.
    pub const OVER: u32 = 3;
}

/// Index of a counter in [`header::LOSSES`].
pub mod loss {
    /// Events for which the file could not grow: disk full, quota.
    pub const NO_SPACE: usize = 0;
    /// Events for which the file could not grow: RLIMIT_FSIZE.
    pub const FILE_LIMIT: usize = 1;
    /// Calls made by a signal handler that interrupted the recorder.
    pub const IN_SIGNAL: usize = 2;
    /// Events whose symbol the codec cannot express (the seed codec stops at 65,535).
    pub const SYMBOL: usize = 3;
    /// Events of threads for which no memory could be had.
    pub const NO_MEMORY: usize = 4;
    /// Calls in a vfork child before its exec.
    pub const VFORK: usize = 5;
    /// Calls below the deepest stack that can be shadowed.
    pub const DEPTH: usize = 6;
    /// Return addresses that were not where they were left (the program unwinds in its own way).
    pub const MISMATCH: usize = 7;
    /// Bytes that should have been in the program's text and were not: patch sites left alone.
    pub const UNEXPECTED_TEXT: usize = 8;
    /// Events for which the file could not grow: the size that the user chose.
    pub const SIZE_LIMIT: usize = 9;
    /// Events for which there is no file to write to: the process became another user, or its directory was removed.
    /// What a forked child loses that has no file of its own is counted in its parent's.
    pub const NO_FILE: usize = 10;
    /// Words for people, in the order of the counters.
    pub const NAMES: [&str; 11] = [
        "disk full or quota",
        "file size limit",
        "signal inside the recorder",
        "symbol too large for the codec",
        "out of memory",
        "vfork child",
        "call stack too deep",
        "return address moved",
        "text not as in the file",
        "size limit (--max-size)",
        "no file to write to",
    ];
}

/// Kinds of chunk.
pub mod kind {
    /// Lines of text about the process; see [`super::fact`].
    pub const FACTS: u32 = 1;
    /// Control block, staging area, stack mirror and first bytes of one thread.
    pub const THREAD: u32 = 2;
    /// More bytes of a thread's stream.
    pub const DATA: u32 = 3;
    /// A thread's argument stream ([`crate::side`]).
    pub const ARGUMENTS: u32 = 4;
    /// A thread's time points ([`crate::side`]).
    pub const TIMES: u32 = 5;
    /// Returns that nobody saw: [`crate::side`].
    pub const INFERRED: u32 = 6;
    /// Not written yet: frames of languages beside the calls.
    pub const FRAMES: u32 = 7;
    /// Not written yet: digests of what buffers held.
    pub const DIGESTS: u32 = 8;
    /// Not written yet: communicators that a library or a snapshot told of.
    pub const COMMUNICATORS: u32 = 9;
    /// The last number that is kept for later. A reader passes over chunks from [`FRAMES`] up to here.
    pub const RESERVED: u32 = 15;
}

/// Offsets in a chunk header, [`chunk::SIZE`] bytes.
pub mod chunk {
    /// `u32`, [`MAGIC_VALUE`].
    pub const MAGIC: usize = 0;
    /// `u32`, [`super::kind`].
    pub const KIND: usize = 4;
    /// `u32`, size in bytes, header included; a multiple of [`super::PAGE`].
    pub const LENGTH: usize = 8;
    /// `u32`, thread index within the process, from 0 in the order of first events (0 for facts).
    pub const THREAD: usize = 12;
    /// `u32`, number of the chunk within its thread (the thread chunk is 0) or among the facts.
    pub const SEQUENCE: usize = 16;
    /// `u32`, bytes of payload in use (facts only; 0 elsewhere).
    pub const USED: usize = 20;
    /// `u32`, CRC-32C of the payload in use (facts only; 0 elsewhere).
    pub const PAYLOAD_CHECK: usize = 24;
    /// `u32`, CRC-32C of bytes 0 to 28. Written last.
    pub const CHECK: usize = 28;
    /// Size of the header; the payload follows.
    pub const SIZE: usize = 64;
    /// "LSCK" in little endian.
    pub const MAGIC_VALUE: u32 = u32::from_le_bytes(*b"LSCK");
}

/// Offsets in a thread chunk (from the chunk's start; the chunk header comes first).
pub mod thread {
    /// `u32`, kernel thread id.
    pub const TID: usize = 64;
    /// `u32`, number of calls at the start of the stream that were open when this thread (of a
    /// forked child) began: its inherited stack.
    pub const INHERITED: usize = 68;
    /// `u64`, nanoseconds on the monotonic clock at the first event.
    pub const STARTED: usize = 72;
    /// `u32`, number of this segment within its thread, from 0: see [`super`] about `--keep last`.
    pub const SEGMENT: usize = 80;
    /// `u32`, the thread: index of its segment 0, which may be dropped.
    pub const FIRST: usize = 84;
    /// `u64`, events of the thread in the segments before this one.
    pub const BEFORE: usize = 88;
    /// `u32`, CRC-32C of bytes 64 to 96.
    pub const CHECK: usize = 96;
    /// `u32`, 0 or 1: see the module's text.
    pub const PHASE: usize = 128;
    /// [`state`], what is decodable where the phase is 0.
    pub const COMMITTED: usize = 136;
    /// [`state`], what is decodable where the phase is 1.
    pub const INTENT: usize = 216;
    /// `u64`, how many symbols the thread had stored, at [`LAST_TICKS`].
    pub const LAST_SYMBOLS: usize = 392;
    /// `u64`, time stamp counter when the thread was last seen: at a commit, in the recorder's slow
    /// path, at an MPI call or its return.
    pub const LAST_TICKS: usize = 400;
    /// `u64`, MPI calls whose arguments could not be stored.
    pub const ARGUMENTS_LOST: usize = 408;
    /// `u64`, how many of the last events are returns that nobody saw: the thread was gone.
    pub const CLOSED: usize = 416;
    /// `u64`, [`crate::side::control::WORD`] of the segment's arguments (`--keep last`).
    pub const SEGMENT_ARGUMENTS: usize = 424;
    /// `u64`, likewise, of the returns that nobody saw.
    pub const SEGMENT_INFERRED: usize = 432;
    /// `u64`, likewise, of the times.
    pub const SEGMENT_TIMES: usize = 440;
    /// [`crate::hold::row`] x 2: the first rows of the table of what the thread holds ([`crate::hold`]).
    pub const HOLDS: usize = 448;
    /// `u64`, how many objects it took for which there was no row; [`crate::hold::UNKNOWN`] where the table is not kept any more.
    pub const MORE_HOLDS: usize = 496;
    /// [`super::clock`] x [`CLOCK_COUNT`]: the first reading of the clocks, then the latest ones in turn.
    pub const CLOCKS: usize = 512;
    /// How many readings are kept.
    pub const CLOCK_COUNT: usize = 16;
    /// [`crate::hold::row`] x 5: the other rows of [`HOLDS`].
    pub const MORE_ROWS: usize = 896;
    /// `u64` x [`STAGING_WORDS`]: events not yet encoded.
    pub const STAGING: usize = 1024;
    /// How many events fit into the staging area.
    pub const STAGING_WORDS: usize = 1024;
    /// `u64` x [`MIRROR_WORDS`]: return address of the call that was open at depth d at the last
    /// commit, at index d mod [`MIRROR_WORDS`], where depth 0 is the outermost; of calls made since,
    /// the staging words have the low half. A copy for readers: an address whose caller is not the
    /// function at depth d - 1 is left over from a deeper stack.
    pub const MIRROR: usize = 9216;
    /// How many return addresses are kept.
    pub const MIRROR_WORDS: usize = 128;
    /// [`super::stamp`] x [`STAMP_COUNT`]: times that are not in the stream of times yet. A reader stops at the first
    /// whose point is 0.
    pub const STAMPS: usize = 10240;
    /// How many of them there are.
    pub const STAMP_COUNT: usize = 64;
    /// First bytes of the stream, up to the chunk's end.
    pub const DATA: usize = 11264;
}

/// Two clocks, read at one moment; [`clock::SIZE`] bytes.
pub mod clock {
    /// `u64`, the processor's time stamp counter.
    pub const TICKS: usize = 0;
    /// `u64`, nanoseconds on the monotonic clock.
    pub const NANOSECONDS: usize = 8;
    /// `u64`, the two xor'ed, and inverted; a reading is there where this holds.
    pub const CHECK: usize = 16;
    /// Size of the whole.
    pub const SIZE: usize = 24;
}

/// A time that was read; [`stamp::SIZE`] bytes.
pub mod stamp {
    /// `u64`, the processor's time stamp counter.
    pub const TICKS: usize = 0;
    /// `u64`, 8 times the symbols that the thread had stored, plus a kind of [`crate::side::point`]. Written last.
    pub const POINT: usize = 8;
    /// Size of the whole.
    pub const SIZE: usize = 16;
}

/// Offsets in a thread's decodable state; [`state::SIZE`] bytes.
pub mod state {
    /// `u64`, valid bytes of the stream.
    pub const BYTES: usize = 0;
    /// `u64`, symbols that those bytes together with the tail decode to.
    pub const SYMBOLS: usize = 8;
    /// `u64`, how many of them stand for a call and its return: events are symbols + leaves.
    pub const LEAVES: usize = 16;
    /// `u32`, CRC-32C of the valid bytes.
    pub const STREAM_CHECK: usize = 24;
    /// `u32`, number of tail bytes in use.
    pub const TAIL_LENGTH: usize = 28;
    /// `[u8; 32]`, the bytes that end the stream here.
    pub const TAIL: usize = 32;
    /// Room for the tail.
    pub const TAIL_ROOM: usize = 32;
    /// `u32`, CRC-32C of bytes 0 to 64 of this state.
    pub const CHECK: usize = 64;
    /// Size of the whole.
    pub const SIZE: usize = 72;
}

/// Words that begin a line of a facts chunk; the values follow, separated by tabs. A tab, newline or
/// backslash inside a value stands as `\t`, `\n`, `\\`; other bytes stand as they are.
pub mod fact {
    /// `host NAME`
    pub const HOST: &str = "host";
    /// `program PATH`, the executable as the kernel names it.
    pub const PROGRAM: &str = "program";
    /// `argument TEXT`, one line each, from argument 0.
    pub const ARGUMENT: &str = "argument";
    /// `environment NAME VALUE`: launcher variables only ([`crate::launcher`]).
    pub const ENVIRONMENT: &str = "environment";
    /// `image PATH PLAN ROLE FIRST COUNT BIAS`: an image with a plan: file name of its plan in the
    /// run's `plans` directory, role (main, unwinder, mpi, libc), first symbol and number of symbols
    /// reserved for it, and load bias (hexadecimal).
    pub const IMAGE: &str = "image";
    /// `trace PATTERN`: only functions that one of these finds are recorded; one line each.
    pub const TRACE: &str = "trace";
    /// `skip PATTERN`: functions that one of these finds are not recorded; one line each.
    pub const SKIP: &str = "skip";
    /// `counters PLAN FIRST`: the counters of the image with this plan are those from the first on.
    pub const COUNTERS: &str = "counters";
    /// `handle NAME ADDRESS`: where the MPI library keeps what its handles point to (hexadecimal), by
    /// the library's own symbols; none where its handles are integers.
    pub const HANDLE: &str = "handle";
    /// `untraced PATH REASON`: an image that should have been traced and was not.
    pub const UNTRACED: &str = "untraced";

    /// The bytes of a value as it was before it was written: `\t`, `\n` and `\\` undone.
    pub fn unescaped(value: &[u8]) -> impl Iterator<Item = u8> + '_ {
        let mut rest = value.iter();
        core::iter::from_fn(move || match rest.next()? {
            b'\\' => Some(match rest.next() {
                Some(b't') => b'\t',
                Some(b'n') => b'\n',
                Some(other) => *other,
                None => b'\\',
            }),
            byte => Some(*byte),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were() {
        let read = |value: &[u8]| fact::unescaped(value).collect::<Vec<u8>>();
        assert_eq!(read(br"a\tb\n\\c\"), b"a\tb\n\\c\\");
        assert_eq!(read(b""), b"");
    }

    #[test]
    fn areas_do_not_overlap() {
        const { assert!(thread::COMMITTED + state::SIZE <= thread::INTENT) };
        const { assert!(thread::INTENT + state::SIZE <= thread::STAGING) };
        const { assert!(thread::CLOCKS + thread::CLOCK_COUNT * clock::SIZE <= thread::STAGING) };
        const { assert!(thread::SEGMENT_TIMES + 8 <= thread::CLOCKS) };
        const { assert!(thread::ARGUMENTS_LOST + 8 <= thread::STAGING) };
        assert_eq!(thread::STAGING + 8 * thread::STAGING_WORDS, thread::MIRROR);
        assert_eq!(thread::MIRROR + 8 * thread::MIRROR_WORDS, thread::STAMPS);
        let stamps = thread::STAMP_COUNT * stamp::SIZE;
        assert_eq!(thread::STAMPS + stamps, thread::DATA);
        assert!((thread::DATA as u64) < THREAD_CHUNK);
        assert_eq!(header::LOSSES + 8 * header::LOSS_COUNT, header::COUNTERS);
        assert_eq!(header::COUNTERS + 8 * header::COUNTER_COUNT, PAGE as usize);
        assert!(loss::NAMES.len() <= header::LOSS_COUNT);
        assert_eq!(extent_end(0), FIRST_EXTENT);
        assert_eq!(extent_end(FIRST_EXTENT), EXTENT);
        assert_eq!(extent_end(EXTENT), 2 * EXTENT);
    }
}
