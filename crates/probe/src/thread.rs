//! What the probe keeps of a thread, and how its events become bytes.
//!
//! The block is one private mapping. Its first page is wiped by the kernel in every forked child, by
//! whatever kind of fork: cursor and limit are zero there, so that the first event finds the slow
//! path, which sees `attached` zero and begins a new trace in a new file. The shadow stack is not
//! wiped: the child returns through frames that its parent entered. The block of a thread that is
//! gone waits for another one ([`SPARE`]), which finds the memory that its first events need.

use crate::encoder::{ENCODER_ROOM, Encoding, make, symbols_of, touch};
use crate::entry::{ENTRY_SIZE, Entry};
use crate::holds::{self, Holds};
use crate::inferred::Inferred;
use crate::process::{Process, Slot, Stop};
use crate::ring::Segment;
use crate::setup::Setup;
use crate::side::{self, Arguments, Times};
use crate::syscall::{self, MADV_DONTNEED, MADV_WIPEONFORK};
use crate::x86_64::routines;
use core::ptr::{addr_of_mut, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering, compiler_fence};
use lockstep_format::bytes::{put, put_u32, put_u64};
use lockstep_format::check;
use lockstep_format::codec::{Tail, most_bytes, most_symbols};
use lockstep_format::plan::block;
use lockstep_format::process::{
    DATA_CHUNK, THREAD_CHUNK, chunk, kind, loss, state, thread as layout,
};
use lockstep_format::symbol::{RETURN, staging_word};

/// Value of [`Hot::busy`] in a thread that records nothing any more: every slot is below it.
pub const STOPPED: u64 = u64::MAX;
/// Value of [`Hot::fault_slot`] where no call is postponed.
pub const NO_SLOT: u64 = 1;
/// Mappings that a thread remembers.
pub const SEGMENTS: usize = 16;
/// Entries that need no memory of their own; the first is a sentinel.
const FIRST_ENTRIES: usize = 2 * layout::STAGING_WORDS;
/// Deepest shadow stack, in entries: 1 GiB of them.
const MOST_ENTRIES: usize = 1 << 25;
const PAGE: usize = 4096;
/// What a thread needs of its chunk for its first events; the rest is made batch by batch.
pub const FIRST_PAGE: usize = PAGE;
/// Where the page of the chunk begins that the first commit writes to.
const DATA_PAGE: usize = layout::DATA / PAGE * PAGE;
/// Words of a batch after one that compressed badly; of later ones twice as many, as long as they
/// compress well.
const SMALL_BATCH: usize = 256;
/// Symbols of a stream whose batches are short whatever it compresses to.
const SHORT_STREAM: u64 = 4096;
/// Most open calls that a later segment begins with.
const MOST_REPEATED: usize = layout::STAGING_WORDS - 64;
const SLOW_STACK: usize = 64 * 1024;
/// What the first events touch of a block and of the end of its stack; the rest becomes memory later.
pub const FIRST_HEAD: usize = core::mem::offset_of!(Thread, first_entries) + 64 * ENTRY_SIZE;
pub const FIRST_STACK: usize = PAGE;

/// Most blocks that wait for a thread: as many as are looked at before the first sweep.
pub const SPARES: usize = 16;
/// Blocks of threads that are gone, as good as new, or null. Whoever exchanges one for null has it.
pub static SPARE: [AtomicPtr<Thread>; SPARES] = [const { AtomicPtr::new(null_mut()) }; SPARES];
/// Calls of threads for which no block could be had, while there is no file.
pub static NO_MEMORY: AtomicU64 = AtomicU64::new(0);
/// Where such calls are counted. Nobody may come by later to put them into the file: the thread that ends the process
/// may be one without a block.
pub static WITHOUT_MEMORY: AtomicPtr<u64> = AtomicPtr::new(NO_MEMORY.as_ptr());
/// Where losses are counted that no file can tell of.
static NOWHERE: AtomicU64 = AtomicU64::new(0);

