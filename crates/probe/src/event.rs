//! The slow path of every routine: on the thread's own stack, signals blocked, registers saved.

use crate::closed;
use crate::entry::{Entry, word_of};
use crate::inferred;
use crate::process::{Process, Stop};
use crate::side;
use crate::stall;
use crate::syscall;
use crate::thread::{STOPPED, Thread};
use crate::x86_64::arguments::Call;
use crate::x86_64::routines::{ENTER_PLAIN, FINISH};
use crate::x86_64::slow::Frame;
use core::sync::atomic::{AtomicU64, Ordering};
use lockstep_format::plan::{block, routine};
use lockstep_format::process::{end, flag, loss};
use lockstep_format::symbol::{RETURN, TAIL, event_word, from_staging_word};

const ENTER: u64 = routine::ENTER as u64;
const EXIT: u64 = routine::EXIT as u64;
const INSTANT: u64 = routine::INSTANT as u64;
const JUMP: u64 = routine::JUMP as u64;
const VFORK: u64 = routine::VFORK as u64;
const RESTORE: u64 = routine::RESTORE as u64;
const MPI: u64 = routine::MPI as u64;
const END: u64 = routine::END as u64;
const OPEN: u64 = routine::OPEN as u64;
const LEAF: u64 = routine::LEAF as u64;
const RETURN_FROM: u64 = routine::RETURN as u64;
const HAND_OVER: u64 = routine::HAND_OVER as u64;
const SUSPEND: u64 = routine::SUSPEND as u64;
const LOADED: u64 = routine::LOADED as u64;
const FAULT: u64 = routine::FAULT as u64;
const ENTER_ARGUMENTS: u64 = routine::ENTER_ARGUMENTS as u64;
const EXIT_ARGUMENTS: u64 = routine::EXIT_ARGUMENTS as u64;
const ENTER_TIMED: u64 = routine::ENTER_TIMED as u64;
const EXIT_TIMED: u64 = routine::EXIT_TIMED as u64;
const FOLLOW: u64 = routine::FOLLOW as u64;
const SIGNALS: u64 = routine::SIGNALS as u64;
const BIND: u64 = routine::BIND as u64;
const EXEC: u64 = routine::EXEC as u64;

/// What is done in a few microseconds, whoever waits, and may be done without blocking signals: see
/// [`crate::signals`].
pub const BRIEF: u32 = 1 << ENTER
    | 1 << EXIT
    | 1 << INSTANT
    | 1 << OPEN
    | 1 << LEAF
    | 1 << RETURN_FROM
    | 1 << HAND_OVER
    | 1 << BIND
    | 1 << ENTER_TIMED
    | 1 << EXIT_TIMED;

/// What a routine could not do in its fast path.
pub unsafe extern "C" fn event(thread: *mut Thread, frame: *mut Frame) {
    // SAFETY: the routine's own frame and this thread's block, which nobody else uses meanwhile.
    let (thread, frame) = unsafe { (&mut *thread, &mut *frame) };
    let before = stall::begin();
    handle(thread, frame);
    stall::end(before, frame.kind);
}

/// What a routine could not do in its fast path, while this thread's slow path is at work below it: see
/// [`crate::signals`]. On the program's own stack, and without touching what is half done.
pub unsafe extern "C" fn nested(thread: *mut Thread, frame: *mut Frame) {
    // SAFETY: the routine's own frame. The slow path that was interrupted does not go on meanwhile; of the
    // block nothing is changed here that it has half changed.
    let (thread, frame) = unsafe { (&mut *thread, &mut *frame) };
    let Some(process) = Process::get() else {
        return;
    };
    let slot = &raw const frame.slot as u64;
    let on_signal_stack = syscall::signal_stack()
        .is_some_and(|(start, end, on_it)| on_it && (start..end).contains(&slot));
    if !on_signal_stack && thread.is_above(slot, thread.at_work) {
        // The handler never came back.
        thread.abandon(process);
    }
    match frame.kind {
        EXIT => match returning(thread.entries(), slot, frame.hook_of_exit()) {
            Some(own) => frame.slot = own.return_address,
            None => lost(),
        },
        RESTORE => return thread.restore(slot),
        SUSPEND => return suspend(thread),
        SIGNALS => return signals(process, frame),
        // Not of a child of fork that has no file of its own yet, nor of one of vfork.
        END if process.is_ready() && process.is_own() => {
            return process.set_end(end::EXITED, frame.first_argument() as u32 & 0xff);
        }
        MPI if process.is_own() => return process.set_mpi(),
        ENTER | ENTER_PLAIN | INSTANT | JUMP | VFORK | OPEN | LEAF => {
            unrecorded(thread, frame, slot);
        }
        _ => return,
    }
    count_unrecorded(thread);
}

