//! Side streams of a thread (`lockstep_format::side`): arguments of MPI calls and time points; and what they share with that of
//! returns which nobody saw ([`crate::inferred`]).
//!
//! Both are encoded where they come up and committed by one store, on the program's own stack while
//! [`crate::thread::Hot::busy`] keeps signal handlers out. Only what needs a system call (a chunk, memory, the
//! clock) goes the slow way, with signals blocked. A handler that jumps away from here for good leaves
//! `is_at_work` set: the thread's arguments end there, and further calls are counted.
//!
//! Where only the last events are kept, arguments and inferred returns lie in the segment that they belong
//! to, and begin anew with each; one that is full ends the segment.

use crate::entry::word_of;
use crate::handles;
use crate::inferred::Inferred;
use crate::process::Process;
use crate::setup::Setup;
use crate::syscall::{self, MADV_DONTNEED};
use crate::thread::Thread;
use crate::x86_64::arguments::Call;
use core::ptr::null_mut;
use core::sync::atomic::{Ordering, compiler_fence};
use lockstep_format::capture::{self, MOST_CAPTURE, MOST_ELEMENTS, MOST_PARAMETERS, op, wide};
use lockstep_format::codec::Sink;
use lockstep_format::plan::{SHORT, stub};
use lockstep_format::process::{clock, kind, stamp, thread as layout};
use lockstep_format::side::{Encoder, MOST_BYTES, MOST_VALUES, point, put_varint, segment, word};
use lockstep_format::symbol::from_staging_word;

/// Ticks between points that say no more than when the thread was seen, at least: about half a millisecond.
const GAP: u64 = 1 << 21;
/// Short calls whose times are kept: so many at once, and then one each 2 to this power ticks. A loop that asks a million
/// times a second whether something has come would fill the disk.
const MOST_CREDIT: u64 = 1 << 16;
const CREDIT: u32 = 16;
/// Bytes of all stamps, as points.
const POINTS: usize = POINT * layout::STAMP_COUNT;
/// Ticks between two readings of the kernel's clock, at least.
const CLOCK_GAP: u64 = 1 << 24;
/// More bytes than a time point takes.
const POINT: usize = 20;
/// Words of the staging area that a call which may wait finds free when it has begun: for its return, and for what the program
/// does before it reads its own clock. With fewer a batch is stored while it waits.
pub const ROOM: usize = 64;
/// Calls within calls whose results are waited for.
const PENDING: usize = 8;

/// Where a side stream goes on; zeros are a stream without a chunk.
#[repr(C)]
pub struct Stream {
    pub at: *mut u8,
    pub room: usize,
    spare: *mut u8,
    spare_room: usize,
    pub word: *mut u64,
    pub bytes: u64,
    chunks: u32,
    failed: bool,
}

impl Stream {
    pub const NEW: Self = Self {
        at: null_mut(),
        room: 0,
        spare: null_mut(),
        spare_room: 0,
        word: null_mut(),
        bytes: 0,
        chunks: 0,
        failed: false,
    };

    /// In a segment: no more than there is between `start` and `end` of its chunk.
    fn within(chunk: *mut u8, word: usize, start: usize, end: usize) -> Self {
        Self {
            at: chunk.wrapping_add(start),
            room: end - start,
            word: chunk.wrapping_add(word).cast(),
            // It does not grow.
            failed: true,
            ..Self::NEW
        }
    }

    pub fn has_room(&self, bytes: usize) -> bool {
        self.room + self.spare_room >= bytes
    }

    /// Makes sure of room. On the slow path only.
    pub fn grow(&mut self, process: &Process, index: u32, kind: u32, bytes: usize) {
        if self.failed || self.has_room(bytes) {
            return;
        }
        match process.side_chunk(kind, index, self.chunks) {
            Ok((word, at, room)) => {
                if self.chunks == 0 {
                    self.word = word;
                }
                if self.room == 0 {
                    (self.at, self.room) = (at, room);
                } else {
                    (self.spare, self.spare_room) = (at, room);
                }
                self.chunks += 1;
            }
            Err(_) => self.failed = true,
        }
    }