/// Wiped in forked children.
#[repr(C, align(4096))]
pub struct Hot {
    /// Where the next staging word goes.
    pub cursor: *mut u64,
    /// End of the staging area; at or behind it an event takes the slow path.
    pub limit: *mut u64,
    /// Stack pointer of the routine that is at work, [`STOPPED`], or 0.
    pub busy: u64,
    /// Whether this thread has a chunk in this process's file.
    pub attached: u64,
    /// Calls until the fault happens in this thread, that one included.
    pub fault_left: i64,
    /// Where calls are counted into which a fault may be put; null where nobody has looked yet.
    pub fault_row: *mut u64,
    /// Where the return address of a postponed call stood; [`NO_SLOT`] where none is, 0 where nobody
    /// has noticed this thread yet.
    pub fault_slot: u64,
    /// That return address.
    pub fault_return: u64,
    /// The thread's number, as far as faults are concerned.
    pub fault_thread: u32,
}

/// One thread. All zeros is a thread that nobody has looked at yet.
#[repr(C)]
pub struct Thread {
    /// Wiped in forked children.
    pub hot: Hot,
    /// What an event loads must not have its low twelve address bits in common with what another stores:
    /// processors take the one for the other, and wait.
    _apart: [u64; 32],
    /// Behind the newest entry.
    pub top: *mut Entry,
    /// Entries below it are restored; null where none is.
    pub mark: *mut Entry,
    /// The oldest entry; a sentinel lies below it.
    pub base: *mut Entry,
    /// End of the entries' memory.
    pub end: *mut Entry,
    /// The mirror in the file.
    pub mirror: *mut u64,
    /// Where calls are counted that are not recorded.
    pub loss: *mut u64,
    /// Stack pointer of the slow path while it is at work, or 0.
    pub at_work: u64,
    /// What [`Hot::busy`] was when it began.
    pub interrupted: u64,
    /// Set between a `vfork` and the parent's next event.
    pub suspended: bool,
    /// Mappings that are known, as start and end.
    pub segments: [(u64, u64); SEGMENTS],
    /// Which of them is replaced next.
    pub next_segment: u32,
    /// How many questions are not asked yet, and how many will not be then: see `is_gone`.
    pub unasked: u32,
    pub patience: u32,
    /// The alternate signal stack, start and end, where return addresses were last restored on one.
    pub signal_stack: (u64, u64),
    /// What [`crate::pending::HOOKS`] was when no address of ours was found to stand in a frame.
    pub unhooked: u64,
    /// The stack on which the oldest frame was found then: its lowest address, and its size.
    pub home: [u64; 2],
    /// Kernel's number.
    pub tid: u32,
    /// The next thread of the process.
    pub next: *mut Thread,
    /// Where the next stamp goes, and the end of their room; both null where none are taken.
    pub stamp: *mut u64,
    pub stamps_end: *mut u64,
    /// Added to the cursor it gives 8 times the symbols that were stored.
    pub symbols_base: u64,
    /// When a call began that may wait: read before there is room for its stamp.
    pub began: u64,
    /// Stamps of calls that were short may be kept so often.
    pub credit: u64,
    /// End of the room for staging words. The fast path goes by [`Hot::limit`], which is null where it must not be taken.
    pub room: *mut u64,
    /// When the next event was nobody knows.
    pub is_unmeasured: bool,
    /// Time points.
    pub times: Times,
    /// Arguments of MPI calls.
    pub arguments: Arguments,
    /// Returns that nobody saw.
    pub inferred: Inferred,
    /// Locks that it holds.
    pub holds: Holds,
    /// Memory for the environment of a program that is started, and how much.
    pub environment: (*mut u8, usize),
    index: u32,
    /// Calls at the beginning of the segment that were open before.
    inherited: u32,
    /// Entries when nothing was staged yet: see [`crate::recover`].
    pub settled: usize,
    row: Row,
    /// Words of the next batch.
    batch: usize,
    /// The encoder is not at its beginning.
    has_encoded: bool,
    chunk: *mut u8,
    /// Where the chunk lies in the file.
    offset: u64,
    /// Up to where the staging area's pages are there.
    ready: *mut u8,
    committed: Committed,
    place: Place,
    first_entries: [Entry; FIRST_ENTRIES],
    stack: SlowStack,
    /// End of the slow path's stack.
    pub stack_end: [u8; 0],
    encoder: EncoderRoom,
}

#[repr(C, align(4096))]
struct EncoderRoom([u8; ENCODER_ROOM]);

