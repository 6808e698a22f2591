//! Common instructions, told by their bytes: most of what compilers write has a few dozen forms.
//!
//! ```text
//!  [66 | f2 | f3]  [REX]  opcode  ModRM  [SIB]  [displacement]  [immediate]
//!                         0f xx
//!                         ──┬──
//!                     FIRST, SECOND: what each opcode has of these, and what it does
//! ```
//! What is told is what [`crate::part`] asks of every instruction of an image, and no more. Everything else is left to the
//! library, which takes some twenty times as long with all that is asked of it: other opcodes, prefixes in another order, addresses without a
//! register, and whatever means something else in one place than in another. Tests compare both, on real images.

use crate::change::Change;
use crate::shapes::{
    BRANCH, BYTE, CLEARS, COMPUTES, FIRST, GROUP, GROUPS, IMMEDIATE, IMMEDIATE_8, IMMEDIATE_WIDE,
    IN_OPCODE, KEEPS_FLAGS, LOADS, MODRM, MOVES, ODD, PADDING, POPS, PUSHES, REG, RM, SECOND,
    SETS_FLAGS, SIZED, Shape, TO_REG, TO_RM, WRITES,
};

/// Bytes that are looked at: no instruction has more.
pub(crate) const BYTES: usize = 16;

/// An instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Quick<'b> {
    Plain(Plain<'b>),
    Branch(Turn),
}

/// One that goes on behind itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain<'b> {
    bytes: &'b [u8; BYTES],
    shape: Shape,
    opcode: u8,
    rex: u8,
    /// The operand-size prefix stands first.
    is_sized: bool,
    modrm: u8,
    /// Behind ModRM.
    operand: usize,
    /// Behind the displacement.
    immediate: usize,
    end: usize,
}

/// What an instruction refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Address {
    /// It takes this address.
    Taken(u64),
    /// It reads or writes there.
    Used(u64),
}

/// What an instruction has to do with the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stack {
    Nothing,
    Push,
    Pop,
    /// It accesses memory this far from rsp, and so far from rbp.
    Rsp(i32),
    Rbp(i32),
    /// Something else.
    Other,
}

/// How a branch goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Call,
    Jump,
    Conditional,
    Return,
}

/// A direct branch, or a return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub at: u64,
    pub way: Way,
    pub length: u8,
    /// Offset of its displacement of 32 bits; 0 where it has none.
    pub field: u8,
    /// 0 for a return.
    pub target: u64,
}

impl Turn {
    /// Address behind it.
    pub(crate) fn end(&self) -> u64 {
        self.at + u64::from(self.length)
    }
}

const REX_W: u8 = 8;
const REX_R: u8 = 4;
const REX_X: u8 = 2;
const REX_B: u8 = 1;
const RSP: u8 = 4;
const RBP: u8 = 5;
/// What a register is to r10 and r11.
const SCRATCH: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0];

/// Bytes behind ModRM that are no immediate operand.
static MORE: [u8; 256] = more();

const fn more() -> [u8; 256] {
    let mut more = [0; 256];
    let mut modrm = 0;
    while modrm < 0xc0 {
        let low = modrm as u8 & 7;
        let displacement = match modrm >> 6 {
            0 if low == RBP => 4,
            0 => 0,
            1 => 1,
            _ => 4,
        };
        more[modrm] = displacement + (low == RSP) as u8;
        modrm += 1;
    }
    more
}

fn byte(bytes: &[u8; BYTES], at: usize) -> u8 {
    bytes[at % BYTES]
}

fn word(bytes: &[u8; BYTES], at: usize) -> i32 {
    i32::from_le_bytes([0, 1, 2, 3].map(|more| byte(bytes, at + more)))
}

/// The instruction at `at`, where it is a common one. `is_live`: what it does with flags matters.
#[inline(always)]
pub(crate) fn read(bytes: &[u8; BYTES], at: u64, is_live: bool) -> Option<Quick<'_>> {
    let prefix = match bytes[0] {
        0x66 => 1,
        0xf3 => 2,
        0xf2 => 3,
        _ => 0,
    };
    let mut end = usize::from(prefix != 0);
    let mut opcode = byte(bytes, end);
    let mut rex = 0;
    if opcode & 0xf0 == 0x40 {
        rex = opcode;
        end += 1;
        opcode = byte(bytes, end);
    }
    end += 1;
    let mut shape = FIRST[usize::from(opcode)];
    if opcode == 0x0f {
        opcode = byte(bytes, end);
        end += 1;
        shape = SECOND[prefix][usize::from(opcode)];
    } else if prefix > 1 {
        return None;
    }
    if shape & BRANCH != 0 {
        let is_plain = prefix == 0 && rex == 0;
        return branch(bytes, (opcode, end), at, is_live)
            .filter(|_| is_plain)
            .map(Quick::Branch);
    }
    let (mut modrm, operand) = (0, end + 1);
    if shape & MODRM != 0 {
        modrm = byte(bytes, end);
        if shape & GROUP != 0 {
            shape = GROUPS[usize::from(shape as u8) % GROUPS.len()][usize::from(modrm >> 3 & 7)];
        }
        end = operand + usize::from(MORE[usize::from(modrm)]);
        // An address without a base, or a base that is no register.
        if modrm & 0xc7 == RSP && byte(bytes, operand) & 7 == RBP {
            return None;
        }
    }
    let is_sized = prefix == 1;
    let immediate = end;
    end += immediate_size(shape, is_sized, rex);
    let is_known = shape & (SETS_FLAGS | KEEPS_FLAGS) != 0 || !is_live && shape != 0;
    let is_odd = shape & ODD != 0 && is_another(shape, rex, modrm);
    if !is_known || is_odd || is_sized && has_other_size(shape, rex) {
        return None;
    }
    Some(Quick::Plain(Plain {
        bytes,
        shape,
        opcode,
        rex,
        is_sized,
        modrm,
        operand,
        immediate,
        end,
    }))
}

