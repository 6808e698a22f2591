//! Inline code: what it may do.

use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register,
};
use lockstep_format::plan::{block, routine};
use lockstep_format::symbol::{FIRST_FUNCTION, from_staging_word};

use super::Memory;

/// Registers that may be used, in the order in which they are saved below the stack pointer.
const SCRATCH: [Register; 3] = [Register::R11, Register::R10, Register::RAX];

/// More instructions than any inline code has.
const MOST: usize = 64;

/// What inline code is, by run-time addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inline {
    /// Where its slow way begins.
    pub slow: u64,
    /// What the slow way calls, and what follows there.
    pub routine: usize,
    pub slow_then: u64,
    /// What follows when it has recorded.
    pub then: u64,
    /// Event words of functions among its constants.
    pub words: Vec<u32>,
}

impl Memory<'_, '_> {
    /// Reads the inline code that begins at a run-time address.
    pub(super) fn check_inline(&self, start: u64) -> Result<Inline, String> {
        self.check_inline_behind(start, 0)
    }

    /// The same behind code that has saved so many registers.
    pub(super) fn check_inline_behind(
        &self,
        start: u64,
        mut saved: usize,
    ) -> Result<Inline, String> {
        let wrong = |at: u64, what: &str| Err(format!("the inline code at {at:#x} {what}"));
        let mut at = start;
        let mut instruction = self.decode_after(at)?;
        while saved < SCRATCH.len() && is_move(&instruction, saved, true) {
            saved += 1;
            at = instruction.next_ip();
            instruction = self.decode_after(at)?;
        }
        let is_begin = instruction.code() == Code::Mov_r64_rm64
            && instruction.op0_register() == Register::R11
            && instruction.segment_prefix() == Register::FS;
        if saved == 1 || !is_begin {
            return wrong(start, "does not begin with the thread's block");
        }
        // r10 and r11, where nobody waits for them (`crate::scratch`).
        let scratch = &SCRATCH[..saved.max(2)];
        let mut factory = InstructionInfoFactory::new();
        let mut targets = Vec::new();
        let mut own = Vec::new();
        let mut words = Vec::new();
        let mut count = 0;
        let mut is_cleared = false;
        let is_over = |instruction: &Instruction, is_cleared: bool| match saved {
            0 => is_cleared,
            _ => is_move(instruction, saved - 1, false),
        };
        while !is_over(&instruction, is_cleared) {
            count += 1;
            own.push(instruction.ip());
            if count > MOST {
                return wrong(start, "does not come to an end");
            }
            match instruction.flow_control() {
                FlowControl::Next => {
                    if !is_harmless(&mut factory, &instruction, scratch) {
                        return wrong(instruction.ip(), "touches what is not its own");
                    }
                }
                FlowControl::ConditionalBranch => targets.push(instruction.near_branch_target()),
                _ => return wrong(instruction.ip(), "goes elsewhere"),
            }
            if instruction.op_count() == 2 && is_immediate(&instruction) {
                let word = instruction.immediate(1) as u32;
                let staged = from_staging_word(u64::from(word));
                if staged.is_some_and(|staged| staged.symbol >= FIRST_FUNCTION) {
                    words.push(word);
                }
            }
            is_cleared = is_end(&instruction);
            at = instruction.next_ip();
            instruction = self.decode_after(at)?;
        }
        let restores = at;
        let then = self.restored(restores, saved)?;
        // Over what only some frames need.
        targets.retain(|target| *target != restores && !own.contains(target));
        targets.dedup();
        let [slow] = targets[..] else {
            return wrong(start, "has not one slow way");
        };
        let (routine, slow_then) = self.slow_way(slow, saved)?;
        Ok(Inline {
            slow,
            routine,
            slow_then,
            then,
            words,
        })
    }

    /// Where the registers are back.
    fn restored(&self, mut at: u64, saved: usize) -> Result<u64, String> {
        for register in (0..saved).rev() {
            let instruction = self.decode_after(at)?;
            if !is_move(&instruction, register, false) {
                return Err(format!("{at:#x} does not restore {:?}", SCRATCH[register]));
            }
            at = instruction.next_ip();
        }
        Ok(at)
    }

    /// Whether the slow way of an exit begins at a run-time address.
    pub(super) fn is_slow_way(&self, at: u64) -> bool {
        let calls = |saved| self.slow_way(at, saved);
        (0..=SCRATCH.len()).any(|saved| calls(saved).is_ok_and(|(index, _)| index < routine::COUNT))
    }

    fn slow_way(&self, at: u64, saved: usize) -> Result<(usize, u64), String> {
        let mut at = at;
        let mut first = self.decode_after(at)?;
        while first.mnemonic() == iced_x86::Mnemonic::Nop {
            at = first.next_ip();
            first = self.decode_after(at)?;
        }
        let at = self.restored(at, saved)?;
        let call = self.decode_after(at)?;
        if call.code() != Code::Call_rm64 || !call.is_ip_rel_memory_operand() {
            return Err(format!("the slow way at {at:#x} calls no routine"));
        }
        Ok((
            self.routine_at(call.ip_rel_memory_address()),
            call.next_ip(),
        ))
    }
}

/// `movq $0,busy(%r11)`: the event is recorded.
fn is_end(instruction: &Instruction) -> bool {
    instruction.code() == Code::Mov_rm64_imm32
        && instruction.memory_base() == Register::R11
        && instruction.memory_displacement64() == block::BUSY as u64
        && instruction.immediate(1) == 0
}

fn is_immediate(instruction: &Instruction) -> bool {
    matches!(
        instruction.op1_kind(),
        OpKind::Immediate32 | OpKind::Immediate32to64
    )
}

/// `mov %register,-8k(%rsp)`, or back.
pub(super) fn is_move(instruction: &Instruction, index: usize, saves: bool) -> bool {
    let (code, memory, register) = if saves {
        (Code::Mov_rm64_r64, 0, 1)
    } else {
        (Code::Mov_r64_rm64, 1, 0)
    };
    instruction.code() == code
        && instruction.op_kind(memory) == OpKind::Memory
        && instruction.op_register(register) == SCRATCH[index]
        && instruction.memory_base() == Register::RSP
        && instruction.memory_index() == Register::None
        && instruction.segment_prefix() == Register::None
        && instruction.memory_displacement64() as i64 == -8 * (index as i64 + 1)
}

/// Whether the instruction writes nothing but saved registers, and memory that these lead to.
fn is_harmless(
    factory: &mut InstructionInfoFactory,
    instruction: &Instruction,
    saved: &[Register],
) -> bool {
    let info = factory.info(instruction);
    let writes = |access: OpAccess| !matches!(access, OpAccess::Read | OpAccess::CondRead);
    let registers = info.used_registers().iter().all(|used| {
        !writes(used.access())
            || used.access() == OpAccess::NoMemAccess
            || saved.contains(&used.register().full_register())
    });
    let memory = info.used_memory().iter().all(|used| {
        !writes(used.access())
            || used.access() == OpAccess::NoMemAccess
            || saved.contains(&used.base()) && used.index() == Register::None
    });
    registers && memory && instruction.mnemonic() != iced_x86::Mnemonic::Push
}