fn signals(process: &Process, frame: &mut Frame) {
    let [signal, action, former, ..] = frame.arguments();
    crate::signals::set(signal as u32, action);
    // A child of `vfork` has handlers of its own, and its parent's memory.
    let is_own = !process.is_ready() || process.is_own();
    if is_own && crate::handlers::exchange(signal, action, former).is_some() {
        frame.set_result(0);
        frame.stub = crate::x86_64::handlers::done as *const () as u64;
    }
}

fn handle(thread: &mut Thread, frame: &mut Frame) {
    thread.prepare();
    if frame.kind == FAULT {
        return crate::fault::fault(thread, frame);
    }
    if frame.kind == FOLLOW {
        return crate::fault::follow(thread, frame);
    }
    if frame.kind == BIND {
        // SAFETY: the stub that called the routine.
        return unsafe { closed::bind(frame.stub_start()) };
    }
    let Some(process) = Process::get() else {
        return;
    };
    let slot = &raw const frame.slot as u64;
    match frame.kind {
        EXIT => return exit(thread, process, frame, slot),
        // The unwinder needs the return addresses whatever else is going on here.
        RESTORE => return thread.restore(slot),
        MPI => {
            if process.is_own() || !process.is_ready() {
                let _ = process.open(flag::FORKED);
                process.set_mpi();
            }
            return;
        }
        SUSPEND => return suspend(thread),
        SIGNALS => return signals(process, frame),
        EXEC => return crate::exec::exec(thread, process, frame),
        LOADED => {
            // A library that unwinds by itself must find the addresses that it looks for.
            if crate::load::changed(process) {
                thread.restore(slot);
            }
            return;
        }
        ENTER_ARGUMENTS | EXIT_ARGUMENTS => {
            let is_exit = frame.kind == EXIT_ARGUMENTS;
            if let Some(call) = Call::of_slow(thread, frame, is_exit) {
                side::slow(thread, process, &call, is_exit);
            }
            return;
        }
        ENTER_TIMED | EXIT_TIMED => {
            let is_exit = frame.kind == EXIT_TIMED;
            if let Some(call) = Call::of_slow(thread, frame, is_exit) {
                side::slow_timed(thread, process, &call, is_exit);
            }
            return;
        }
        END => return finish(thread, process, slot, Some(frame.first_argument() as u32)),
        FINISH => return finish(thread, process, slot, None),
        _ => {}
    }
    let result = match begin(thread, process, slot) {
        Some(Ok(())) => match frame.kind {
            ENTER => enter(thread, process, frame, slot),
            ENTER_PLAIN => jump(thread, process, frame, slot).map(|()| frame.skip()),
            INSTANT => instant(thread, process, frame, slot),
            JUMP => jump(thread, process, frame, slot),
            OPEN => open(thread, process, frame, slot),
            LEAF => leaf(thread, process, frame, slot),
            RETURN_FROM => return_from(thread, process, slot),
            HAND_OVER => hand_over(thread, process, slot),
            VFORK => instant(thread, process, frame, slot).map(|()| suspend(thread)),
            _ => Ok(()),
        },
        Some(Err(stop)) => Err(stop),
        None => return unrecorded(thread, frame, slot),
    };
    if let Err(stop) = result {
        thread.stop(process, stop);
        count_unrecorded(thread);
        unrecorded(thread, frame, slot);
    }
}

/// Leads every event to the slow path, until one is of this process: a child may run in its memory.
fn suspend(thread: &mut Thread) {
    if thread.hot.busy != STOPPED {
        thread.suspended = true;
        thread.hot.limit = core::ptr::null_mut();
    }
}

