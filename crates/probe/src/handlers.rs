//! The program's signal handlers: the kernel calls one of ours ([`crate::x86_64::handlers`]), which tells addresses as the
//! program knows them and goes on at the program's own.
//!
//! What libc asks the kernel for ([`exchange`]) is asked here in its place, with our handler and restorer; what it is told of the
//! former handler is the program's. *Not for*: handlers that are set by bare system calls. They get what the kernel says, and
//! so does who asks the kernel for a handler.
//!
//! ```text
//!  program            here                            kernel
//!  sigaction(H) ────► HANDLERS[s] = H ──────────────► dispatch, restorer
//!  its old one  ◄──── HANDLERS[s] where it was ours ◄─ dispatch
//! ```

use crate::origins::{moved, original};
use crate::program;
use crate::syscall;
use crate::x86_64::handlers::{dispatch, restorer};
use crate::x86_64::slow::Frame;
use core::sync::atomic::{AtomicU64, Ordering};

/// Signals and one more.
const COUNT: usize = 65;
/// `SIG_IGN`; `SIG_DFL` is 0.
const IGNORED: u64 = 1;
const SA_RESTORER: u64 = 0x0400_0000;

static HANDLERS: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];

/// `struct sigaction` as libc has it, in words: the handler, 16 of the mask, flags, the restorer.
type Action = [u64; 19];
const HANDLER: usize = 0;
const MASK: usize = 1;
/// A half; nothing is in the other one.
const FLAGS: usize = 17;
const RESTORER: usize = 18;

/// What the program has at `at`, which may be null; the error says that nothing can be read there.
fn action_at(at: u64) -> Result<Option<Action>, ()> {
    let mut bytes = [0; size_of::<Action>()];
    if at == 0 {
        return Ok(None);
    }
    if program::bytes(at, &mut bytes) < bytes.len() {
        return Err(());
    }
    // SAFETY: any bytes are words.
    Ok(Some(unsafe {
        core::mem::transmute::<[u8; size_of::<Action>()], Action>(bytes)
    }))
}

/// The same as the kernel has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Kernel {
    handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

impl Kernel {
    /// No handler.
    pub const NONE: Self = Self {
        handler: 0,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
}

/// Does what libc was asked for; `None` where it has to do so itself: it says what is wrong then, or comes upon memory that is
/// not there as it does without us.
pub fn exchange(signal: u64, action: u64, former: u64) -> Option<()> {
    let handler = HANDLERS.get(signal as usize)?;
    let asked = action_at(action).ok()?;
    let told = action_at(former).ok()?;
    let ours = dispatch as *const () as u64;
    let own = asked.map(|it| it[HANDLER]).filter(|it| *it > IGNORED);
    let wanted = asked.map(|it| Kernel {
        handler: own.map_or(it[HANDLER], |_| ours),
        flags: i64::from(it[FLAGS] as i32) as u64 | SA_RESTORER,
        restorer: restorer(),
        mask: it[MASK],
    });
    let known = handler.load(Ordering::Acquire);
    // Whoever asked the kernel may give back what it was told.
    if let Some(own) = own.filter(|own| *own != ours) {
        handler.store(own, Ordering::Release);
    }
    let found = match syscall::exchange_handler(signal as u32, wanted.as_ref()) {
        Ok(found) => found,
        Err(_) => {
            handler.store(known, Ordering::Release);
            return None;
        }
    };
    let Some(mut told) = told else {
        return Some(());
    };
    told[HANDLER] = if found.handler == ours {
        known
    } else {
        found.handler
    };
    told[MASK] = found.mask;
    told[FLAGS] = told[FLAGS] & !u64::from(u32::MAX) | found.flags & u64::from(u32::MAX);
    told[RESTORER] = found.restorer;
    program::store(former, &told).then_some(())
}

/// The part of `ucontext_t` that is ours to change: `uc_mcontext`, of which the kernel leaves the last words alone.
#[repr(C)]
pub struct Context {
    before: [u64; 5],
    registers: [u64; 23],
    floating_point: u64,
    reserved: [u64; 8],
}

/// Places of registers.
const RSP: usize = 15;
const RIP: usize = 16;
/// Places in the reserved words: the stack pointer, if the handler is told another; the address that the handler is told, and the one that it stands for.
const STACK: usize = 5;
const TOLD: usize = 6;
const MEANT: usize = 7;

/// Signals by which the processor tells of an instruction.
const FAULTS: [u64; 6] = [4, 5, 7, 8, 11, 31];

/// The kernel's word about a signal: what it is, and for a fault where.
#[repr(C)]
pub struct Information {
    signal: i32,
    error: i32,
    code: i32,
    address: u64,
}

/// Tells addresses as the program knows them; gives its handler.
pub unsafe extern "C" fn begin(
    signal: u64,
    information: *mut Information,
    context: *mut Context,
) -> u64 {
    // SAFETY: the kernel's frame.
    let (information, context) = unsafe { (&mut *information, &mut *context) };
    let meant = context.registers[RIP];
    let stack = context.registers[RSP];
    context.reserved[STACK] = 0;
    // SAFETY: what the kernel says of the thread.
    let unblocked = unsafe { Frame::of_unblocked(meant, stack) };
    let told = match unblocked {
        Some(frame) => original(frame.stub),
        None => original(meant),
    };
    if let (Some(frame), Some(_)) = (unblocked, told) {
        let [_, _, _, _, r12, r13, r14, r15, ..] = context.registers;
        let registers = frame.all_registers([r12, r13, r14, r15]);
        let places = context.registers.iter_mut().zip(registers);
        places.for_each(|(place, register)| *place = register);
        context.reserved[STACK] = stack;
    }
    context.reserved[MEANT] = told.map_or(0, |_| meant);
    if let Some(told) = told {
        let is_there = information.code > 0 && information.address == meant;
        if FAULTS.contains(&signal) && is_there {
            information.address = told;
        }
        (context.registers[RIP], context.reserved[TOLD]) = (told, told);
    }
    HANDLERS
        .get(signal as usize)
        .map_or(0, |it| it.load(Ordering::Acquire))
}

/// The handler came back: goes on where it says, in the copy of what was overwritten.
pub unsafe extern "C" fn end(context: *mut Context) {
    // SAFETY: the kernel's frame.
    let context = unsafe { &mut *context };
    let rip = context.registers[RIP];
    let meant = context.reserved[MEANT];
    if meant != 0 && context.reserved[TOLD] == rip {
        context.registers[RIP] = meant;
        if context.reserved[STACK] != 0 {
            context.registers[RSP] = context.reserved[STACK];
        }
    } else if let Some(copy) = moved(rip) {
        context.registers[RIP] = copy;
    }
}
