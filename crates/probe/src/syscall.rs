//! The system calls that the probe makes, raw: no errno, no libc, nothing that a host can interpose.

use crate::handlers::Kernel;
use crate::x86_64::syscall::syscall;
use core::sync::atomic::AtomicU32;

const READ: usize = 0;
const CLOSE: usize = 3;
const FSTAT: usize = 5;
const MMAP: usize = 9;
const MPROTECT: usize = 10;
const MUNMAP: usize = 11;
const BRK: usize = 12;
const RT_SIGACTION: usize = 13;
const RT_SIGPROCMASK: usize = 14;
const PREAD64: usize = 17;
const PWRITE64: usize = 18;
const MSYNC: usize = 26;
const MADVISE: usize = 28;
const NANOSLEEP: usize = 35;
const GETPID: usize = 39;
const UNAME: usize = 63;
const READLINK: usize = 89;
const GETEUID: usize = 107;
const GETPPID: usize = 110;
const SIGALTSTACK: usize = 131;
const GETTID: usize = 186;
const FUTEX: usize = 202;
const CLOCK_GETTIME: usize = 228;
const TGKILL: usize = 234;
const OPENAT: usize = 257;
const FALLOCATE: usize = 285;
const WRITE: usize = 1;
const GETDENTS64: usize = 217;
const EXIT_GROUP: usize = 231;
const PRLIMIT64: usize = 302;
const MEMFD_CREATE: usize = 319;
const ARCH_PRCTL: usize = 158;
const PROCESS_VM_READV: usize = 310;
const PROCESS_VM_WRITEV: usize = 311;

/// An error number, positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    pub const ESRCH: Self = Self(3);
    pub const EINTR: Self = Self(4);
    pub const EAGAIN: Self = Self(11);
    pub const ENOMEM: Self = Self(12);
    pub const EFAULT: Self = Self(14);
    pub const EEXIST: Self = Self(17);
    pub const ENFILE: Self = Self(23);
    pub const EMFILE: Self = Self(24);
    pub const EINVAL: Self = Self(22);
    pub const EFBIG: Self = Self(27);
    pub const ENOSPC: Self = Self(28);
    pub const EOPNOTSUPP: Self = Self(95);
    pub const EDQUOT: Self = Self(122);
}

pub const O_RDONLY: usize = 0;
pub const O_WRONLY: usize = 1;
pub const O_RDWR: usize = 2;
pub const O_CREAT: usize = 0o100;
pub const O_EXCL: usize = 0o200;
/// Of a file that is there already: no link is followed, and no pipe waited for.
pub const AS_IT_IS: usize = O_NOFOLLOW | O_NONBLOCK;
pub const O_APPEND: usize = 0o2000;
pub const O_NONBLOCK: usize = 0o4000;
pub const O_NOFOLLOW: usize = 0o400_000;
pub const O_CLOEXEC: usize = 0o2_000_000;

pub const PROT_READ: usize = 1;
pub const PROT_WRITE: usize = 2;
pub const PROT_EXEC: usize = 4;

const MAP_SHARED: usize = 1;
const MAP_PRIVATE: usize = 2;
const MAP_FIXED: usize = 0x10;
const MAP_ANONYMOUS: usize = 0x20;
const MAP_NORESERVE: usize = 0x4000;
const MAP_FIXED_NOREPLACE: usize = 0x10_0000;

pub const MADV_RANDOM: usize = 1;
pub const MADV_DONTNEED: usize = 4;
pub const MADV_WIPEONFORK: usize = 18;
pub const MADV_POPULATE_WRITE: usize = 23;

fn check(result: isize) -> Result<usize, Errno> {
    if result < 0 {
        Err(Errno(-result as i32))
    } else {
        Ok(result as usize)
    }
}

/// SAFETY: for calls that change no memory but what their pointer arguments, made from references
/// by the wrappers below, own.
macro_rules! call {
    ($number:expr $(, $argument:expr)*) => {{
        let mut arguments = [0usize; 6];
        let given = [$($argument as usize),*];
        let mut index = 0;
        while index < given.len() && index < 6 {
            arguments[index] = given[index];
            index += 1;
        }
        // SAFETY: see the macro's text.
        check(unsafe { syscall($number, arguments) })
    }};
}