/// Makes the thread ready to record; `None` where this event must not be.
fn begin(thread: &mut Thread, process: &Process, slot: u64) -> Option<Result<(), Stop>> {
    let mut left = false;
    if thread.interrupted != 0 {
        // Inline code that came here in the middle of its event left its own slot there.
        let is_own = thread.interrupted == slot;
        if thread.interrupted == STOPPED || !is_own && !thread.is_above(slot, thread.interrupted) {
            count_unrecorded(thread);
            return None;
        }
        // The routine at work was left for good.
        thread.interrupted = 0;
        left = !is_own;
    }
    // A forked child's thread is not attached; one that runs in this memory was announced.
    if (thread.suspended || thread.hot.attached == 0) && process.is_ready() && !process.is_own() {
        process.count(loss::VFORK, 1);
        return None;
    }
    if thread.suspended {
        thread.resume();
    }
    if thread.hot.attached == 0 {
        // In the constructor's process the file is there; here it is missing in a forked child only.
        let ready = process.open(flag::FORKED);
        return Some(ready.and_then(|()| thread.attach(process)));
    }
    side::seen(thread, process);
    Some(if left {
        thread.recover(process)
    } else {
        Ok(())
    })
}

fn count_unrecorded(thread: &Thread) {
    // SAFETY: always a counter: in the file, or one of our own.
    unsafe { AtomicU64::from_ptr(thread.loss) }.fetch_add(1, Ordering::Relaxed);
}

/// A call that goes on without us.
fn unrecorded(thread: &mut Thread, frame: &mut Frame, slot: u64) {
    match frame.kind {
        ENTER | ENTER_PLAIN => frame.skip(),
        // Whoever jumps away needs the return addresses all the same.
        JUMP => thread.restore(slot),
        _ => {}
    }
}

/// Whether the top frame hands over to the call at `slot`, where `found` stands: it jumped here, so
/// that our own hook lies in the slot, or it said so, and the return address is still its own.
fn is_tail(thread: &mut Thread, found: u64, slot: u64) -> bool {
    thread.top_entry().is_some_and(|top| {
        let stands = if top.has(block::HANDED_OVER) {
            top.return_address
        } else {
            top.hook()
        };
        top.slot() == slot && stands != 0 && stands == found
    })
}

/// Takes frames off that are gone once the stack pointer is back at `slot`, and emits their returns.
fn heal(thread: &mut Thread, process: &Process, slot: u64) -> Result<(), Stop> {
    while thread.is_top_dead(slot) {
        gone(thread, process)?;
    }
    Ok(())
}

/// The same at a call by the code at `caller`, which proves of some that they are over.
fn heal_below(thread: &mut Thread, process: &Process, slot: u64, caller: u64) -> Result<(), Stop> {
    loop {
        if thread.is_over(slot, caller) {
            returned(thread, process)?;
        } else if thread.is_top_dead(slot) {
            gone(thread, process)?;
        } else {
            return Ok(());
        }
    }
}

/// The same when the frame at `slot` returns, or hands over.
fn heal_within(thread: &mut Thread, process: &Process, slot: u64) -> Result<(), Stop> {
    for _ in 0..thread.over_at_return(slot) {
        returned(thread, process)?;
    }
    heal(thread, process, slot - 8)
}

/// The newest frame is gone.
fn gone(thread: &mut Thread, process: &Process) -> Result<(), Stop> {
    thread.make_room(process, 1)?;
    thread.restore_top();
    thread.pop();
    unseen(thread, process)
}

/// The same, and it returned to the frame below it.
fn returned(thread: &mut Thread, process: &Process) -> Result<(), Stop> {
    thread.make_room(process, 1)?;
    thread.restore_top();
    thread.pop_returned();
    unseen(thread, process)
}

/// Emits the return of a frame that was taken off.
fn unseen(thread: &mut Thread, process: &Process) -> Result<(), Stop> {
    inferred::tell(thread, process);
    thread.emit_symbol(process, RETURN)
}

