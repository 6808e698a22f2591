//! Stubs that count calls of functions that are not recorded.

use iced_x86::{Code, Register};

use super::Memory;

impl Memory<'_, '_> {
    /// Whether a run-time address is a stub that counts a call of the function at another and goes on
    /// there, changing nothing but the flags and a counter behind the arena.
    pub(super) fn counts(&self, stub: u64, entry: u64) -> bool {
        let Ok(count) = self.decode_after(stub) else {
            return false;
        };
        let Ok(jump) = self.decode_after(count.next_ip()) else {
            return false;
        };
        let counters = self.counters..self.counters + 4096;
        count.code() == Code::Inc_rm64
            && count.has_lock_prefix()
            && count.memory_base() == Register::RIP
            && counters.contains(&count.ip_rel_memory_address())
            && count.ip_rel_memory_address().is_multiple_of(8)
            && jump.code() == Code::Jmp_rel32_64
            && jump.near_branch_target() == entry
    }
}
