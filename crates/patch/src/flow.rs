//! What the instructions of one range do, gathered while they are decoded: where they leave the
//! function, whether they loop, call or wait, and who looks at the flags of whom.
//!
//! Flags matter since inline code and routines change them. The ABI says that they are dead at a
//! function's entry and at its return, and compilers rely on it; hand-written code may pass a result
//! in them, and then neither side may be touched.

use iced_x86::{
    Code, ConstantOffsets, FlowControl, Instruction, Mnemonic, OpKind, Register, RflagsBits,
};

use crate::change::Changes;
use crate::fate::mentioned;
use crate::part::has_near_branch;

/// Instructions kept to look back at.
const RECENT: usize = 32;

const STATUS: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;

/// How an instruction may leave its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// `ret`, with this many bytes of arguments.
    Return { pops: u16 },
    /// A direct jump out of its range.
    Jump { target: u64 },
    /// A conditional one.
    Conditional { target: u64 },
    /// `jmp *slot(%rip)`
    Slot { slot: u64 },
    /// A computed jump.
    Computed(Computed),
    /// Another return: far, from an interrupt, or to what was pushed just before.
    Odd,
}

/// A computed jump, as far as the instructions before it tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Computed {
    /// The address is a sum: a table of offsets. No call through a pointer is made so.
    pub is_sum: bool,
    /// The address is loaded from memory.
    pub is_loaded: bool,
    /// It is loaded from a table of addresses.
    pub is_indexed: bool,
    /// Address of the table, where it is named nearby.
    pub table: Option<u64>,
    /// The frame is taken down just before: the jump may be a tail call.
    pub takes_down: bool,
}

impl Computed {
    /// A jump to whatever a variable holds.
    pub(crate) const UNKNOWN: Self = Self {
        is_sum: false,
        is_loaded: true,
        is_indexed: false,
        table: None,
        takes_down: true,
    };
}

/// An instruction that may leave its function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WayOut {
    pub at: u64,
    pub range: u32,
    pub length: u8,
    /// Offset of its 32-bit displacement, 0 where it has none.
    pub field: u8,
    /// Lengths of the instructions before it, nearest in the lowest byte, up to one that is no
    /// straight way here.
    pub before: u64,
    pub leaving: Leaving,
}

impl WayOut {
    /// Address behind it.
    pub(crate) fn end(&self) -> u64 {
        self.at + u64::from(self.length)
    }
}

/// What is known of one range's instructions.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traits {
    /// It calls something, the kernel included.
    pub calls: bool,
    /// A branch leads backwards.
    pub loops: bool,
    /// Something in it may wait for another thread, or ends the program.
    pub waits: bool,
    /// Its last instruction goes on behind its end.
    pub falls_out: bool,
    /// The flags of whoever calls it are looked at.
    pub reads_flags: bool,
    /// Of r10 and r11, those that are an operand anywhere, or part of one.
    pub mentions: u8,
    /// It returns with another value in a register of arguments (see [`crate::change`]).
    pub changes: bool,
}

impl Traits {
    /// In `mentions`: r10.
    pub(crate) const R10: u8 = 1;
    /// In `mentions`: r11.
    pub(crate) const R11: u8 = 2;
}

/// Follows the flags along straight code.
#[derive(Debug, Clone, Copy)]
struct Flags {
    live: u32,
}

impl Flags {
    const ALL: Self = Self { live: STATUS };
    const NONE: Self = Self { live: 0 };

    /// Whether the instruction reads one of the flags that are followed.
    fn read_by(&mut self, instruction: &Instruction) -> bool {
        if self.live == 0 {
            return false;
        }
        let flow = instruction.flow_control();
        // A system call keeps all flags, which is not looking at them.
        let may_read = matches!(flow, FlowControl::Next | FlowControl::ConditionalBranch);
        let reads = may_read && instruction.rflags_read() & self.live != 0;
        self.live &= !instruction.rflags_modified();
        if reads || flow != FlowControl::Next {
            self.live = 0;
        }
        reads
    }
}

/// The instructions decoded last, and what they say so far.
pub(crate) struct Flow {
    ring: [Instruction; RECENT],
    count: usize,
    straight: u64,
    goes_on: bool,
    at_entry: Flags,
    after_call: Flags,
    callee: u64,
    behind_call: u64,
    changes: Changes,
    /// Addresses behind calls, for each way out where a register of arguments is changed if nothing else leads there.
    pub changes_behind: Vec<Vec<u64>>,
    pub traits: Traits,
    /// Of r10 and r11, those that the last instruction mentions.
    pub mentions: u8,
}

/// A function that returns something in flags: the target of a call, the address behind the call,
/// and the instruction that looks.
pub(crate) type FlagUse = (u64, u64, u64);

impl Flow {
    pub(crate) fn new() -> Self {
        Self {
            ring: [Instruction::default(); RECENT],
            count: 0,
            straight: 0,
            goes_on: true,
            at_entry: Flags::ALL,
            after_call: Flags::NONE,
            callee: 0,
            behind_call: 0,
            changes: Changes::default(),
            changes_behind: Vec::new(),
            traits: Traits::default(),
            mentions: 0,
        }
    }

    /// Begins another range.
    pub(crate) fn begin(&mut self) {
        self.count = 0;
        self.straight = 0;
        self.goes_on = true;
        self.at_entry = Flags::ALL;
        self.after_call = Flags::NONE;
        self.changes = Changes::default();
        self.changes_behind.clear();
        self.traits = Traits::default();
    }

    /// Where the next instruction is decoded to.
    pub(crate) fn next(&mut self) -> &mut Instruction {
        self.count += 1;
        &mut self.ring[(self.count - 1) % RECENT]
    }