/// Where the program's heap ends.
pub fn program_break() -> u64 {
    call!(BRK, 0).unwrap_or(0) as u64
}

/// Opens `path`, which ends in a zero byte.
pub fn open(path: &[u8], flags: usize) -> Result<Fd, Errno> {
    if path.last() != Some(&0) {
        return Err(Errno::EINVAL);
    }
    const AT_FDCWD: isize = -100;
    call!(OPENAT, AT_FDCWD, path.as_ptr(), flags | O_CLOEXEC, 0o644).map(|fd| Fd(fd as i32))
}

/// An open file, closed when dropped.
pub struct Fd(i32);

impl Drop for Fd {
    fn drop(&mut self) {
        let _ = call!(CLOSE, self.0);
    }
}

/// What identifies a file, and how large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub device: u64,
    pub inode: u64,
    /// Permissions, and what kind of file it is.
    pub mode: u32,
    /// Whose it is.
    pub user: u32,
    pub size: u64,
    pub modified_seconds: u64,
    pub modified_nanoseconds: u64,
}

impl Stat {
    /// Whether it is a regular file that belongs to this user, to root, or to whom the file system gives what this user
    /// `makes`; and which nobody else can write.
    pub fn is_trusted(&self, makes: impl FnOnce() -> Option<u32>) -> bool {
        const WRITABLE_BY_OTHERS: u32 = 0o022;
        let is_own = self.user == 0 || self.user == user() || Some(self.user) == makes();
        is_own && self.is_regular() && self.mode & WRITABLE_BY_OTHERS == 0
    }

    /// Whether it is a regular file.
    pub fn is_regular(&self) -> bool {
        const KIND: u32 = 0o170_000;
        const REGULAR: u32 = 0o100_000;
        self.mode & KIND == REGULAR
    }
}

impl Fd {
    /// Reads into `buffer` from the file's position.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        loop {
            match call!(READ, self.0, buffer.as_mut_ptr(), buffer.len()) {
                Err(Errno::EINTR) => {}
                other => return other,
            }
        }
    }

    /// Writes `bytes` at `offset`.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<usize, Errno> {
        call!(PWRITE64, self.0, bytes.as_ptr(), bytes.len(), offset)
    }

    /// Writes `bytes` at the end of a file that is only appended to.
    pub fn append(&self, bytes: &[u8]) -> Result<usize, Errno> {
        call!(WRITE, self.0, bytes.as_ptr(), bytes.len())
    }

    /// Allocates `length` bytes of disk at `offset`.
    pub fn allocate(&self, offset: u64, length: u64) -> Result<(), Errno> {
        loop {
            match call!(FALLOCATE, self.0, 0, offset, length) {
                Err(Errno::EINTR) => {}
                other => return other.map(|_| ()),
            }
        }
    }

    /// Identity and size.
    pub fn stat(&self) -> Result<Stat, Errno> {
        let mut raw = [0u64; 18];
        call!(FSTAT, self.0, raw.as_mut_ptr())?;
        Ok(Stat {
            device: raw[0],
            inode: raw[1],
            mode: raw[3] as u32,
            user: (raw[3] >> 32) as u32,
            size: raw[6],
            modified_seconds: raw[11],
            modified_nanoseconds: raw[12],
        })
    }

    /// Maps `length` bytes at `offset`, shared and writable.
    pub fn map_shared(&self, offset: u64, length: usize) -> Result<*mut u8, Errno> {
        let protection = PROT_READ | PROT_WRITE;
        call!(MMAP, 0, length, protection, MAP_SHARED, self.0, offset).map(|at| at as *mut u8)
    }

    /// Puts `length` bytes from the file's start, shared and writable, in the place of the pages at
    /// `address`.
    ///
    /// # Safety
    /// The pages are ours, and may become what the file holds.
    pub unsafe fn map_shared_over(&self, address: u64, length: usize) -> Result<(), Errno> {
        let flags = MAP_SHARED | MAP_FIXED;
        let protection = PROT_READ | PROT_WRITE;
        call!(MMAP, address, length, protection, flags, self.0, 0).map(|_| ())
    }

    /// Maps the first `length` bytes to read.
    pub fn map_private(&self, length: usize) -> Result<*mut u8, Errno> {
        call!(MMAP, 0, length, PROT_READ, MAP_PRIVATE, self.0, 0).map(|at| at as *mut u8)
    }
}

