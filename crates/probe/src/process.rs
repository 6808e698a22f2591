//! The process file: made in the constructor and again in every forked child, grown extent by
//! extent, written to by all threads of the process.
//!
//! [`Process`] lies in pages that the kernel wipes in a forked child, so that the child finds no file
//! and no lock there; [`Setup`] is what both share.
//!
//! The file grows in the place of an event. The recorder could grow it ahead of need, but it sees the processes of
//! its own host only, and a thread would have to learn from shared memory how far it may go, which must steer
//! nobody. And the first store to a page of a shared mapping takes the kernel more than two microseconds, however
//! long the page has been in the file: the longest event would be shorter, and still too long.

use crate::encoder::touch;
use crate::load;
use crate::lock::Lock;
use crate::ring::{Ring, Segment, clear};
use crate::setup::Setup;
use crate::syscall::{
    self, AS_IT_IS, Errno, Fd, MADV_POPULATE_WRITE, MADV_RANDOM, MADV_WIPEONFORK, O_CREAT, O_EXCL,
    O_NOFOLLOW, O_RDONLY, O_RDWR, Stat,
};
use crate::text::Text;
use crate::thread::{FIRST_PAGE, NO_MEMORY, Thread, WITHOUT_MEMORY};
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence};
use lockstep_format::bytes::{put, put_u32, put_u64};
use lockstep_format::check::crc32c;
use lockstep_format::codec::Kind;
use lockstep_format::process::{
    self as layout, DATA_CHUNK, FIRST_EXTENT, PAGE, THREAD_CHUNK, chunk, extent_end, flag, header,
    kind, loss,
};
use lockstep_format::side;
use lockstep_format::stat;

/// Why a thread stops recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The file cannot grow.
    NoSpace,
    /// The file must not grow.
    FileLimit,
    /// The run must not grow.
    SizeLimit,
    /// There is no file, or none that can be opened again.
    NoFile,
    /// It cannot be mapped.
    NoMemory,
}

impl Stop {
    /// All, as states of a process (see [`FAILED`]).
    const ALL: [Self; 5] = [
        Self::NoSpace,
        Self::FileLimit,
        Self::SizeLimit,
        Self::NoFile,
        Self::NoMemory,
    ];

    /// The loss counter for it.
    pub fn counter(self) -> usize {
        match self {
            Self::NoSpace => loss::NO_SPACE,
            Self::FileLimit => loss::FILE_LIMIT,
            Self::SizeLimit => loss::SIZE_LIMIT,
            Self::NoFile => loss::NO_FILE,
            Self::NoMemory => loss::NO_MEMORY,
        }
    }
}

/// This process.
#[repr(C)]
pub struct Process {
    lock: Lock,
    state: AtomicU32,
    pid: AtomicU32,
    header: AtomicPtr<u8>,
    file: UnsafeCell<File>,
}

/// A thread's chunk.
pub struct Slot {
    /// Where it is mapped.
    pub at: *mut u8,
    /// Where it lies in the file.
    pub offset: u64,
    /// Its index.
    pub index: u32,
    /// Bytes of it whose pages are there.
    pub ready: usize,
}

/// No file yet: the state after a fork.
const NEW: u32 = 0;
const READY: u32 = 1;
/// And above, by why.
const FAILED: u32 = 2;

/// What only the lock's owner touches.
struct File {
    identity: Option<Stat>,
    extent: *mut u8,
    extent_start: u64,
    extent_end: u64,
    next: u64,
    threads: *mut Thread,
    thread_count: u32,
    sweep_at: u32,
    next_index: u32,
    exec_count: u32,
    /// Chunks of facts behind the first.
    more_facts: u32,
    /// It cannot grow any more; asked once, of what keeps the last events.
    is_full: bool,
    ring: Ring,
    start: u64,
    path: Text<4352>,
}

// SAFETY: `file` is touched under `lock` only.
unsafe impl Sync for Process {}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());
/// The header page of this process's file; in a forked child that has none, of its parent's, where its losses are
/// counted. Never wiped.
static LAST_HEADER: AtomicPtr<u8> = AtomicPtr::new(null_mut());

impl Process {
    /// Reserves the pages; before anything is patched.
    pub fn reserve() -> Result<(), Errno> {
        const LENGTH: usize = size_of::<Process>().next_multiple_of(PAGE as usize);
        let at = syscall::map(LENGTH)?;
        // SAFETY: fresh memory of ours.
        unsafe { syscall::advise(at, LENGTH, MADV_WIPEONFORK)? };
        PROCESS.store(at.cast(), Ordering::Release);
        Ok(())
    }