fn enter(thread: &mut Thread, process: &Process, frame: &mut Frame, slot: u64) -> Result<(), Stop> {
    let start = frame.stub_start();
    if is_tail(thread, frame.slot, slot) {
        return take_over(thread, process, start, 0);
    }
    heal_below(thread, process, slot, frame.slot)?;
    thread.make_room(process, 1)?;
    if !thread.has_room() {
        process.count(loss::DEPTH, 1);
        frame.skip();
        return Ok(());
    }
    thread.push(process, Entry::new(frame.slot, slot, start, 0));
    thread.emit_call(process, word_of(start), frame.slot)
}

/// The top frame becomes that of the stub at `start`.
fn take_over(thread: &mut Thread, process: &Process, start: u64, flags: u64) -> Result<(), Stop> {
    thread.make_room(process, 2)?;
    if let Some(top) = thread.top_entry().copied() {
        let entry = Entry::new(top.return_address, top.slot(), start, flags);
        thread.replace_top(entry);
    }
    thread.emit_symbol(process, TAIL)?;
    thread.emit(process, u64::from(word_of(start)))
}

fn open(thread: &mut Thread, process: &Process, frame: &mut Frame, slot: u64) -> Result<(), Stop> {
    let start = frame.stub_start();
    if is_tail(thread, frame.slot, slot) {
        // Its returns are its own: nothing of ours may stand in the slot.
        thread.restore_top();
        return take_over(thread, process, start, block::PLAIN);
    }
    heal_below(thread, process, slot, frame.slot)?;
    thread.prove_top(frame.slot);
    thread.make_room(process, 1)?;
    let entry = Entry::new(frame.slot, slot, start, block::PLAIN);
    // Where there is no room the return finds no entry, and records nothing either.
    if thread.push(process, entry) {
        thread.emit_call(process, word_of(start), frame.slot)?;
    }
    Ok(())
}

fn leaf(thread: &mut Thread, process: &Process, frame: &Frame, slot: u64) -> Result<(), Stop> {
    let start = frame.stub_start();
    let word = word_of(start);
    if is_tail(thread, frame.slot, slot) {
        let plain = from_staging_word(u64::from(word))
            .map_or(word, |staged| event_word(staged.symbol, false));
        return end_with(thread, process, plain);
    }
    heal_below(thread, process, slot, frame.slot)?;
    thread.prove_top(frame.slot);
    thread.emit(process, u64::from(word))
}

/// The top frame hands over to a call that is over at once. If the frame has a hook, that records
/// the return.
fn end_with(thread: &mut Thread, process: &Process, word: u32) -> Result<(), Stop> {
    thread.make_room(process, 3)?;
    thread.emit_symbol(process, TAIL)?;
    thread.emit(process, u64::from(word))?;
    if thread.top_entry().is_some_and(|top| top.has(block::PLAIN)) {
        thread.pop();
        thread.emit_symbol(process, RETURN)?;
    }
    Ok(())
}

fn instant(thread: &mut Thread, process: &Process, frame: &Frame, slot: u64) -> Result<(), Stop> {
    let word = word_of(frame.stub_start());
    if is_tail(thread, frame.slot, slot) {
        return end_with(thread, process, word);
    }
    heal_below(thread, process, slot, frame.slot)?;
    thread.make_room(process, 2)?;
    thread.emit_call(process, word, frame.slot)?;
    thread.emit_symbol(process, RETURN)
}

fn jump(thread: &mut Thread, process: &Process, frame: &Frame, slot: u64) -> Result<(), Stop> {
    let start = frame.stub_start();
    let may_wait = thread.may_wait(slot);
    let mut flags = block::PLAIN | block::JUMP;
    if may_wait {
        flags |= block::PENDING;
    }
    if frame.kind == ENTER_PLAIN {
        flags |= block::THROUGH;
    }
    if is_tail(thread, frame.slot, slot) {
        if !may_wait {
            thread.restore(slot);
        }
        take_over(thread, process, start, flags)?;
    } else {
        heal_below(thread, process, slot, frame.slot)?;
        thread.make_room(process, 1)?;
        if thread.push(process, Entry::new(frame.slot, slot, start, flags)) {
            thread.emit_call(process, word_of(start), frame.slot)?;
        }
        if !may_wait {
            thread.restore(slot);
        }
    }
    if may_wait && let Some(top) = thread.top_entry() {
        top.question();
    }
    Ok(())
}

