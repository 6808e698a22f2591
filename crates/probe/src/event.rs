//! The slow path of every routine: on the thread's own stack, signals blocked, registers saved.

use crate::process::{Process, Stop};
use crate::thread::{Entry, STOPPED, Thread};
use crate::x86_64::routines::{FINISH, Frame};
use core::sync::atomic::{AtomicU64, Ordering};
use lockstep_format::plan::routine;
use lockstep_format::process::{end, flag, loss};
use lockstep_format::symbol::{RETURN, TAIL};

const ENTER: u64 = routine::ENTER as u64;
const EXIT: u64 = routine::EXIT as u64;
const INSTANT: u64 = routine::INSTANT as u64;
const JUMP: u64 = routine::JUMP as u64;
const VFORK: u64 = routine::VFORK as u64;
const RESTORE: u64 = routine::RESTORE as u64;
const MPI: u64 = routine::MPI as u64;
const END: u64 = routine::END as u64;

/// What a routine could not do in its fast path.
pub unsafe extern "C" fn event(thread: *mut Thread, frame: *mut Frame) {
    // SAFETY: the routine's own frame and this thread's block, which nobody else uses meanwhile.
    let (thread, frame) = unsafe { (&mut *thread, &mut *frame) };
    thread.prepare();
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
        END => return finish(thread, process, slot, Some(frame.first_argument() as u32)),
        FINISH => return finish(thread, process, slot, None),
        _ => {}
    }
    let result = match begin(thread, process, slot) {
        Some(Ok(())) => match frame.kind {
            ENTER => enter(thread, process, frame, slot),
            INSTANT => instant(thread, process, frame, slot),
            JUMP => jump(thread, process, frame, slot),
            VFORK => instant(thread, process, frame, slot).map(|()| {
                thread.suspended = true;
                thread.hot.limit = core::ptr::null_mut();
            }),
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

/// Makes the thread ready to record; `None` where this event must not be.
fn begin(thread: &mut Thread, process: &Process, slot: u64) -> Option<Result<(), Stop>> {
    if thread.hot.busy != 0 {
        if thread.hot.busy == STOPPED || !thread.is_above(slot, thread.hot.busy) {
            count_unrecorded(thread);
            return None;
        }
        // The routine at work was left for good.
        thread.hot.busy = 0;
    }
    if process.is_ready() && !process.is_own() {
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
    Some(Ok(()))
}

fn count_unrecorded(thread: &Thread) {
    // SAFETY: always a counter: in the file, or one of our own.
    unsafe { AtomicU64::from_ptr(thread.loss) }.fetch_add(1, Ordering::Relaxed);
}

/// A call that goes on without us.
fn unrecorded(thread: &mut Thread, frame: &mut Frame, slot: u64) {
    match frame.kind {
        ENTER => frame.skip(),
        // Whoever jumps away needs the return addresses all the same.
        JUMP => thread.restore(slot),
        _ => {}
    }
}

/// Whether the top frame hands over: it jumped here, so that our own hook lies in the slot.
fn is_tail(thread: &mut Thread, frame: &Frame, slot: u64) -> bool {
    let found = frame.slot;
    thread
        .top_entry()
        .is_some_and(|top| top.slot == slot && top.hook != 0 && top.hook == found)
}

/// Takes frames off that are gone once the stack pointer is back at `slot`, and emits their returns.
fn heal(thread: &mut Thread, process: &Process, slot: u64) -> Result<(), Stop> {
    while thread.is_top_dead(slot) {
        thread.make_room(process, 1)?;
        thread.restore_top();
        thread.pop();
        thread.emit_symbol(process, RETURN)?;
    }
    Ok(())
}

fn enter(thread: &mut Thread, process: &Process, frame: &mut Frame, slot: u64) -> Result<(), Stop> {
    let word = frame.word();
    if is_tail(thread, frame, slot) {
        thread.make_room(process, 2)?;
        if let Some(top) = thread.top_entry() {
            top.hook = frame.hook();
            top.word = word;
        }
        thread.emit_symbol(process, TAIL)?;
        return thread.emit(process, word);
    }
    heal(thread, process, slot)?;
    thread.make_room(process, 1)?;
    if !thread.has_room() {
        process.count(loss::DEPTH, 1);
        frame.skip();
        return Ok(());
    }
    thread.push(
        process,
        Entry {
            return_address: frame.slot,
            slot,
            hook: frame.hook(),
            word,
        },
    );
    thread.emit(process, word)
}

fn instant(thread: &mut Thread, process: &Process, frame: &Frame, slot: u64) -> Result<(), Stop> {
    if !is_tail(thread, frame, slot) {
        heal(thread, process, slot)?;
    }
    thread.make_room(process, 2)?;
    thread.emit(process, frame.word())?;
    thread.emit_symbol(process, RETURN)
}

fn jump(thread: &mut Thread, process: &Process, frame: &Frame, slot: u64) -> Result<(), Stop> {
    let word = frame.word();
    if is_tail(thread, frame, slot) {
        thread.make_room(process, 2)?;
        thread.restore(slot);
        if let Some(top) = thread.top_entry() {
            top.hook = 0;
            top.word = word;
        }
        thread.emit_symbol(process, TAIL)?;
        return thread.emit(process, word);
    }
    heal(thread, process, slot)?;
    thread.make_room(process, 1)?;
    if thread.has_room() {
        thread.push(
            process,
            Entry {
                return_address: frame.slot,
                slot,
                hook: 0,
                word,
            },
        );
        thread.emit(process, word)?;
    } else {
        process.count(loss::DEPTH, 1);
    }
    thread.restore(slot);
    Ok(())
}

/// A frame returns. Whatever state the thread is in, it must get its return address.
fn exit(thread: &mut Thread, process: &Process, frame: &mut Frame, slot: u64) {
    let hook = frame.hook_of_exit();
    let is_ours = |entry: &Entry| entry.slot == slot && entry.hook == hook;
    let Some(index) = thread.entries().iter().rposition(is_ours) else {
        // The program switches stacks between threads, or unwinds in a way that we do not know.
        process.count(loss::MISMATCH, 1);
        match process.search(slot, hook) {
            Some(address) => frame.slot = address,
            None => lost(),
        }
        return;
    };
    if let Some(entry) = thread.entries().get(index) {
        frame.slot = entry.return_address;
    }
    let record = match begin(thread, process, slot) {
        Some(Ok(())) => heal(thread, process, slot - 8).and_then(|()| thread.make_room(process, 1)),
        Some(Err(stop)) => Err(stop),
        None if thread.hot.busy == STOPPED => Err(Stop::NoFile),
        // A child of `vfork` that returns, or a routine that was interrupted: the entry is needed yet.
        None => return,
    };
    if let Some(index) = thread.entries().iter().rposition(is_ours) {
        thread.remove(index);
    }
    let result = record.and_then(|()| thread.emit_symbol(process, RETURN));
    if let Err(stop) = result
        && thread.hot.busy != STOPPED
    {
        thread.stop(process, stop);
    }
}

/// There is nowhere to return to. Nothing can go on here, and nothing must go on wrongly.
fn lost() -> ! {
    crate::die()
}

/// The process ends, or its destructors run.
fn finish(thread: &mut Thread, process: &Process, slot: u64, status: Option<u32>) {
    // Not a forked child without events, and not a child of vfork.
    if !process.is_ready() || !process.is_own() {
        return;
    }
    if thread.hot.attached != 0 && thread.hot.busy == 0 && !thread.suspended {
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
        process.close_threads();
        process.set_end(end::EXITED, status & 0xff);
    }
}
