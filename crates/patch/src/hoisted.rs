//! Loads of a slot that only calls use.
//!
//! Compilers hoist the load of a library function's address out of a loop:
//!
//! ```text
//!       mov  strlen@GOT(%rip), %rbx      the displacement to rewrite
//! 1:    ...
//!       call *%rbx
//!       jne  1b
//! ```
//! The load may lead to the shadow slot only if nothing but a call or jump sees the value: a program
//! that compares or stores the address must find the library's. So every path from the load is
//! followed until the register is written again; a use that is no call ends the attempt.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind,
    Register,
};
use lockstep_binary::Image;

use crate::part::has_near_branch;
use crate::slots::jumps_to_register;
use crate::survey::{BranchKind, SlotUse, SlotUseKind, Survey};

/// Instructions looked at for all loads of an image together.
const MOST_STEPS: usize = 1 << 23;

/// Follows loads, function by function.
pub(crate) struct Loads<'s, 'a> {
    image: &'s Image<'a>,
    survey: &'s Survey<'a>,
    factory: InstructionInfoFactory,
    /// The function decoded last.
    range: Option<usize>,
    body: Vec<Instruction>,
    /// Indices that no direct branch and no instruction before leads to: landing pads among them.
    orphans: Vec<usize>,
    steps: usize,
    /// Of the load that was followed last: a call goes where it leads, whether or not it can serve that.
    pub saw_call: bool,
}

impl<'s, 'a> Loads<'s, 'a> {
    pub(crate) fn new(image: &'s Image<'a>, survey: &'s Survey<'a>) -> Self {
        Self {
            image,
            survey,
            factory: InstructionInfoFactory::new(),
            range: None,
            body: Vec::new(),
            orphans: Vec::new(),
            steps: MOST_STEPS,
            saw_call: false,
        }
    }

    /// The addresses behind the calls that `load` serves, if it serves nothing else.
    pub(crate) fn calls_of(&mut self, load: &SlotUse) -> Option<Vec<u64>> {
        self.saw_call = false;
        let SlotUseKind::Load(register) = load.kind else {
            return None;
        };
        self.decode(self.survey.range_of(load.address)?);
        let mut calls = Vec::new();
        let mut served = false;
        let mut seen = vec![false; self.body.len()];
        let mut paths = vec![self.index_of(load.address)? + 1];
        while let Some(index) = paths.pop() {
            // Beyond the function's end execution cannot go; a call there does not return.
            let Some(was_seen) = seen.get_mut(index) else {
                continue;
            };
            if std::mem::replace(was_seen, true) {
                continue;
            }
            self.steps = self.steps.checked_sub(1)?;
            let instruction = self.body[index];
            let is_target = instruction.op_count() == 1
                && instruction.op0_kind() == OpKind::Register
                && instruction.op0_register() == register;
            let flow = instruction.flow_control();
            let direct = has_near_branch(&instruction).then(|| instruction.near_branch_target());
            // Where no processor shall predict a call, it goes by way of code that jumps to the register.
            let jumps_to = |at: u64| jumps_to_register(self.image, at) == Some(register);
            if flow == FlowControl::Call && jumps_to(instruction.ip()) {
                served = true;
                continue;
            }
            match flow {
                FlowControl::UnconditionalBranch if direct.is_some_and(jumps_to) => served = true,
                FlowControl::IndirectCall | FlowControl::Call => {
                    let is_target = is_target || direct.is_some_and(jumps_to);
                    self.saw_call |= is_target;
                    // A register that no argument is in serves a call, too, where the caller passes few.
                    if is_argument(register) && !is_target {
                        return None;
                    }
                    if is_target {
                        served = true;
                        calls.push(instruction.next_ip());
                    } else if self.reads(&instruction, register) {
                        return None;
                    }
                    if is_kept_by_calls(register) {
                        paths.push(index + 1);
                        paths.extend(&self.orphans);
                    }
                }
                FlowControl::IndirectBranch if is_target => served = true,
                FlowControl::IndirectBranch => {
                    if self.reads(&instruction, register) {
                        return None;
                    }
                    paths.extend(self.computed_indices()?);
                }
                FlowControl::UnconditionalBranch => {
                    paths.push(self.index_of(instruction.near_branch_target())?);
                }
                FlowControl::ConditionalBranch => {
                    if self.reads(&instruction, register) {
                        return None;
                    }
                    paths.push(self.index_of(instruction.near_branch_target())?);
                    paths.push(index + 1);
                }
                FlowControl::Return => {
                    if matches!(register, Register::RAX | Register::RDX) {
                        return None;
                    }
                }
                FlowControl::Exception => {}
                FlowControl::Next if self.reads(&instruction, register) => return None,
                FlowControl::Next if self.overwrites(&instruction, register) => {}
                FlowControl::Next => paths.push(index + 1),
                FlowControl::Interrupt | FlowControl::XbeginXabortXend => return None,
            }
        }
        served.then_some(calls)
    }

    fn decode(&mut self, range: usize) {
        if self.range == Some(range) {
            return;
        }
        self.range = Some(range);
        let whole = self.survey.ranges[range];
        let bytes = self.image.bytes_at(whole.address, whole.size);
        let ip = whole.address;
        let decoder = Decoder::with_ip(64, bytes.unwrap_or_default(), ip, DecoderOptions::NONE);
        self.body = decoder.into_iter().collect();
        let ends = |instruction: &Instruction| {
            matches!(
                instruction.flow_control(),
                FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::Return
                    | FlowControl::Exception
            )
        };
        let survey = self.survey;
        self.orphans = (1..self.body.len())
            .filter(|index| ends(&self.body[index - 1]))
            .filter(|index| {
                let at = self.body[*index].ip();
                !survey.is_led_to(at, at + 1)
            })
            .collect();
    }

    fn index_of(&self, address: u64) -> Option<usize> {
        self.body
            .binary_search_by_key(&address, Instruction::ip)
            .ok()
    }

    /// Where the function's computed jumps can lead.
    fn computed_indices(&self) -> Option<Vec<usize>> {
        let range = self.range?;
        let whole = self.survey.ranges[range];
        let indices: Vec<usize> = self
            .survey
            .arriving_at(whole.address, whole.end())
            .iter()
            .filter(|branch| branch.kind == BranchKind::Table && branch.range as usize == range)
            .filter_map(|branch| self.index_of(branch.target))
            .collect();
        (!indices.is_empty()).then_some(indices)
    }

    /// Whether the instruction sees the register's value, in whole or in part.
    fn reads(&mut self, instruction: &Instruction, register: Register) -> bool {
        let info = self.factory.info(instruction);
        info.used_registers().iter().any(|used| {
            let is_part = used.register().full_register() == register;
            let is_plain_write = matches!(used.access(), OpAccess::Write | OpAccess::CondWrite);
            is_part && !(is_plain_write && used.register().size() >= 4)
        })
    }

    fn overwrites(&mut self, instruction: &Instruction, register: Register) -> bool {
        let info = self.factory.info(instruction);
        info.used_registers().iter().any(|used| {
            used.register().full_register() == register && used.access() == OpAccess::Write
        })
    }
}

fn is_argument(register: Register) -> bool {
    use Register::{R8, R9, RCX, RDI, RDX, RSI};
    matches!(register, RDI | RSI | RDX | RCX | R8 | R9)
}

fn is_kept_by_calls(register: Register) -> bool {
    use Register::{R12, R13, R14, R15, RBP, RBX};
    matches!(register, RBX | RBP | R12 | R13 | R14 | R15)
}
