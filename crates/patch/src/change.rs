//! Which functions return with another value in a register that callers with a convention of their own count on.
//!
//! Conventions that keep more than the ABI says (`preserve_most`, `preserve_all`, `no_caller_saved_registers`) all keep the
//! registers of arguments. A function that keeps to one puts them back from its frame before it returns; one that returns with
//! what it computed there keeps to the ABI and no more.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::flow::is_padding;

/// Registers of arguments, as bits of their numbers. Results are given back in none of them but rdx.
const KEPT: u32 = 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9;

/// Calls in a row behind which a change is known.
const CALLS: usize = 8;

/// What an instruction does with the registers of arguments, which are told by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// Nothing, and it stands behind calls that do not return.
    Padding,
    /// It loads one from the frame.
    PutsBack(u8),
    /// It surely gives one another value.
    Computes(u8),
}

impl Change {
    /// What `instruction`, behind which execution goes on, does.
    pub(crate) fn of(instruction: &Instruction) -> Self {
        if is_padding(instruction) {
            return Self::Padding;
        }
        if instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Register {
            return Self::None;
        }
        let written = instruction.op0_register().full_register();
        if !written.is_gpr64() {
            return Self::None;
        }
        let number = written.number() as u8;
        if may_put_back(instruction) {
            Self::puts_back(number)
        } else if computes(instruction) {
            Self::computes(number)
        } else {
            Self::None
        }
    }

    /// Of an instruction that loads this register from the frame.
    pub(crate) fn puts_back(register: u8) -> Self {
        if is_kept(register) {
            Self::PutsBack(register)
        } else {
            Self::None
        }
    }

    /// Of an instruction that computes this register.
    pub(crate) fn computes(register: u8) -> Self {
        if is_kept(register) {
            Self::Computes(register)
        } else {
            Self::None
        }
    }
}

fn is_kept(register: u8) -> bool {
    KEPT >> register & 1 != 0
}

/// The last change that straight code made to one of the registers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Changes {
    changed: Option<u8>,
    /// Addresses behind the calls since. If one of those calls does not return, other code stands there.
    behind: [u64; CALLS],
    count: usize,
}

impl Changes {
    /// Takes a change.
    pub(crate) fn take(&mut self, change: Change) {
        match change {
            Change::None => {}
            Change::Padding => self.changed = None,
            Change::PutsBack(register) => self.changed = self.changed.filter(|it| *it != register),
            Change::Computes(register) => {
                self.changed = Some(register);
                self.count = 0;
            }
        }
    }

    /// Takes a call, by the address behind it.
    pub(crate) fn take_call(&mut self, behind: u64) {
        if self.changed.is_some() {
            match self.behind.get_mut(self.count) {
                Some(place) => *place = behind,
                None => self.changed = None,
            }
            self.count += 1;
        }
    }

    /// What stands before cannot go on here.
    pub(crate) fn forget(&mut self) {
        self.changed = None;
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
