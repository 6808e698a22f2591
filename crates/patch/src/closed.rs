//! Functions of a library that are *closed*, proved from their machine code: a call of one from another image may be
//! recorded as a leaf, whoever calls.
//!
//! From its entry on every way is followed, and only one thing may come of it: a plain return. It goes by direct jumps
//! and calls through the image's own code, comes nowhere twice, waits for nothing, asks the kernel for nothing, and
//! moves the stack pointer only as compilers do, and takes nothing in r10 or r11, which the stub of its caller uses. What it calls must be closed by itself. Where it goes on through a slot
//! whose target the image chooses while it is loaded (IFUNC), the probe looks whether that is closed, too.
//!
//! *Costs*: each function is decoded up to the first instruction that is against it, at most [`MOST`] of them.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpKind, Register,
};
use lockstep_binary::{Image, RangeKind};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::fate::{Use, use_of};
use crate::flow::is_special;
use crate::part::has_near_branch;

/// Most instructions of a function, without those of what it calls.
const MOST: usize = 1000;
/// Calls within calls.
const DEEPEST: usize = 4;

/// Slots that one function goes on through.
const MOST_SLOTS: usize = 4;

/// The entries of the image's closed functions, ascending, each with the slots that it goes on through (0: none).
pub(crate) fn closed(image: &Image<'_>) -> Vec<(u64, u64)> {
    let mut prover = Prover {
        image,
        chosen: image.chosen_slots(),
        known: FxHashMap::default(),
    };
    let ranges = image.ranges();
    let functions = ranges
        .iter()
        .filter(|range| range.kind == RangeKind::Function && !range.begins_framed);
    let mut rows = Vec::new();
    for entry in functions.map(|range| range.address) {
        match prover.slots_of(entry, 0).as_deref() {
            Some([]) => rows.push((entry, 0)),
            Some(slots) => rows.extend(slots.iter().map(|slot| (entry, *slot))),
            None => {}
        }
    }
    rows.sort_unstable();
    rows.dedup();
    rows
}

struct Prover<'i, 'a> {
    image: &'i Image<'a>,
    /// Slots of implementations, ascending.
    chosen: Vec<u64>,
    /// What was found out, as [`Prover::slots_of`] says it; no while it is being found out.
    known: FxHashMap<u64, Option<Slots>>,
}

/// Slots that must lead to closed functions.
type Slots = Vec<u64>;

/// An instruction on the way that is being followed.
struct Step {
    at: u64,
    /// Where it goes on that was not followed yet.
    next: [Option<u64>; 2],
}

impl Prover<'_, '_> {
    /// Of a closed function: the slots that it goes on through.
    fn slots_of(&mut self, entry: u64, depth: usize) -> Option<Slots> {
        if let Some(known) = self.known.get(&entry) {
            return known.clone();
        }
        if depth > DEEPEST {
            return None;
        }
        self.known.insert(entry, None);
        let mut slots = Slots::new();
        let found = self.follow(entry, depth, &mut slots).map(|()| slots);
        let found = found.filter(|_| !self.takes_scratch(entry));
        self.known.insert(entry, found.clone());
        found
    }

    /// Follows all ways, one after the other, up to their returns: what is on the way already must not come again.
    fn follow(&mut self, entry: u64, depth: usize, slots: &mut Slots) -> Option<()> {
        let mut is_on_way: FxHashMap<u64, bool> = FxHashMap::default();
        let mut way: Vec<Step> = Vec::new();
        let mut next = Some(entry);
        loop {
            if let Some(at) = next {
                match is_on_way.get(&at) {
                    Some(true) => return None,
                    Some(false) => {}
                    None => {
                        let before = way.last().map(|step| step.at);
                        let next = self.step(at, before, depth, slots)?;
                        if is_on_way.len() == MOST || slots.len() > MOST_SLOTS {
                            return None;
                        }
                        is_on_way.insert(at, true);
                        way.push(Step { at, next });
                    }
                }
            }
            let Some(step) = way.last_mut() else {
                return Some(());
            };
            next = step.next.iter_mut().find_map(Option::take);
            if next.is_none() {
                is_on_way.insert(step.at, false);
                way.pop();
            }
        }
    }

    /// Where the instruction at `at` goes on, if it is none against it; nowhere behind a return.
    fn step(
        &mut self,
        at: u64,
        before: Option<u64>,
        depth: usize,
        slots: &mut Slots,
    ) -> Option<[Option<u64>; 2]> {
        const ENDS: [Option<u64>; 2] = [None, None];
        let instruction = self.decode(at)?;
        let behind = instruction.next_ip();
        let target = has_near_branch(&instruction).then(|| instruction.near_branch_target());
        match instruction.flow_control() {
            FlowControl::Next if is_harmless(&instruction) => Some([Some(behind), None]),
            FlowControl::ConditionalBranch => Some([Some(behind), Some(target?)]),
            FlowControl::UnconditionalBranch => Some([Some(target?), None]),
            FlowControl::Call => {
                add(slots, &self.slots_of(target?, depth + 1)?);
                Some([Some(behind), None])
            }
            FlowControl::IndirectBranch if instruction.code() == Code::Jmp_rm64 => {
                let is_slot = instruction.is_ip_rel_memory_operand();
                let slot = is_slot.then(|| instruction.ip_rel_memory_address())?;
                self.chosen.binary_search(&slot).ok()?;
                add(slots, &[slot]);
                Some(ENDS)
            }
            FlowControl::Return if instruction.code() == Code::Retnq => {
                // To what was put there just before: a jump.
                let is_jump = match before {
                    Some(before) => writes_slot(&self.decode(before)?),
                    None => false,
                };
                (!is_jump).then_some(ENDS)
            }
            _ => None,
        }
    }

