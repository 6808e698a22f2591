//! Calls whose returns nobody sees (the routine JUMP): every library call of an image that unwinds the stack by itself, where no
//! address of ours may stand in a frame, and calls that jump away (`longjmp`, `exit`, a throw).
//!
//! Most such calls return as any other. Until then the frame is *pending*: what the call may have done to older frames is noted
//! when it is found gone, and only if nothing proves that it returned.
//!
//! ```text
//!  f ── CALL(pending)      the next event
//!  f ── ╴over╶             the code of `f` calls (not of CALL), or `f` returns: `f` is there, and so are all older frames
//!  ? ── ╴over╶             anything else: every older frame is questioned, as after a jump (`stack`)
//!  f ── CALL ── g          the return address of CALL stands in its slot: a library calls the program back
//! ```
//! The fast path does the same ([`crate::x86_64::pending`]), but for what has to be looked up. It does so only in a thread in whose
//! frames no address of ours stands ([`HOOKS`]): a jump may need the program's own back at once.

use crate::entry::Entry;
use crate::thread::Thread;
use core::sync::atomic::{AtomicU64, Ordering};
use lockstep_format::plan::block;

/// Changes whenever return addresses begin or cease to be replaced; odd while they are.
pub static HOOKS: AtomicU64 = AtomicU64::new(2);

/// From now on return addresses may be replaced, or no more.
pub fn replace_return_addresses(may_be: bool) {
    // By one at a time: whoever patches.
    let hooks = HOOKS.load(Ordering::Relaxed);
    if (hooks % 2 == 1) != may_be {
        HOOKS.store(hooks + 1, Ordering::SeqCst);
    }
}

impl Thread {
    /// Whether what a call at `slot` may do to older frames can be noted later: no frame has an address of ours, and the
    /// call is made on the stack that the thread began on.
    pub fn may_wait(&self, slot: u64) -> bool {
        let is_at_home = |place: u64| place.wrapping_sub(self.home[0]) < self.home[1];
        let oldest = self.entries().first().map(Entry::slot);
        self.unhooked == HOOKS.load(Ordering::Relaxed)
            && oldest.is_some_and(is_at_home)
            && is_at_home(slot)
    }

    /// Every return address is where it belongs, as an event at `slot` finds: notes whether that will last.
    pub fn find_home(&mut self, slot: u64) {
        let hooks = HOOKS.load(Ordering::Relaxed);
        let oldest = self.entries().first().map(Entry::slot);
        let Some(oldest) = oldest.filter(|_| hooks.is_multiple_of(2)) else {
            return;
        };
        let (start, end) = self.segment(slot);
        if (start..end).contains(&oldest) {
            (self.unhooked, self.home) = (hooks, [start, end - start]);
        }
    }

    /// Whether the newest frame, which is questioned, is over at a call by the code at `caller`: that is the code of the frame below it.
    /// If it is that of both, which calls itself, this is known of a frame below the slot only.
    pub fn is_over(&self, slot: u64, caller: u64) -> bool {
        let [.., below, top] = self.entries() else {
            return false;
        };
        let is_below = || top.slot() <= slot;
        top.key == block::QUESTIONED && below.owns(caller) && (is_below() || !top.owns(caller))
    }

    /// How many of the newest frames are over, since they are pending and the frame below them returns, whose slot this is.
    pub fn over_at_return(&self, slot: u64) -> usize {
        let mut newest = self.entries().iter().rev();
        let is_within = |it: &&Entry| it.has(block::PENDING) && it.slot() < slot;
        let count = newest.clone().take_while(is_within).count();
        let returns = newest.nth(count).is_some_and(|it| it.key == slot);
        if returns { count } else { 0 }
    }

    /// Takes the newest frame off, of which it was proved that it returned.
    pub fn pop_returned(&mut self) {
        if let Some(top) = self.top_entry() {
            top.stub &= !block::PENDING;
        }
        self.pop();
    }

    /// Notes what the newest frame may have ended, if that is pending.
    pub fn note_pending(&mut self) {
        if let Some(top) = self.top_entry().filter(|it| it.has(block::PENDING)) {
            top.stub &= !block::PENDING;
            self.mark = self.top;
            self.lower_mark();
        }
    }
}
