//! Which functions return with another value in a register that callers with a convention of their own count on.
//!
//! Conventions that keep more than the ABI says (`preserve_most`, `preserve_all`, `no_caller_saved_registers`) all keep the
//! registers of arguments. A function that keeps to one puts them back from its frame before it returns; one that returns with
//! what it computed there keeps to the ABI and no more.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::flow::is_padding;

/// Registers of arguments. Results are given back in none of them but rdx.
const KEPT: [Register; 6] = [
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
];

/// Calls in a row behind which a change is known.
const CALLS: usize = 8;

/// The last change that straight code made to one of the registers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Changes {
    changed: Option<Register>,
    /// Addresses behind the calls since. If one of those calls does not return, other code stands there.
    behind: [u64; CALLS],
    count: usize,
}

impl Changes {
    /// Takes an instruction behind which execution goes on.
    pub(crate) fn take(&mut self, instruction: &Instruction, is_call: bool) {
        if is_call && self.changed.is_some() {
            match self.behind.get_mut(self.count) {
                Some(place) => *place = instruction.next_ip(),
                None => self.changed = None,
            }
            self.count += 1;
            return;
        }
        // Padding stands behind calls that do not return.
        if is_padding(instruction) {
            self.changed = None;
            return;
        }
        if is_call || instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Register {
            return;
        }
        let written = instruction.op0_register().full_register();
        if !KEPT.contains(&written) {
            return;
        }
        if may_put_back(instruction) {
            self.changed = self.changed.filter(|it| *it != written);
        } else if computes(instruction) {
            self.changed = Some(written);
            self.count = 0;
        }
    }

    /// Whether a function that is left here has changed one: if nothing but what stands before leads to these addresses.
    pub(crate) fn at_way_out(&self) -> Option<&[u64]> {
        self.changed.and_then(|_| self.behind.get(..self.count))
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