#[repr(C, align(4096))]
struct SlowStack([u8; SLOW_STACK]);

/// The row of segments that a thread's trace is; of one, unless the last events are kept.
#[derive(Clone, Copy)]
struct Row {
    /// Index of segment 0.
    first: u32,
    /// Number of the segment at work.
    number: u32,
    /// When the thread's first event was.
    started: u64,
    /// Events in the segments before.
    before: u64,
}

/// What a reader may decode.
#[derive(Clone, Copy)]
struct Committed {
    bytes: u64,
    symbols: u64,
    leaves: u64,
    check: u32,
}

/// Where the stream goes on.
#[derive(Clone, Copy)]
struct Place {
    at: *mut u8,
    room: usize,
    /// Up to where its pages are there.
    ready: *mut u8,
    sequence: u32,
}

impl Place {
    /// Has the pages of the next `length` bytes made: not all of a chunk at once, so that no event waits
    /// for all.
    fn get_ready(&mut self, length: usize) {
        let missing = (self.at as usize + length).saturating_sub(self.ready as usize);
        if missing == 0 {
            return;
        }
        let end = (self.at as usize + self.room).next_multiple_of(PAGE);
        let step = missing
            .next_multiple_of(PAGE)
            .min(end.saturating_sub(self.ready as usize));
        touch(self.ready as usize, step);
        self.ready = self.ready.wrapping_add(step);
    }
}

/// What a commit needs while it is at work.
#[repr(C)]
pub struct Scratch {
    encoded: Output,
    symbols: [u32; layout::STAGING_WORDS],
}

/// Those that are free, or null. A commit exchanges one for null, and puts it back at its end. A thread that leaves a commit by
/// `siglongjmp` keeps its own for good.
static SCRATCHES: [AtomicPtr<Scratch>; 64] = [const { AtomicPtr::new(null_mut()) }; 64];

impl Scratch {
    fn take() -> Option<*mut Self> {
        let mut free = SCRATCHES
            .iter()
            .filter(|place| !place.load(Ordering::Relaxed).is_null())
            .map(|place| place.swap(null_mut(), Ordering::Acquire));
        free.find(|scratch| !scratch.is_null())
            .or_else(|| syscall::map(size_of::<Self>()).ok().map(<*mut u8>::cast))
    }

    /// # Safety
    /// The caller took it, and does not use it any more.
    unsafe fn put(this: *mut Self) {
        let is_free = |place: &AtomicPtr<Self>| {
            let (order, failed) = (Ordering::Release, Ordering::Relaxed);
            place
                .compare_exchange(null_mut(), this, order, failed)
                .is_ok()
        };
        if !SCRATCHES.iter().any(is_free) {
            // SAFETY: a mapping of its own, by the caller's promise nobody's.
            unsafe { syscall::unmap(this.cast(), size_of::<Self>()) };
        }
    }
}

/// Encoded bytes of one batch.
#[repr(C)]
struct Output {
    length: usize,
    bytes: [u8; OUTPUT],
}

/// Room for what any codec makes of a full staging area.
const OUTPUT: usize = most_bytes(layout::STAGING_WORDS);

impl lockstep_format::codec::Sink for Output {
    fn put(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
        }
        self.length += 1;
    }
}

impl Thread {
    /// Makes a block of zeros usable: an empty stack, nothing attached.
    pub fn prepare(&mut self) {
        if !self.base.is_null() {
            return;
        }
        let entries = addr_of_mut!(self.first_entries).cast::<Entry>();
        // SAFETY: inside the array.
        unsafe {
            (*entries).key = u64::MAX;
            self.base = entries.add(1);
            self.end = entries.add(FIRST_ENTRIES);
        }
        self.top = self.base;
        self.loss = NOWHERE.as_ptr();
        let hot = addr_of_mut!(self.hot).cast::<u8>();
        // SAFETY: the block's own first page.
        let wiped = unsafe { syscall::advise(hot, PAGE, MADV_WIPEONFORK) };
        if wiped.is_err() {
            // A fork would go unnoticed and return into its parent's file.
            self.set_stopped();
        }
    }

