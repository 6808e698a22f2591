//! Functions of libraries whose return address must stay what and where it is, told by their names
//! and by their instructions: stripped libraries have no names for most of them.
//!
//! A function that is left alone here for its name is recorded all the same where the main program
//! calls it: by its caller, in the way that `library` chooses.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};
use lockstep_format::plan::mechanism;

use crate::library;
use crate::quick::{Stack, Way};

/// System calls that do not come back as functions do, and what they do.
const CALLS: [(u32, &str); 6] = [
    (CLONE, "begins a process or thread by itself (clone)"),
    (VFORK, "begins a process in its own memory (vfork)"),
    (CLONE3, "begins a process or thread by itself (clone3)"),
    (60, "ends its thread by itself (exit)"),
    (231, "ends its process by itself (exit_group)"),
    (15, "goes back to what a signal interrupted (rt_sigreturn)"),
];
/// How far behind the end of its range a function is followed.
const BEHIND: usize = 8;
const CLONE: u32 = 56;
const VFORK: u32 = 58;
const CLONE3: u32 = 435;

/// What is special about a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sensitive {
    /// Why it is not recorded.
    pub reason: &'static str,
    /// A child may come to run in this very memory.
    pub begins_child: bool,
}

/// Whether a function with these names is to be left alone, whatever its code does.
pub(crate) fn by_name<'n>(mut names: impl Iterator<Item = &'n [u8]>) -> Option<Sensitive> {
    let is_special =
        |name| library::is_untouched(name) || library::of_import(name) != mechanism::CALL_THROUGH;
    names.any(is_special).then_some(Sensitive {
        reason: "returns in a way of its own, or reads where it returns to: recorded where the main program calls it",
        begins_child: false,
    })
}

/// A walk over a function in the order of its addresses, as long as that says where the stack is.
pub(crate) struct Walk<'a> {
    /// The bytes from its first address on.
    code: &'a [u8],
    start: u64,
    /// Bytes between the stack pointer and the return address.
    depth: Option<i64>,
    /// rbp holds the address 8 below the return address.
    has_frame_pointer: bool,
    is_first: bool,
    /// Execution goes on behind the last instruction.
    goes_on: bool,
    found: Option<Sensitive>,
}

impl<'a> Walk<'a> {
    /// Before the first instruction of a function, whose bytes these are, with some of those behind.
    pub(crate) fn new(code: &'a [u8], start: u64) -> Self {
        Self {
            code,
            start,
            depth: Some(0),
            has_frame_pointer: false,
            is_first: true,
            goes_on: true,
            found: None,
        }
    }

    /// Takes the next instruction.
    pub(crate) fn take(&mut self, instruction: &Instruction) {
        if self.found.is_none() {
            self.goes_on = instruction.flow_control() == FlowControl::Next;
            self.found = self.step(instruction);
        }
    }

    /// Takes one that goes on behind itself by what it does with the stack; false where it must be looked at as a whole.
    pub(crate) fn take_plain(&mut self, stack: Stack) -> bool {
        let by = match stack {
            Stack::Nothing => 0,
            Stack::Push => 8,
            Stack::Pop if self.depth != Some(0) => -8,
            Stack::Rsp(at) if self.depth != Some(i64::from(at)) => 0,
            Stack::Rbp(at) if !self.has_frame_pointer || at != 8 => 0,
            _ => return self.found.is_some(),
        };
        self.depth = self.depth.map(|depth| depth + by);
        (self.is_first, self.goes_on) = (false, true);
        true
    }

    /// Takes a direct branch or a return.
    pub(crate) fn take_turn(&mut self, way: Way) {
        if matches!(way, Way::Jump | Way::Return) {
            self.depth = None;
        }
        (self.is_first, self.goes_on) = (false, false);
    }

    /// Takes those from `at` to `end`, and what follows if execution goes on there: a frame description of hand-written code may
    /// end before the system call that the code makes.
    pub(crate) fn end(mut self, at: u64, end: u64) -> Option<Sensitive> {
        let bytes = self.code.get((at - self.start) as usize..);
        let bytes = bytes.unwrap_or_default();
        let size = end.saturating_sub(at) as usize;
        let bytes = &bytes[..bytes.len().min(size.saturating_add(BEHIND))];
        for instruction in Decoder::with_ip(64, bytes, at, DecoderOptions::NONE) {
            if self.found.is_some() || instruction.ip() >= end && !self.goes_on {
                break;
            }
            self.take(&instruction);
        }
        self.found
    }

