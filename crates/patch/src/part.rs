//! The decode of some of the ranges, in the order of their addresses.

use std::ops::Range;

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpKind,
    Register,
};
use lockstep_binary::{CodeRange, Image, Kind, RangeKind};
use rustc_hash::FxHashMap;

use crate::fate::{Event, mentioned};
use crate::flow::{FlagUse, Flow, Leaving, WayOut};
use crate::quick::{Address, Plain, Quick, Turn, Way, read};
use crate::sensitive::Walk;
use crate::slots::slot_use;
use crate::sorted::Sorted;
use crate::survey::{Body, Branch, BranchKind, SlotUse};
use crate::tables::{Mentions, may_be_table};

/// Rows of ranges, those of one behind those of the other.
#[derive(Debug)]
pub(crate) struct ByRange<T> {
    pub rows: Vec<T>,
    /// Where those of each range end.
    ends: Vec<u32>,
}

impl<T> ByRange<T> {
    const NONE: Self = Self {
        rows: Vec::new(),
        ends: Vec::new(),
    };

    /// The rows of the range with this number.
    pub(crate) fn of(&self, index: usize) -> &[T] {
        let first = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[first as usize..self.ends[index] as usize]
    }

    /// The rows of the range that is decoded.
    fn of_last(&mut self) -> &mut [T] {
        let first = self.ends.last().copied().unwrap_or(0);
        &mut self.rows[first as usize..]
    }

    fn end_range(&mut self) {
        self.ends.push(self.rows.len() as u32);
    }
}

/// A direct jump inside its range: most branches are. Addresses are told from the range's start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inner {
    pub target: u32,
    pub from: u32,
    length: u8,
    field: u8,
    kind: BranchKind,
}

impl Inner {
    /// The branch in the range with this start and number.
    pub(crate) fn branch(&self, start: u64, range: u32) -> Branch {
        Branch {
            from: start + u64::from(self.from),
            target: start + u64::from(self.target),
            range,
            length: self.length,
            field: self.field,
            kind: self.kind,
        }
    }
}

/// What was found in some ranges, and is asked for by range or in the order of places.
#[derive(Debug)]
pub(crate) struct Found {
    /// By place: direct branches that call, or leave their range.
    pub branches: Vec<Branch>,
    /// The others, by target and place.
    pub inner: ByRange<Inner>,
    /// Calls that are not direct, by place: (address behind, range).
    pub indirect_calls: Vec<(u64, u32)>,
    /// Where execution may leave a function, by place.
    pub ways_out: ByRange<WayOut>,
    /// Of these, jumps through words of memory.
    pub slot_jumps: Vec<u32>,
    /// What matters to r10 and r11, of ranges that mention them.
    pub events: ByRange<Event>,
}

/// What else was found, and is put together for the whole image.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    pub bodies: Vec<Body>,
    pub slot_uses: Vec<SlotUse>,
    pub takers: Vec<(u64, u32)>,
    pub labels: Vec<u64>,
    /// Addresses that may be jump tables, and the range whose computed jumps may use them.
    pub tables: Vec<(u64, u32)>,
    pub flag_uses: Vec<FlagUse>,
    /// Ranges that change a register of arguments if nothing else leads to these addresses.
    pub changes_behind: Vec<(usize, Vec<u64>)>,
}

impl Joined {
    /// Takes what stands behind this.
    pub(crate) fn take(&mut self, more: Self) {
        self.bodies.extend(more.bodies);
        self.slot_uses.extend(more.slot_uses);
        self.takers.extend(more.takers);
        self.labels.extend(more.labels);
        self.tables.extend(more.tables);
        self.flag_uses.extend(more.flag_uses);
        self.changes_behind.extend(more.changes_behind);
    }
}

/// From the first start to the last end.
fn extent(spans: impl Iterator<Item = (u64, u64)> + Clone) -> Range<u64> {
    let start = spans.clone().map(|span| span.0).min();
    start.unwrap_or(0)..spans.map(|span| span.1).max().unwrap_or(0)
}

