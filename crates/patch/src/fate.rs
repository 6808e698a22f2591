//! What becomes of the value that a register has somewhere: whether it is read before it is written.
//!
//! *Costs*: as many looks at each function that mentions a register as its loops stand one within the other, and few more.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind,
    Register,
};
use lockstep_binary::Image;

use crate::domain::Domain;
use crate::flow::Traits;
use crate::part::has_near_branch;
use crate::quick::{Turn, Way};
use crate::survey::Survey;

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
    /// Into a function that nothing is known of.
    CallOut,
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
            FlowControl::IndirectCall => Goes::CallOut,
            FlowControl::Return | FlowControl::Interrupt | FlowControl::Exception => Goes::End,
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

    /// Of an instruction, at this offset, that goes on behind itself.
    pub(crate) fn of_plain(at: u32, length: u8, (reads, writes): (u8, u8)) -> Self {
        Self {
            target: 0,
            at,
            length,
            reads,
            writes,
            goes: Goes::On,
        }
    }

    /// Of a branch or a return at this offset.
    pub(crate) fn of_turn(at: u32, turn: &Turn) -> Self {
        Self {
            target: turn.target,
            at,
            length: turn.length,
            reads: 0,
            writes: 0,
            goes: match turn.way {
                Way::Call => Goes::Call,
                Way::Jump => Goes::Jump,
                Way::Conditional => Goes::Either,
                Way::Return => Goes::End,
            },
        }
    }

    fn end(&self) -> u32 {
        self.at.saturating_add(u32::from(self.length))
    }
}

/// What was found out about some functions, which are told by their nodes: the ranges of their entries. Registers are bits
/// of [`REGISTERS`].
#[derive(Debug, Default)]
pub(crate) struct Fates {
    pub of: Vec<Fate>,
    /// Functions behind whose calls registers are read.
    pub kept: Vec<(u32, u8)>,
    /// Addresses behind calls, whatever is called, where registers are read.
    pub read_behind: Vec<(u64, u8)>,
    /// Functions that are called or jumped to while registers still hold what they held at the entry of another: callee, that
    /// other, registers.
    pub reached: Vec<(u32, u32, u8)>,
}

/// What becomes of the values that a function finds in the registers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fate {
    pub node: u32,
    /// They are read, or may be.
    pub read: u8,
    /// They are there where a jump leads to what is not known, which may take them.
    pub handed_out: u8,
}

/// Follows values through functions.
///
/// From the last event to the first one, each is told what its register's value is good for from there on: whether it is
/// read ([`READ`]) or handed out ([`HANDED_OUT`]) before another is written. Where branches lead back, this is repeated until
/// nothing changes.
#[derive(Clone)]
pub(crate) struct Search<'s, 'i, 'a> {
    image: &'i Image<'a>,
    survey: &'s Survey<'a>,
    domain: &'s Domain<'a>,
    /// Ranges, each as the entry's range of the function it belongs to.
    node: &'s [u32],
    /// The function that is looked at: its ranges and their events.
    pieces: Vec<Piece>,
    events: Vec<Event>,
    /// Of each event: where its branch leads.
    to: Vec<Place>,
    /// Of each event: what the values are good for before it.
    good_for: Vec<u8>,
    /// Of each event: registers that hold there what they held at the entry.
    untouched: Vec<u8>,
}

/// A range of the function that is looked at.
#[derive(Clone)]
struct Piece {
    range: usize,
    /// Its events.
    first: u32,
    end: u32,
    /// Where execution goes behind its end.
    behind: Place,
}

/// Where execution goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At this event, or with nothing of interest before it.
    Event(u32),
    /// Where nothing is known: values count as read.
    Unknown,
    /// In what is not looked at, and may take them.
    Out,
    /// In another function.
    Other,
    /// In a stub that leads into a library.
    Stub,
}

/// Bits of what values are good for: of each register.
const READ: u8 = Traits::R10 | Traits::R11;
const SHIFT: u32 = 2;
const HANDED_OUT: u8 = READ << SHIFT;
/// Repetitions after which values of a function count as good for everything.
const MOST_TIMES: usize = 64;

impl<'s, 'i, 'a> Search<'s, 'i, 'a> {
    pub(crate) fn new(
        image: &'i Image<'a>,
        survey: &'s Survey<'a>,
        domain: &'s Domain<'a>,
        node: &'s [u32],
    ) -> Self {
        Self {
            image,
            survey,
            domain,
            node,
            pieces: Vec::new(),
            events: Vec::new(),
            to: Vec::new(),
            good_for: Vec::new(),
            untouched: Vec::new(),
        }
    }