    /// The instruction decoded `back` before the last one.
    fn recent(&self, back: usize) -> Option<&Instruction> {
        (back < self.count.min(RECENT)).then(|| &self.ring[(self.count - 1 - back) % RECENT])
    }

    /// Takes the instruction decoded last, in the range `start..end`.
    pub(crate) fn take(
        &mut self,
        (start, end): (u64, u64),
        range: u32,
        offsets: impl FnOnce(&Instruction) -> ConstantOffsets,
    ) -> (Option<WayOut>, Option<FlagUse>) {
        let instruction = &self.ring[(self.count - 1) % RECENT];
        self.traits.reads_flags |= self.at_entry.read_by(instruction);
        self.mentions = mentioned(instruction);
        self.traits.mentions |= self.mentions;
        let is_read = self.after_call.read_by(instruction);
        let flag_use = is_read.then_some((self.callee, self.behind_call, instruction.ip()));
        let flow = instruction.flow_control();
        let is_call = matches!(flow, FlowControl::Call | FlowControl::IndirectCall);
        if is_call || flow == FlowControl::Next {
            self.changes.take(instruction, is_call);
        }
        if flow == FlowControl::Next && !is_special(instruction) {
            if !is_padding(instruction) {
                self.goes_on = true;
            }
            self.straight = self.straight << 8 | instruction.len() as u64;
            return (None, flag_use);
        }
        let inside = |target: u64| (start..end).contains(&target);
        let is_near = has_near_branch(instruction);
        let target = instruction.near_branch_target();
        let mut goes_on = false;
        let mut keeps_straight = false;
        let mut leaving = None;
        match flow {
            // A halt, a lock or a pause.
            FlowControl::Next => {
                self.traits.waits = true;
                goes_on = instruction.mnemonic() != Mnemonic::Hlt;
                keeps_straight = goes_on;
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                // What it calls may never return: then nothing need follow.
                self.traits.calls = true;
                if is_near {
                    self.after_call = Flags::ALL;
                    self.callee = target;
                    self.behind_call = instruction.next_ip();
                }
            }
            FlowControl::Return => leaving = Some(self.returning()),
            FlowControl::UnconditionalBranch if !is_near => leaving = Some(Leaving::Odd),
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch if inside(target) => {
                self.traits.loops |= target <= instruction.ip();
                goes_on = flow == FlowControl::ConditionalBranch;
                keeps_straight = goes_on;
            }
            FlowControl::UnconditionalBranch => leaving = Some(Leaving::Jump { target }),
            FlowControl::ConditionalBranch => {
                leaving = Some(Leaving::Conditional { target });
                goes_on = true;
            }
            FlowControl::IndirectBranch if instruction.code() != Code::Jmp_rm64 => {
                leaving = Some(Leaving::Odd);
            }
            FlowControl::IndirectBranch if instruction.is_ip_rel_memory_operand() => {
                let slot = instruction.ip_rel_memory_address();
                leaving = Some(Leaving::Slot { slot });
            }
            FlowControl::IndirectBranch => leaving = Some(Leaving::Computed(self.computed())),
            FlowControl::XbeginXabortXend => {
                self.traits.waits = true;
                goes_on = true;
            }
            FlowControl::Interrupt | FlowControl::Exception => {
                // Padding is made of int3 too.
                self.traits.waits |= instruction.code() != Code::Int3;
            }
        }
        let instruction = &self.ring[(self.count - 1) % RECENT];
        if leaving.is_some()
            && let Some(behind) = self.changes.at_way_out()
        {
            self.changes_behind.push(behind.to_vec());
        }
        if !goes_on && !is_call {
            self.changes = Changes::default();
        }
        let way_out = leaving.map(|leaving| {
            let offsets = offsets(instruction);
            let is_wide = is_near && offsets.immediate_size() == 4;
            WayOut {
                at: instruction.ip(),
                range,
                length: instruction.len() as u8,
                field: if is_wide {
                    offsets.immediate_offset() as u8
                } else {
                    0
                },
                before: self.straight,
                leaving,
            }
        });
        self.goes_on = goes_on;
        self.straight = if keeps_straight {
            self.straight << 8 | instruction.len() as u64
        } else {
            0
        };
        (way_out, flag_use)
    }

    /// Ends the range.
    pub(crate) fn end(&mut self) -> Traits {
        self.traits.falls_out = self.goes_on;
        self.traits
    }

    fn returning(&self) -> Leaving {
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
            Some(ret) if self.recent(1).is_some_and(pushes) => {
                let _ = ret;
                Leaving::Odd
            }
            Some(ret) if ret.code() == Code::Retnq => Leaving::Return { pops: 0 },
            Some(ret) if ret.code() == Code::Retnq_imm16 => Leaving::Return {
                pops: ret.immediate16(),
            },
            _ => Leaving::Odd,
        }
    }

    /// The shapes of computed jumps: see [`crate::computed`].
    fn computed(&self) -> Computed {
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

/// `nop` in any form, or `int3`.
pub(crate) fn is_padding(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Nop
        || instruction.code() == Code::Int3
        || instruction.code() == Code::Nopw
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

/// An ordinary instruction by its flow that may wait or never end.
pub(crate) fn is_special(instruction: &Instruction) -> bool {
    let is_exchange =
        || instruction.mnemonic() == Mnemonic::Xchg && instruction.op0_kind() == OpKind::Memory;
    instruction.has_lock_prefix()
        || is_exchange()
        || matches!(
            instruction.mnemonic(),
            Mnemonic::Hlt
                | Mnemonic::Pause
                | Mnemonic::Mwait
                | Mnemonic::Mwaitx
                | Mnemonic::Umwait
                | Mnemonic::Tpause
                | Mnemonic::Monitor
                | Mnemonic::Umonitor
        )
}