    /// This process, if the probe is at work in it.
    pub fn get() -> Option<&'static Self> {
        // SAFETY: null, or reserved for ever; zeros are a valid value.
        unsafe { PROCESS.load(Ordering::Acquire).as_ref() }
    }

    /// Where the list of threads begins, for ever.
    pub fn threads_at(&self) -> u64 {
        // SAFETY: an address; nothing is read.
        unsafe { &raw const (*self.file.get()).threads as u64 }
    }

    /// Whether this is the process that the file belongs to: not so in a child of `vfork`, which
    /// runs in its parent's memory.
    pub fn is_own(&self) -> bool {
        self.pid.load(Ordering::Relaxed) == syscall::pid()
    }

    /// Whether there is a file.
    pub fn is_ready(&self) -> bool {
        self.state.load(Ordering::Acquire) == READY
    }

    /// The codec of this process's streams.
    pub fn codec(&self) -> Kind {
        Setup::get().codec
    }

    /// Whose the files are that this process makes in the run, as far as it has made one.
    pub fn makes(&self) -> Option<u32> {
        self.locked(|file| file.identity.map(|identity| identity.user))
    }

    fn locked<T>(&self, work: impl FnOnce(&mut File) -> T) -> T {
        // SAFETY: this thread holds the lock.
        self.lock.with(|| work(unsafe { &mut *self.file.get() }))
    }

    /// Does `work` while no other thread searches what threads keep.
    pub fn alone<T>(&self, work: impl FnOnce() -> T) -> T {
        self.locked(|_| work())
    }

    /// Makes the file, with nothing in it yet: in the constructor, before anything is patched. A
    /// program that cannot be recorded is not touched.
    pub fn claim(&self) -> Result<(), Stop> {
        self.locked(|file| self.create(file))
    }

    /// Makes the file unless it is there: in the constructor, or in a forked child.
    pub fn open(&self, flags: u32) -> Result<(), Stop> {
        if self.state.load(Ordering::Acquire) == NEW {
            self.make(flags);
        }
        match self.state.load(Ordering::Acquire) {
            READY => Ok(()),
            failed => {
                let why = Stop::ALL.get(failed.wrapping_sub(FAILED) as usize);
                Err(why.copied().unwrap_or(Stop::NoFile))
            }
        }
    }

    fn make(&self, flags: u32) {
        self.locked(|file| {
            if self.state.load(Ordering::Acquire) == NEW {
                let made = if file.extent.is_null() {
                    self.create(file)
                } else {
                    Ok(())
                };
                let state = match made {
                    Ok(()) => {
                        self.describe(file, flags);
                        READY
                    }
                    Err(why) => FAILED + why as u32,
                };
                self.state.store(state, Ordering::Release);
            }
        });
    }

    fn create(&self, file: &mut File) -> Result<(), Stop> {
        let setup = Setup::get();
        let pid = syscall::pid();
        let start = start_time();
        let mut found = Err(Stop::NoFile);
        // A process that replaced its program has files of the former ones.
        for count in 0..10_000u32 {
            file.path = setup.process_path(pid, start, count);
            match syscall::open(file.path.bytes(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW) {
                Ok(fd) => {
                    found = Ok((fd, count));
                    break;
                }
                Err(Errno::EEXIST) => {}
                Err(Errno::ENOSPC | Errno::EDQUOT) => {
                    found = Err(Stop::NoSpace);
                    break;
                }
                Err(_) => break,
            }
        }
        let (fd, count) = found?;
        file.identity = fd.stat().ok();
        let end = setup.budget.grow(0, FIRST_EXTENT);
        if end < FIRST_EXTENT {
            setup.budget.give_back(end);
            return Err(Stop::SizeLimit);
        }
        file.extent = map_extent(&fd, 0, end)?;
        file.extent_start = 0;
        file.extent_end = end;
        file.exec_count = count;
        file.start = start;
        self.pid.store(pid, Ordering::Relaxed);
        // In a forked child: the parent's calls are not its own.
        load::each_counters(|page| {
            // SAFETY: a page of counters of ours.
            let _ = unsafe { fd.map_shared_over(page, PAGE as usize) };
        });
        if count > 0 {
            let makes = file.identity.map(|identity| identity.user);
            tell_exec(setup, makes, pid, start, count - 1);
        }
        Ok(())
    }

    /// Writes facts and header.
    fn describe(&self, file: &mut File, flags: u32) {
        let setup = Setup::get();
        let facts = setup.facts.bytes();
        let facts_length = (chunk::SIZE + facts.len()).next_multiple_of(PAGE as usize);
        file.next = PAGE + facts_length as u64;

        let mut fields = [0u8; 128];
        put(&mut fields, header::MAGIC, &layout::MAGIC);
        put_u32(&mut fields, header::VERSION, layout::VERSION);
        put_u32(&mut fields, header::BYTE_ORDER, layout::BYTE_ORDER);
        put_u32(&mut fields, header::CODEC, self.codec() as u32);
        put_u32(&mut fields, header::PID, self.pid.load(Ordering::Relaxed));
        put_u32(&mut fields, header::PARENT, syscall::parent());
        put_u32(&mut fields, header::EXEC_COUNT, file.exec_count);
        put_u64(&mut fields, header::START_TIME, file.start);
        put_u64(&mut fields, header::CREATED, syscall::real_time());
        put_u64(&mut fields, header::CREATED_CLOCK, syscall::monotonic());
        let sum = crc32c(&fields[..header::CHECK]);
        put_u32(&mut fields, header::CHECK, sum);
        let kept = if setup.keep_last { flag::KEEPS_LAST } else { 0 };
        put_u32(&mut fields, header::FLAGS, flags | kept | flag::HOLDS);
        let head = file.extent;
        // SAFETY: the first extent is mapped, and longer than header and facts (`Setup` sees to it).
        unsafe {
            let chunk_at = head.add(PAGE as usize);
            core::ptr::copy_nonoverlapping(facts.as_ptr(), chunk_at.add(chunk::SIZE), facts.len());
            seal(chunk_at, kind::FACTS, facts_length as u64, 0, 0, facts);
            core::ptr::copy_nonoverlapping(fields.as_ptr(), head, fields.len());
        }
        // Where the first thread's events will be.
        populate(head.wrapping_add(file.next as usize), THREAD_CHUNK as usize);
        self.header.store(head, Ordering::Release);
        LAST_HEADER.store(head, Ordering::Release);
        WITHOUT_MEMORY.store(self.loss(loss::NO_MEMORY), Ordering::Release);
        self.count(loss::NO_MEMORY, NO_MEMORY.swap(0, Ordering::Relaxed));
        self.count(
            loss::UNEXPECTED_TEXT,
            setup.unexpected_text.load(Ordering::Relaxed),
        );
    }

    /// Takes a chunk of `length` bytes, zeros: where it is mapped, and where it lies in the file.
    fn take(file: &mut File, length: u64) -> Result<(*mut u8, u64), Stop> {
        if file.next + length > file.extent_end {
            let start = file.extent_end;
            let fd = Self::reopen(file)?;
            let budget = &Setup::get().budget;
            let end = budget.grow(start, extent_end(start));
            let extent = if start + length > end {
                Err(Stop::SizeLimit)
            } else {
                map_extent(&fd, start, end - start)
            };
            if extent.is_err() {
                budget.give_back(end - start);
            }
            file.extent = extent?;
            file.extent_start = start;
            file.extent_end = end;
            file.next = start;
        }
        let at = file.next;
        file.next += length;
        // SAFETY: inside the extent.
        let mapped = unsafe { file.extent.add((at - file.extent_start) as usize) };
        Ok((mapped, at))
    }

    /// Where a thread's events go from here on: its chunk. `is_new` where it has none yet.
    pub fn thread_chunk(&self, thread: *mut Thread, is_new: bool) -> Result<Slot, Stop> {
        let mut slot = self.locked(|file| {
            if file.thread_count >= file.sweep_at.max(16) {
                self.sweep(file);
            }
            let (at, offset) = if Setup::get().keep_last {
                self.slot(file)?
            } else {
                Self::take(file, THREAD_CHUNK)?
            };
            let index = file.next_index;
            file.next_index += 1;
            if is_new {
                // SAFETY: the caller's own block.
                unsafe { (*thread).next = file.threads };
                file.threads = thread;
                file.thread_count += 1;
            }
            Ok(Slot {
                at,
                offset,
                index,
                // See `describe`.
                ready: if index == 0 { THREAD_CHUNK as usize } else { 0 },
            })
        })?;
        // Not under the lock: others wait there.
        if slot.ready == 0 {
            touch(slot.at as usize, FIRST_PAGE);
            slot.ready = FIRST_PAGE;
        }
        Ok(slot)
    }

    /// A slot of the ring: a new one, or that of the oldest complete segment.
    fn slot(&self, file: &mut File) -> Result<(*mut u8, u64), Stop> {
        let mut why = Stop::SizeLimit;
        if !file.is_full {
            match Self::take(file, DATA_CHUNK) {
                Ok(found) => return Ok(found),
                Err(stop) => why = stop,
            }
            file.is_full = true;
        }
        let mut oldest = file.ring.pop();
        if oldest.is_none() {
            // Threads that are gone have segments that nobody ended.
            self.sweep(file);
            oldest = file.ring.pop();
        }
        let segment = oldest.ok_or(why)?;
        self.count(loss::SIZE_LIMIT, segment.events);
        self.set_clearing(segment.offset);
        // SAFETY: complete segments belong to nobody.
        unsafe { clear(segment.at) };
        self.set_clearing(0);
        Ok((segment.at, segment.offset))
    }

    /// Says which chunk is neither what it was nor zeros.
    fn set_clearing(&self, offset: u64) {
        let head = self.header.load(Ordering::Acquire);
        compiler_fence(Ordering::SeqCst);
        if !head.is_null() {
            // SAFETY: aligned, inside the header page.
            unsafe {
                head.add(header::CLEARING)
                    .cast::<u64>()
                    .write_volatile(offset)
            };
        }
        compiler_fence(Ordering::SeqCst);
    }

    /// A segment has a successor: it may be dropped.
    pub fn complete(&self, segment: Segment) {
        self.locked(|file| file.ring.push(segment));
    }

    /// Remembers a thread that records nothing, whose memory is given back when it is gone.
    pub fn keep(&self, thread: &mut Thread) {
        self.pid.store(syscall::pid(), Ordering::Relaxed);
        self.locked(|file| {
            self.sweep(file);
            thread.next = file.threads;
            file.threads = thread;
            file.thread_count += 1;
        });
    }

    /// Another chunk of a thread's stream: where its payload goes and how much of it there is.
    pub fn data_chunk(&self, index: u32, sequence: u32) -> Result<(*mut u8, usize), Stop> {
        let (at, _) = self.locked(|file| Self::take(file, DATA_CHUNK))?;
        Self::seal_chunk(at, kind::DATA, DATA_CHUNK, index, sequence);
        // SAFETY: inside the chunk.
        let payload = unsafe { at.add(chunk::SIZE) };
        Ok((payload, DATA_CHUNK as usize - chunk::SIZE))
    }

    /// Puts the header of the file, with its counters, in the place of the page at `address`.
    ///
    /// # Safety
    /// The page is that of an arena's counters.
    pub unsafe fn map_counters(&self, address: u64) -> Result<(), Stop> {
        self.locked(|file| {
            let fd = Self::reopen(file)?;
            // SAFETY: the caller's promise.
            unsafe { fd.map_shared_over(address, PAGE as usize) }.map_err(|_| Stop::NoSpace)
        })
    }

    /// The file, if what stands at its path is still it.
    fn reopen(file: &File) -> Result<Fd, Stop> {
        let fd = syscall::open(file.path.bytes(), O_RDWR | AS_IT_IS).map_err(|_| Stop::NoFile)?;
        let same = |a: &Stat, b: &Stat| (a.device, a.inode) == (b.device, b.inode);
        match (fd.stat(), file.identity) {
            (Ok(now), Some(then)) if same(&now, &then) => Ok(fd),
            _ => Err(Stop::NoFile),
        }
    }

    /// Adds facts that came up later, if there is a file: else they are written with it.
    pub fn add_facts(&self, facts: &[u8]) -> Result<(), Stop> {
        if !self.is_ready() || !self.is_own() {
            return Err(Stop::NoFile);
        }
        let length = (chunk::SIZE + facts.len()).next_multiple_of(PAGE as usize) as u64;
        self.locked(|file| {
            let (at, _) = Self::take(file, length)?;
            file.more_facts += 1;
            // SAFETY: the chunk is as long as this.
            unsafe {
                core::ptr::copy_nonoverlapping(facts.as_ptr(), at.add(chunk::SIZE), facts.len());
                seal(at, kind::FACTS, length, 0, file.more_facts, facts);
            }
            Ok(())
        })
    }

    /// A chunk of a thread's side stream: its control word (of the first only), where its payload goes
    /// and how much of it there is.
    pub fn side_chunk(
        &self,
        kind: u32,
        index: u32,
        sequence: u32,
    ) -> Result<(*mut u64, *mut u8, usize), Stop> {
        let (length, data) = match sequence {
            0 => (side::FIRST_CHUNK, side::control::DATA),
            _ => (DATA_CHUNK, chunk::SIZE),
        };
        let (at, _) = self.locked(|file| Self::take(file, length))?;
        Self::seal_chunk(at, kind, length, index, sequence);
        // SAFETY: inside the chunk.
        let (word, payload) = unsafe { (at.add(side::control::WORD).cast(), at.add(data)) };
        Ok((word, payload, length as usize - data))
    }

    /// Writes the header of a chunk whose content is in place.
    pub fn seal_chunk(at: *mut u8, kind: u32, length: u64, thread: u32, sequence: u32) {
        // SAFETY: a chunk that `take` gave.
        unsafe { seal(at, kind, length, thread, sequence, &[]) };
    }

    /// Gives the memory of threads that are gone back.
    fn sweep(&self, file: &mut File) {
        let pid = self.pid.load(Ordering::Relaxed);
        let mut link = &raw mut file.threads;
        // SAFETY: the list holds blocks of this process, each once; that of a thread which the kernel
        // does not know any more is nobody's.
        unsafe {
            while !(*link).is_null() {
                let thread = *link;
                if syscall::is_alive(pid, (*thread).tid) {
                    link = &raw mut (*thread).next;
                } else {
                    *link = (*thread).next;
                    file.thread_count -= 1;
                    (*thread).close_returned();
                    if Setup::get().keep_last
                        && let Some(segment) = (*thread).segment_at_work()
                    {
                        file.ring.push(segment);
                    }
                    Thread::free(thread);
                }
            }
        }
        file.sweep_at = file.thread_count * 2;
    }

    /// Ends the frames of threads that are gone, at the end of the process.
    pub fn close_threads(&self) {
        let pid = self.pid.load(Ordering::Relaxed);
        self.locked(|file| {
            let mut thread = file.threads;
            // SAFETY: as in `sweep`.
            while let Some(block) = unsafe { thread.as_mut() } {
                if block.may_have_returned() && !syscall::is_alive(pid, block.tid) {
                    block.close_returned();
                }
                thread = block.next;
            }
        });
    }

    /// The return address that some thread keeps for `slot`, for a frame that moved between threads.
    pub fn search(&self, slot: u64, hook: u64) -> Option<u64> {
        self.locked(|file| {
            let mut thread = file.threads;
            // SAFETY: as in `sweep`. Another thread may push meanwhile; an entry that is waited for
            // does not move.
            while let Some(block) = unsafe { thread.as_ref() } {
                let found = block.entries().iter().rev();
                for entry in found {
                    if entry.slot() == slot && entry.hook() == hook {
                        return Some(entry.return_address);
                    }
                }
                thread = block.next;
            }
            None
        })
    }

    /// The counter of a loss.
    pub fn loss(&self, counter: usize) -> *mut u64 {
        let head = LAST_HEADER.load(Ordering::Acquire);
        if head.is_null() {
            return NO_MEMORY.as_ptr();
        }
        // SAFETY: inside the header page.
        unsafe { head.add(header::LOSSES + 8 * counter).cast() }
    }

    /// Counts losses.
    pub fn count(&self, counter: usize, number: u64) {
        if number > 0 {
            // SAFETY: aligned, mapped, used atomically by everyone.
            unsafe { AtomicU64::from_ptr(self.loss(counter)) }.fetch_add(number, Ordering::Relaxed);
        }
    }

    /// Says that MPI was initialised.
    pub fn set_mpi(&self) {
        if let Some(flags) = self.header_word(header::FLAGS) {
            flags.fetch_or(flag::MPI, Ordering::Relaxed);
        }
    }

    /// Says how the process ends.
    pub fn set_end(&self, kind: u32, code: u32) {
        if let Some(place) = self.header_word(header::END_CODE) {
            place.store(code, Ordering::Relaxed);
        }
        compiler_fence(Ordering::SeqCst);
        if let Some(place) = self.header_word(header::END_KIND) {
            place.store(kind, Ordering::Relaxed);
        }
    }

    fn header_word(&self, at: usize) -> Option<&AtomicU32> {
        let head = self.header.load(Ordering::Acquire);
        if head.is_null() {
            return None;
        }
        // SAFETY: aligned, inside the header page.
        Some(unsafe { AtomicU32::from_ptr(head.add(at).cast()) })
    }
}