fn immediate_size(shape: Shape, is_sized: bool, rex: u8) -> usize {
    if shape & (IMMEDIATE_8 | IMMEDIATE | IMMEDIATE_WIDE) == 0 {
        return 0;
    }
    if shape & IMMEDIATE_8 != 0 {
        return 1;
    }
    match (is_sized, shape & IMMEDIATE_WIDE != 0 && rex & REX_W != 0) {
        (true, _) => 2,
        (_, true) => 8,
        _ => 4,
    }
}

/// Whether an opcode means something else: a nop, `lea` and `movsxd` are only what they are so.
fn is_another(shape: Shape, rex: u8, modrm: u8) -> bool {
    if shape & MODRM == 0 {
        return rex != 0;
    }
    if shape & RM == 0 {
        return modrm >= 0xc0;
    }
    rex & REX_W == 0
}

/// What has two sizes, or one of its own.
fn has_other_size(shape: Shape, rex: u8) -> bool {
    shape & SIZED != 0 && rex & REX_W != 0 || shape & (PUSHES | POPS) != 0
}

#[inline(always)]
fn branch(
    bytes: &[u8; BYTES],
    (opcode, start): (u8, usize),
    at: u64,
    is_live: bool,
) -> Option<Turn> {
    // Two bytes of opcode: conditional, with a wide displacement.
    let is_second = start == 2;
    let way = match opcode {
        0xe8 => Way::Call,
        0xe9 | 0xeb => Way::Jump,
        0xc3 => Way::Return,
        _ if is_live => return None,
        _ => Way::Conditional,
    };
    let is_wide = is_second || matches!(opcode, 0xe8 | 0xe9);
    let (size, distance) = match way {
        Way::Return => (0, 0),
        _ if is_wide => (4, word(bytes, start)),
        _ => (1, i32::from(byte(bytes, start) as i8)),
    };
    let end = at + (start + size) as u64;
    Some(Turn {
        at,
        way,
        length: (start + size) as u8,
        field: if is_wide { start as u8 } else { 0 },
        target: match way {
            Way::Return => 0,
            _ => end.wrapping_add_signed(i64::from(distance)),
        },
    })
}