    /// A block for the thread that is at work, with the memory that its first events touch: they come
    /// sooner than if they waited for that.
    pub fn prepare_first(process: &Process) {
        if !routines::thread().is_null() {
            return;
        }
        let Ok(memory) = syscall::map(size_of::<Self>()) else {
            return;
        };
        let block = memory.cast::<Self>();
        make(memory, FIRST_HEAD);
        // SAFETY: just mapped, all zeros, and nobody else's.
        let thread = unsafe { &mut *block };
        thread.prepare();
        if let Some(scratch) = Scratch::take() {
            make(scratch.cast(), size_of::<Scratch>());
            // SAFETY: just taken.
            unsafe { Scratch::put(scratch) };
        }
        make(
            thread.stack_end.as_ptr().wrapping_sub(FIRST_STACK),
            FIRST_STACK,
        );
        Encoding::new(process.codec(), &mut thread.encoder.0).warm();
        routines::set_thread(block);
    }

    /// Number of the thread in the process's file.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// How many symbols were stored.
    pub fn symbols(&self) -> u64 {
        // SAFETY: as in `make_room`.
        let staged = unsafe { self.hot.cursor.offset_from(self.staging()) };
        self.committed.symbols + staged as u64
    }

    /// The thread's chunk.
    pub fn chunk(&self) -> *mut u8 {
        self.chunk
    }

    /// Stores a word of the thread's chunk that stands for itself.
    pub fn tell(&mut self, at: usize, value: u64) {
        // SAFETY: aligned, inside the chunk.
        unsafe { self.chunk.add(at).cast::<u64>().write_volatile(value) };
    }

    /// xmm0 to xmm7 as the routine that is at work found them.
    pub fn vectors(&self) -> *const [u8; 128] {
        let end = core::ptr::addr_of!(self.stack_end).cast::<u8>();
        end.wrapping_sub(crate::x86_64::slow::XMM_ROOM).cast()
    }

    /// Number of entries.
    pub fn depth(&self) -> usize {
        // SAFETY: both point into the same allocation, top not below base.
        unsafe { self.top.offset_from_unsigned(self.base) }
    }

    /// Begins this thread's trace in the process's file, with the calls that are open already.
    pub fn attach(&mut self, process: &Process) -> Result<(), Stop> {
        self.tid = syscall::tid();
        self.loss = process.loss(loss::IN_SIGNAL);
        let slot = process.thread_chunk(self, true)?;
        self.row = Row {
            first: slot.index,
            number: 0,
            started: syscall::monotonic(),
            before: 0,
        };
        let depth = self.depth();
        self.begin(process, &slot, depth)
    }

    /// Begins the next segment, so that those before it can be dropped. Nothing may be staged.
    fn begin_segment(&mut self, process: &Process) -> Result<(), Stop> {
        let slot = process.thread_chunk(self, false)?;
        let ended = self.segment_at_work();
        self.row.number += 1;
        self.row.before += ended.map_or(0, |segment| segment.events);
        // A deeper stack would fill the segment; its outermost calls are not repeated.
        let inherited = self.depth().min(MOST_REPEATED);
        self.begin(process, &slot, inherited)?;
        if let Some(ended) = ended {
            process.complete(ended);
        }
        Ok(())
    }

    /// The segment at work, as it will be dropped some day.
    pub fn segment_at_work(&self) -> Option<Segment> {
        if self.hot.attached == 0 {
            return None;
        }
        // SAFETY: both point into the staging area.
        let staged = unsafe { self.hot.cursor.offset_from_unsigned(self.staging()) };
        let events = self.committed.symbols + self.committed.leaves + staged as u64;
        Some(Segment {
            at: self.chunk,
            offset: self.offset,
            events: events.saturating_sub(u64::from(self.inherited)),
        })
    }