impl Fd {
    /// Puts part of the file, to execute, in the place of the pages at `address`.
    ///
    /// # Safety
    /// The pages must hold that part of this file, or what was meant to be.
    pub unsafe fn map_text_over(
        &self,
        address: u64,
        length: u64,
        offset: u64,
    ) -> Result<(), Errno> {
        let flags = MAP_PRIVATE | MAP_FIXED;
        let protection = PROT_READ | PROT_EXEC;
        call!(MMAP, address, length, protection, flags, self.0, offset).map(|_| ())
    }
}

/// A file that lies in memory, and goes with its last mapping.
pub fn file_in_memory() -> Result<Fd, Errno> {
    const MFD_CLOEXEC: usize = 1;
    call!(MEMFD_CREATE, c"lockstep".as_ptr(), MFD_CLOEXEC).map(|fd| Fd(fd as i32))
}

/// Private memory, all zeros.
pub fn map(length: usize) -> Result<*mut u8, Errno> {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    call!(MMAP, 0, length, PROT_READ | PROT_WRITE, flags, -1isize, 0).map(|at| at as *mut u8)
}

/// Private memory at `address`, or nothing.
pub fn map_at(address: usize, length: usize) -> Result<*mut u8, Errno> {
    map_fixed(address, length, 0)
}

/// The same, of which little may ever be used.
pub fn reserve_at(address: usize, length: usize) -> Result<*mut u8, Errno> {
    map_fixed(address, length, MAP_NORESERVE)
}

fn map_fixed(address: usize, length: usize, more: usize) -> Result<*mut u8, Errno> {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | more;
    let protection = PROT_READ | PROT_WRITE;
    let at = call!(MMAP, address, length, protection, flags, -1isize, 0)?;
    if at == address {
        Ok(at as *mut u8)
    } else {
        // A kernel that takes the address for a hint (before 4.17).
        // SAFETY: the mapping that was just made.
        unsafe { unmap(at as *mut u8, length) };
        Err(Errno::EEXIST)
    }
}

/// Gives memory back.
///
/// # Safety
/// It must be a mapping of ours that nobody uses any more.
pub unsafe fn unmap(at: *mut u8, length: usize) {
    if !at.is_null() {
        let _ = call!(MUNMAP, at, length);
    }
}

/// Changes the protection of whole pages.
///
/// # Safety
/// What is done to them from now on must be allowed by it.
pub unsafe fn protect(at: usize, length: usize, protection: usize) -> Result<(), Errno> {
    call!(MPROTECT, at, length, protection).map(|_| ())
}

/// Whether the sixteen bytes at `address` can be read: the kernel reads them, as limits for a process that does
/// not exist. (Valgrind complains where a call makes no sense in itself.)
pub fn is_readable(address: u64) -> bool {
    const NOBODY: usize = i32::MAX as usize;
    call!(PRLIMIT64, NOBODY, 0, address, 0) == Err(Errno::ESRCH)
}

/// Whether the page of an address is mapped, readable or not. Where nobody may ask, it is.
pub fn is_mapped(address: u64) -> bool {
    const MS_ASYNC: usize = 1;
    call!(MSYNC, address & !4095, 1, MS_ASYNC) != Err(Errno::ENOMEM)
}

