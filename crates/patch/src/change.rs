//! Which functions return with another value in a register that callers with a convention of their own count on.
//!
//! Conventions that keep more than the ABI says (`preserve_most`, `preserve_all`, `no_caller_saved_registers`) all keep the
//! registers of arguments. A function that keeps to one puts them back from its frame before it returns; one that returns with
//! what it computed there keeps to the ABI and no more.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::flow::is_padding;

/// Registers of arguments, by bit. Results are given back in none of them but rdx.
const KEPT: [Register; 6] = [
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
];

/// What straight code has done to the registers so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Changes {
    /// Changed since the last call.
    now: u8,
    /// Changed before that, and not put back.
    before: u8,
    /// Address behind the last call.
    behind: u64,
}

/// What is known where a function is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    No,
    Yes,
    /// If the call before this address returns at all, that is: nothing else leads here.
    Behind(u64),
}

impl Changes {
    /// Takes an instruction behind which execution goes on.
    pub(crate) fn take(&mut self, instruction: &Instruction, is_call: bool) {
        if is_call {
            (self.before, self.now) = (self.now, 0);
            self.behind = instruction.next_ip();
            return;
        }
        // Padding stands behind calls that do not return.
        if is_padding(instruction) {
            *self = Self::default();
            return;
        }
        if instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Register {
            return;
        }
        let written = instruction.op0_register().full_register();
        let Some(index) = KEPT.iter().position(|it| *it == written) else {
            return;
        };
        let bit = 1 << index;
        if may_put_back(instruction) {
            self.now &= !bit;
            self.before &= !bit;
        } else if computes(instruction) {
            self.now |= bit;
        }
    }

    /// Whether a function that is left here has changed one.
    pub(crate) fn at_way_out(&self) -> Changed {
        match (self.now, self.before) {
            (0, 0) => Changed::No,
            (0, _) => Changed::Behind(self.behind),
            _ => Changed::Yes,
        }
    }
}

/// A load from the frame.
fn may_put_back(instruction: &Instruction) -> bool {
    let is_frame =
        |register: Register| matches!(register.full_register(), Register::RSP | Register::RBP);
    match instruction.mnemonic() {
        Mnemonic::Pop | Mnemonic::Xchg => true,
        Mnemonic::Mov => {
            instruction.op1_kind() == OpKind::Memory
                && is_frame(instruction.memory_base())
                && instruction.op0_register().size() == 8
        }
        _ => false,
    }
}

/// Whether it surely gives its first operand another value.
fn computes(instruction: &Instruction) -> bool {
    use Mnemonic::{
        Add, And, Dec, Imul, Inc, Lea, Mov, Movsx, Movsxd, Movzx, Neg, Not, Or, Sar, Shl, Shr, Sub,
        Xor,
    };
    matches!(
        instruction.mnemonic(),
        Add | And
            | Dec
            | Imul
            | Inc
            | Lea
            | Mov
            | Movsx
            | Movsxd
            | Movzx
            | Neg
            | Not
            | Or
            | Sar
            | Shl
            | Shr
            | Sub
            | Xor
    )
}
