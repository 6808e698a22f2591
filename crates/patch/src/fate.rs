//! What becomes of the value that a register has somewhere: whether it is read before it is written.
//!
//! *Costs*: a look at every path from there on, within a bound: what takes longer counts as read.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind,
    Register,
};
use lockstep_binary::Image;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::Traits;
use crate::part::has_near_branch;
use crate::survey::Survey;

/// Most events that are looked at from one place.
pub(crate) const MOST_STEPS: usize = 2048;

/// The registers that are followed, and their bits in [`Traits::mentions`].
pub(crate) const REGISTERS: [(Register, u8); 2] =
    [(Register::R10, Traits::R10), (Register::R11, Traits::R11)];

/// An instruction that matters to whoever follows r10 or r11: it has one as an operand, or execution may go elsewhere. The one
/// decode of an image leaves these behind, so that nothing is decoded again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    /// Where a direct branch leads.
    target: u64,
    /// From the start of its range.
    at: u32,
    length: u8,
    /// Of [`REGISTERS`], those that it reads, and those that it writes and does not read.
    reads: u8,
    writes: u8,
    goes: Goes,
}

/// Where execution goes from an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    /// Into a function.
    Call,
    /// Into the kernel.
    System,
    /// It jumps to `target`.
    Jump,
    /// It jumps there or goes on.
    Either,
    /// Through a slot.
    Out,
    /// To where the value does not matter.
    End,
    Unknown,
}

impl Event {
    /// What `instruction`, in a range that begins at `start`, means; `mentions` are bits of [`REGISTERS`].
    pub(crate) fn of(
        factory: &mut InstructionInfoFactory,
        instruction: &Instruction,
        start: u64,
        mentions: u8,
    ) -> Option<Self> {
        let is_near = has_near_branch(instruction);
        let goes = match instruction.flow_control() {
            _ if instruction.is_invalid() => Goes::Unknown,
            FlowControl::Next if mentions == 0 => return None,
            FlowControl::Next => Goes::On,
            FlowControl::Call if is_near => Goes::Call,
            FlowControl::Call => Goes::System,
            FlowControl::UnconditionalBranch if is_near => Goes::Jump,
            FlowControl::ConditionalBranch if is_near => Goes::Either,
            FlowControl::IndirectBranch if instruction.is_ip_rel_memory_operand() => Goes::Out,
            FlowControl::IndirectCall
            | FlowControl::Return
            | FlowControl::Interrupt
            | FlowControl::Exception => Goes::End,
            _ => Goes::Unknown,
        };
        let (mut reads, mut writes) = (0, 0);
        for (register, bit) in REGISTERS.into_iter().filter(|it| it.1 & mentions != 0) {
            match use_of(factory, instruction, register) {
                Use::None => {}
                Use::Read => reads |= bit,
                Use::Written => writes |= bit,
            }
        }
        Some(Self {
            target: if is_near {
                instruction.near_branch_target()
            } else {
                0
            },
            at: (instruction.ip() - start) as u32,
            length: instruction.len() as u8,
            reads,
            writes,
            goes,
        })
    }

    fn end(&self) -> u32 {
        self.at.saturating_add(u32::from(self.length))
    }
}

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
    /// Ranges, each as the entry's range of the function it belongs to.
    node: &'s [u32],
    /// The function and the register that were followed last, and places from where on the value is not read.
    last: (u32, u8),
    unread: FxHashSet<u64>,
    /// Whether anybody asks which functions are reached.
    tells_reached: bool,
    /// Events of parts that mention no register themselves.
    parts: FxHashMap<usize, Vec<Event>>,
}

impl<'s, 'i, 'a> Search<'s, 'i, 'a> {
    pub(crate) fn new(image: &'i Image<'a>, survey: &'s Survey<'a>, node: &'s [u32]) -> Self {
        Self {
            image,
            survey,
            node,
            last: (u32::MAX, 0),
            unread: FxHashSet::default(),
            tells_reached: false,
            parts: FxHashMap::default(),
        }
    }

    /// Whether the register's value from `start` on may be read before another is written. Many calls of a function
    /// have most of their paths in common: what is known of one path serves the next.
    pub(crate) fn is_read(
        &mut self,
        node: u32,
        start: u64,
        register: u8,
        steps: &mut usize,
    ) -> bool {
        if self.last != (node, register) {
            self.last = (node, register);
            self.unread.clear();
        }
        self.tells_reached = false;
        let mut fate = Fate::default();
        let mut seen = Vec::new();
        let mut open = vec![start];
        while let Some(at) = open.pop().filter(|_| !fate.is_read) {
            if self.unread.insert(at) {
                seen.push(at);
                self.straight(node, at, register, steps, &mut open, &mut fate);
            }
        }
        if fate.is_read {
            seen.iter().for_each(|at| _ = self.unread.remove(at));
        }
        fate.is_read
    }

