//! The routines that take the arguments of a call (`lockstep_format::capture`). They run on the program's
//! stack and call Rust without saving vector registers: MPI functions take and give back none.

use crate::program;
use crate::side;
use crate::thread::Thread;
use core::arch::naked_asm;
use core::mem::offset_of;
use lockstep_format::capture::MOST_PARAMETERS;
use lockstep_format::plan::{routine, stub};

use super::routines::exit;
use super::slow::{Frame, slow};

/// A call whose arguments are taken.
pub struct Call {
    registers: [u64; 6],
    slot: u64,
    stub: u64,
    program: u64,
    return_address: u64,
    returned: u64,
}

impl Call {
    /// Where its return address lies.
    pub fn slot(&self) -> u64 {
        self.slot
    }

    /// The start of its stub.
    pub fn stub(&self) -> u64 {
        self.stub
    }

    /// Where it returns to; at an entry only.
    pub fn return_address(&self) -> u64 {
        self.return_address
    }

    /// What it returns, an `int`; at an exit only.
    pub fn returned(&self) -> i32 {
        self.returned as i32
    }

    /// Its capture program; at an entry only.
    pub fn program(&self) -> *const u8 {
        self.program as *const u8
    }

    /// As many arguments as any function has, from their registers and from the stack above the slot. Where this one has
    /// fewer, what lies there is not used.
    pub fn arguments(&self) -> [u64; MOST_PARAMETERS] {
        const ON_STACK: usize = MOST_PARAMETERS - 6;
        let on_stack = program::words::<ON_STACK>(self.slot + 8, self.slot);
        let all = self.registers.iter().chain(&on_stack);
        let mut arguments = [0; MOST_PARAMETERS];
        for (place, value) in arguments.iter_mut().zip(all) {
            *place = *value;
        }
        arguments
    }

    /// The call that a routine on the slow path was called for: its frame is one of our own.
    pub fn of_slow(thread: &mut Thread, frame: &Frame, is_exit: bool) -> Option<Self> {
        let slot = &raw const frame.slot as u64 + 8;
        let registers = (frame.arguments(), frame.result());
        Self::new(thread, registers, slot, frame.slot, is_exit)
    }

    /// `None` where the call was not recorded: its return address is in place.
    fn new(
        thread: &mut Thread,
        (registers, returned): ([u64; 6], u64),
        slot: u64,
        return_address: u64,
        is_exit: bool,
    ) -> Option<Self> {
        let (stub, program, return_address) = if is_exit {
            (return_address - AFTER_EXIT, 0, 0)
        } else {
            let top = thread.top_entry().filter(|top| top.slot() == slot)?;
            // SAFETY: the slot of the call.
            let found = unsafe { (slot as *const u64).read_volatile() };
            if top.hook() == 0 || top.hook() != found {
                return None;
            }
            let program = return_address + PROGRAM;
            (top.start(), program, top.return_address)
        };
        Some(Self {
            registers,
            slot,
            stub,
            program,
            return_address,
            returned,
        })
    }
}

/// From the return address of EXIT_ARGUMENTS to the stub.
const AFTER_EXIT: u64 = 36;
/// From that of ENTER_ARGUMENTS to the capture program.
const PROGRAM: u64 = stub::CAPTURE as u64;

/// What the routines here and in [`super::holds`] push, lowest address first.
#[repr(C)]
pub(super) struct Saved {
    rbp: u64,
    r11: u64,
    r10: u64,
    r9: u64,
    r8: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rdx: u64,
    rcx: u64,
    pub rax: u64,
    return_address: u64,
    pub slot: u64,
}

impl Saved {
    fn call(&self, thread: &mut Thread, is_exit: bool) -> Option<Call> {
        Call::new(
            thread,
            (
                [self.rdi, self.rsi, self.rdx, self.rcx, self.r8, self.r9],
                self.rax,
            ),
            &raw const self.slot as u64,
            self.return_address,
            is_exit,
        )
    }
}

/// Not 0: the slow way.
unsafe extern "C" fn take(thread: *mut Thread, saved: *const Saved, is_exit: bool) -> u64 {
    // SAFETY: this thread's block, and what the routine just pushed.
    let (thread, saved) = unsafe { (&mut *thread, &*saved) };
    if thread.hot.busy != 0 || thread.hot.attached == 0 {
        return 0;
    }
    if !is_exit {
        side::begins(thread);
    }
    let Some(call) = saved.call(thread, is_exit) else {
        return 0;
    };
    if !side::is_ready(thread, is_exit) {
        return 1;
    }
    thread.hot.busy = &raw const *saved as u64;
    if is_exit {
        side::exit(thread, &call);
    } else {
        side::enter(thread, &call);
    }
    thread.hot.busy = 0;
    0
}

macro_rules! routine {
    ($(#[$doc:meta])* $name:ident, $kind:expr, $is_exit:literal, $end:literal; $($extra:tt)*) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                thread_or!("3f"),
                push!(rcx rdx rsi rdi r8 r9 r10 r11 rbp),
                "mov rbp, rsp",
                "mov rdi, rax",
                "mov rsi, rsp",
                concat!("mov edx, ", $is_exit),
                "and rsp, -16",
                "call {take}",
                "mov rsp, rbp",
                pop!(rbp r11 r10 r9 r8 rdi rsi rdx rcx),
                "test eax, eax",
                "jz 3f",
                slow_below!($end),
                "3:",
                "pop rax",
                $end,
                take = sym take,
                kind = const $kind,
                slow = sym slow,
                $($extra)*
            )
        }
    };
}

routine!(
    /// Takes the arguments of a call that ENTER recorded.
    enter_arguments, routine::ENTER_ARGUMENTS, "0", "ret";
);
routine!(
    /// Takes what a call gave back, then records its return.
    exit_arguments, routine::EXIT_ARGUMENTS, "1", "jmp {exit}"; exit = sym exit,
);

/// No arguments, no times.
#[unsafe(naked)]
pub unsafe extern "C" fn nothing() {
    naked_asm!("ret")
}

const _: () = assert!(offset_of!(Saved, slot) == 88);
