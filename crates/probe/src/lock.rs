//! A lock whose waiters sleep until its owner wakes one of them: with thousands of threads, who polls keeps the
//! owner from its work.
//!
//! No signal is handled by its owner, so that it cannot meet itself. It lies in memory that is wiped in a forked
//! child: there it is free, whoever had it.

use crate::syscall;
use core::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Taken, and somebody may be asleep.
const AWAITED: u32 = 2;
/// How often it is looked at before a thread sleeps: what is done under it mostly takes less time than that does.
const LOOKS: u32 = 100;

/// A lock; zeros are a free one.
pub struct Lock(AtomicU32);

impl Lock {
    /// Does `work` while nobody else does.
    pub fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        syscall::without_signals(|| {
            self.take();
            let result = work();
            if self.0.swap(FREE, Ordering::Release) == AWAITED {
                syscall::wake_one(&self.0);
            }
            result
        })
    }

    fn take(&self) {
        for _ in 0..LOOKS {
            let taken =
                self.0
                    .compare_exchange_weak(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
            match taken {
                Ok(_) => return,
                // Others sleep already: it is their turn.
                Err(AWAITED) => break,
                Err(_) => core::hint::spin_loop(),
            }
        }
        while self.0.swap(AWAITED, Ordering::Acquire) != FREE {
            syscall::wait_while(&self.0, AWAITED);
        }
    }
}
