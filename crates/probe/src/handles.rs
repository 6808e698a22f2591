//! Which MPI library this is: what its handles and statuses look like, and where the objects lie that
//! the predefined handles of Open MPI point to, by the dynamic symbols of images. Nothing is asked of the
//! library itself.

use crate::image::{Image, Link};
use crate::text::{Text, file_name, until_zero};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use lockstep_format::process::fact;

/// Handles are pointers, statuses begin with the source (Open MPI); else integers, and a count.
static POINTERS: AtomicBool = AtomicBool::new(false);
/// There is an MPI library.
static IS_HERE: AtomicBool = AtomicBool::new(false);
/// Where Fortran programs have the statuses that stand for none.
static IGNORED: [[AtomicU64; 2]; 8] = [const { [AtomicU64::new(0), AtomicU64::new(0)] }; 8];
static IGNORED_COUNT: AtomicUsize = AtomicUsize::new(0);
/// Where they have what stands for a buffer that is in place.
static IN_PLACES: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
static IN_PLACE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Where objects lie that are `MPI_COMM_WORLD`: the library's, and the main program's copy.
static WORLD: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// How many ranks that has, and which one this is plus one; 0 until the program asked.
static RANKS: AtomicU64 = AtomicU64::new(0);
static RANK: AtomicU64 = AtomicU64::new(0);
/// Communicators that are grids, and how many dimensions each has.
static GRIDS: [[AtomicU64; 2]; 16] = [const { [AtomicU64::new(0), AtomicU64::new(0)] }; 16];
/// So many at most.
const MOST_DIMENSIONS: i64 = 16;
/// What stands for a buffer that is in place.
pub const IN_PLACE: i64 = 1;

/// Looks at the main program, which has copies of what it names where it is not position-independent. In
/// the constructor only; `tell` gets facts.
pub fn know_main(tell: impl FnMut(&str, &[&[u8]])) {
    if let Some(main) = Image::main()
        && let Some(dynamic) = main.dynamic()
    {
        look(main.bias, dynamic, tell);
    }
}

/// Looks at a library that is there at the start, or was loaded just now: a program in an interpreter
/// loads its MPI late.
pub fn know(link: &Link, tell: impl FnMut(&str, &[&[u8]])) {
    if file_name(link.name()).starts_with(b"libmpi") {
        IS_HERE.store(true, Ordering::Relaxed);
        look(link.bias, link.dynamic, tell);
    }
}

/// Data symbols of an image.
fn look(bias: u64, dynamic: *const [u64; 2], mut tell: impl FnMut(&str, &[&[u8]])) {
    let Some(symbols) = Symbols::of(bias, dynamic) else {
        return;
    };
    for index in 0..symbols.count {
        // SAFETY: inside the table.
        let symbol = unsafe { &*symbols.table.add(index) };
        // SAFETY: strings of the image end with zeros, and the table of strings is one.
        let name = unsafe { symbols.name(symbol) };
        // An object (1) or a common one (5), defined here.
        if !matches!(symbol.info & 15, 1 | 5) || symbol.section == 0 {
            continue;
        }
        let at = bias.wrapping_add(symbol.value);
        let any = |prefixes: &[&[u8]]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if any(&[b"mpi_fortran_in_place", b"MPI_FORTRAN_IN_PLACE"]) {
            keep_in_place(at);
        } else if any(&[b"mpipriv1", b"MPIPRIV1"]) {
            // MPI_BOTTOM comes before it.
            keep_in_place(at + 4);
        }
        if any(&[
            b"mpi_fortran_status",
            b"MPI_FORTRAN_STATUS",
            b"mpipriv",
            b"MPIPRIV",
        ]) {
            let next = IGNORED_COUNT.load(Ordering::Relaxed);
            if let Some([start, end]) = IGNORED.get(next) {
                start.store(at, Ordering::Relaxed);
                end.store(at + symbol.size, Ordering::Relaxed);
                IGNORED_COUNT.store(next + 1, Ordering::Relaxed);
            }
        } else if any(&[b"ompi_mpi_", b"ompi_request_null", b"ompi_message_n"])
            && !name.ends_with(b"_addr")
        {
            POINTERS.store(true, Ordering::Relaxed);
            let free = WORLD.iter().find(|it| it.load(Ordering::Relaxed) == 0);
            if let (true, Some(place)) = (name == b"ompi_mpi_comm_world", free) {
                place.store(at, Ordering::Relaxed);
            }
            let mut number = Text::<24>::new();
            number.push_hexadecimal(at);
            tell(fact::HANDLE, &[name, number.bytes()]);
        }
    }
}

