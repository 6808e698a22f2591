//! Memory of the program that may be gone when we come to it: the stacks that open frames lie on, and what
//! runs over the end of one.
//!
//! A program switches between stacks as it likes, and nobody is told when it unmaps one, or keeps it from
//! being read. So no address of an open frame may be followed as a pointer. The kernel copies it, and an
//! error says that nothing is there. One page is known to be there without being asked for: that of the
//! stack pointer of the event at work.
//!
//! ```text
//!        running stack             its next page, or another stack
//!  ├──────────────────────────┤├────────────────────────────────────
//!      rsp ──► entry               entry
//!      read as it is               process_vm_readv; where a policy forbids that, /proc/self/mem;
//!                                  where it forbids that, too, what the kernel finds is read as it is
//! ```
//! What else the probe reads of a program, and why it is there:
//!
//! | what | why it can be read |
//! |---|---|
//! | return address at an event (routines, stubs) | the stack pointer points to it |
//! | frame that is questioned (`enter`, `instant`, and by `settle` of `x86_64::pending`) | in the page of the stack pointer; else the slow path asks here |
//! | frames in `stack`: which are gone (of the running stack), which get their return address back | here |
//! | words above a return address (`fault`, arguments on the stack) | here: the outermost frame of a stack may have none above it |
//! | an import's slot (`closed`) | in the image whose code calls |
//! | arguments and results of MPI calls (`side`) | the function reads or wrote the same bytes; what it does not look at is not taken |
//! | `struct sigaction` (`signals`, `handlers`), environments and paths of programs to execute (`exec`) | here |
//! | a stub of an open frame (`entry`, `x86_64::pending`) | the main program's stays; others here, since their image may be gone |
//! | headers, symbols, notes of images; the linker's list | the dynamic linker holds its lock and uses the same |
//! | text that is rewritten | mapped by the image, and made writable just before |

use crate::syscall::{self, Errno};

/// The least size of a page.
pub const PAGE: u64 = 4096;

/// For [`read`] and its like, where no page is known: none of a program.
pub const UNKNOWN: u64 = u64::MAX;

/// Whether `length` bytes at `at` lie in the page of `known`.
fn is_in_page(at: u64, length: usize, known: u64) -> bool {
    let page = known & !(PAGE - 1);
    let from = at.wrapping_sub(page);
    from < PAGE && from + length as u64 <= PAGE
}

/// The word at `at`; nothing where none can be read. The page of `known` is there.
pub fn read(at: u64, known: u64) -> Option<u64> {
    if is_in_page(at, 8, known) {
        // SAFETY: in a page that is there.
        return Some(unsafe { (at as *const u64).read_unaligned() });
    }
    let mut word = [0];
    match syscall::read_memory(at, &mut word) {
        Ok(()) => word.first().copied(),
        // SAFETY: it is there, see `is_there`.
        Err(error) if is_there(at, error) => Some(unsafe { (at as *const u64).read_unaligned() }),
        Err(_) => None,
    }
}

/// Whether anything is mapped at `at`. The page of `known` is there: the kernel is not asked, since each batch of events
/// comes here.
pub fn is_mapped(at: u64, known: u64) -> bool {
    is_in_page(at, 1, known) || syscall::is_mapped(at)
}

/// Where a policy forbids every way of copying: whether a word is there now. Another thread could still unmap it before it
/// is read; but whoever throws an exception needs the return addresses that are kept here.
fn is_there(at: u64, error: Errno) -> bool {
    error != Errno::EFAULT && syscall::is_readable(at & !15)
}

/// Stores a word, if it can be. The page of `known` is there.
pub fn write(at: u64, value: u64, known: u64) -> bool {
    if is_in_page(at, 8, known) {
        // SAFETY: in a page of the running stack, which can be written to.
        unsafe { (at as *mut u64).write_unaligned(value) };
        return true;
    }
    match syscall::write_memory(at, &[value]) {
        Ok(()) => true,
        Err(error) if is_there(at, error) => {
            // SAFETY: it is there, see `is_there`; a return address was written to it.
            unsafe { (at as *mut u64).write_unaligned(value) };
            true
        }
        Err(_) => false,
    }
}

/// The words from `at` on; zeros where none can be read. The page of `known` is there.
pub fn words<const N: usize>(at: u64, known: u64) -> [u64; N] {
    let mut words = [0; N];
    if is_in_page(at, size_of_val(&words), known) {
        // SAFETY: in a page that is there.
        return unsafe { (at as *const [u64; N]).read_unaligned() };
    }
    if syscall::read_memory(at, &mut words).is_err() {
        let in_page = ((PAGE - at % PAGE) / 8) as usize;
        words = [0; N];
        let part = words.get_mut(..in_page.min(N)).unwrap_or(&mut []);
        let _ = syscall::read_memory(at, part);
    }
    words
}

/// Stores words, if they can be.
pub fn store(at: u64, words: &[u64]) -> bool {
    match syscall::write_memory(at, words) {
        Ok(()) => true,
        Err(Errno::EFAULT) => false,
        // No policy that forbids this lets anything of it be done: word by word, as far as each is there.
        Err(_) => words
            .iter()
            .zip((at..).step_by(8))
            .all(|(word, at)| write(at, *word, UNKNOWN)),
    }
}

/// Copies bytes of the program; how many there are before what cannot be read.
pub fn bytes(at: u64, into: &mut [u8]) -> usize {
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let from = at.wrapping_add(done as u64);
        let size = rest.len().min((PAGE - from % PAGE) as usize);
        let part = rest.get_mut(..size).unwrap_or(&mut []);
        match syscall::read_bytes(from, part) {
            Ok(()) => {}
            // SAFETY: all in one page, which is there, see `is_there`.
            Err(error) if is_there(from, error) => unsafe {
                core::ptr::copy_nonoverlapping(from as *const u8, part.as_mut_ptr(), size);
            },
            Err(_) => return done,
        }
        done += size;
    }
    done
}

/// The length of the text at `at`, which a zero ends; nothing if it cannot be read, or is longer than `most`.
pub fn length(at: u64, most: usize) -> Option<usize> {
    let mut part = [0; 64];
    let mut length = 0;
    while length <= most {
        let known = bytes(at.wrapping_add(length as u64), &mut part);
        let known = part.get(..known).unwrap_or(&[]);
        if let Some(end) = known.iter().position(|byte| *byte == 0) {
            return Some(length + end).filter(|length| *length <= most);
        }
        if known.len() < part.len() {
            return None;
        }
        length += part.len();
    }
    None
}