    /// Somewhere in a function without code.
    #[cfg(test)]
    pub(crate) fn at(depth: Option<i64>, has_frame_pointer: bool) -> Self {
        Self {
            depth,
            has_frame_pointer,
            ..Self::new(&[], 0)
        }
    }

    /// All that the next instruction is judged by.
    #[cfg(test)]
    pub(crate) fn state(&self) -> (Option<i64>, bool, bool, bool, bool) {
        let is_found = self.found.is_some();
        let frame = self.has_frame_pointer;
        (self.depth, frame, self.is_first, self.goes_on, is_found)
    }

    fn step(&mut self, instruction: &Instruction) -> Option<Sensitive> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        if instruction.code() == Code::Endbr64 {
            self.is_first = is_first;
            return None;
        }
        let plain = |reason| Sensitive {
            reason,
            begins_child: false,
        };
        if instruction.code() == Code::Syscall
            && let Some(found) = self.system_call(instruction.ip())
        {
            return Some(found);
        }
        if switches_stacks(instruction, is_first) {
            return Some(plain("switches between stacks"));
        }
        if self.reads_return_address(instruction) {
            return Some(plain("reads where it returns to"));
        }
        if instruction.mnemonic() == Mnemonic::Pop && self.depth == Some(0) {
            return Some(plain("takes its return address off the stack"));
        }
        self.follow(instruction);
        None
    }

    /// What the system call at `at` does, by the number that the instructions before it put into rax. Functions that make any
    /// are few, so that only then it is looked for.
    fn system_call(&self, at: u64) -> Option<Sensitive> {
        let mut numbers = [None; 16];
        let code = Decoder::with_ip(64, self.code, self.start, DecoderOptions::NONE).into_iter();
        for instruction in code.take_while(|before| before.ip() < at) {
            take_number(&mut numbers, &instruction);
        }
        let number = numbers[0]?;
        let (_, reason) = CALLS.iter().find(|(known, _)| *known == number)?;
        Some(Sensitive {
            reason,
            begins_child: matches!(number, CLONE | VFORK | CLONE3),
        })
    }

    fn reads_return_address(&self, instruction: &Instruction) -> bool {
        let operand = (0..instruction.op_count())
            .find(|operand| instruction.op_kind(*operand) == OpKind::Memory);
        let Some(operand) = operand else {
            return false;
        };
        if instruction.memory_index() != Register::None
            || instruction.mnemonic() == Mnemonic::Lea
            || operand == 0 && instruction.mnemonic() == Mnemonic::Mov
        {
            return false;
        }
        let at = instruction.memory_displacement64() as i64;
        match instruction.memory_base() {
            Register::RSP => self.depth == Some(at),
            Register::RBP => self.has_frame_pointer && at == 8,
            _ => false,
        }
    }

    fn follow(&mut self, instruction: &Instruction) {
        let to_stack_pointer = instruction.op_count() > 0
            && instruction.op0_kind() == OpKind::Register
            && instruction.op0_register() == Register::RSP;
        let by = match instruction.mnemonic() {
            Mnemonic::Push => Some(8),
            Mnemonic::Pop => Some(-8),
            Mnemonic::Sub if to_stack_pointer => immediate(instruction),
            Mnemonic::Add if to_stack_pointer => immediate(instruction).map(|by| -by),
            Mnemonic::Lea if to_stack_pointer && instruction.memory_base() == Register::RSP => {
                Some(-(instruction.memory_displacement64() as i64))
            }
            _ if to_stack_pointer || instruction.mnemonic() == Mnemonic::Leave => None,
            Mnemonic::Mov
                if instruction.op0_kind() == OpKind::Register
                    && instruction.op0_register() == Register::RBP =>
            {
                let is_frame = instruction.op1_kind() == OpKind::Register
                    && instruction.op1_register() == Register::RSP
                    && self.depth == Some(8);
                self.has_frame_pointer = is_frame;
                Some(0)
            }
            _ => match instruction.flow_control() {
                FlowControl::Return
                | FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch => None,
                _ => Some(0),
            },
        };
        self.depth = self.depth.zip(by).map(|(depth, by)| depth + by);
    }
}