/// A patched `ret`: the frame returns by itself, recorded or not.
fn return_from(thread: &mut Thread, process: &Process, slot: u64) -> Result<(), Stop> {
    heal_within(thread, process, slot)?;
    // A frame with a hook returns through it.
    let is_this = |top: &mut Entry| top.slot() == slot && top.has(block::PLAIN);
    if thread.top_entry().is_some_and(is_this) {
        thread.make_room(process, 1)?;
        thread.pop();
        thread.emit_symbol(process, RETURN)?;
    }
    Ok(())
}

/// A patched tail jump to a stub that will find the frame marked.
fn hand_over(thread: &mut Thread, process: &Process, slot: u64) -> Result<(), Stop> {
    heal_within(thread, process, slot)?;
    if let Some(top) = thread.top_entry()
        && top.slot() == slot
        && top.has(block::PLAIN)
    {
        top.stub |= block::HANDED_OVER;
    }
    Ok(())
}

/// A frame returns. Whatever state the thread is in, it must get its return address.
fn exit(thread: &mut Thread, process: &Process, frame: &mut Frame, slot: u64) {
    let hook = frame.hook_of_exit();
    let Some(own) = returning(thread.entries(), slot, hook) else {
        // The program switches stacks between threads, or unwinds in a way that we do not know.
        process.count(loss::MISMATCH, 1);
        match process.search(slot, hook) {
            Some(address) => frame.slot = address,
            None => lost(),
        }
        return;
    };
    frame.slot = own.return_address;
    let record = match begin(thread, process, slot) {
        Some(Ok(())) => {
            heal(thread, process, own.slot() - 8).and_then(|()| thread.make_room(process, 1))
        }
        Some(Err(stop)) => Err(stop),
        None if thread.interrupted == STOPPED => Err(Stop::NoFile),
        // A child of `vfork` that returns, or a routine that was interrupted: the entry is needed yet.
        None => return,
    };
    let is_own = |entry: &Entry| entry.slot() == own.slot() && entry.hook() == hook;
    if let Some(index) = thread.entries().iter().rposition(is_own) {
        thread.remove(index);
    }
    let result = record.and_then(|()| thread.emit_symbol(process, RETURN));
    if let Err(stop) = result
        && thread.interrupted != STOPPED
    {
        thread.stop(process, stop);
    }
}

/// The entry of the frame that came back to `hook`, its return address having been at `slot`; or below
/// it, where the frame took its arguments off the stack too (`ret 16`).
fn returning(entries: &[Entry], slot: u64, hook: u64) -> Option<Entry> {
    const MOST_TAKEN_OFF: u64 = u16::MAX as u64;
    let hooked = || entries.iter().rev().filter(|entry| entry.hook() == hook);
    hooked()
        .find(|entry| entry.slot() == slot)
        .or_else(|| hooked().find(|entry| slot.wrapping_sub(entry.slot()) <= MOST_TAKEN_OFF))
        .copied()
}

/// There is nowhere to return to. Nothing can go on here, and nothing must go on wrongly.
fn lost() -> ! {
    crate::die()
}

/// The process ends, or its destructors run.
pub fn finish(thread: &mut Thread, process: &Process, slot: u64, status: Option<u32>) {
    // Not a forked child without events, and not a child of vfork.
    if !process.is_ready() || !process.is_own() {
        return;
    }
    if thread.hot.attached != 0 && thread.interrupted == 0 && !thread.suspended {
        side::seen(thread, process);
        thread.ask();
        thread.note_pending();
        // If `main` returned without us (it caught an exception, say), its slot is in other use now.
        let healed = if thread.restored() == thread.depth() {
            heal(thread, process, slot)
        } else {
            Ok(())
        };
        if let Err(stop) = healed.and_then(|()| thread.commit(process)) {
            thread.stop(process, stop);
        }
    }
    if let Some(status) = status {
        crate::load::tell_made_code(process);
        process.close_threads();
        process.set_end(end::EXITED, status & 0xff);
    }
}