/// Writes a chunk header, the check last.
///
/// # Safety
/// `at` points to a mapped chunk.
unsafe fn seal(at: *mut u8, kind: u32, length: u64, thread: u32, sequence: u32, payload: &[u8]) {
    let mut bytes = [0u8; chunk::SIZE];
    put_u32(&mut bytes, chunk::MAGIC, chunk::MAGIC_VALUE);
    put_u32(&mut bytes, chunk::KIND, kind);
    put_u32(&mut bytes, chunk::LENGTH, length as u32);
    put_u32(&mut bytes, chunk::THREAD, thread);
    put_u32(&mut bytes, chunk::SEQUENCE, sequence);
    put_u32(&mut bytes, chunk::USED, payload.len() as u32);
    if !payload.is_empty() {
        put_u32(&mut bytes, chunk::PAYLOAD_CHECK, crc32c(payload));
    }
    let sum = crc32c(&bytes[..chunk::CHECK]);
    // SAFETY: the caller's promise.
    unsafe {
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
        compiler_fence(Ordering::SeqCst);
        at.add(chunk::CHECK).cast::<u32>().write_volatile(sum);
    }
}

/// Allocates and maps a part of the file, so that no later store can fail.
pub fn map_extent(fd: &Fd, start: u64, length: u64) -> Result<*mut u8, Stop> {
    // Asked for first: a file that grows beyond it is a signal, which ends the host.
    if start + length > syscall::file_size_limit() {
        return Err(Stop::FileLimit);
    }
    match fd.allocate(start, length) {
        Ok(()) => {}
        Err(Errno::EFBIG) => return Err(Stop::FileLimit),
        Err(Errno::EOPNOTSUPP) => write_zeros(fd, start, length)?,
        Err(_) => return Err(Stop::NoSpace),
    }
    let at = fd
        .map_shared(start, length as usize)
        .map_err(|_| Stop::NoMemory)?;
    // Else the kernel makes and clears many pages around the first one that is touched, in whose place
    // an event waits: of an extent of 1 MiB all, for 0.6 ms; one takes it 10 us.
    // SAFETY: changes nothing that is mapped.
    let _ = unsafe { syscall::advise(at, length as usize, MADV_RANDOM) };
    Ok(at)
}