    /// Goes on in the chunk in `slot`, beginning with the innermost `inherited` calls.
    fn begin(&mut self, process: &Process, slot: &Slot, inherited: usize) -> Result<(), Stop> {
        let (length, end) = if Setup::get().keep_last {
            (DATA_CHUNK, side::end_of_events())
        } else {
            (THREAD_CHUNK, THREAD_CHUNK as usize)
        };
        self.index = slot.index;
        self.chunk = slot.at;
        self.offset = slot.offset;
        self.inherited = inherited as u32;
        self.committed = Committed {
            bytes: 0,
            symbols: 0,
            leaves: 0,
            check: 0,
        };
        // SAFETY: the chunk is mapped and as long as this.
        unsafe {
            self.ready = slot.at.add(slot.ready);
            self.mirror = slot.at.add(layout::MIRROR).cast();
            self.place = Place {
                at: slot.at.add(layout::DATA),
                room: end - layout::DATA,
                ready: slot.at.add(slot.ready.max(DATA_PAGE)),
                sequence: 0,
            };
        }
        self.clear_encoder();
        const CHECKED: usize = layout::CHECK - chunk::SIZE;
        let mut head = [0u8; CHECKED + 4];
        put_u32(&mut head, layout::TID - chunk::SIZE, self.tid);
        put_u32(&mut head, layout::INHERITED - chunk::SIZE, self.inherited);
        put_u64(&mut head, layout::STARTED - chunk::SIZE, self.row.started);
        put_u32(&mut head, layout::SEGMENT - chunk::SIZE, self.row.number);
        put_u32(&mut head, layout::FIRST - chunk::SIZE, self.row.first);
        put_u64(&mut head, layout::BEFORE - chunk::SIZE, self.row.before);
        let sum = check::crc32c(&head[..CHECKED]);
        put_u32(&mut head, CHECKED, sum);
        self.write(layout::TID, &head);
        self.write(layout::COMMITTED, &self.state(&Tail::EMPTY));
        self.mirror_entries();
        Process::seal_chunk(slot.at, kind::THREAD, length, slot.index, 0);
        self.hot.cursor = self.staging();
        self.set_symbols_base();
        self.batch = SMALL_BATCH;
        self.set_limit();
        self.hot.attached = 1;
        holds::begin(self);
        side::begin(self, process, self.row.number == 0);
        let depth = self.depth();
        for index in depth - inherited..depth {
            let Some(entry) = self.entries().get(index).copied() else {
                break;
            };
            self.is_unmeasured = true;
            self.emit_call(process, entry.word(), entry.return_address)?;
        }
        self.settle();
        Ok(())
    }

    /// How far the fast path may go: a batch, and no deeper than there is room for entries.
    fn set_limit(&mut self) {
        // With fewer the next batch would end early.
        if self.free_entries() < layout::STAGING_WORDS {
            self.grow();
        }
        let words = self.batch.min(self.free_entries());
        // SAFETY: at most the whole staging area.
        let limit = unsafe { self.staging().add(words) };
        let end = (limit as usize).min(self.chunk as usize + DATA_PAGE);
        let missing = end.saturating_sub(self.ready as usize);
        if missing > 0 {
            let step = missing.next_multiple_of(PAGE);
            touch(self.ready as usize, step);
            self.ready = self.ready.wrapping_add(step);
        }
        self.room = limit;
        // Inline code records nothing then: see `crate::x86_64::every_time`.
        let is_slow = Setup::get().every_time;
        self.hot.limit = if is_slow { null_mut() } else { limit };
    }

    fn set_symbols_base(&mut self) {
        let staging = self.staging() as u64;
        self.symbols_base = (8 * self.committed.symbols).wrapping_sub(staging);
    }

    fn free_entries(&self) -> usize {
        // SAFETY: both point into the same allocation, top not above end.
        unsafe { self.end.offset_from_unsigned(self.top) }
    }

    pub fn staging(&self) -> *mut u64 {
        // SAFETY: inside the chunk.
        unsafe { self.chunk.add(layout::STAGING).cast() }
    }

    pub fn staging_end(&self) -> *mut u64 {
        // SAFETY: inside the chunk.
        unsafe { self.staging().add(layout::STAGING_WORDS) }
    }

    /// Lets the fast path go on after a silence.
    pub fn resume(&mut self) {
        self.suspended = false;
        if self.hot.attached != 0 {
            self.set_limit();
        }
    }

    /// Keeps a new frame. False where there is no memory for it.
    pub fn push(&mut self, process: &Process, entry: Entry) -> bool {
        if self.top == self.end && !self.grow() {
            process.count(loss::DEPTH, 1);
            return false;
        }
        // SAFETY: top < end.
        unsafe {
            self.top.write(entry);
            self.top = self.top.add(1);
        }
        true
    }

