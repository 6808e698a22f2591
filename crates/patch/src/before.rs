//! What stands before a jump or a return in its range: the instructions are decoded again, since few are ever looked at.

use std::cell::OnceCell;

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

use crate::flow::{Computed, Leaving};

/// Instructions that are looked back at, at most.
const RECENT: usize = 32;

/// Where the last instructions of a range stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ring {
    offsets: [u32; RECENT],
    count: usize,
}

impl Ring {
    pub(crate) const EMPTY: Self = Self {
        offsets: [0; RECENT],
        count: 0,
    };

    pub(crate) fn push(&mut self, offset: u32) {
        self.offsets[self.count % RECENT] = offset;
        self.count += 1;
    }

    /// Where the instruction `back` before the last one stands.
    fn offset(&self, back: usize) -> Option<usize> {
        let is_kept = back < self.count.min(RECENT);
        is_kept.then(|| self.offsets[(self.count - 1 - back) % RECENT] as usize)
    }
}

/// The last instructions.
pub(crate) struct Before<'f> {
    ring: &'f Ring,
    /// The range's bytes, and its first address.
    code: (&'f [u8], u64),
    decoded: [OnceCell<Instruction>; RECENT],
}

impl<'f> Before<'f> {
    pub(crate) fn new(ring: &'f Ring, code: (&'f [u8], u64)) -> Self {
        Self {
            ring,
            code,
            decoded: [const { OnceCell::new() }; RECENT],
        }
    }

    /// The instruction `back` before the last one.
    fn recent(&self, back: usize) -> Option<&Instruction> {
        let offset = self.ring.offset(back)?;
        let decode = || {
            let (code, start) = self.code;
            let (bytes, ip) = (
                code.get(offset..).unwrap_or_default(),
                start + offset as u64,
            );
            Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode()
        };
        Some(self.decoded[back].get_or_init(decode))
    }

    /// What the return that was decoded last does.
    pub(crate) fn returning(&self) -> Leaving {
        let pushes = |instruction: &Instruction| {
            let into_slot = instruction.op_count() > 1
                && instruction.op0_kind() == OpKind::Memory
                && instruction.memory_base() == Register::RSP
                && instruction.memory_index() == Register::None
                && instruction.memory_displacement64() == 0;
            let is_compare = matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
            instruction.mnemonic() == Mnemonic::Push || into_slot && !is_compare
        };
        match self.recent(0) {
            Some(_) if self.recent(1).is_some_and(pushes) => Leaving::Odd,
            Some(ret) if ret.code() == Code::Retnq => Leaving::Return { pops: 0 },
            Some(ret) if ret.code() == Code::Retnq_imm16 => Leaving::Return {
                pops: ret.immediate16(),
            },
            _ => Leaving::Odd,
        }
    }

    /// The shapes of computed jumps: see [`crate::computed`].
    pub(crate) fn computed(&self) -> Computed {
        let mut shape = Computed {
            is_sum: false,
            is_loaded: false,
            is_indexed: false,
            table: None,
            takes_down: self.takes_down(),
        };
        let Some(jump) = self.recent(0) else {
            return shape;
        };
        if jump.op0_kind() == OpKind::Memory {
            self.read_load(jump, 0, &mut shape);
            return shape;
        }
        let register = jump.op0_register().full_register();
        for back in 1..RECENT {
            let Some(writer) = self.recent(back) else {
                break;
            };
            if is_unconditional(writer) {
                break;
            }
            if writer.op_count() == 0 || writer.op0_kind() != OpKind::Register {
                continue;
            }
            if writer.op0_register().full_register() != register || !writes(writer) {
                continue;
            }
            match writer.mnemonic() {
                Mnemonic::Add if writer.op1_kind() == OpKind::Register => {
                    let other = writer.op1_register().full_register();
                    let named = |name: Register| self.named(name, back);
                    let loads = |name: Register| self.loads_offset(name, back);
                    shape.table = named(other).or_else(|| named(register));
                    shape.is_sum = loads(other) || loads(register);
                }
                // lea (base,offset),%register
                Mnemonic::Lea if writer.memory_index() != Register::None => {
                    let (base, index) = (writer.memory_base(), writer.memory_index());
                    let is_plain =
                        writer.memory_index_scale() == 1 && writer.memory_displacement64() == 0;
                    let loads = |name: Register| self.loads_offset(name, back);
                    shape.table = self.named(base, back).or_else(|| self.named(index, back));
                    shape.is_sum = is_plain && (loads(base) || loads(index));
                }
                Mnemonic::Mov if writer.op1_kind() == OpKind::Memory => {
                    self.read_load(writer, back, &mut shape);
                }
                _ => {}
            }
            break;
        }
        shape
    }

    /// The table that a load of an address by index names.
    fn read_load(&self, load: &Instruction, back: usize, shape: &mut Computed) {
        shape.is_loaded = true;
        let has_index = load.memory_index() != Register::None && load.memory_index_scale() == 8;
        if load.memory_base() == Register::None {
            shape.is_indexed = has_index;
            shape.table = has_index.then(|| load.memory_displacement64());
        } else if has_index && load.memory_displacement64() == 0 {
            shape.is_indexed = true;
            shape.table = self.named(load.memory_base().full_register(), back);
        } else if load.memory_index_scale() == 1 && load.memory_displacement64() == 0 {
            // clang -O0 and gcc: (table, offset), the offset scaled before.
            let (base, index) = (load.memory_base(), load.memory_index());
            shape.table = self.named(base, back).or_else(|| self.named(index, back));
            shape.is_indexed = shape.table.is_some();
        }
    }

    /// The address that `register` was given by the last `lea` (or `mov`, where addresses are
    /// absolute) before the instruction at `back`.
    fn named(&self, register: Register, back: usize) -> Option<u64> {
        for back in back + 1..RECENT {
            let writer = self.recent(back)?;
            if writer.op_count() == 0
                || writer.op0_kind() != OpKind::Register
                || writer.op0_register().full_register() != register
                || !writes(writer)
            {
                if is_unconditional(writer) {
                    return None;
                }
                continue;
            }
            return match writer.code() {
                Code::Lea_r64_m if writer.is_ip_rel_memory_operand() => {
                    Some(writer.ip_rel_memory_address())
                }
                Code::Mov_r32_imm32 | Code::Mov_rm64_imm32 | Code::Mov_r64_imm64 => {
                    Some(writer.immediate(1))
                }
                // The offset itself: what it was scaled from, or added to, is not the table.
                _ => None,
            };
        }
        None
    }

    /// Whether `register` holds 32 bits from memory, extended, before the instruction at `back`.
    fn loads_offset(&self, register: Register, back: usize) -> bool {
        for back in back + 1..RECENT {
            let Some(writer) = self.recent(back) else {
                return false;
            };
            let extends = matches!(writer.mnemonic(), Mnemonic::Cdqe) && register == Register::RAX;
            if extends {
                return true;
            }
            if writer.op_count() == 0
                || writer.op0_kind() != OpKind::Register
                || writer.op0_register().full_register() != register
                || !writes(writer)
            {
                if is_unconditional(writer) {
                    return false;
                }
                continue;
            }
            return writer.mnemonic() == Mnemonic::Movsxd;
        }
        false
    }

    /// Whether what comes straight before the jump makes the stack smaller.
    fn takes_down(&self) -> bool {
        for back in 1..RECENT {
            let Some(before) = self.recent(back) else {
                return false;
            };
            if before.flow_control() != FlowControl::Next {
                return false;
            }
            let is_pop = matches!(before.mnemonic(), Mnemonic::Pop | Mnemonic::Leave);
            let sets_stack = before.op_count() > 0
                && before.op0_kind() == OpKind::Register
                && before.op0_register() == Register::RSP
                && !matches!(
                    before.mnemonic(),
                    Mnemonic::Sub | Mnemonic::And | Mnemonic::Push | Mnemonic::Cmp | Mnemonic::Test
                );
            if is_pop || sets_stack {
                return true;
            }
        }
        false
    }
}

fn is_unconditional(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
    )
}

/// Whether the first operand is written (and not only compared).
fn writes(instruction: &Instruction) -> bool {
    !matches!(
        instruction.mnemonic(),
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push | Mnemonic::Bt
    )
}