/// Has pages of the file made that will be written to soon: a page fault would come in the middle of an
/// event. Kernels before 5.14 do not know how: page faults then.
pub fn populate(at: *mut u8, length: usize) {
    // SAFETY: changes nothing that is mapped.
    let _ = unsafe { syscall::advise(at, length, MADV_POPULATE_WRITE) };
}

/// For file systems that cannot allocate in advance.
fn write_zeros(fd: &Fd, start: u64, length: u64) -> Result<(), Stop> {
    let zeros = [0u8; 4096];
    let mut at = start;
    while at < start + length {
        match fd.write_at(&zeros, at) {
            Ok(written) if written > 0 => at += written as u64,
            Err(Errno::EINTR) => {}
            Err(Errno::EFBIG) => return Err(Stop::FileLimit),
            _ => return Err(Stop::NoSpace),
        }
    }
    Ok(())
}

/// Tells the file of the program that ran here before that it ended by `exec`: the new program is
/// the proof.
fn tell_exec(setup: &Setup, makes: Option<u32>, pid: u32, start: u64, count: u32) {
    let path = setup.process_path(pid, start, count);
    let Ok(fd) = syscall::open(path.bytes(), syscall::O_WRONLY | AS_IT_IS) else {
        return;
    };
    if !fd.stat().is_ok_and(|it| it.is_trusted(|| makes)) {
        return;
    }
    let mut bytes = [0u8; 8];
    put_u32(&mut bytes, 0, layout::end::EXEC);
    let _ = fd.write_at(&bytes, header::END_KIND as u64);
}

/// Field 22 of `/proc/self/stat`: clock ticks from boot to this process's start.
pub fn start_time() -> u64 {
    let Ok(file) = syscall::open(b"/proc/self/stat\0", O_RDONLY) else {
        return 0;
    };
    let mut buffer = [0u8; 1024];
    let length = file.read(&mut buffer).unwrap_or(0);
    let line = buffer.get(..length).unwrap_or(&[]);
    stat::Stat::parse(line).map_or(0, |it| it.start)
}