    /// Makes sure that an entry can be pushed.
    pub fn has_room(&mut self) -> bool {
        self.top != self.end || self.grow()
    }

    /// Copies the return addresses of the open calls for readers.
    fn mirror_entries(&mut self) {
        let depth = self.depth();
        for index in depth.saturating_sub(layout::MIRROR_WORDS)..depth {
            if let Some(entry) = self.entries().get(index) {
                // SAFETY: the index is inside the mirror.
                unsafe {
                    let place = self.mirror.add(index % layout::MIRROR_WORDS);
                    place.write_volatile(entry.return_address);
                }
            }
        }
    }

    /// Nobody may search the entries meanwhile: they move.
    fn grow(&mut self) -> bool {
        match Process::get() {
            Some(process) => process.alone(|| self.grow_entries()),
            None => false,
        }
    }

    fn grow_entries(&mut self) -> bool {
        let depth = self.depth();
        // With the sentinel.
        let used = depth + 1;
        let room = used * 4;
        if room > MOST_ENTRIES {
            return false;
        }
        let Ok(new) = syscall::map(room * ENTRY_SIZE) else {
            return false;
        };
        let new = new.cast::<Entry>();
        let restored = self.restored();
        let first = addr_of_mut!(self.first_entries).cast::<Entry>();
        // SAFETY: `used` entries are initialised from the sentinel on, and fit; the old memory is
        // given back unless it is part of the block.
        unsafe {
            let old = self.base.sub(1);
            core::ptr::copy_nonoverlapping(old, new, used);
            if old != first {
                syscall::unmap(old.cast(), self.end.offset_from_unsigned(old) * ENTRY_SIZE);
            }
            self.base = new.add(1);
            self.top = self.base.add(depth);
            self.end = new.add(room);
            self.mark = if restored == 0 {
                null_mut()
            } else {
                self.base.add(restored)
            };
        }
        true
    }

    /// Makes sure that `count` words fit into the staging area.
    pub fn make_room(&mut self, process: &Process, count: usize) -> Result<(), Stop> {
        if self.hot.cursor.wrapping_add(count) > self.room {
            self.commit(process)?;
            if Setup::get().keep_last {
                // A batch must fit however badly it compresses.
                let most = most_symbols(self.place.room / 2);
                if most < SMALL_BATCH || side::is_full(self) {
                    self.begin_segment(process)?;
                } else if most < self.batch {
                    self.batch = most;
                    self.set_limit();
                }
            }
        }
        Ok(())
    }

    /// Records one event.
    pub fn emit(&mut self, process: &Process, word: u64) -> Result<(), Stop> {
        self.make_room(process, 1)?;
        // SAFETY: room was made.
        unsafe {
            self.hot.cursor.write_volatile(word);
            self.hot.cursor = self.hot.cursor.add(1);
        }
        if Setup::get().every_time {
            side::stored(self, process);
        }
        Ok(())
    }

    /// Records a call.
    pub fn emit_call(
        &mut self,
        process: &Process,
        word: u32,
        return_address: u64,
    ) -> Result<(), Stop> {
        self.emit(process, u64::from(word) | return_address << 32)
    }

    /// Records one control symbol.
    pub fn emit_symbol(&mut self, process: &Process, symbol: u32) -> Result<(), Stop> {
        self.emit(process, staging_word(symbol))
    }

