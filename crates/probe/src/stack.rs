//! The shadow stack of a thread: the return addresses that stubs took away, newest at the top.
//!
//! Three things happen to it beside push and pop. *Restore*: before somebody unwinds, every live
//! return address goes back to where it came from; those frames return without us. *Heal*: at the
//! next event, frames that are gone are taken off, and their returns emitted. *Search*: a frame may
//! return out of order where a program switches stacks in its own way. What may wait is in [`crate::pending`].

use crate::entry::Entry;
use crate::maps;
use crate::program;
use crate::syscall;
use crate::thread::{SEGMENTS, Thread};
use crate::x86_64::slow::Frame;
use core::mem::offset_of;
use lockstep_format::plan::block;

/// How a slot was found that a hook may stand in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// The return address stands there.
    Plain,
    /// It does so now, or the frame is gone.
    Restored,
    /// It is mapped, but nobody may read or write there now.
    Hidden,
}

/// Addresses that are nearer than this are taken for the same stack's.
const SAME: u64 = 4096;

impl Thread {
    /// The entries, oldest first.
    pub fn entries(&self) -> &[Entry] {
        // SAFETY: base..top are initialised entries in memory that this thread owns.
        unsafe { core::slice::from_raw_parts(self.base, self.depth()) }
    }

    /// The newest entry.
    pub fn top_entry(&mut self) -> Option<&mut Entry> {
        if self.depth() == 0 {
            return None;
        }
        // SAFETY: there is one below top.
        Some(unsafe { &mut *self.top.sub(1) })
    }

    /// Takes the newest entry off.
    pub fn pop(&mut self) {
        if self.depth() == 0 {
            return;
        }
        // SAFETY: there is one below top.
        self.top = unsafe { self.top.sub(1) };
        // SAFETY: what was the newest entry.
        let was_pending = unsafe { (*self.top).has(block::PENDING) };
        // One that is pending itself stands for all that is older.
        let is_pending = |it: &mut Entry| it.has(block::PENDING);
        if was_pending && !self.top_entry().is_some_and(is_pending) {
            self.mark = self.top;
        }
        self.lower_mark();
    }

    /// Takes the entry at `index` out, wherever it is.
    pub fn remove(&mut self, index: usize) {
        let depth = self.depth();
        if index >= depth {
            return;
        }
        // SAFETY: index < depth; what moves stays within the entries, and the mark with it.
        unsafe {
            if index < self.restored() {
                self.mark = self.mark.sub(1);
            }
            let at = self.base.add(index);
            core::ptr::copy(at.add(1), at, depth - index - 1);
            self.top = self.top.sub(1);
        }
        self.lower_mark();
    }

    /// Another call takes the newest entry's place: whatever was restored, that was not.
    pub fn replace_top(&mut self, entry: Entry) {
        if self.depth() == 0 {
            return;
        }
        // SAFETY: there is one below top.
        let place = unsafe { self.top.sub(1) };
        if self.mark >= self.top {
            self.mark = place;
            self.lower_mark();
        }
        // SAFETY: as above.
        unsafe { place.write(entry) };
    }

    /// Entries below the mark are restored; there is no mark where none is. The newest of them may be
    /// gone although it looks alive: it is questioned whenever it is at the top.
    pub fn lower_mark(&mut self) {
        if self.mark > self.top {
            self.mark = self.top;
        }
        if self.mark == self.base {
            self.mark = core::ptr::null_mut();
        }
        if !self.mark.is_null() {
            // SAFETY: the mark lies above base, at most at top.
            unsafe { (*self.mark.sub(1)).question() };
        }
    }

    /// Something is called from `caller` with the newest entry at the top, of a frame that may be gone: if it is that frame's own code that
    /// calls, it is there, and is no more among those that are restored.
    pub fn prove_top(&mut self, caller: u64) {
        if self.top_entry().is_some_and(|top| top.prove(caller)) && self.mark == self.top {
            // SAFETY: there is an entry below top, where the mark is.
            self.mark = unsafe { self.mark.sub(1) };
            self.lower_mark();
        }
    }