impl Plain<'_> {
    pub(crate) fn length(&self) -> usize {
        self.end
    }

    fn has(&self, bits: Shape) -> bool {
        self.shape & bits != 0
    }

    /// It sets all flags that are followed, and reads none. Else it leaves them alone, or nobody asked.
    pub(crate) fn sets_flags(&self) -> bool {
        self.has(SETS_FLAGS)
    }

    pub(crate) fn is_padding(&self) -> bool {
        self.has(PADDING)
    }

    fn is_wide(&self) -> bool {
        self.rex & REX_W != 0
    }

    fn has_memory(&self) -> bool {
        self.has(MODRM) && self.modrm < 0xc0
    }

    /// Of ModRM: the register alone.
    fn reg(&self) -> u8 {
        self.modrm >> 3 & 7 | (self.rex & REX_R) << 1
    }

    /// Of ModRM: the register in the place of memory, or what memory is told from without SIB.
    fn low(&self) -> u8 {
        self.modrm & 7 | (self.rex & REX_B) << 3
    }

    /// The register in the opcode.
    fn in_opcode(&self) -> u8 {
        self.opcode & 7 | (self.rex & REX_B) << 3
    }

    /// The registers that memory is told from, where they are some.
    fn base(&self) -> Option<u8> {
        match self.modrm & 7 {
            _ if !self.has_memory() || self.is_relative() => None,
            RSP => Some(byte(self.bytes, self.operand) & 7 | (self.rex & REX_B) << 3),
            _ => Some(self.low()),
        }
    }

    fn index(&self) -> Option<u8> {
        let sib = byte(self.bytes, self.operand);
        let index = sib >> 3 & 7 | (self.rex & REX_X) << 2;
        (self.has_memory() && self.modrm & 7 == RSP && index != RSP).then_some(index)
    }

    fn displacement(&self) -> i32 {
        let at = self.operand + usize::from(self.modrm & 7 == RSP);
        match self.modrm >> 6 {
            1 => i32::from(byte(self.bytes, at) as i8),
            2 => word(self.bytes, at),
            _ if self.is_relative() => word(self.bytes, at),
            _ => 0,
        }
    }

    fn is_relative(&self) -> bool {
        self.has(MODRM) && self.modrm & 0xc7 == RBP
    }

    /// What it refers to relative to itself, if it stands at `at`.
    pub(crate) fn address(&self, at: u64) -> Option<Address> {
        if !self.is_relative() {
            return None;
        }
        let end = at + self.end as u64;
        let target = end.wrapping_add_signed(i64::from(word(self.bytes, self.operand)));
        let is_lea = self.shape & (ODD | RM) == ODD;
        Some(match is_lea && self.is_wide() {
            true => Address::Taken(target),
            false => Address::Used(target),
        })
    }

    /// An operand of 32 or 64 bits.
    pub(crate) fn immediate(&self) -> Option<u64> {
        if !self.has(IMMEDIATE | IMMEDIATE_WIDE) || self.is_sized {
            return None;
        }
        let value = word(self.bytes, self.immediate);
        Some(match (self.is_wide(), self.has(IMMEDIATE_WIDE)) {
            (true, true) => {
                let high = word(self.bytes, self.immediate + 4) as u32;
                u64::from(value as u32) | u64::from(high) << 32
            }
            (true, false) => i64::from(value) as u64,
            _ if self.has(PUSHES) => i64::from(value) as u64,
            _ => u64::from(value as u32),
        })
    }

    /// Of r10 and r11, those that it reads, and those that it writes and does not read; `None` where that is not known.
    pub(crate) fn scratch(&self) -> Option<(u8, u8)> {
        // A register beyond the first eight needs a prefix.
        if self.rex & (REX_R | REX_X | REX_B) == 0 {
            return Some((0, 0));
        }
        let bits = |register: u8| SCRATCH[usize::from(register % 16)];
        let mut reads = self.base().map_or(0, bits) | self.index().map_or(0, bits);
        let mut writes = 0;
        let is_part = self.has(BYTE) || self.is_sized && self.has(SIZED);
        let mut operand = |register: u8, is_first: bool| {
            if is_first && self.has(WRITES) && !is_part {
                writes |= bits(register);
            } else {
                reads |= bits(register);
            }
        };
        if self.has(REG) {
            operand(self.reg(), self.has(TO_REG));
        }
        if self.has(RM) && !self.has_memory() {
            operand(self.low(), self.has(TO_RM));
        }
        if self.has(IN_OPCODE) {
            operand(self.in_opcode(), true);
        }
        writes &= !reads;
        // What means nothing, or clears a register that it seems to read.
        let is_same = !self.has_memory() && self.low() == self.reg();
        let is_odd = self.has(PADDING) || self.has(CLEARS) && is_same;
        (!is_odd || reads | writes == 0).then_some((reads, writes))
    }

    /// The register that is the first operand.
    fn first(&self) -> Option<u8> {
        let register = if self.has(IN_OPCODE) {
            self.in_opcode()
        } else if self.has(TO_REG) {
            self.reg()
        } else if self.has(TO_RM) && !self.has_memory() {
            self.low()
        } else {
            return None;
        };
        // ah, ch, dh, bh
        let is_high = self.has(BYTE) && self.rex == 0 && register >= 4;
        Some(if is_high { register - 4 } else { register })
    }

    /// What it does with registers of arguments.
    pub(crate) fn change(&self) -> Change {
        if !self.has(COMPUTES | POPS) {
            return Change::None;
        }
        let Some(first) = self.first() else {
            return Change::None;
        };
        let is_frame = || matches!(self.base(), Some(RSP | RBP));
        if self.has(POPS) || self.has(LOADS) && self.is_wide() && is_frame() {
            Change::puts_back(first)
        } else {
            Change::computes(first)
        }
    }

    /// It may put an address where a `ret` finds it.
    pub(crate) fn may_push(&self) -> bool {
        self.has(PUSHES) || self.has_memory() && self.modrm & 7 == RSP
    }

    pub(crate) fn stack(&self) -> Stack {
        if self.has(PUSHES) {
            return Stack::Push;
        }
        if self.has(POPS) {
            return Stack::Pop;
        }
        // Comparisons do not write it, and end what is known of the stack all the same.
        let is_compared = !self.has(TO_REG | TO_RM | IN_OPCODE)
            && (self.has(REG) && self.reg() == RSP
                || self.has(RM) && !self.has_memory() && self.low() == RSP);
        let first = self.first().filter(|_| !self.has(BYTE));
        if first == Some(RSP) || first == Some(RBP) && self.has(MOVES) || is_compared {
            return Stack::Other;
        }
        match self.base() {
            Some(RSP) if self.index().is_none() => Stack::Rsp(self.displacement()),
            Some(RBP) if self.index().is_none() => Stack::Rbp(self.displacement()),
            _ => Stack::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
