//! Library functions that may be leaves: what their stubs may do.

use iced_x86::{Code, Instruction, Register};
use lockstep_format::bytes::u64_at;
use lockstep_format::plan::{leaf, routine, stub as layout};

use super::Memory;
use super::inline::is_move;

impl Memory<'_, '_> {
    /// Checks the row of the BIND stub that a shadow slot leads to (run-time addresses): call-through unless the
    /// slot leads to the target, else the leaf, which goes on at the target.
    pub(super) fn check_bind(&self, stub: u64, shadow: u64, real: u64) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("the stub of slot {real:#x} {what}"));
        let start = stub - u64::from(layout::ENTRY);
        let at = |place: u64| -> Result<u64, String> {
            u64_at(self.after(place)?, 0).ok_or_else(|| format!("{place:#x} is outside the arena"))
        };
        let row = at(start + u64::from(layout::LEAF_ROW))?;
        let field = |offset: usize| at(row + offset as u64);
        let through = field(leaf::NEXT)?;
        let is_through = |to: u64| {
            let head = self.stub_entered_at(to).map(|start| self.head(start));
            head.is_some_and(|head| head.is_ok_and(|head| head.routine == routine::ENTER))
        };
        let goes_on = self.decode_after(stub + 6)?;
        if goes_on.code() != Code::Jmp_rm64
            || goes_on.ip_rel_memory_address() != row + leaf::NEXT as u64
            || !is_through(through)
            || !self.is_stub_of_slot(through, real)?
        {
            return wrong("does not go on at one that calls through");
        }
        let (low, high) = self.image.extent();
        if !self.same_import(field(leaf::SLOT)?, real)
            || field(leaf::SHADOW)? != shadow
            || (field(leaf::LOW)?, field(leaf::HIGH)?) != (self.bias + low, self.bias + high)
            || (field(leaf::TARGET)?, field(leaf::TRIES)?) != (0, 0)
        {
            return wrong("has a row that is not its own");
        }
        let target = row + leaf::TARGET as u64;
        let gate = field(leaf::GATE)?;
        let leaf = self.stub_entered_at(gate);
        let leaf = leaf.map(|start| self.head(start)).transpose()?;
        let passes = self.gate_at(gate)?;
        let is_gate = passes.is_some_and(|gate| {
            self.same_import(gate.slot, real) && gate.target == target && gate.miss == through
        });
        let Some(leaf) = leaf.filter(|leaf| is_gate && leaf.routine == routine::LEAF) else {
            return wrong("has no gate to a leaf");
        };
        let body = self.decode_after(leaf.body)?;
        if body.code() != Code::Jmp_rm64 || body.ip_rel_memory_address() != target {
            return wrong("records a leaf that goes elsewhere");
        }
        Ok(())
    }

    /// The gate that begins at a run-time address, if one does. Where it keeps registers, it gives r11 back to who does not pass.
    pub(super) fn gate_at(&self, at: u64) -> Result<Option<Gate>, String> {
        let mut load = self.decode_after(at)?;
        let mut saved = 0;
        while is_move(&load, saved, true) && saved < 2 {
            saved += 1;
            load = self.decode_after(load.next_ip())?;
        }
        let compare = self.decode_after(load.next_ip())?;
        let mut jump = self.decode_after(compare.next_ip())?;
        if !loads(&load, Code::Mov_r64_rm64) || !loads(&compare, Code::Cmp_r64_rm64) {
            return Ok(None);
        }
        let mut end = jump.next_ip();
        let mut is_gate = jump.code() == Code::Jne_rel32_64;
        if saved != 0 {
            end = jump.near_branch_target();
            let back = self.decode_after(jump.next_ip())?;
            is_gate = saved == 2 && jump.code() == Code::Je_rel8_64 && is_move(&back, 0, false);
            jump = self.decode_after(back.next_ip())?;
            is_gate &= jump.code() == Code::Jmp_rel32_64 && jump.next_ip() == end;
        }
        Ok(is_gate.then(|| Gate {
            slot: load.ip_rel_memory_address(),
            target: compare.ip_rel_memory_address(),
            miss: jump.near_branch_target(),
            saved,
            end,
        }))
    }
}

/// A gate, by run-time addresses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gate {
    pub slot: u64,
    /// The place of the target's address.
    pub target: u64,
    /// Where others go.
    pub miss: u64,
    /// How many registers it has saved.
    pub saved: usize,
    /// Where it ends.
    pub end: u64,
}

fn loads(instruction: &Instruction, code: Code) -> bool {
    instruction.code() == code
        && instruction.op0_register() == Register::R11
        && instruction.is_ip_rel_memory_operand()
}
