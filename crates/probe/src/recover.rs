//! A routine that was left for good in the middle of its event, because a signal handler jumped away.
//!
//! An event of the fast path ends with two stores, one for the staging area and one for the shadow stack, in
//! the order that suits the routine. What a handler sees that comes between them does not matter, unless it
//! never comes back:
//!
//! ```text
//!                    staged   entries                what is missing is made up for
//!  call, plain:      -        one more   ╴jump╶►     the entry is taken off: the call never began
//!  call, hooked:     one more -          ╴jump╶►     a return is staged, which is marked as inferred
//!  return:           one more -          ╴jump╶►     the entry is taken off
//! ```
//! Words that were stored behind the cursor and not counted yet are wiped, for a reader of what is staged goes
//! on as long as it finds words. The slow path needs none of this: whoever jumps out of it ends the trace.

use crate::inferred;
use crate::process::{Process, Stop};
use crate::thread::Thread;
use lockstep_format::symbol::{RETURN, Staged, TAIL, from_staging_word};

/// Most words that a routine stores before it counts them.
const UNCOUNTED: usize = 3;

impl Thread {
    /// Makes staging area and shadow stack agree again, after a routine was left for good.
    pub fn recover(&mut self, process: &Process) -> Result<(), Stop> {
        if self.hot.attached == 0 {
            return Ok(());
        }
        self.wipe_uncounted();
        self.inferred.catch_up();
        match self.depth().wrapping_sub(self.recorded_depth()) as isize {
            1 => {
                self.restore_top();
                self.pop();
            }
            -1 => {
                self.make_room(process, 1)?;
                inferred::tell(self, process);
                self.emit_symbol(process, RETURN)?;
            }
            _ => {}
        }
        self.settle();
        Ok(())
    }

    /// Takes the entries for what is recorded: from here on they go together.
    pub fn settle(&mut self) {
        self.settled = self.depth().wrapping_sub(balance(self.staged()) as usize);
    }

    /// The words that wait for the next commit.
    fn staged(&self) -> &[u64] {
        // SAFETY: from the staging area's beginning to the cursor; nobody else writes there.
        unsafe {
            let count = self.hot.cursor.offset_from_unsigned(self.staging());
            core::slice::from_raw_parts(self.staging(), count)
        }
    }

    /// Wipes what is behind them.
    fn wipe_uncounted(&mut self) {
        // SAFETY: between the cursor and the end of the staging area.
        unsafe {
            let room = self.staging_end().offset_from_unsigned(self.hot.cursor);
            core::ptr::write_bytes(self.hot.cursor, 0, UNCOUNTED.min(room));
        }
    }

    /// How many frames are open, as far as the events tell.
    fn recorded_depth(&self) -> usize {
        self.settled.wrapping_add(balance(self.staged()) as usize)
    }
}

/// Calls that stay open, less the returns of what was open before.
fn balance(words: &[u64]) -> isize {
    let mut open = 0;
    let mut hands_over = false;
    for staged in words.iter().filter_map(|word| from_staging_word(*word)) {
        match staged {
            Staged { symbol: RETURN, .. } => open -= 1,
            Staged { symbol: TAIL, .. } => hands_over = true,
            Staged { is_leaf: true, .. } => {}
            _ => open += isize::from(!core::mem::take(&mut hands_over)),
        }
    }
    open
}