    /// Puts bytes behind the committed ones; there is room.
    pub fn append(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.room == 0 {
                (self.at, self.room) = (self.spare, self.spare_room);
                self.spare_room = 0;
            }
            let part = self.room.min(bytes.len());
            let (now, rest) = bytes.split_at(part);
            if now.is_empty() {
                return;
            }
            // SAFETY: `room` bytes are mapped at `at`.
            unsafe {
                core::ptr::copy_nonoverlapping(now.as_ptr(), self.at, part);
                self.at = self.at.add(part);
            }
            self.room -= part;
            bytes = rest;
        }
    }

    pub fn commit(&self, run: u32) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: in the stream's first chunk.
        unsafe { self.word.write_volatile(word(self.bytes, run)) };
        compiler_fence(Ordering::SeqCst);
    }
}

/// Times of a thread; zeros are none yet.
#[repr(C)]
pub struct Times {
    stream: Stream,
    /// Of the last point in the stream.
    symbols: u64,
    ticks: u64,
    /// When the thread was seen last.
    seen: u64,
    /// Of the first reading of the clock.
    first: u64,
    /// When to read it again.
    next: u64,
    readings: u32,
}

impl Times {
    const NEW: Self = Self {
        stream: Stream::NEW,
        symbols: 0,
        ticks: 0,
        seen: 0,
        first: 0,
        next: 0,
        readings: 0,
    };
}

/// Bytes that an encoder makes.
pub struct Bytes<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Bytes<N> {
    /// None yet.
    pub const NONE: Self = Self {
        bytes: [0; N],
        length: 0,
    };

    /// Those that were put.
    pub fn all(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }
}

impl<const N: usize> Sink for Bytes<N> {
    fn put(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }
}

/// A thread's arguments, seen from its block; zeros are none yet.
#[repr(C)]
pub struct Arguments {
    side: *mut Side,
    /// Calls whose arguments were not stored.
    lost: u64,
    failed: bool,
}

impl Arguments {
    /// Gives their memory back.
    ///
    /// # Safety
    /// The thread is gone.
    pub unsafe fn free(&mut self) {
        if !self.side.is_null() {
            // SAFETY: the caller's promise.
            unsafe { syscall::unmap(self.side.cast(), size_of::<Side>()) };
            self.side = null_mut();
        }
    }
}

/// A call that gives something back.
#[derive(Clone, Copy)]
struct Pending {
    slot: u64,
    /// What to take at the return.
    program: *const u8,
    arguments: [u64; MOST_PARAMETERS],
}

/// Arguments of a thread: a mapping of its own, made at its first MPI call; zeros are the beginning.
#[repr(C)]
struct Side {
    stream: Stream,
    is_at_work: bool,
    count: usize,
    pending: [Pending; PENDING],
    values: Values,
    output: Bytes<MOST_BYTES>,
    encoder: Encoder,
}

struct Values {
    values: [i64; MOST_VALUES],
    length: usize,
}

impl Values {
    fn push(&mut self, value: i64) {
        if let Some(place) = self.values.get_mut(self.length) {
            *place = value;
            self.length += 1;
        }
    }

    fn all(&self) -> &[i64] {
        self.values.get(..self.length).unwrap_or(&[])
    }
}

/// A call begins: keeps the time for [`enter`], if any is recorded.
pub fn begins(thread: &mut Thread) {
    if Setup::get().times {
        thread.began = ticks();
    }
}

