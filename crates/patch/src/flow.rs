//! What the instructions of one range do, gathered while they are decoded: where they leave the
//! function, whether they loop, call or wait, and who looks at the flags of whom.
//!
//! Flags matter since inline code and routines change them. The ABI says that they are dead at a
//! function's entry and at its return, and compilers rely on it; hand-written code may pass a result
//! in them, and then neither side may be touched.

use iced_x86::{Code, ConstantOffsets, FlowControl, Instruction, Mnemonic, OpKind, RflagsBits};

use crate::before::{Before, Ring};
use crate::change::{Change, Changes};
use crate::part::has_near_branch;
use crate::quick::{Plain, Turn, Way};

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

/// A range while it is decoded, and what its instructions say so far.
pub(crate) struct Flow<'a> {
    /// Its bytes, first address, and number.
    code: &'a [u8],
    start: u64,
    range: u32,
    ring: Ring,
    /// The last instruction may have put an address where a `ret` finds it.
    may_push: bool,
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
}

/// A function that returns something in flags: the target of a call, the address behind the call,
/// and the instruction that looks.
pub(crate) type FlagUse = (u64, u64, u64);

/// How a range goes on behind an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    /// Straight.
    Straight,
    /// Straight, but what stands before is no straight way to what follows.
    Anew,
    /// When the call returns, if it does.
    Behind,
    No,
}

impl<'a> Flow<'a> {
    pub(crate) fn new() -> Self {
        Self {
            code: &[],
            start: 0,
            range: 0,
            ring: Ring::EMPTY,
            may_push: false,
            straight: 0,
            goes_on: true,
            at_entry: Flags::ALL,
            after_call: Flags::NONE,
            callee: 0,
            behind_call: 0,
            changes: Changes::default(),
            changes_behind: Vec::new(),
            traits: Traits::default(),
        }
    }

    /// Begins another range.
    pub(crate) fn begin(&mut self, code: &'a [u8], start: u64, range: u32) {
        (self.code, self.start, self.range) = (code, start, range);
        self.ring = Ring::EMPTY;
        self.may_push = false;
        self.straight = 0;
        self.goes_on = true;
        self.at_entry = Flags::ALL;
        self.after_call = Flags::NONE;
        self.changes = Changes::default();
        self.changes_behind.clear();
        self.traits = Traits::default();
    }

    /// The number of the range that is decoded.
    pub(crate) fn range(&self) -> u32 {
        self.range
    }

    /// The address of an offset in the range.
    pub(crate) fn address_of(&self, offset: u32) -> u64 {
        self.start + u64::from(offset)
    }

    /// Whether an instruction of this length ends in the range.
    pub(crate) fn holds(&self, offset: u32, length: usize) -> bool {
        offset as usize + length <= self.code.len()
    }

    /// Whether it matters what the next instruction does with flags.
    pub(crate) fn is_live(&self) -> bool {
        self.at_entry.live | self.after_call.live != 0
    }

    /// Takes an instruction that goes on behind itself, at this offset, and mentions these of r10 and r11.
    #[inline(always)]
    pub(crate) fn take_plain(&mut self, offset: u32, plain: &Plain<'_>, mentions: u8) {
        self.ring.push(offset);
        self.may_push = plain.may_push();
        if plain.sets_flags() {
            (self.at_entry, self.after_call) = (Flags::NONE, Flags::NONE);
        }
        self.traits.mentions |= mentions;
        if plain.is_padding() {
            self.changes.take(Change::Padding);
        } else {
            self.changes.take(plain.change());
            self.goes_on = true;
        }
        self.straight = self.straight << 8 | plain.length() as u64;
    }

    /// Takes a branch, or a return, that does not ask for flags that matter.
    pub(crate) fn take_turn(&mut self, offset: u32, turn: &Turn) -> Option<WayOut> {
        self.ring.push(offset);
        (self.at_entry, self.after_call) = (Flags::NONE, Flags::NONE);
        let target = turn.target;
        let is_inside = self.is_inside(target);
        let (on, leaving) = match turn.way {
            Way::Call => {
                self.take_call(turn.end(), Some(target));
                (On::Behind, None)
            }
            Way::Return if !self.may_push => (On::No, Some(Leaving::Return { pops: 0 })),
            Way::Return => (On::No, Some(self.before().returning())),
            Way::Jump | Way::Conditional => self.jump(turn.at, target, is_inside, turn.way),
        };
        self.may_push = false;
        self.go_on(on, (turn.at, turn.length, turn.field), leaving)
    }

    fn jump(&mut self, at: u64, target: u64, is_inside: bool, way: Way) -> (On, Option<Leaving>) {
        self.traits.loops |= is_inside && target <= at;
        match (way, is_inside) {
            (Way::Conditional, true) => (On::Straight, None),
            (Way::Conditional, false) => (On::Anew, Some(Leaving::Conditional { target })),
            (_, true) => (On::No, None),
            (_, false) => (On::No, Some(Leaving::Jump { target })),
        }
    }