/// Decodes ranges.
pub(crate) struct Part<'s, 'a> {
    image: &'s Image<'a>,
    ranges: &'s Sorted<CodeRange<'a>>,
    slots: &'s FxHashMap<u64, u32>,
    is_library: bool,
    is_fixed: bool,
    /// Where all code lies, and all slots.
    code: Range<u64>,
    slot_extent: Range<u64>,
    mentions: &'s Mentions,
    /// Those in data of the range that is decoded.
    mentioned: Vec<u64>,
    found: Found,
    joined: Joined,
    /// The range that is decoded, and of a library also where its stack is.
    flow: Flow<'a>,
    walk: Option<Walk<'a>>,
    computes_jumps: bool,
    factory: InstructionInfoFactory,
}

impl<'s, 'a> Part<'s, 'a> {
    pub(crate) fn new(
        image: &'s Image<'a>,
        ranges: &'s Sorted<CodeRange<'a>>,
        slots: &'s FxHashMap<u64, u32>,
        mentions: &'s Mentions,
        is_library: bool,
    ) -> Self {
        let code = image.segments().iter().filter(|it| it.executable);
        let code = code.map(|it| (it.address, it.address + it.size));
        let slot = slots.keys().map(|slot| (*slot, slot.saturating_add(1)));
        Self {
            image,
            ranges,
            slots,
            is_library,
            is_fixed: image.kind() == Kind::Fixed,
            code: extent(code),
            slot_extent: extent(slot),
            mentions,
            mentioned: Vec::new(),
            found: Found {
                branches: Vec::new(),
                inner: ByRange::NONE,
                indirect_calls: Vec::new(),
                ways_out: ByRange::NONE,
                slot_jumps: Vec::new(),
                events: ByRange::NONE,
            },
            joined: Joined::default(),
            flow: Flow::new(),
            walk: None,
            computes_jumps: false,
            factory: InstructionInfoFactory::new(),
        }
    }

    /// All that was found.
    pub(crate) fn end(self) -> (Found, Joined) {
        (self.found, self.joined)
    }

    /// Decodes the next range.
    pub(crate) fn decode_range(&mut self, index: usize) {
        self.joined.bodies.push(Body::default());
        if self.ranges[index].kind != RangeKind::Plt {
            self.decode(index);
        }
        let found = &mut self.found;
        let inner = found.inner.of_last();
        inner.sort_unstable_by_key(|it| (it.target, it.from));
        found.inner.end_range();
        found.ways_out.end_range();
        found.events.end_range();
    }

    /// What is known of the range that is decoded.
    fn body(&mut self) -> &mut Body {
        let last = self.joined.bodies.len() - 1;
        &mut self.joined.bodies[last]
    }

