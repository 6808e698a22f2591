//! What becomes of the value that a register has somewhere: whether it is read before it is written.
//!
//! *Costs*: a look at every path from there on, within a bound: what takes longer counts as read.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind,
    Register,
};
use lockstep_binary::Image;
use rustc_hash::FxHashSet;

use crate::survey::{Survey, has_near_branch};

/// Most instructions of a function that are looked at from one place.
pub(crate) const MOST_STEPS: usize = 2048;

/// Where the value that a register has at some place goes.
#[derive(Default)]
pub(crate) struct Fate {
    /// It is read, or may be.
    pub is_read: bool,
    /// It is there where a jump leads to what is not known, which may take it.
    pub is_handed_out: bool,
    /// It is there where these functions are called or jumped to, by their ranges.
    pub reaches: Vec<u32>,
}

/// Follows values, function by function.
pub(crate) struct Search<'s, 'i, 'a> {
    image: &'i Image<'a>,
    survey: &'s Survey<'a>,
    factory: InstructionInfoFactory,
    /// Ranges, each as the entry's range of the function it belongs to.
    node: &'s [u32],
}

impl<'s, 'i, 'a> Search<'s, 'i, 'a> {
    pub(crate) fn new(image: &'i Image<'a>, survey: &'s Survey<'a>, node: &'s [u32]) -> Self {
        Self {
            image,
            survey,
            factory: InstructionInfoFactory::new(),
            node,
        }
    }

    /// What becomes of the register's value from `start` on, in the function whose node is `node`.
    pub(crate) fn follow(
        &mut self,
        node: u32,
        start: u64,
        register: Register,
        steps: &mut usize,
    ) -> Fate {
        let mut fate = Fate::default();
        let mut seen = FxHashSet::default();
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            if fate.is_read || !seen.insert(at) {
                continue;
            }
            self.straight(node, at, register, steps, &mut open, &mut fate);
        }
        fate
    }

    /// The same along straight code; what it branches to in the same function goes to `open`.
    fn straight(
        &mut self,
        node: u32,
        start: u64,
        register: Register,
        steps: &mut usize,
        open: &mut Vec<u64>,
        fate: &mut Fate,
    ) {
        let range = self
            .survey
            .range_of(start)
            .filter(|at| self.node[*at] == node);
        let bytes = range.and_then(|range| {
            let end = self.survey.ranges[range].end();
            self.image.bytes_at(start, end - start)
        });
        let Some(bytes) = bytes else {
            // Behind the end of what is known.
            fate.is_read = true;
            return;
        };
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        while decoder.can_decode() {
            let instruction = decoder.decode();
            if *steps == 0 || instruction.is_invalid() {
                fate.is_read = true;
                return;
            }
            *steps -= 1;
            match self.use_of(&instruction, register) {
                Use::None => {}
                Use::Written => return,
                Use::Read => {
                    fate.is_read = true;
                    return;
                }
            }
            let flow = instruction.flow_control();
            match flow {
                FlowControl::Next => {}
                FlowControl::Call if has_near_branch(&instruction) => {
                    let target = instruction.near_branch_target();
                    if self.survey.plt.contains_key(&target) {
                        return;
                    }
                    fate.reaches.extend(self.node_at(target));
                }
                // The kernel takes an argument in r10, and changes r11.
                FlowControl::Call => {
                    fate.is_read = register == Register::R10;
                    return;
                }
                FlowControl::IndirectCall | FlowControl::Return => return,
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
                    if has_near_branch(&instruction) =>
                {
                    let target = instruction.near_branch_target();
                    match self.node_at(target) {
                        Some(to) if to == node => open.push(target),
                        Some(to) if !self.survey.plt.contains_key(&target) => fate.reaches.push(to),
                        _ => fate.is_handed_out = true,
                    }
                    if flow == FlowControl::UnconditionalBranch {
                        return;
                    }
                }
                FlowControl::IndirectBranch if instruction.is_ip_rel_memory_operand() => {
                    fate.is_handed_out = true;
                    return;
                }
                FlowControl::Interrupt | FlowControl::Exception => return,
                _ => {
                    fate.is_read = true;
                    return;
                }
            }
        }
        open.push(decoder.ip());
    }

    /// The function that `address` belongs to, by its entry's range.
    fn node_at(&self, address: u64) -> Option<u32> {
        self.survey.range_of(address).map(|range| self.node[range])
    }

    fn use_of(&mut self, instruction: &Instruction, register: Register) -> Use {
        use_of(&mut self.factory, instruction, register)
    }
}

/// What an instruction does with a register's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    None,
    Written,
    Read,
}

/// What `instruction` does with the value of the whole `register`.
pub(crate) fn use_of(
    factory: &mut InstructionInfoFactory,
    instruction: &Instruction,
    register: Register,
) -> Use {
    if !mentions(instruction, register) {
        return Use::None;
    }
    let info = factory.info(instruction);
    let mut found = Use::None;
    for used in info.used_registers() {
        if used.register().full_register() != register {
            continue;
        }
        let is_whole = used.register().size() >= 4;
        if used.access() != OpAccess::Write || !is_whole {
            return Use::Read;
        }
        found = Use::Written;
    }
    found
}

/// Whether the register, or part of it, is an operand or part of one.
pub(crate) fn mentions(instruction: &Instruction, register: Register) -> bool {
    (0..instruction.op_count()).any(|operand| match instruction.op_kind(operand) {
        OpKind::Register => instruction.op_register(operand).full_register() == register,
        OpKind::Memory => {
            let parts = [instruction.memory_base(), instruction.memory_index()];
            parts.iter().any(|part| part.full_register() == register)
        }
        _ => false,
    })
}