    fn is_inside(&self, address: u64) -> bool {
        (self.start..self.start + self.code.len() as u64).contains(&address)
    }

    fn before(&self) -> Before<'_> {
        Before::new(&self.ring, (self.code, self.start))
    }

    /// Takes a call, by the address behind it and the one that is called.
    fn take_call(&mut self, behind: u64, callee: Option<u64>) {
        // What it calls may never return: then nothing need follow.
        self.traits.calls = true;
        self.changes.take_call(behind);
        if let Some(callee) = callee {
            self.after_call = Flags::ALL;
            self.callee = callee;
            self.behind_call = behind;
        }
    }

    /// Takes any instruction.
    pub(crate) fn take(
        &mut self,
        instruction: &Instruction,
        mentions: u8,
        offsets: impl FnOnce(&Instruction) -> ConstantOffsets,
    ) -> (Option<WayOut>, Option<FlagUse>) {
        self.ring.push((instruction.ip() - self.start) as u32);
        self.traits.reads_flags |= self.at_entry.read_by(instruction);
        self.traits.mentions |= mentions;
        let is_read = self.after_call.read_by(instruction);
        let flag_use = is_read.then_some((self.callee, self.behind_call, instruction.ip()));
        let flow = instruction.flow_control();
        if flow == FlowControl::Next {
            self.changes.take(Change::of(instruction));
        }
        let (on, leaving) = self.turn(instruction, flow);
        self.may_push = flow == FlowControl::Next;
        let field = || {
            let offsets = offsets(instruction);
            let is_wide = has_near_branch(instruction) && offsets.immediate_size() == 4;
            if is_wide {
                offsets.immediate_offset() as u8
            } else {
                0
            }
        };
        let field = if leaving.is_some() { field() } else { 0 };
        let goes_on = self.goes_on;
        let place = (instruction.ip(), instruction.len() as u8, field);
        let way_out = self.go_on(on, place, leaving);
        // Padding goes on where what stands before it does.
        if flow == FlowControl::Next && is_padding(instruction) {
            self.goes_on = goes_on;
        }
        (way_out, flag_use)
    }

    /// How an instruction goes on, and how it may leave.
    fn turn(&mut self, instruction: &Instruction, flow: FlowControl) -> (On, Option<Leaving>) {
        let is_near = has_near_branch(instruction);
        let target = instruction.near_branch_target();
        match flow {
            FlowControl::Next if !is_special(instruction) => (On::Straight, None),
            // A halt, a lock or a pause.
            FlowControl::Next => {
                self.traits.waits = true;
                let is_end = instruction.mnemonic() == Mnemonic::Hlt;
                (if is_end { On::No } else { On::Straight }, None)
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                self.take_call(instruction.next_ip(), is_near.then_some(target));
                (On::Behind, None)
            }
            FlowControl::Return => (On::No, Some(self.before().returning())),
            FlowControl::UnconditionalBranch if !is_near => (On::No, Some(Leaving::Odd)),
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                let way = match flow {
                    FlowControl::ConditionalBranch => Way::Conditional,
                    _ => Way::Jump,
                };
                self.jump(instruction.ip(), target, self.is_inside(target), way)
            }
            FlowControl::IndirectBranch if instruction.code() != Code::Jmp_rm64 => {
                (On::No, Some(Leaving::Odd))
            }
            FlowControl::IndirectBranch if instruction.is_ip_rel_memory_operand() => {
                let slot = instruction.ip_rel_memory_address();
                (On::No, Some(Leaving::Slot { slot }))
            }
            FlowControl::IndirectBranch => {
                (On::No, Some(Leaving::Computed(self.before().computed())))
            }
            FlowControl::XbeginXabortXend => {
                self.traits.waits = true;
                (On::Anew, None)
            }
            FlowControl::Interrupt | FlowControl::Exception => {
                // Padding is made of int3 too.
                self.traits.waits |= instruction.code() != Code::Int3;
                (On::No, None)
            }
        }
    }

    /// Goes on behind an instruction, which has this address, length and displacement; where it may leave, that way.
    fn go_on(
        &mut self,
        on: On,
        (at, length, field): (u64, u8, u8),
        leaving: Option<Leaving>,
    ) -> Option<WayOut> {
        if leaving.is_some()
            && let Some(behind) = self.changes.at_way_out()
        {
            self.changes_behind.push(behind.to_vec());
        }
        if on == On::No {
            self.changes.forget();
        }
        let way_out = leaving.map(|leaving| WayOut {
            at,
            range: self.range,
            length,
            field,
            before: self.straight,
            leaving,
        });
        self.goes_on = matches!(on, On::Straight | On::Anew);
        self.straight = match on {
            On::Straight => self.straight << 8 | u64::from(length),
            _ => 0,
        };
        way_out
    }

    /// Ends the range.
    pub(crate) fn end(&mut self) -> Traits {
        self.traits.falls_out = self.goes_on;
        self.traits
    }
}

/// `nop` in any form, or `int3`.
pub(crate) fn is_padding(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Nop
        || instruction.code() == Code::Int3
        || instruction.code() == Code::Nopw
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