fn keep_in_place(at: u64) {
    let next = IN_PLACE_COUNT.load(Ordering::Relaxed);
    if let Some(place) = IN_PLACES.get(next) {
        place.store(at, Ordering::Relaxed);
        IN_PLACE_COUNT.store(next + 1, Ordering::Relaxed);
    }
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// An image's dynamic symbols, in memory.
struct Symbols {
    table: *const Symbol,
    count: usize,
    strings: u64,
    strings_size: u64,
}

impl Symbols {
    fn of(bias: u64, dynamic: *const [u64; 2]) -> Option<Self> {
        const STRTAB: u64 = 5;
        const SYMTAB: u64 = 6;
        const STRSZ: u64 = 10;
        const GNU_HASH: u64 = 0x6fff_fef5;
        let (mut table, mut strings, mut strings_size, mut hash) = (0, 0, 0, 0);
        let mut at = dynamic;
        // SAFETY: a loaded image's dynamic section ends with a null entry.
        unsafe {
            while let [tag, value] = *at
                && tag != 0
            {
                // Some linkers leave addresses as in the file.
                let address = if value < bias { value + bias } else { value };
                match tag {
                    STRTAB => strings = address,
                    SYMTAB => table = address,
                    STRSZ => strings_size = value,
                    GNU_HASH => hash = address,
                    _ => {}
                }
                at = at.add(1);
            }
        }
        if table == 0 || strings == 0 || hash == 0 {
            return None;
        }
        Some(Self {
            table: table as *const Symbol,
            // SAFETY: the image's own table.
            count: unsafe { count(hash) },
            strings,
            strings_size,
        })
    }

    unsafe fn name(&self, symbol: &Symbol) -> &'static [u8] {
        let start = u64::from(symbol.name);
        let left = self.strings_size.saturating_sub(start).min(64) as usize;
        // SAFETY: inside the table of strings.
        let bytes =
            unsafe { core::slice::from_raw_parts((self.strings + start) as *const u8, left) };
        until_zero(bytes)
    }
}

/// How many symbols an image has: the last of the last chain in its GNU hash table.
unsafe fn count(hash: u64) -> usize {
    // SAFETY: the caller's promise: a table as the linker made it.
    unsafe {
        let words = hash as *const u32;
        let (buckets, first, bloom) = (*words, *words.add(1), *words.add(2));
        let bucket = words.add(4 + 2 * bloom as usize);
        let chains = bucket.add(buckets as usize);
        let mut last = (0..buckets as usize)
            .map(|index| *bucket.add(index))
            .max()
            .unwrap_or(0);
        if last < first {
            return first as usize;
        }
        while *chains.add((last - first) as usize) & 1 == 0 {
            last += 1;
        }
        last as usize + 1
    }
}

/// Whether an MPI library was there at the start.
pub fn is_here() -> bool {
    IS_HERE.load(Ordering::Relaxed)
}

/// Bytes of a handle of C.
pub fn size() -> u64 {
    if POINTERS.load(Ordering::Relaxed) {
        8
    } else {
        4
    }
}

/// A handle of C from its register.
pub fn value(register: u64) -> i64 {
    if POINTERS.load(Ordering::Relaxed) {
        register as i64
    } else {
        i64::from(register as i32)
    }
}

/// Bytes of a status.
pub fn status_size() -> u64 {
    if POINTERS.load(Ordering::Relaxed) {
        24
    } else {
        20
    }
}