/// The processor's time stamp counter.
fn ticks() -> u64 {
    // SAFETY: reads a register.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// A thread's trace begins, or its next segment: what a parent process left is none of its.
pub fn begin(thread: &mut Thread, process: &Process, is_first: bool) {
    let keep_last = Setup::get().keep_last;
    thread.times = Times::NEW;
    begin_stamps(thread, is_first);
    thread.inferred = Inferred::NEW;
    let side = thread.arguments.side;
    // SAFETY: null, or this thread's own mapping. Calls that are open yet return in this segment.
    let pending = unsafe { side.as_ref() }.map(|side| (side.count, side.pending));
    if !side.is_null() {
        // SAFETY: whole pages of this thread's own mapping, which become zeros.
        let _ = unsafe { syscall::advise(side.cast(), size_of::<Side>(), MADV_DONTNEED) };
    }
    if is_first {
        thread.arguments.lost = 0;
    } else {
        thread.tell(layout::ARGUMENTS_LOST, thread.arguments.lost);
        // SAFETY: as above.
        if let (Some(side), Some(pending)) = (unsafe { side.as_mut() }, pending) {
            (side.count, side.pending) = pending;
        }
    }
    if keep_last {
        let chunk = thread.chunk();
        let (start, end) = (segment::INFERRED, segment::END);
        let stream = Stream::within(chunk, layout::SEGMENT_INFERRED, start, end);
        thread.inferred = Inferred::within(stream);
        let (start, end) = (segment::TIMES, segment::INFERRED);
        thread.times.stream = Stream::within(chunk, layout::SEGMENT_TIMES, start, end);
        place(thread);
    }
    seen(thread, process);
}

/// Up to where the events of a segment may go.
pub fn end_of_events() -> usize {
    if Setup::get().arguments && handles::is_here() {
        segment::ARGUMENTS
    } else {
        end_of_arguments()
    }
}

/// Up to where its arguments may go.
fn end_of_arguments() -> usize {
    if Setup::get().times {
        segment::TIMES
    } else {
        segment::INFERRED
    }
}

/// Gives the arguments of a segment their place.
fn place(thread: &mut Thread) {
    let (chunk, start) = (thread.chunk(), end_of_events());
    // SAFETY: null, or this thread's own mapping.
    if let Some(side) = unsafe { thread.arguments.side.as_mut() } {
        let end = end_of_arguments();
        side.stream = Stream::within(chunk, layout::SEGMENT_ARGUMENTS, start, end);
    }
}

/// Whether a segment has to end because what stands beside its events has no more room: for a call and for what it
/// gives back, which is taken before the event that may begin another segment.
pub fn is_full(thread: &Thread) -> bool {
    // SAFETY: null, or this thread's own mapping.
    let side = unsafe { thread.arguments.side.as_ref() };
    !thread.inferred.has_room()
        || Setup::get().times && !thread.times.stream.has_room(POINTS)
        || handles::is_here() && side.is_some_and(|side| !side.stream.has_room(2 * MOST_BYTES))
}

/// Leads the next event to where a new segment begins, if this one is full.
pub fn end_segment(thread: &mut Thread) {
    if Setup::get().keep_last && is_full(thread) {
        (thread.hot.limit, thread.room) = (null_mut(), null_mut());
    }
}

/// An event was stored just now, where every one is measured. On the slow path only.
pub fn stored(thread: &mut Thread, process: &Process) {
    if core::mem::take(&mut thread.is_unmeasured) {
        return;
    }
    if !has_stamp(thread) {
        drain(thread, process);
    }
    put_stamp(thread, point::AFTER, ticks());
}

/// Where a thread's stamps go from here on.
fn begin_stamps(thread: &mut Thread, is_first: bool) {
    let has_times = Setup::get().times;
    let start = thread.chunk().wrapping_add(layout::STAMPS);
    let end = start.wrapping_add(layout::STAMP_COUNT * stamp::SIZE);
    // Without times there is never room for one, and nobody asks for any.
    thread.stamp = if has_times { start } else { end }.cast();
    thread.stamps_end = end.cast();
    if is_first {
        thread.credit = MOST_CREDIT;
    }
}

/// The thread is in the slow path: reads the clocks, makes room for stamps, and keeps the time.
pub fn seen(thread: &mut Thread, process: &Process) {
    if !Setup::get().times {
        return;
    }
    let now = ticks();
    if now >= thread.times.next {
        read_clocks(thread);
    }
    let times = &mut thread.times;
    let since = now.saturating_sub(times.seen);
    let credit = (since >> CREDIT).min(MOST_CREDIT);
    if credit > 0 {
        times.seen = now;
        thread.credit = (thread.credit + credit).min(MOST_CREDIT);
    }
    make_stamps(thread, process);
    let symbols = thread.symbols();
    thread.tell(layout::LAST_SYMBOLS, symbols);
    thread.tell(layout::LAST_TICKS, now);
    if now >= last_stamp(thread).wrapping_add(GAP) {
        put_stamp(thread, point::SEEN, now);
    }
}

/// Makes room for a few stamps, if there is little.
fn make_stamps(thread: &mut Thread, process: &Process) {
    let room = thread.stamps_end as usize - thread.stamp as usize;
    if Setup::get().times && room < stamp::SIZE * 8 {
        drain(thread, process);
    }
}

/// When the last time was kept.
fn last_stamp(thread: &Thread) -> u64 {
    let start = thread.chunk().wrapping_add(layout::STAMPS).cast::<u64>();
    if thread.stamp == start {
        return thread.times.ticks;
    }
    // SAFETY: a stamp is there before this place.
    unsafe { thread.stamp.sub(stamp::SIZE / 8).read_volatile() }
}

/// Whether there is room for a stamp.
fn has_stamp(thread: &Thread) -> bool {
    thread.stamp < thread.stamps_end
}

/// Keeps a time, if there is room.
fn put_stamp(thread: &mut Thread, kind: u64, now: u64) {
    if !has_stamp(thread) {
        return;
    }
    let symbols = thread.symbols();
    // SAFETY: inside the area of stamps. The second word makes it valid.
    unsafe {
        thread.stamp.write_volatile(now);
        let point = thread.stamp.add(stamp::POINT / 8);
        point.write_volatile(symbols << point::STAMP_BITS | kind);
        thread.stamp = thread.stamp.add(stamp::SIZE / 8);
    }
}

/// A call returns: keeps the time, or takes back that of its beginning where it was short. As EXIT_TIMED does.
fn put_end(thread: &mut Thread, now: u64, waits: bool) {
    if !has_stamp(thread) {
        return;
    }
    let start = thread.chunk().wrapping_add(layout::STAMPS).cast::<u64>();
    let begin = thread.symbols() << point::STAMP_BITS | point::AFTER;
    if thread.stamp != start {
        // SAFETY: a stamp is there before this place.
        let (ticks, point) = unsafe {
            (
                thread.stamp.sub(2).read_volatile(),
                thread.stamp.sub(1).read_volatile(),
            )
        };
        if point == begin && now.wrapping_sub(ticks) < SHORT {
            if !waits || thread.credit == 0 {
                // SAFETY: as above.
                unsafe {
                    thread.stamp.sub(1).write_volatile(0);
                    thread.stamp = thread.stamp.sub(2);
                }
                return;
            }
            thread.credit -= 1;
        }
    }
    put_stamp(thread, point::BEFORE, now);
}

/// Moves the stamps into the stream. On the slow path only.
fn drain(thread: &mut Thread, process: &Process) {
    let index = thread.index();
    let start = thread.chunk().wrapping_add(layout::STAMPS).cast::<u64>();
    let (end, times) = (thread.stamp, &mut thread.times);
    times.stream.grow(process, index, kind::TIMES, POINTS);
    let mut bytes = Bytes::<POINTS>::NONE;
    let mut last = (times.symbols, times.ticks);
    let mut at = start;
    while at < end {
        // SAFETY: a stamp, inside the area.
        let (ticks, point) = unsafe { (at.read_volatile(), at.add(1).read_volatile()) };
        at = at.wrapping_add(stamp::SIZE / 8);
        let kind = point & ((1 << point::STAMP_BITS) - 1);
        let symbols = point >> point::STAMP_BITS;
        // Processors' counters may differ by a little.
        let ticks = ticks.max(last.1);
        let more = symbols.wrapping_sub(last.0);
        put_varint(&mut bytes, more << point::BITS | kind);
        put_varint(&mut bytes, ticks - last.1);
        last = (symbols, ticks);
    }
    if times.stream.has_room(bytes.length) {
        (times.symbols, times.ticks) = last;
        times.stream.append(bytes.all());
    }
    if !times.stream.word.is_null() {
        times.stream.commit(0);
    }
    // A reader stops at the first that is not there.
    // SAFETY: the whole area up to the end of what was in it.
    unsafe { core::ptr::write_bytes(start, 0, (end as usize - start as usize) / 8) };
    thread.stamp = start;
    end_segment(thread);
}

fn read_clocks(thread: &mut Thread) {
    let (now, nanoseconds) = moment();
    let times = &mut thread.times;
    if times.readings == 0 {
        times.first = now;
        times.ticks = now;
        times.seen = now;
    }
    const LATER: usize = layout::CLOCK_COUNT - 1;
    let place = match times.readings {
        0 => 0,
        number => 1 + (number as usize - 1) % LATER,
    };
    times.readings += 1;
    times.next = now + CLOCK_GAP.max(now.wrapping_sub(times.first) / 2);
    let at = layout::CLOCKS + clock::SIZE * place;
    thread.tell(at + clock::CHECK, 0);
    thread.tell(at + clock::TICKS, now);
    thread.tell(at + clock::NANOSECONDS, nanoseconds);
    thread.tell(at + clock::CHECK, !(now ^ nanoseconds));
}

/// Both clocks at one moment: of a few tries that which took the least.
fn moment() -> (u64, u64) {
    const TRIES: u32 = 3;
    let (mut least, mut found) = (u64::MAX, (0, 0));
    for _ in 0..TRIES {
        let before = ticks();
        let nanoseconds = syscall::monotonic();
        let took = ticks().saturating_sub(before);
        if took < least {
            // The way back is the longer one.
            (least, found) = (took, (before + took * 3 / 8, nanoseconds));
        }
    }
    found
}

/// Whether a call's arguments and time can be taken without system calls; of a call that begins, the time of its return too.
pub fn is_ready(thread: &Thread, is_exit: bool) -> bool {
    let setup = Setup::get();
    let room = (thread.stamps_end as usize).saturating_sub(thread.stamp as usize);
    let wanted = stamp::SIZE * if is_exit { 1 } else { 2 };
    let has_room = is_exit || thread.hot.cursor.wrapping_add(ROOM) <= thread.room;
    let timed =
        !setup.times || (is_exit || thread.began < thread.times.next) && room >= wanted && has_room;
    let arguments = &thread.arguments;
    timed
        && (!setup.arguments
            || arguments.failed
            // SAFETY: null, or this thread's own mapping.
            || unsafe { arguments.side.as_ref() }
                .is_some_and(|side| side.stream.failed || side.stream.has_room(MOST_BYTES)))
}

/// The slow way of the routines that read the time: there is no room.
pub fn slow_timed(thread: &mut Thread, process: &Process, call: &Call, is_exit: bool) {
    if thread.hot.attached == 0 || thread.interrupted != 0 {
        return;
    }
    if thread.stamp == thread.stamps_end || !is_exit {
        make_stamps(thread, process);
    }
    if is_exit {
        put_end(thread, ticks(), waits(call));
    } else {
        put_stamp(thread, point::AFTER, thread.began);
    }
    seen(thread, process);
    if !is_exit {
        store_early(thread, process);
    }
}

/// A call has begun that may wait: stores a batch that is nearly full.
fn store_early(thread: &mut Thread, process: &Process) {
    if !thread.suspended
        && let Err(stop) = thread.make_room(process, ROOM)
    {
        thread.stop(process, stop);
    }
}

/// Whether times of the call are kept even if it is short.
fn waits(call: &Call) -> bool {
    // SAFETY: a stub that calls through, which stays mapped.
    unsafe { ((call.stub() + u64::from(stub::WAITS)) as *const u8).read() != 0 }
}

/// The slow way of the routines that take arguments.
pub fn slow(thread: &mut Thread, process: &Process, call: &Call, is_exit: bool) {
    if thread.hot.attached == 0 || thread.interrupted != 0 {
        return;
    }
    make_stamps(thread, process);
    let index = thread.index();
    if Setup::get().arguments {
        let arguments = &mut thread.arguments;
        if arguments.side.is_null() && !arguments.failed {
            match syscall::map(size_of::<Side>()) {
                Ok(at) => arguments.side = at.cast(),
                Err(_) => arguments.failed = true,
            }
            if Setup::get().keep_last {
                place(thread);
            }
        }
        let arguments = &mut thread.arguments;
        // SAFETY: null, or this thread's own mapping.
        if let Some(side) = unsafe { arguments.side.as_mut() } {
            let stream = &mut side.stream;
            stream.grow(process, index, kind::ARGUMENTS, MOST_BYTES);
        }
    }
    if is_exit {
        exit(thread, call);
    } else {
        enter(thread, call);
    }
    seen(thread, process);
    if !is_exit && Setup::get().times {
        store_early(thread, process);
    }
}

/// Takes the arguments of a call that was just recorded.
pub fn enter(thread: &mut Thread, call: &Call) {
    if Setup::get().times && !Setup::get().every_time {
        put_stamp(thread, point::AFTER, thread.began);
    }
    if !Setup::get().arguments {
        return;
    }
    // SAFETY: null, or this thread's own mapping.
    let side = unsafe { thread.arguments.side.as_mut() }.filter(|side| side.can_work());
    let Some(side) = side else {
        thread.arguments.lost += 1;
        return thread.tell(layout::ARGUMENTS_LOST, thread.arguments.lost);
    };
    side.is_at_work = true;
    let arguments = call.arguments();
    side.values.length = 0;
    side.values.push(call.return_address() as i64);
    // SAFETY: the program behind the stub, and what the MPI function will read too.
    let rest = unsafe { take(call.program(), &arguments, 0, &mut side.values) };
    side.store(call, 0);
    let is_over = |it: &Pending| it.slot <= call.slot();
    while side
        .count
        .checked_sub(1)
        .and_then(|top| side.pending.get(top))
        .is_some_and(is_over)
    {
        side.count -= 1;
    }
    // SAFETY: inside the program.
    if unsafe { *rest } != op::END
        && let Some(place) = side.pending.get_mut(side.count)
    {
        *place = Pending {
            slot: call.slot(),
            program: rest,
            arguments,
        };
        side.count += 1;
    }
    side.is_at_work = false;
    end_segment(thread);
}

/// Takes what a call gave back, and last the time of its return: what that costs belongs to the call, as it does by the
/// program's own clock.
pub fn exit(thread: &mut Thread, call: &Call) {
    take_results(thread, call);
    if Setup::get().times && !Setup::get().every_time {
        put_end(thread, ticks(), true);
    }
}

fn take_results(thread: &mut Thread, call: &Call) {
    // SAFETY: null, or this thread's own mapping.
    let Some(side) = (unsafe { thread.arguments.side.as_mut() }) else {
        return;
    };
    let is_this = |it: &Pending| it.slot == call.slot();
    let calls = side.pending.get(..side.count).unwrap_or(&[]);
    let Some(index) = calls.iter().rposition(is_this) else {
        return;
    };
    let Some(pending) = calls.get(index).copied() else {
        return;
    };
    side.count = index;
    if !side.can_work() {
        return;
    }
    side.is_at_work = true;
    side.values.length = 0;
    // SAFETY: the program behind the stub; results that the MPI function wrote.
    unsafe {
        take(
            pending.program,
            &pending.arguments,
            call.returned(),
            &mut side.values,
        )
    };
    side.store(call, 1);
    side.is_at_work = false;
    end_segment(thread);
}

impl Side {
    fn can_work(&self) -> bool {
        !self.is_at_work && self.stream.has_room(MOST_BYTES)
    }

    fn store(&mut self, call: &Call, result: u32) {
        let word = u64::from(word_of(call.stub()));
        let Some(event) = from_staging_word(word) else {
            return;
        };
        self.output.length = 0;
        let key = event.symbol << 1 | result;
        let run = self.encoder.push(key, self.values.all(), &mut self.output);
        self.stream.append(self.output.all());
        self.stream.commit(run);
    }
}

/// Runs a capture program up to its end, which it returns the place behind.
///
/// # Safety
/// The program is one, and the call's arguments are such as the function takes.
unsafe fn take(
    program: *const u8,
    arguments: &[u64; MOST_PARAMETERS],
    returned: i32,
    values: &mut Values,
) -> *const u8 {
    let argument = |index: u8| arguments.get(index as usize).copied().unwrap_or(0);
    let mut at = program;
    let mut happened = true;
    for _ in 0..MOST_CAPTURE {
        // SAFETY: the caller's promise: instructions up to an END; memory that the function reads or
        // wrote itself.
        unsafe {
            let code = *at;
            if code == op::END {
                break;
            }
            let second = *at.add(1);
            let value = argument(second & 15);
            let counter = argument(code >> 4);
            at = at.add(2);
            match code & 15 {
                // `op::CODE`
                op::END if returned != 0 => values.push(capture::code(returned)),
                op::INT => values.push(i64::from(value as i32)),
                op::LONG => values.push(value as i64),
                op::BUFFER => values.push(handles::buffer(value)),
                op::HANDLE => values.push(handles::value(value)),
                op::INT_AT => values.push(int_at(value)),
                op::LONG_AT => values.push(long_at(value)),
                op::HANDLE_AT => values.push(handle_at(value)),
                op::FLAG_AT => {
                    let flag = int_at(value);
                    happened = flag != 0;
                    values.push(flag);
                }
                op::HANDLES_AT => {
                    let size = handles::size();
                    let count = elements(i64::from(counter as i32), value, values);
                    (0..count).for_each(|index| values.push(handle_at(value + index * size)));
                }
                op::INTS_AT => {
                    let count = elements(i64::from(counter as i32), value, values);
                    (0..count).for_each(|index| values.push(int_at(value + index * 4)));
                }
                op::INTS_COUNTED_AT => {
                    let count = elements(int_at(counter), value, values);
                    (0..count).for_each(|index| values.push(int_at(value + index * 4)));
                }
                op::STATUS_AT => {
                    if happened && !handles::is_ignored(value) {
                        let status = handles::status(value);
                        values.push(status.0);
                        values.push(status.1);
                        values.push(status.2);
                    }
                }
                op::STATUSES_AT | op::STATUSES_COUNTED_AT => {
                    let count = if code & 15 == op::STATUSES_AT {
                        i64::from(counter as i32)
                    } else {
                        int_at(counter)
                    };
                    if happened && !handles::is_ignored(value) {
                        let count = elements(count, value, values);
                        for index in 0..count {
                            let status = handles::status(value + index * handles::status_size());
                            values.push(status.0);
                            values.push(status.1);
                        }
                    }
                }
                op::WIDE => match second >> 4 {
                    wide::LONGS_AT | wide::LONGS_COUNTED_AT => {
                        let count = if second >> 4 == wide::LONGS_AT {
                            i64::from(counter as i32)
                        } else {
                            int_at(counter)
                        };
                        let count = elements(count, value, values);
                        (0..count).for_each(|index| values.push(long_at(value + index * 8)));
                    }
                    which @ (wide::INTS_OF_RANKS
                    | wide::INTS_OF_RANKS_AT
                    | wide::INTS_AT_ROOT
                    | wide::INTS_AT_ROOT_AT) => {
                        let buffer = argument((second & 15).wrapping_sub(1));
                        let root = argument((code >> 4).wrapping_sub(1));
                        let is_read = handles::buffer(buffer) != handles::IN_PLACE
                            && match which {
                                wide::INTS_AT_ROOT => handles::is_rank(i64::from(root as i32)),
                                wide::INTS_AT_ROOT_AT => handles::is_rank(int_at(root)),
                                _ => true,
                            };
                        let ranks = handles::ranks(communicator(which, counter));
                        let count = elements(if is_read { ranks } else { 0 }, value, values);
                        (0..count).for_each(|index| values.push(int_at(value + index * 4)));
                    }
                    wide::TRIPLES_AT | wide::TRIPLES_COUNTED_AT => {
                        let count = if second >> 4 == wide::TRIPLES_AT {
                            i64::from(counter as i32)
                        } else {
                            int_at(counter)
                        };
                        let count = elements(count.saturating_mul(3), value, values);
                        (0..count).for_each(|index| values.push(int_at(value + index * 4)));
                    }
                    which @ (wide::INTS_OF_DIMENSIONS | wide::INTS_OF_DIMENSIONS_AT) => {
                        let (_, comm) = communicator(which, counter);
                        let mut count = handles::dimensions(comm);
                        // What the library says of a handle may have changed since: nothing is read beyond the page of the first.
                        if value % 4096 + count as u64 * 4 > 4096 {
                            count = 0;
                        }
                        let count = elements(count, value, values);
                        (0..count).for_each(|index| values.push(int_at(value + index * 4)));
                    }
                    wide::GRID => {
                        handles::learn_dimensions(handle_at(value), i64::from(counter as i32));
                    }
                    wide::GRID_AT => handles::learn_dimensions(int_at(value), int_at(counter)),
                    which @ (wide::SIZE | wide::SIZE_AT) => {
                        handles::learn_ranks(communicator(which, counter), int_at(value));
                    }
                    which @ (wide::RANK | wide::RANK_AT) => {
                        handles::learn_rank(communicator(which, counter), int_at(value));
                    }
                    _ => break,
                },
                _ => break,
            }
        }
    }
    // SAFETY: at the END.
    unsafe { at.add(1) }
}

/// A communicator from its register, or from where Fortran passes it (the odd instructions); and whether it is one of C.
///
/// # Safety
/// As of [`take`].
unsafe fn communicator(which: u8, value: u64) -> (bool, i64) {
    if which & 1 == 0 {
        (true, handles::value(value))
    } else {
        // SAFETY: the caller's promise.
        (false, unsafe { int_at(value) })
    }
}

/// Stores the number of elements; how many of them are taken.
fn elements(count: i64, at: u64, values: &mut Values) -> u64 {
    values.push(count);
    if is_null(at) {
        0
    } else {
        count.clamp(0, MOST_ELEMENTS as i64) as u64
    }
}

/// MPI libraries use small numbers for special addresses.
fn is_null(at: u64) -> bool {
    at < 4096
}

unsafe fn int_at(at: u64) -> i64 {
    if is_null(at) {
        return 0;
    }
    // SAFETY: the caller's promise.
    i64::from(unsafe { (at as *const i32).read_unaligned() })
}

unsafe fn long_at(at: u64) -> i64 {
    if is_null(at) {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe { (at as *const i64).read_unaligned() }
}

unsafe fn handle_at(at: u64) -> i64 {
    if is_null(at) {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe {
        if handles::size() == 8 {
            (at as *const i64).read_unaligned()
        } else {
            int_at(at)
        }
    }
}
