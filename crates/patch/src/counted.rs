//! Functions that cannot be recorded are counted: their direct calls are led to a stub that adds one
//! to a counter and goes on at the function, which stays as it is.
//!
//! ```text
//!  call f   ─►   lock inc counter(%rip)   ─►   f
//!                jmp f
//! ```
//! The counter lies in the process file (the probe maps that page behind the arena), so that it
//! survives a kill. Only calls are led there: what an instruction leaves in the flags is dead behind a
//! call, and not always behind a jump. What else may reach the function is told as *more*.

use lockstep_format::plan::fixup;

use crate::arena::{Arena, Fixup};
use crate::domain::Domain;
use crate::make::{Builder, Subject};
use crate::sheet::branch_site;
use crate::stubs::is_moved;
use crate::survey::{Branch, BranchKind, Survey};

/// How the calls of a function that is not recorded are known.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    /// Calls that can be led elsewhere.
    pub calls: Vec<Branch>,
    /// It may be reached in other ways too.
    pub more: bool,
}

impl Callers {
    pub(crate) fn of(survey: &Survey<'_>, domain: &Domain<'_>, range: usize) -> Self {
        let entry = survey.ranges[range].address;
        let mut callers = Self {
            calls: Vec::new(),
            more: survey.is_address_taken(entry),
        };
        for branch in survey.arriving_at(entry, entry + 1) {
            let is_own = domain.owner[branch.range as usize] == domain.owner[range];
            match branch.kind {
                BranchKind::Call if branch.field != 0 => callers.calls.push(*branch),
                // A loop, not a call.
                kind if is_own && kind != BranchKind::Call => {}
                _ => callers.more = true,
            }
        }
        callers
    }
}

impl Builder<'_> {
    /// Counts the direct calls of the function that was refused last.
    pub(crate) fn count_calls(&mut self, subject: &Subject<'_, '_>, range: usize) {
        let callers = Callers::of(subject.survey, subject.domain, range);
        let Some(row) = self.refusals.last_mut() else {
            return;
        };
        row.more = callers.more;
        if !callers.calls.is_empty() {
            let counter = self.counters;
            self.counters += 1;
            row.counter = Some(counter);
            let address = subject.survey.ranges[range].address;
            let start = self.sheet.arena.next_stub();
            self.sheet.stands_for(start, Some(address), 0);
            let stub = self.sheet.arena.add_counting_stub(address, counter);
            // Calls that are moved go there too.
            self.sheet.arena.lead_calls(address, stub);
            self.counted.push((callers.calls, stub));
        }
    }

    /// Leads those calls to what counts them, each by itself, once it is known what is moved: moved
    /// calls go there already.
    pub(crate) fn lead_counted(&mut self, subject: &Subject<'_, '_>) {
        for (calls, stub) in std::mem::take(&mut self.counted) {
            for call in calls {
                if !is_moved(&self.moved, call.from) {
                    let group = self.sheet.next_group();
                    self.sheet
                        .sites
                        .extend(branch_site(subject.image, &call, stub, group));
                }
            }
        }
    }
}

impl Arena {
    /// Adds the stub that counts a call of the function at `entry`; its offset.
    pub(crate) fn add_counting_stub(&mut self, entry: u64, counter: u32) -> u32 {
        self.align();
        let at = self.here();
        self.bytes
            .extend([0xf0, 0x48, 0xff, 0x05, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0]);
        self.fixups.push(Fixup {
            at: at + 4,
            kind: fixup::COUNTER_32,
            value: u64::from(counter),
        });
        self.fixups.push(Fixup {
            at: at + 9,
            kind: fixup::RELATIVE_32,
            value: entry.wrapping_sub(4),
        });
        at
    }
}