/// Whether it is `MPI_COMM_WORLD`, of C or of Fortran.
fn is_world((is_c, comm): (bool, i64)) -> bool {
    if !POINTERS.load(Ordering::Relaxed) {
        comm == 0x4400_0000
    } else if is_c {
        let mut places = WORLD.iter();
        comm != 0 && places.any(|it| it.load(Ordering::Relaxed) as i64 == comm)
    } else {
        comm == 0
    }
}

/// How many ranks a communicator has, where that is known for good; else 0.
pub fn ranks(comm: (bool, i64)) -> i64 {
    if is_world(comm) {
        RANKS.load(Ordering::Relaxed) as i64
    } else {
        0
    }
}

/// The library said how many ranks a communicator has.
pub fn learn_ranks(comm: (bool, i64), ranks: i64) {
    if is_world(comm) && ranks > 0 {
        RANKS.store(ranks as u64, Ordering::Relaxed);
    }
}

/// How many dimensions a communicator has that a call made a grid; 0 where that is not known.
pub fn dimensions(comm: i64) -> i64 {
    let mut grids = GRIDS.iter();
    let of = grids.find(|it| it[0].load(Ordering::Acquire) == comm as u64);
    of.filter(|_| comm != 0)
        .map_or(0, |it| it[1].load(Ordering::Relaxed) as i64)
}

/// The library made a communicator a grid of so many dimensions. Those beyond the first that there is room for are not known.
pub fn learn_dimensions(comm: i64, dimensions: i64) {
    if comm == 0 || !(1..=MOST_DIMENSIONS).contains(&dimensions) {
        return;
    }
    let is_its = |it: &&[AtomicU64; 2]| {
        let taken = it[0].compare_exchange(0, comm as u64, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok() || taken == Err(comm as u64)
    };
    if let Some(it) = GRIDS.iter().find(is_its) {
        it[1].store(dimensions as u64, Ordering::Relaxed);
    }
}

/// The library said which rank this is.
pub fn learn_rank(comm: (bool, i64), rank: i64) {
    if is_world(comm) && rank >= 0 {
        RANK.store(rank as u64 + 1, Ordering::Relaxed);
    }
}

/// Whether this is a rank of the world, as far as is known.
pub fn is_rank(rank: i64) -> bool {
    rank >= 0 && RANK.load(Ordering::Relaxed) == rank as u64 + 1
}

/// A buffer from its register: its address, or [`IN_PLACE`] for one that is in place (1 in C with Open MPI, -1 with MPICH).
pub fn buffer(register: u64) -> i64 {
    let count = IN_PLACE_COUNT.load(Ordering::Relaxed);
    let mut places = IN_PLACES.iter().take(count);
    let mut is_in_place = || places.any(|place| place.load(Ordering::Relaxed) == register);
    match register {
        u64::MAX => IN_PLACE,
        _ if is_in_place() => IN_PLACE,
        at => at as i64,
    }
}

/// Whether a status's address stands for none.
pub fn is_ignored(at: u64) -> bool {
    let count = IGNORED_COUNT.load(Ordering::Relaxed);
    at < 4096
        || IGNORED.iter().take(count).any(|[start, end]| {
            start.load(Ordering::Relaxed) <= at && at < end.load(Ordering::Relaxed)
        })
}

/// Source, tag and bytes.
///
/// # Safety
/// A status lies at `at`.
pub unsafe fn status(at: u64) -> (i64, i64, i64) {
    // SAFETY: the caller's promise. Fortran's have the alignment of an integer.
    let word = |index: usize| unsafe { (at as *const i32).add(index).read_unaligned() };
    let wide = |low: i32, high: i32| i64::from(low as u32) | i64::from(high) << 32;
    if POINTERS.load(Ordering::Relaxed) {
        (word(0).into(), word(1).into(), wide(word(4), word(5)))
    } else {
        // The lowest bit of the high half says whether it was cancelled.
        (word(2).into(), word(3).into(), wide(word(0), word(1) >> 1))
    }
}