    /// Finds out about the function with this node, which `mentions` these registers.
    pub(crate) fn look_at(&mut self, node: u32, mentions: u8, found: &mut Fates) {
        self.gather(node);
        self.find_uses();
        let start = self.survey.ranges[node as usize].address;
        let entry = self.place_of(start);
        let good_for = self.use_at(entry);
        let read = good_for & mentions;
        found.of.push(Fate {
            node,
            read,
            handed_out: good_for >> SHIFT & mentions & !read,
        });
        self.add_calls(mentions, found);
        self.add_reached((node, entry), mentions & !read, found);
    }

    /// The function's events, and where its branches lead.
    fn gather(&mut self, node: u32) {
        self.pieces.clear();
        self.events.clear();
        self.to.clear();
        let survey = self.survey;
        let owner = self.domain.owner[node as usize];
        let ranges = owner.map(|owner| self.domain.ranges_of(owner));
        let alone = owner.is_none().then_some(node as usize);
        for range in ranges.into_iter().flatten().chain(alone) {
            let first = self.events.len() as u32;
            match survey.bodies[range].traits.mentions {
                0 => self.decode(range),
                _ => self.events.extend_from_slice(survey.events_of(range)),
            }
            self.pieces.push(Piece {
                range,
                first,
                end: self.events.len() as u32,
                behind: Place::Unknown,
            });
        }
        // Behind the end of what is known a value counts as read.
        for at in (0..self.pieces.len()).rev() {
            let end = survey.ranges[self.pieces[at].range].end();
            let next = survey.range_of(end);
            if next.is_some_and(|next| self.node[next] == node) {
                self.pieces[at].behind = self.place_of(end);
            }
        }
        for at in 0..self.pieces.len() {
            let Piece {
                range, first, end, ..
            } = self.pieces[at];
            for index in first..end {
                let to = self.leads_to(node, range, &self.events[index as usize]);
                self.to.push(to);
            }
        }
    }

    /// Where an event's branch leads.
    fn leads_to(&self, node: u32, range: usize, event: &Event) -> Place {
        let survey = self.survey;
        let is_stub = || survey.is_stub(event.target);
        match event.goes {
            Goes::Call if is_stub() => Place::Stub,
            Goes::Jump | Goes::Either => {
                let whole = &survey.ranges[range];
                if (whole.address..whole.end()).contains(&event.target) {
                    return self.place_of(event.target);
                }
                match survey.range_of(event.target) {
                    Some(range) if self.node[range] == node => self.place_of(event.target),
                    Some(_) if !is_stub() => Place::Other,
                    _ => Place::Out,
                }
            }
            _ => Place::Other,
        }
    }

    /// The place of an address in the function.
    fn place_of(&self, address: u64) -> Place {
        let ranges = &self.survey.ranges;
        let is_before = |piece: &Piece| ranges[piece.range].address <= address;
        let after = self.pieces.partition_point(is_before);
        let Some(piece) = after.checked_sub(1).map(|at| &self.pieces[at]) else {
            return Place::Unknown;
        };
        let offset = (address - ranges[piece.range].address) as u32;
        let events = &self.events[piece.first as usize..piece.end as usize];
        let index = events.partition_point(|event| event.end() <= offset);
        match events.get(index) {
            // Where a branch leads into the midst of an instruction, another one stands.
            Some(event) if event.at < offset => Place::Unknown,
            Some(_) => Place::Event(piece.first + index as u32),
            None => piece.behind,
        }
    }

    /// What values are good for at a place.
    fn use_at(&self, place: Place) -> u8 {
        match place {
            Place::Event(index) => self.good_for[index as usize],
            Place::Unknown => READ,
            Place::Out => HANDED_OUT,
            Place::Other | Place::Stub => 0,
        }
    }

    /// Finds out what values are good for before each event.
    fn find_uses(&mut self) {
        self.good_for.clear();
        self.good_for.resize(self.events.len(), 0);
        for _ in 0..MOST_TIMES {
            if !self.look_back() {
                return;
            }
        }
        self.good_for.fill(READ | HANDED_OUT);
    }

