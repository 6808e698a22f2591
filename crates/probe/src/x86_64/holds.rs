//! The routines of functions that take and give back what threads wait for ([`crate::holds`]). They run on the program's stack and
//! call Rust without saving vector registers: these functions take and give back none. When the object is noted they go on where
//! the time is read.
//!
//! *Costs*: about 10 ns each.

use super::arguments::Saved;
use crate::holds::{self, Step};
use crate::thread::Thread;
use core::arch::naked_asm;
use core::sync::atomic::{AtomicPtr, Ordering};
use lockstep_format::plan::stub;

/// Where the routines go on.
static AFTER_ENTER: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
static AFTER_EXIT: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Says where the routines go on. Before any of them runs.
pub fn go_on(enter: unsafe extern "C" fn(), exit: unsafe extern "C" fn()) {
    AFTER_ENTER.store(enter as *mut (), Ordering::Relaxed);
    AFTER_EXIT.store(exit as *mut (), Ordering::Relaxed);
}

/// Whether the thread can note something.
fn is_ready(thread: &Thread) -> bool {
    thread.hot.busy == 0 && thread.hot.attached != 0
}

unsafe extern "C" fn note_enter(thread: *mut Thread, saved: *const Saved) {
    // SAFETY: this thread's block, and what the routine just pushed.
    let (thread, saved) = unsafe { (&mut *thread, &*saved) };
    if is_ready(thread) {
        thread.hot.busy = &raw const *saved as u64;
        if let Some(step) = step(thread, saved, &raw const saved.slot as u64) {
            holds::enter(thread, &step);
        }
        thread.hot.busy = 0;
    }
}

unsafe extern "C" fn note_exit(thread: *mut Thread, saved: *const Saved) {
    // SAFETY: as in `note_enter`.
    let (thread, saved) = unsafe { (&mut *thread, &*saved) };
    if is_ready(thread) {
        thread.hot.busy = &raw const *saved as u64;
        holds::exit(thread, &raw const saved.slot as u64, saved.rax);
        thread.hot.busy = 0;
    }
}

/// The call; `None` where it was not recorded.
fn step(thread: &mut Thread, saved: &Saved, slot: u64) -> Option<Step> {
    let top = thread.top_entry().filter(|top| top.slot() == slot)?;
    let start = top.start();
    let (hook, behind) = (top.hook(), top.return_address);
    // SAFETY: the slot of the call.
    let found = unsafe { (slot as *const u64).read_volatile() };
    // SAFETY: the stub that is running.
    let code = unsafe { ((start + u64::from(stub::OBJECT)) as *const [u8; 2]).read() };
    Some(Step {
        slot,
        behind,
        code,
        // No library has it further behind.
        object: match code[1] {
            0 => saved.rdi,
            1 => saved.rsi,
            _ => saved.rdx,
        },
        second: saved.rsi,
        is_seen: hook != 0 && hook == found,
    })
}

macro_rules! routine {
    ($(#[$doc:meta])* $name:ident, $note:ident, $after:ident) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                thread_or!("3f"),
                push!(rcx rdx rsi rdi r8 r9 r10 r11 rbp),
                "mov rbp, rsp",
                "mov rdi, rax",
                "mov rsi, rsp",
                "and rsp, -16",
                "call {note}",
                "mov rsp, rbp",
                pop!(rbp r11 r10 r9 r8 rdi rsi rdx rcx),
                "3:",
                "pop rax",
                "jmp qword ptr [rip + {after}]",
                note = sym $note,
                after = sym $after,
            )
        }
    };
}

routine!(
    /// Notes which object a call takes or gives back that ENTER recorded.
    enter, note_enter, AFTER_ENTER
);
routine!(
    /// Notes whether a call got it.
    exit, note_exit, AFTER_EXIT
);