/// Copies words of this process, which may not be there.
pub fn read_memory(at: u64, words: &mut [u64]) -> Result<(), Errno> {
    // SAFETY: words are bytes, and any bytes are words.
    let bytes = unsafe {
        core::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), size_of_val(words))
    };
    read_bytes(at, bytes)
}

/// The same of bytes.
pub fn read_bytes(at: u64, bytes: &mut [u8]) -> Result<(), Errno> {
    let (own, length) = (bytes.as_mut_ptr(), bytes.len());
    let copied = copy_memory(PROCESS_VM_READV, at, own, length);
    if !matches!(copied, Err(error) if error != Errno::EFAULT) {
        return whole(copied, length);
    }
    // Not every policy allows that.
    let memory = open(b"/proc/self/mem\0", O_RDONLY)?;
    whole(call!(PREAD64, memory.0, own, length, at), length)
}

/// Stores words in this process, where they can be.
pub fn write_memory(at: u64, words: &[u64]) -> Result<(), Errno> {
    let (own, length) = (words.as_ptr().cast::<u8>(), size_of_val(words));
    let copied = copy_memory(PROCESS_VM_WRITEV, at, own.cast_mut(), length);
    if !matches!(copied, Err(error) if error != Errno::EFAULT) {
        return whole(copied, length);
    }
    let memory = open(b"/proc/self/mem\0", O_WRONLY)?;
    whole(call!(PWRITE64, memory.0, own, length, at), length)
}

fn copy_memory(which: usize, at: u64, own: *mut u8, length: usize) -> Result<usize, Errno> {
    let (own, other) = ([own as usize, length], [at as usize, length]);
    call!(which, pid(), &raw const own, 1, &raw const other, 1, 0)
}

fn whole(copied: Result<usize, Errno>, length: usize) -> Result<(), Errno> {
    if copied? == length {
        Ok(())
    } else {
        Err(Errno::EFAULT)
    }
}

/// Advice on whole pages.
///
/// # Safety
/// `MADV_DONTNEED` makes them zero.
pub unsafe fn advise(at: *mut u8, length: usize, advice: usize) -> Result<(), Errno> {
    call!(MADVISE, at, length, advice).map(|_| ())
}

/// Does `work` while no signal is delivered to this thread.
pub fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    const SET: usize = 2;
    let every = u64::MAX;
    let mut before = 0u64;
    let blocked = call!(RT_SIGPROCMASK, SET, &raw const every, &raw mut before, 8);
    let result = work();
    if blocked.is_ok() {
        let _ = call!(RT_SIGPROCMASK, SET, &raw const before, 0, 8);
    }
    result
}

/// The address of a signal's handler; 0 or 1 where it has none.
pub fn handler(signal: u32) -> u64 {
    // Handler, flags, restorer, mask: as the kernel has them.
    let mut action = [0u64; 4];
    match call!(RT_SIGACTION, signal, 0, &raw mut action, 8) {
        Ok(_) => action[0],
        Err(_) => 0,
    }
}

/// Sets a signal's handler, if one is given; gives the former one.
pub fn exchange_handler(signal: u32, action: Option<&Kernel>) -> Result<Kernel, Errno> {
    let mut former = Kernel::NONE;
    let action = action.map_or(core::ptr::null(), core::ptr::from_ref);
    call!(RT_SIGACTION, signal, action, &raw mut former, 8)?;
    Ok(former)
}

/// The process, the one a wiped page has to be compared with.
pub fn pid() -> u32 {
    call!(GETPID).unwrap_or(0) as u32
}

/// The user whose rights this process has.
fn user() -> u32 {
    call!(GETEUID).unwrap_or(0) as u32
}

/// The parent.
pub fn parent() -> u32 {
    call!(GETPPID).unwrap_or(0) as u32
}

/// The thread.
pub fn tid() -> u32 {
    call!(GETTID).unwrap_or(0) as u32
}

/// Whether `tid` is still a thread of process `pid`.
pub fn is_alive(pid: u32, tid: u32) -> bool {
    call!(TGKILL, pid, tid, 0) != Err(Errno::ESRCH)
}