    /// Encodes the staging area and commits it: the redo log of `lockstep_format::process`.
    pub fn commit(&mut self, process: &Process) -> Result<(), Stop> {
        if self.hot.attached == 0 {
            return Ok(());
        }
        // SAFETY: as in `make_room`.
        let count = unsafe { self.hot.cursor.offset_from_unsigned(self.staging()) };
        if count == 0 {
            return Ok(());
        }
        let scratch = Scratch::take().ok_or(Stop::NoMemory)?;
        // SAFETY: nobody else has it, whatever stands in it is valid, and it is put back when it is not used any more.
        let encoded = unsafe {
            let encoded = self.encode(process, count, &mut *scratch);
            Scratch::put(scratch);
            encoded
        };
        let (length, tail) = encoded?;
        let staging = self.hot.cursor.wrapping_sub(count);
        let state = self.state(&tail);
        self.write(layout::INTENT, &state);
        self.set_phase(1);
        self.write(layout::COMMITTED, &state);
        // SAFETY: inside the staging area. Between two stores that are kept in order.
        unsafe { core::ptr::write_bytes(staging, 0, count) };
        self.set_phase(0);
        self.hot.cursor = staging;
        self.set_symbols_base();
        self.settle();
        // What compresses badly costs time: shorter batches keep the longest pause short. A short stream needs one page of the staging
        // area.
        let is_short = self.committed.symbols < SHORT_STREAM;
        self.batch = if is_short || length > count / 64 {
            SMALL_BATCH
        } else {
            (2 * self.batch).min(layout::STAGING_WORDS)
        };
        self.set_limit();
        Ok(())
    }

    /// Puts the last `count` staging words behind the stream, without committing them: how many bytes they became, and
    /// what would end the stream there.
    fn encode(
        &mut self,
        process: &Process,
        count: usize,
        scratch: &mut Scratch,
    ) -> Result<(usize, Tail), Stop> {
        let is_first = !core::mem::replace(&mut self.has_encoded, true);
        let mut encoding = Encoding::new(process.codec(), &mut self.encoder.0);
        if is_first {
            encoding.warm();
        }
        scratch.encoded.length = 0;
        // SAFETY: `count` words of the staging area, which nobody else writes.
        let words =
            unsafe { core::slice::from_raw_parts(self.hot.cursor.wrapping_sub(count), count) };
        let (known, leaves) = symbols_of(words, encoding.largest(), &mut scratch.symbols);
        let symbols = scratch.symbols.get(..known).unwrap_or(&[]);
        encoding.push_batch(symbols, &mut scratch.encoded);
        process.count(loss::SYMBOL, (count - known) as u64);
        let tail = encoding.tail();
        let length = scratch.encoded.length.min(OUTPUT);
        let bytes = scratch.encoded.bytes.get(..length).unwrap_or(&[]);
        self.append(process, bytes)?;
        self.mirror_entries();
        self.committed.check = check::extend(self.committed.check, bytes);
        self.committed.bytes += length as u64;
        self.committed.symbols += known as u64;
        self.committed.leaves += leaves;
        Ok((length, tail))
    }