    /// Once from the last event to the first one; whether it must be done again.
    fn look_back(&mut self) -> bool {
        let mut is_changed = false;
        for piece in self.pieces.iter().rev() {
            let mut behind = self.use_at(piece.behind);
            for index in (piece.first as usize..piece.end as usize).rev() {
                let (event, to) = (self.events[index], self.to[index]);
                let good_for = match event.goes {
                    Goes::On => behind,
                    // The callee may keep it: then it is there behind the call, too.
                    Goes::Call if to == Place::Stub => 0,
                    Goes::Call => behind,
                    // The kernel takes an argument in r10, and changes r11.
                    Goes::System => Traits::R10,
                    Goes::Jump => self.use_at(to),
                    Goes::Either => self.use_at(to) | behind,
                    Goes::Out => HANDED_OUT,
                    Goes::CallOut | Goes::End => 0,
                    Goes::Unknown => READ,
                };
                let touched = event.reads | event.writes;
                behind = event.reads | good_for & !(touched | touched << SHIFT);
                let known = &mut self.good_for[index];
                // Only who leads back to here may have been told something else.
                is_changed |= *known != behind;
                *known = behind;
            }
        }
        is_changed && self.leads_back()
    }

    /// Whether a branch leads to an event that stands before it.
    fn leads_back(&self) -> bool {
        let mut places = self.to.iter().enumerate();
        places.any(|(from, to)| matches!(to, Place::Event(index) if *index as usize <= from))
    }

    /// Adds the calls behind which a register's value is read.
    fn add_calls(&self, mentions: u8, found: &mut Fates) {
        for piece in &self.pieces {
            for index in piece.first..piece.end {
                let event = self.events[index as usize];
                if !matches!(event.goes, Goes::Call | Goes::CallOut) {
                    continue;
                }
                let read = self.use_at(self.next(piece, index)) & mentions;
                if read == 0 {
                    continue;
                }
                let start = self.survey.ranges[piece.range].address;
                let behind = start + u64::from(event.end());
                found.read_behind.push((behind, read));
                if event.goes == Goes::Call && self.to[index as usize] != Place::Stub {
                    let callee = self.node_of(event.target);
                    found.kept.extend(callee.map(|callee| (callee, read)));
                }
            }
        }
    }

    fn node_of(&self, address: u64) -> Option<u32> {
        self.survey.range_of(address).map(|range| self.node[range])
    }

    /// Where execution goes behind an event of a piece.
    fn next(&self, piece: &Piece, index: u32) -> Place {
        if index + 1 < piece.end {
            Place::Event(index + 1)
        } else {
            piece.behind
        }
    }

    /// Adds the functions that the values of these registers reach untouched.
    fn add_reached(&mut self, (node, entry): (u32, Place), registers: u8, found: &mut Fates) {
        self.untouched.clear();
        self.untouched.resize(self.events.len(), 0);
        let mut open = vec![(entry, registers)];
        while let Some((mut place, mut registers)) = open.pop() {
            while let Place::Event(index) = place {
                let event = self.events[index as usize];
                let known = &mut self.untouched[index as usize];
                registers &= !*known;
                *known |= registers;
                registers &= !event.writes;
                if registers == 0 {
                    break;
                }
                let to = self.to[index as usize];
                let is_branch = matches!(event.goes, Goes::Jump | Goes::Either);
                let is_call = event.goes == Goes::Call && to != Place::Stub;
                if to == Place::Other && (is_branch || is_call) {
                    let callee = self.node_of(event.target);
                    let reached = callee.map(|callee| (callee, node, registers));
                    found.reached.extend(reached);
                } else if is_branch {
                    open.push((to, registers));
                }
                if !(is_call || matches!(event.goes, Goes::On | Goes::Either)) {
                    break;
                }
                let after = self.pieces.partition_point(|piece| piece.first <= index);
                place = self.next(&self.pieces[after - 1], index);
            }
        }
    }

    /// Adds the events of a range that mentions no register, and of which none were kept.
    fn decode(&mut self, range: usize) {
        let whole = self.survey.ranges[range];
        let bytes = self.image.bytes_at(whole.address, whole.size);
        let (bytes, start) = (bytes.unwrap_or_default(), whole.address);
        let mut factory = InstructionInfoFactory::new();
        let instructions = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).into_iter();
        let events =
            instructions.filter_map(|it| Event::of(&mut factory, &it, start, mentioned(&it)));
        self.events.extend(events);
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