/// Follows small numbers in registers, by the register's number.
fn take_number(numbers: &mut [Option<u32>; 16], instruction: &Instruction) {
    let number_of = |register: Register| register.full_register().number() % 16;
    let is_register = |index| instruction.op_kind(index) == OpKind::Register;
    match instruction.code() {
        Code::Mov_r32_imm32 | Code::Mov_rm64_imm32 | Code::Mov_r64_imm64 if is_register(0) => {
            let value = u32::try_from(instruction.immediate(1)).ok();
            numbers[number_of(instruction.op0_register())] = value;
        }
        Code::Mov_r32_rm32 | Code::Mov_rm32_r32 if is_register(0) && is_register(1) => {
            let value = numbers[number_of(instruction.op1_register())];
            numbers[number_of(instruction.op0_register())] = value;
        }
        Code::Syscall => numbers[0] = None,
        _ => {}
    }
}

fn immediate(instruction: &Instruction) -> Option<i64> {
    let is_immediate = matches!(
        instruction.op1_kind(),
        OpKind::Immediate8to64 | OpKind::Immediate32to64
    );
    is_immediate.then(|| instruction.immediate(1) as i64)
}

/// The stack pointer comes from somewhere that is no frame of this function.
fn switches_stacks(instruction: &Instruction, is_first: bool) -> bool {
    use Register::{R8, R9, RBP, RCX, RDI, RDX, RSI, RSP};
    let is_move = matches!(
        instruction.code(),
        Code::Mov_r64_rm64 | Code::Mov_rm64_r64 | Code::Xchg_rm64_r64
    );
    if !is_move || instruction.op0_kind() != OpKind::Register || instruction.op0_register() != RSP {
        return false;
    }
    match instruction.op1_kind() {
        OpKind::Memory => !matches!(instruction.memory_base(), RSP | RBP),
        OpKind::Register => {
            let from = instruction.op1_register();
            is_first || matches!(from, RDI | RSI | RDX | RCX | R8 | R9)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(code: &[u8]) -> Option<&'static str> {
        let mut walk = Walk::new(code, 0x1000);
        let mut decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).into_iter();
        decoder
            .find_map(|instruction| walk.step(&instruction))
            .map(|found| found.reason)
    }

    #[test]
    fn reading_the_return_address() {
        // mov (%rsp),%rax; ret
        assert!(reason(&[0x48, 0x8b, 0x04, 0x24, 0xc3]).is_some());
        // push %rbx; sub $16,%rsp; mov 24(%rsp),%rdx
        let framed = [0x53, 0x48, 0x83, 0xec, 0x10, 0x48, 0x8b, 0x54, 0x24, 0x18];
        assert!(reason(&framed).is_some());
        // ... mov 32(%rsp),%rdx: an argument
        let argument = [0x53, 0x48, 0x83, 0xec, 0x10, 0x48, 0x8b, 0x54, 0x24, 0x20];
        assert!(reason(&argument).is_none());
        // push %rbp; mov %rsp,%rbp; mov 8(%rbp),%rax
        let pointer = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x45, 0x08];
        assert!(reason(&pointer).is_some());
        // pop %rdi
        assert!(reason(&[0x5f]).is_some());
    }

    #[test]
    fn stacks_and_system_calls() {
        // mov 0x30(%rdi),%rsp
        assert!(reason(&[0x48, 0x8b, 0x67, 0x30]).is_some());
        // mov %rbp,%rsp behind push %rbp; mov %rsp,%rbp
        assert!(reason(&[0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xec]).is_none());
        // mov $56,%eax; syscall; and with 1
        assert!(reason(&[0xb8, 56, 0, 0, 0, 0x0f, 0x05]).is_some());
        assert!(reason(&[0xb8, 1, 0, 0, 0, 0x0f, 0x05]).is_none());
    }
}
