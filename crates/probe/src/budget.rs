//! How large the run's process files may become (`--max-size`), kept by all processes of a host
//! together: each takes what it needs from one counter before it grows its file.
//!
//! The counter lies in a file of the run that every process maps, one for each host, since mappings
//! are not coherent between hosts. Who gets how much is [`lockstep_format::budget`]'s to say. Nothing
//! is given back: an ended process's file is still there.

use crate::syscall::{self, AS_IT_IS, O_CREAT, O_RDWR, Stat};
use crate::text::Text;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU64, Ordering};
use lockstep_format::budget::Bound;
use lockstep_format::process::PAGE;

/// The bound, as this process knows it; shared with forked children.
pub struct Budget {
    /// Bytes that processes of this host took, in the file; null where there is no bound.
    taken: *mut u64,
    bound: Bound,
}

impl Budget {
    /// No bound.
    pub const NONE: Self = Self {
        taken: null_mut(),
        bound: Bound::NONE,
    };

    /// The budget in `RUN/budgets/HOST`; `ranks` of the job share it, if this is one of them. `None`
    /// where it cannot be kept.
    pub fn open(run: &[u8], host: &[u8], limit: u64, ranks: Option<u64>) -> Option<Self> {
        let mut path = Text::<4352>::new();
        for part in [run, b"/budgets/", host, b"\0"] {
            path.push(part);
        }
        // A write beyond the limit would end the program with SIGXFSZ.
        if PAGE > syscall::file_size_limit() {
            return None;
        }
        let file = syscall::open(path.bytes(), O_RDWR | O_CREAT | AS_IT_IS).ok()?;
        // Others of this host write it; but a file of another kind would be no counter.
        file.stat().ok().filter(Stat::is_regular)?;
        // Makes it a page long and leaves what others wrote.
        file.write_at(&[0], PAGE - 1).ok()?;
        let taken = file.map_shared(0, PAGE as usize).ok()?.cast();
        Some(Self {
            taken,
            bound: Bound::new(limit, ranks),
        })
    }

    /// Takes room for a file to grow from `start` to `end`, or as far as there is room, in whole
    /// pages: where it may end now. `start` where there is none.
    pub fn grow(&self, start: u64, end: u64) -> u64 {
        if self.taken.is_null() {
            return end;
        }
        // SAFETY: mapped for ever, aligned, used atomically by everyone.
        let taken = unsafe { AtomicU64::from_ptr(self.taken) };
        let mut before = taken.load(Ordering::Relaxed);
        loop {
            let more = self.bound.grant(before, start, end);
            let after = before + more;
            match taken.compare_exchange_weak(before, after, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return start + more,
                Err(now) => before = now,
            }
        }
    }

    /// Gives back what [`Budget::grow`] took for a file that could not grow after all.
    pub fn give_back(&self, bytes: u64) {
        if !self.taken.is_null() {
            // SAFETY: as in `grow`.
            unsafe { AtomicU64::from_ptr(self.taken) }.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}