    /// Puts encoded bytes behind the stream, in new chunks where needed.
    fn append(&mut self, process: &Process, bytes: &[u8]) -> Result<(), Stop> {
        let length = bytes.len();
        if Setup::get().keep_last && self.place.room < length {
            return Err(Stop::SizeLimit);
        }
        let mut done = 0;
        while done < length {
            if self.place.room == 0 {
                let sequence = self.place.sequence + 1;
                let (at, room) = process.data_chunk(self.index, sequence)?;
                self.place = Place {
                    at,
                    room,
                    // The first page is there, as it has a header.
                    ready: at.wrapping_sub(chunk::SIZE).wrapping_add(PAGE),
                    sequence,
                };
            }
            let part = self.place.room.min(length - done);
            self.place.get_ready(part);
            let Some(bytes) = bytes.get(done..done + part) else {
                break;
            };
            // SAFETY: `room` bytes are mapped at `at`.
            unsafe {
                core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.place.at, part);
                self.place.at = self.place.at.add(part);
            }
            self.place.room -= part;
            done += part;
        }
        Ok(())
    }

    fn state(&self, tail: &Tail) -> [u8; state::SIZE] {
        let mut bytes = [0; state::SIZE];
        put_u64(&mut bytes, state::BYTES, self.committed.bytes);
        put_u64(&mut bytes, state::SYMBOLS, self.committed.symbols);
        put_u64(&mut bytes, state::LEAVES, self.committed.leaves);
        put_u32(&mut bytes, state::STREAM_CHECK, self.committed.check);
        put_u32(&mut bytes, state::TAIL_LENGTH, tail.length as u32);
        put(&mut bytes, state::TAIL, &tail.bytes);
        let sum = check::crc32c(&bytes[..state::CHECK]);
        put_u32(&mut bytes, state::CHECK, sum);
        bytes
    }

    /// Copies `bytes` to the chunk, before whatever is stored next.
    fn write(&mut self, at: usize, bytes: &[u8]) {
        // SAFETY: the layout's areas lie inside the chunk.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.chunk.add(at), bytes.len());
        }
        // Stores retire in program order: only the compiler has to be kept from reordering.
        compiler_fence(Ordering::SeqCst);
    }

    fn set_phase(&mut self, phase: u32) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: aligned, inside the chunk.
        unsafe {
            self.chunk
                .add(layout::PHASE)
                .cast::<u32>()
                .write_volatile(phase);
        }
        compiler_fence(Ordering::SeqCst);
    }

    /// Brings the encoder to its beginning.
    fn clear_encoder(&mut self) {
        if !core::mem::replace(&mut self.has_encoded, false) {
            return;
        }
        let room = addr_of_mut!(self.encoder).cast::<u8>();
        // SAFETY: whole pages of private memory of ours, which become zeros.
        unsafe {
            // Not where the program keeps its memory from being paged out (`mlockall`).
            if syscall::advise(room, size_of::<EncoderRoom>(), MADV_DONTNEED).is_err() {
                core::ptr::write_bytes(room, 0, size_of::<EncoderRoom>());
            }
        }
    }

    /// Records nothing from here on; calls are counted.
    pub fn stop(&mut self, process: &Process, why: Stop) {
        self.loss = process.loss(why.counter());
        holds::stop(self);
        self.set_stopped();
    }

    fn set_stopped(&mut self) {
        self.hot.limit = null_mut();
        self.hot.busy = STOPPED;
        self.interrupted = STOPPED;
    }

    /// The slow path was left in the middle of its work: what it was doing stays half done, and so its
    /// stack and its encoder are never used again.
    pub fn abandon(&mut self, process: &Process) {
        if self.interrupted != STOPPED {
            self.loss = process.loss(loss::IN_SIGNAL);
            self.set_stopped();
        }
    }

    /// Whether every open frame would have returned without us, and none is a jump (a thread that ended
    /// by `pthread_exit` ends with that call open).
    pub fn may_have_returned(&self) -> bool {
        self.hot.attached != 0
            && self.hot.busy == 0
            && self.depth() > 0
            && self.restored() == self.depth()
            && self
                .entries()
                .last()
                .is_some_and(|top| !top.has(block::JUMP))
    }

    /// Emits the returns of a thread that is gone, as far as its staging area has room: nobody was
    /// there to see it return from frames that were restored (it caught an exception, say).
    pub fn close_returned(&mut self) {
        if !self.may_have_returned() {
            return;
        }
        let mut closed = 0;
        while self.depth() > 0 && self.hot.cursor < self.staging_end() {
            closed += 1;
            self.tell(layout::CLOSED, closed);
            // SAFETY: below the end of the staging area.
            unsafe {
                self.hot.cursor.write_volatile(staging_word(RETURN));
                self.hot.cursor = self.hot.cursor.add(1);
            }
            self.pop();
        }
    }

    /// Keeps the block for a thread to come, whose first event finds the memory that it needs; or gives it
    /// back, and that of its stack.
    ///
    /// # Safety
    /// The thread is gone, and nobody else points to the block.
    pub unsafe fn free(this: *mut Self) {
        // SAFETY: the caller's promise. What is not cleared is written before it is read.
        unsafe {
            (*this).arguments.free();
            let first = addr_of_mut!((*this).first_entries).cast::<Entry>();
            let base = (*this).base;
            if !base.is_null() && base.sub(1) != first {
                let old = base.sub(1);
                let length = (*this).end.offset_from_unsigned(old) * ENTRY_SIZE;
                syscall::unmap(old.cast(), length);
            }
            let room = SPARE
                .iter()
                .find(|spare| spare.load(Ordering::Relaxed).is_null());
            match room {
                // Blocks are put here under the process's lock: it is empty still.
                Some(room) => {
                    (*this).clear_encoder();
                    let length = core::mem::offset_of!(Self, first_entries);
                    core::ptr::write_bytes(this.cast::<u8>(), 0, length);
                    room.store(this, Ordering::Release);
                }
                None => syscall::unmap(this.cast(), size_of::<Self>()),
            }
        }
    }
}