    /// What becomes of the register's value from `start` on, in the function whose node is `node`.
    pub(crate) fn follow(
        &mut self,
        node: u32,
        start: u64,
        register: u8,
        steps: &mut usize,
    ) -> Fate {
        self.tells_reached = true;
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
        register: u8,
        steps: &mut usize,
        open: &mut Vec<u64>,
        fate: &mut Fate,
    ) {
        let range = self.survey.range_of(start);
        let Some(range) = range.filter(|at| self.node[*at] == node) else {
            // Behind the end of what is known.
            fate.is_read = true;
            return;
        };
        let whole = self.survey.ranges[range];
        let offset = (start - whole.address) as u32;
        let (survey, nodes, tells_reached) = (self.survey, self.node, self.tells_reached);
        let events = match survey.bodies[range].traits.mentions {
            0 => self.events_of_part(range),
            _ => survey.events_of(range),
        };
        let first = events.partition_point(|event| event.end() <= offset);
        for event in &events[first..] {
            // Where a branch leads into the midst of an instruction, another one stands.
            let is_inside = event.at < offset;
            if *steps == 0 || is_inside || event.reads & register != 0 {
                fate.is_read = true;
                return;
            }
            *steps -= 1;
            if event.writes & register != 0 {
                return;
            }
            let to = || survey.range_of(event.target).map(|at| nodes[at]);
            let is_stub = || survey.plt.contains_key(&event.target);
            match event.goes {
                Goes::On => {}
                // The callee may keep it: then it is there behind the call, too.
                Goes::Call if !is_stub() => {
                    if tells_reached {
                        fate.reaches.extend(to());
                    }
                }
                Goes::Call => return,
                // The kernel takes an argument in r10, and changes r11.
                Goes::System => {
                    fate.is_read = register == Traits::R10;
                    return;
                }
                Goes::Jump | Goes::Either => {
                    let is_inside = (whole.address..whole.end()).contains(&event.target);
                    match if is_inside { Some(node) } else { to() } {
                        Some(to) if to == node => open.push(event.target),
                        Some(to) if !is_stub() => fate.reaches.push(to),
                        _ => fate.is_handed_out = true,
                    }
                    if event.goes == Goes::Jump {
                        return;
                    }
                }
                Goes::Out => {
                    fate.is_handed_out = true;
                    return;
                }
                Goes::End => return,
                Goes::Unknown => {
                    fate.is_read = true;
                    return;
                }
            }
        }
        open.push(whole.end());
    }

    /// The events of a range that mentions no register, and of which none were kept.
    fn events_of_part(&mut self, range: usize) -> &[Event] {
        let (survey, image) = (self.survey, self.image);
        self.parts.entry(range).or_insert_with(|| {
            let whole = survey.ranges[range];
            let bytes = image.bytes_at(whole.address, whole.size);
            let (bytes, start) = (bytes.unwrap_or_default(), whole.address);
            let mut factory = InstructionInfoFactory::new();
            let instructions = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).into_iter();
            let events =
                instructions.filter_map(|it| Event::of(&mut factory, &it, start, mentioned(&it)));
            events.collect()
        })
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

/// Which of [`REGISTERS`] are operands, or parts of one.
pub(crate) fn mentioned(instruction: &Instruction) -> u8 {
    let parts = [
        instruction.op0_register(),
        instruction.op1_register(),
        instruction.op2_register(),
        instruction.op3_register(),
        instruction.memory_base(),
        instruction.memory_index(),
    ];
    parts.into_iter().fold(0, |found, part| {
        found
            | match part.full_register() {
                Register::R10 => Traits::R10,
                Register::R11 => Traits::R11,
                _ => 0,
            }
    })
}

/// Whether the register, or part of it, is an operand or part of one.
fn mentions(instruction: &Instruction, register: Register) -> bool {
    (0..instruction.op_count()).any(|operand| match instruction.op_kind(operand) {
        OpKind::Register => instruction.op_register(operand).full_register() == register,
        OpKind::Memory => {
            let parts = [instruction.memory_base(), instruction.memory_index()];
            parts.iter().any(|part| part.full_register() == register)
        }
        _ => false,
    })
}