    /// How many of the oldest entries are restored.
    pub fn restored(&self) -> usize {
        if self.mark.is_null() {
            0
        } else {
            // SAFETY: the mark lies between base and top of the same allocation.
            unsafe { self.mark.offset_from_unsigned(self.base) }
        }
    }

    /// Whether the newest entry is of a frame that is gone, when the stack pointer has come back to
    /// `slot`.
    ///
    /// ```text
    ///  where it lies                  it is gone
    ///  this stack, not above `slot`   always
    ///  this stack, above it           if it is questioned, and its return address is neither the real one nor our
    ///                                 hook: somebody else uses its place
    ///  another stack                  no: nothing runs there. But if that is the stack of a handler that was left
    ///  any                            if its memory is
    /// ```
    /// Of a stack that does not run nothing is read: a program may switch at each call.
    pub fn is_top_dead(&mut self, slot: u64) -> bool {
        let restored = self.restored() == self.depth();
        let Some(entry) = self.top_entry().copied() else {
            return false;
        };
        let place = entry.slot();
        if place <= slot && self.is_same_stack(place, slot) {
            return true;
        }
        if entry.key == block::QUESTIONED && !self.is_other_stack(place, slot) {
            return match program::read(place, self.running()) {
                Some(found) => {
                    let hook = if restored { 0 } else { entry.hook() };
                    found != entry.return_address && (hook == 0 || found != hook)
                }
                // Memory that may not be read now may be again.
                None => !program::is_mapped(place, self.running()),
            };
        }
        if place.abs_diff(slot) < SAME {
            return false;
        }
        let (start, end) = self.signal_stack;
        (start..end).contains(&place) && !(start..end).contains(&slot) || self.is_gone(place)
    }

    /// Whether an entry's memory is gone, as far as it is asked: less and less often as long as it is not. A frame
    /// may be shown as open for a few events more.
    fn is_gone(&mut self, place: u64) -> bool {
        const MOST: u32 = 15;
        if self.unasked > 0 {
            self.unasked -= 1;
            return false;
        }
        let is_gone = !syscall::is_mapped(place);
        self.patience = match is_gone {
            true => 0,
            false => (2 * self.patience + 1).min(MOST),
        };
        self.unasked = self.patience;
        is_gone
    }

    /// The next question whether an entry's memory is gone is asked.
    pub fn ask(&mut self) {
        (self.patience, self.unasked) = (0, 0);
    }

    /// An address in a page that is there: where the stack pointer of the event at work points to. Not in a handler
    /// that interrupted the slow path: what that was called from may have been left for good.
    fn running(&self) -> u64 {
        self.at_work + offset_of!(Frame, slot) as u64
    }

    /// Puts the newest entry's return address back, if our hook still stands for it. It is about to be
    /// forgotten: where a program switches between stacks in a way that looks like unwinding, the
    /// frame can still return.
    pub fn restore_top(&mut self) {
        if let Some(entry) = self.top_entry().copied() {
            put_back(&entry, self.running());
        }
    }

    /// Writes every live return address back where it belongs, on whatever stack. What is hidden is tried again at
    /// the next time, and with it all that is newer.
    pub fn restore(&mut self, slot: u64) {
        let from = self.restored();
        let depth = self.depth();
        let mut restored = depth;
        self.remember_signal_stack(slot);
        // What we saved ourselves lies there; in a handler, below its slot.
        let saved = slot.wrapping_sub(self.at_work).min(SAME);
        for index in (from..depth).rev() {
            let Some(entry) = self.entries().get(index).copied() else {
                break;
            };
            if (slot - saved..slot).contains(&entry.slot()) {
                continue;
            }
            let was = put_back(&entry, slot);
            // Interrupted between ENTER and the call of the body: the hook is yet to come.
            let in_window = was == Slot::Plain && entry.hook() != 0 && index + 1 == depth;
            if in_window || was == Slot::Hidden {
                restored = index;
            }
        }
        self.question_above(restored);
        self.mark = if restored == 0 {
            core::ptr::null_mut()
        } else {
            // SAFETY: restored <= depth.
            unsafe { self.base.add(restored) }
        };
        self.lower_mark();
        if restored == depth {
            self.find_home(slot);
        }
    }