    fn decode(&mut self, index: usize) {
        let range = self.ranges[index];
        let bytes = self.image.bytes_at(range.address, range.size);
        let (start, bytes) = (range.address, bytes.unwrap_or_default());
        let more = self.image.bytes_from(start).unwrap_or_default();
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        self.flow.begin(bytes, start, index as u32);
        self.mentioned.clear();
        self.walk = self.is_library.then(|| Walk::new(more, start));
        self.computes_jumps = false;
        let first_event = self.found.events.rows.len();
        let mut at = 0;
        while at < bytes.len() {
            let window = more[at..].first_chunk();
            let quick = window.and_then(|it| read(it, start + at as u64, self.flow.is_live()));
            let end = match &quick {
                Some(Quick::Plain(plain)) if self.take_plain(at as u32, plain) => plain.length(),
                Some(Quick::Branch(turn)) if self.take_turn(at as u32, turn) => {
                    usize::from(turn.length)
                }
                _ => 0,
            };
            if end > 0 {
                at += end;
                continue;
            }
            // In the range, so that it cannot fail.
            let _ = decoder.set_position(at);
            decoder.set_ip(start + at as u64);
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                self.body().undecodable = Some(instruction.ip());
                let event = Event::of(&mut self.factory, &instruction, start, 0);
                self.found.events.rows.extend(event);
                break;
            }
            self.take(&decoder, &instruction, index as u32);
            at += instruction.len();
        }
        self.end_range(index, start + at as u64, first_event);
    }

    fn end_range(&mut self, index: usize, end: u64, first_event: usize) {
        let (image, flow) = (self.image, &mut self.flow);
        let traits = flow.end();
        let behind = flow.changes_behind.drain(..);
        let behind = behind.map(|behind| (index, behind));
        self.joined.changes_behind.extend(behind);
        if traits.mentions == 0 {
            self.found.events.rows.truncate(first_event);
        }
        let walk = self.walk.take();
        self.body().traits = traits;
        self.body().sensitive = walk.and_then(|walk| walk.end(end, self.ranges[index].end()));
        if self.computes_jumps {
            let tables = self.mentioned.iter();
            let tables = tables.filter(|table| may_be_table(image, **table));
            let tables = tables.map(|table| (*table, index as u32));
            self.joined.tables.extend(tables);
        }
    }

    /// Takes a common instruction at an offset; false where it must be decoded as a whole.
    #[inline(always)]
    fn take_plain(&mut self, offset: u32, plain: &Plain<'_>) -> bool {
        let flow = &mut self.flow;
        let address = plain.address(flow.address_of(offset));
        let is_slot = |address: u64| self.slot_extent.contains(&address);
        let is_special = match address {
            Some(Address::Used(address) | Address::Taken(address)) => is_slot(address),
            None => false,
        };
        let is_code = |value: u64| self.code.contains(&value);
        if is_special
            || self.is_fixed && plain.immediate().is_some_and(is_code)
            || !flow.holds(offset, plain.length())
        {
            return false;
        }
        let Some((reads, writes)) = plain.scratch() else {
            return false;
        };
        if let Some(walk) = &mut self.walk
            && !walk.take_plain(plain.stack())
        {
            return false;
        }
        flow.take_plain(offset, plain, reads | writes);
        if let Some(Address::Taken(address)) = address {
            self.take_lea(address);
        }
        if reads | writes != 0 {
            let event = Event::of_plain(offset, plain.length() as u8, (reads, writes));
            self.found.events.rows.push(event);
        }
        true
    }

    #[inline(always)]
    fn take_turn(&mut self, offset: u32, turn: &Turn) -> bool {
        if !self.flow.holds(offset, usize::from(turn.length)) {
            return false;
        }
        if let Some(walk) = &mut self.walk {
            walk.take_turn(turn.way);
        }
        let way_out = self.flow.take_turn(offset, turn);
        self.add_way_out(way_out);
        let event = Event::of_turn(offset, turn);
        self.found.events.rows.push(event);
        let kind = match turn.way {
            Way::Call => BranchKind::Call,
            Way::Jump => BranchKind::Jump,
            Way::Conditional => BranchKind::Conditional,
            Way::Return => return true,
        };
        self.add_branch(Branch {
            from: turn.at,
            target: turn.target,
            range: self.flow.range(),
            length: turn.length,
            field: turn.field,
            kind,
        });
        true
    }

    /// Takes an instruction.
    fn take(&mut self, decoder: &Decoder<'_>, instruction: &Instruction, index: u32) {
        if let Some(walk) = &mut self.walk {
            walk.take(instruction);
        }
        self.take_addresses(instruction);
        let mentions = mentioned(instruction);
        let offsets = |taken: &Instruction| decoder.get_constant_offsets(taken);
        let (way_out, flag_use) = self.flow.take(instruction, mentions, offsets);
        self.add_way_out(way_out);
        self.joined.flag_uses.extend(flag_use);
        let start = self.ranges[index as usize].address;
        let event = Event::of(&mut self.factory, instruction, start, mentions);
        self.found.events.rows.extend(event);
        match instruction.flow_control() {
            FlowControl::IndirectBranch => {
                self.computes_jumps |= !instruction.is_ip_rel_memory_operand();
            }
            FlowControl::IndirectCall => {
                let behind = instruction.next_ip();
                self.found.indirect_calls.push((behind, index));
            }
            FlowControl::Next => {}
            _ => self.take_branch(decoder, instruction, index),
        }
        let slot_use = slot_use(decoder, instruction, self.slots);
        self.joined.slot_uses.extend(slot_use);
    }

    fn add_way_out(&mut self, way_out: Option<WayOut>) {
        let Some(way) = way_out else { return };
        let ways = &mut self.found.ways_out.rows;
        if matches!(way.leaving, Leaving::Slot { .. }) {
            self.found.slot_jumps.push(ways.len() as u32);
        }
        ways.push(way);
        self.body().leaves = true;
    }

    fn take_branch(&mut self, decoder: &Decoder<'_>, instruction: &Instruction, index: u32) {
        if !has_near_branch(instruction) {
            return;
        }
        let kind = match instruction.flow_control() {
            FlowControl::Call => BranchKind::Call,
            FlowControl::UnconditionalBranch => BranchKind::Jump,
            // Conditional jumps, loop, jcxz, and xbegin with its abort target.
            _ => BranchKind::Conditional,
        };
        let offsets = decoder.get_constant_offsets(instruction);
        let is_wide = offsets.immediate_size() == 4;
        self.add_branch(Branch {
            from: instruction.ip(),
            target: instruction.near_branch_target(),
            range: index,
            length: instruction.len() as u8,
            field: if is_wide {
                offsets.immediate_offset() as u8
            } else {
                0
            },
            kind,
        });
    }

    fn add_branch(&mut self, branch: Branch) {
        let range = &self.ranges[branch.range as usize];
        let is_inside = (range.address..range.end()).contains(&branch.target);
        if branch.kind == BranchKind::Call || !is_inside {
            self.found.branches.push(branch);
            return;
        }
        self.found.inner.rows.push(Inner {
            target: (branch.target - range.address) as u32,
            from: (branch.from - range.address) as u32,
            length: branch.length,
            field: branch.field,
            kind: branch.kind,
        });
    }

    /// Addresses that the instruction mentions without branching there: of functions, and of what
    /// may be a jump table.
    fn take_addresses(&mut self, instruction: &Instruction) {
        let image = self.image;
        if instruction.is_ip_rel_memory_operand() {
            let address = instruction.ip_rel_memory_address();
            if instruction.code() == Code::Lea_r64_m {
                self.take_lea(address);
            }
        } else if instruction.op_count() > 0
            && !has_near_branch(instruction)
            && instruction.memory_base() == Register::None
            && instruction.memory_displacement64() > 4096
        {
            self.mention(instruction.memory_displacement64());
        }
        if self.is_fixed {
            for operand in 0..instruction.op_count() {
                let kind = instruction.op_kind(operand);
                if matches!(
                    kind,
                    OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64
                ) {
                    let address = instruction.immediate(operand);
                    if image.is_code(address) {
                        self.take_address(address);
                    }
                }
            }
        }
    }

    fn take_lea(&mut self, address: u64) {
        if self.code.contains(&address) && self.image.is_code(address) {
            self.take_address(address);
        } else {
            self.mention(address);
        }
    }

    fn mention(&mut self, address: u64) {
        self.mentions.add(address);
        self.mentioned.push(address);
    }

    fn take_address(&mut self, address: u64) {
        if self.ranges.at(address).is_some() {
            self.joined.takers.push((address, self.flow.range()));
        } else {
            self.joined.labels.push(address);
        }
    }
}

pub(crate) fn has_near_branch(instruction: &Instruction) -> bool {
    instruction.op_count() > 0
        && matches!(
            instruction.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        )
}