    /// Whether r10 or r11 may be read before it is written: then its caller passes something in it. Every way is followed
    /// once for each register; none comes to a place twice.
    fn takes_scratch(&self, entry: u64) -> bool {
        let mut factory = InstructionInfoFactory::new();
        [Register::R10, Register::R11].into_iter().any(|register| {
            let mut seen = FxHashSet::default();
            let mut open = vec![entry];
            while let Some(at) = open.pop() {
                if !seen.insert(at) {
                    continue;
                }
                let Some(instruction) = self.decode(at) else {
                    return true;
                };
                match use_of(&mut factory, &instruction, register) {
                    Use::Read => return true,
                    Use::Written => continue,
                    Use::None => {}
                }
                let flow = instruction.flow_control();
                let target =
                    has_near_branch(&instruction).then(|| instruction.near_branch_target());
                // What it calls is closed by itself, and takes nothing.
                if !matches!(flow, FlowControl::Call) {
                    open.extend(target);
                }
                let ends = matches!(
                    flow,
                    FlowControl::UnconditionalBranch
                        | FlowControl::IndirectBranch
                        | FlowControl::Return
                );
                if !ends {
                    open.push(instruction.next_ip());
                }
            }
            false
        })
    }

    fn decode(&self, at: u64) -> Option<Instruction> {
        let bytes = self
            .image
            .bytes_from(at)
            .filter(|_| self.image.is_code(at))?;
        let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }
}

fn add(slots: &mut Slots, more: &[u64]) {
    for slot in more {
        if !slots.contains(slot) {
            slots.push(*slot);
        }
    }
}

/// Whether an instruction before a return may set where that leads.
fn writes_slot(instruction: &Instruction) -> bool {
    let into_slot = instruction.op_count() > 1
        && instruction.op0_kind() == OpKind::Memory
        && instruction.memory_base() == Register::RSP
        && !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
    instruction.mnemonic() == Mnemonic::Push || into_slot
}

/// Whether an instruction that goes on behind itself does so at once, and leaves the stack where it is.
fn is_harmless(instruction: &Instruction) -> bool {
    let has_prefix = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    let repeats = has_prefix && instruction.is_string_instruction();
    let asks = matches!(
        instruction.mnemonic(),
        Mnemonic::In
            | Mnemonic::Out
            | Mnemonic::Wrfsbase
            | Mnemonic::Wrgsbase
            | Mnemonic::Wrpkru
            | Mnemonic::Popfq
            | Mnemonic::Popf
            | Mnemonic::Enter
    );
    let is_against = is_special(instruction) || repeats || asks;
    !is_against && keeps_stack(instruction)
}

/// Whether the stack pointer, where it is changed, is moved as for a frame.
fn keeps_stack(instruction: &Instruction) -> bool {
    let is_stack = |index: u32| {
        instruction.op_kind(index) == OpKind::Register
            && instruction.op_register(index).full_register() == Register::RSP
    };
    let count = instruction.op_count();
    if count > 1 && is_stack(1) && matches!(instruction.mnemonic(), Mnemonic::Xchg | Mnemonic::Xadd)
    {
        return false;
    }
    if count == 0 || !is_stack(0) {
        return true;
    }
    let is_frame = |register| matches!(register, Register::RSP | Register::RBP);
    match instruction.mnemonic() {
        Mnemonic::Push | Mnemonic::Cmp | Mnemonic::Test => true,
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::And => {
            instruction.op1_kind() != OpKind::Register && instruction.op1_kind() != OpKind::Memory
        }
        Mnemonic::Mov => {
            instruction.op1_kind() == OpKind::Register && is_frame(instruction.op1_register())
        }
        Mnemonic::Lea => {
            is_frame(instruction.memory_base()) && instruction.memory_index() == Register::None
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn first(bytes: &[u8]) -> Instruction {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
    }

    #[test]
    fn the_stack_pointer_moves_as_for_a_frame() {
        let good: [&[u8]; 7] = [
            &[0x48, 0x83, 0xec, 0x18], // sub $24,%rsp
            &[0x48, 0x83, 0xe4, 0xe0], // and $-32,%rsp
            &[0x48, 0x89, 0xec],       // mov %rbp,%rsp
            &[0x48, 0x8d, 0x65, 0xd8], // lea -40(%rbp),%rsp
            &[0x55],                   // push %rbp
            &[0xc9],                   // leave
            &[0x48, 0x89, 0x04, 0x24], // mov %rax,(%rsp)
        ];
        for bytes in good {
            assert!(is_harmless(&first(bytes)), "{:?}", first(bytes));
        }
        let bad: [&[u8]; 9] = [
            &[0x48, 0x89, 0xfc],       // mov %rdi,%rsp
            &[0x48, 0x8b, 0x67, 0x30], // mov 48(%rdi),%rsp
            &[0x48, 0x94],             // xchg %rax,%rsp
            &[0x5c],                   // pop %rsp
            &[0x48, 0x29, 0xc4],       // sub %rax,%rsp
            &[0xf3, 0xaa],             // rep stos
            &[0xf0, 0xff, 0x07],       // lock incl (%rdi)
            &[0xf3, 0x90],             // pause
            &[0xec],                   // in (%dx),%al
        ];
        for bytes in bad {
            assert!(!is_harmless(&first(bytes)), "{:?}", first(bytes));
        }
    }
}