    /// A handler that is left for good may run at `slot` now. Where the thread's oldest frame lies it does not: the kernel is not
    /// asked, since compilers and interpreters come here at every few calls.
    fn remember_signal_stack(&mut self, slot: u64) {
        let oldest = self.entries().first().map(Entry::slot);
        if oldest.is_some_and(|oldest| self.is_same_stack(oldest, slot)) {
            return;
        }
        if let Some((start, end, true)) = syscall::signal_stack() {
            self.signal_stack = (start, end);
        }
    }

    /// Entries that are restored although an older one is not: the fast path must not take them for what they were.
    fn question_above(&mut self, restored: usize) {
        for index in restored + 1..self.depth() {
            // SAFETY: index < depth.
            unsafe { (*self.base.add(index)).question() };
        }
    }

    /// Whether two addresses lie in the same stack, as far as mappings tell: a guess, by which frames end sooner or
    /// later. Several stacks may be one mapping, and what is remembered of mappings may have changed.
    fn is_same_stack(&mut self, a: u64, b: u64) -> bool {
        let (low, high) = (a.min(b), a.max(b));
        if high - low < SAME {
            return true;
        }
        // That of the lower one: a stack that grew is looked at again.
        let (start, end) = self.segment(low);
        (start..end).contains(&high)
    }

    /// Whether `place` lies in another stack than `slot`, as far as that is known without asking.
    fn is_other_stack(&self, place: u64, slot: u64) -> bool {
        let own = self.known(slot);
        own.is_some_and(|(start, end)| !(start..end).contains(&place))
    }

    /// Whether `slot` lies above `other` on the same stack.
    pub fn is_above(&mut self, slot: u64, other: u64) -> bool {
        slot > other && self.is_same_stack(other, slot)
    }

    /// The mapping that contains `address`, if it is remembered.
    fn known(&self, address: u64) -> Option<(u64, u64)> {
        let mut known = self.segments.iter();
        known.find(|it| (it.0..it.1).contains(&address)).copied()
    }

    /// The mapping that contains `address`; empty where there is none.
    pub fn segment(&mut self, address: u64) -> (u64, u64) {
        if let Some(known) = self.known(address) {
            return known;
        }
        let found = maps::containing(address).unwrap_or((0, 0));
        let place = self.next_segment as usize % SEGMENTS;
        // A stack that grew replaces what was known of it.
        let place = self
            .segments
            .iter()
            .position(|known| known.1 == found.1)
            .unwrap_or(place);
        self.next_segment = self.next_segment.wrapping_add(1);
        if let Some(known) = self.segments.get_mut(place) {
            *known = found;
        }
        found
    }
}

/// Puts a return address back where our hook still stands for it. What is written replaces an address of our
/// own arena, which the program cannot have put there. The page of `known` is there.
fn put_back(entry: &Entry, known: u64) -> Slot {
    let (place, hook) = (entry.slot(), entry.hook());
    if hook == 0 {
        return Slot::Plain;
    }
    let is_done = match program::read(place, known) {
        Some(found) if found == hook => program::write(place, entry.return_address, known),
        Some(found) if found == entry.return_address => return Slot::Plain,
        Some(_) => true,
        None => false,
    };
    if is_done || !program::is_mapped(place, known) {
        Slot::Restored
    } else {
        Slot::Hidden
    }
}