/// Calls `visit` with every thread of this process.
pub fn each_thread(mut visit: impl FnMut(u32)) {
    let Ok(directory) = open(b"/proc/self/task\0", O_RDONLY) else {
        return;
    };
    let mut entries = [0u8; 4096];
    loop {
        let read = call!(GETDENTS64, directory.0, entries.as_mut_ptr(), entries.len());
        match read {
            Ok(length) if length > 0 => {
                crate::fault::numbers_in(entries.get(..length).unwrap_or(&[]), &mut visit);
            }
            _ => return,
        }
    }
}

/// Ends the process.
pub fn exit_group(status: i32) -> ! {
    loop {
        let _ = call!(EXIT_GROUP, status);
    }
}

/// Nanoseconds on the monotonic clock.
pub fn monotonic() -> u64 {
    clock(1)
}

/// Nanoseconds since the epoch.
pub fn real_time() -> u64 {
    clock(0)
}

fn clock(which: usize) -> u64 {
    let mut time = [0u64; 2];
    let _ = call!(CLOCK_GETTIME, which, time.as_mut_ptr());
    time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
}

/// Sleeps while a word holds `value`, until somebody wakes this thread; it may wake up before.
pub fn wait_while(word: &AtomicU32, value: u32) {
    const WAIT_PRIVATE: usize = 128;
    let slept = call!(FUTEX, word.as_ptr(), WAIT_PRIVATE, value, 0);
    if !matches!(slept, Ok(_) | Err(Errno::EAGAIN | Errno::EINTR)) {
        // A policy forbids it.
        nap();
    }
}

/// Wakes a thread that sleeps so.
pub fn wake_one(word: &AtomicU32) {
    const WAKE_PRIVATE: usize = 129;
    let _ = call!(FUTEX, word.as_ptr(), WAKE_PRIVATE, 1);
}

/// Sleeps for 50 microseconds.
pub fn nap() {
    let time = [0u64, 50_000];
    let _ = call!(NANOSLEEP, time.as_ptr(), 0);
}

/// How large a file of this process may become.
pub fn file_size_limit() -> u64 {
    const RLIMIT_FSIZE: usize = 1;
    limit(RLIMIT_FSIZE).unwrap_or(u64::MAX)
}

/// The limit of this process on a resource, if there is one.
pub fn limit(resource: usize) -> Option<u64> {
    let mut limits = [u64::MAX; 2];
    let _ = call!(PRLIMIT64, 0, resource, 0, limits.as_mut_ptr());
    Some(limits[0]).filter(|limit| *limit != u64::MAX)
}

/// The alternate signal stack of this thread: start, end, and whether we are on it.
pub fn signal_stack() -> Option<(u64, u64, bool)> {
    const ON_STACK: u32 = 1;
    const DISABLED: u32 = 2;
    let mut stack = [0u64; 3];
    call!(SIGALTSTACK, 0, stack.as_mut_ptr()).ok()?;
    let flags = stack[1] as u32;
    if flags & DISABLED != 0 {
        return None;
    }
    let end = stack[0].wrapping_add(stack[2]);
    Some((stack[0], end, flags & ON_STACK != 0))
}

/// Whether the kernel checks returns against a stack of its own.
pub fn has_shadow_stack() -> bool {
    const STATUS: usize = 0x5005;
    let mut features = 0u64;
    call!(ARCH_PRCTL, STATUS, &raw mut features).is_ok() && features & 1 != 0
}

/// The target of a symbolic link; 0 where it cannot be read.
pub fn read_link(path: &[u8], target: &mut [u8]) -> usize {
    if path.last() != Some(&0) {
        return 0;
    }
    call!(READLINK, path.as_ptr(), target.as_mut_ptr(), target.len()).unwrap_or(0)
}

/// The host's name, zero-terminated.
pub fn host_name() -> [u8; 65] {
    let mut names = [0u8; 6 * 65];
    let _ = call!(UNAME, names.as_mut_ptr());
    let mut host = [0u8; 65];
    host.copy_from_slice(&names[65..130]);
    host
}
