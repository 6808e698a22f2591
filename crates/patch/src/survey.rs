//! One linear decode of everything that has a frame description: who branches where, which slots
//! are called, read or passed on, and what a computed jump can reach.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpKind,
    Register,
};
use lockstep_binary::{CodeRange, Image, Kind, RangeKind};
use lockstep_format::bytes::{u32_at, u64_at};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::fate::Event;
use crate::flow::{Computed, FlagUse, Flow, Leaving, Traits, WayOut, is_padding};
use crate::parallel;
use crate::sensitive::{Sensitive, Walk};
use crate::sorted::Sorted;

/// How a direct branch goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BranchKind {
    Call,
    Jump,
    Conditional,
    /// A row of a jump table; `from` is the table.
    Table,
}

/// A direct branch, or a row of a jump table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Branch {
    pub from: u64,
    pub target: u64,
    pub range: u32,
    pub length: u8,
    /// Offset of the 32-bit displacement in the instruction; 0 for an 8-bit one.
    pub field: u8,
    pub kind: BranchKind,
}

/// What an instruction does with an import's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotUseKind {
    Call,
    Jump,
    /// `mov slot(%rip), register`
    Load(Register),
    Other,
}

/// An instruction that reads an import's slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotUse {
    pub address: u64,
    pub slot: u64,
    pub length: u8,
    /// Offset of the displacement in the instruction; 0 where it is not relative to rip.
    pub field: u8,
    pub kind: SlotUseKind,
    /// It stands in a section of stubs: whatever it does, calls go this way.
    pub is_in_plt: bool,
}

/// What is known of one range's bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Body {
    /// First address that is no instruction.
    pub undecodable: Option<u64>,
    /// It returns or jumps away somewhere.
    pub leaves: bool,
    pub traits: Traits,
    /// Of a library: why it is left alone.
    pub sensitive: Option<Sensitive>,
}

/// The whole image, decoded.
pub(crate) struct Survey<'a> {
    pub ranges: Sorted<CodeRange<'a>>,
    pub bodies: Vec<Body>,
    /// By target.
    pub branches: Sorted<Branch>,
    /// Calls that are not direct, by address: (address behind, range).
    pub indirect_calls: Vec<(u64, u32)>,
    /// By address.
    pub slot_uses: Vec<SlotUse>,
    /// Entry of a PLT stub -> slot.
    pub plt: FxHashMap<u64, u64>,
    /// Words in data that point into code: (place, target), by place.
    pub words: Sorted<(u64, u64)>,
    /// Addresses in code that pointers in data lead to, those in jump tables excepted, sorted.
    pub pointers: Sorted<u64>,
    /// Addresses of function symbols, sorted: hand-written code may have several entries.
    pub symbols: Sorted<u64>,
    /// Those that other images can see, sorted.
    pub exported: Sorted<u64>,
    /// Starts of ranges whose address instructions take, sorted.
    pub taken: Sorted<u64>,
    /// The same with the ranges of those instructions: (start, range), sorted.
    pub takers: Vec<(u64, u32)>,
    /// Other addresses in code that instructions take, sorted: labels.
    pub labels: Sorted<u64>,
    /// Where execution may leave a function, by address.
    pub ways_out: Sorted<WayOut>,
    /// Ranges whose callers look at the flags that they leave behind.
    pub flag_users: FxHashSet<u64>,
    /// Jump tables: their address, and the range that jumps by them.
    pub tables: FxHashSet<(u64, u32)>,
    /// Ranges that jump by a table that is known.
    pub with_tables: FxHashSet<u32>,
    /// What matters to r10 and r11, of ranges that mention them.
    events: Vec<Event>,
    /// Where those of each range end.
    event_ends: Vec<u32>,
}

impl<'a> Survey<'a> {
    pub(crate) fn new(image: &Image<'a>, slots: &FxHashMap<u64, u32>, is_library: bool) -> Self {
        let ranges = Sorted::new(image.ranges());
        let parts = parallel::by_pieces(ranges.len(), |indices| {
            let mut part = Part::new(&ranges);
            part.is_library = is_library;
            let mut flow = Flow::new();
            for index in indices {
                part.bodies.push(Body::default());
                if ranges[index].kind != RangeKind::Plt {
                    part.decode_range(image, slots, index, &mut flow);
                }
                part.event_ends.push(part.events.len() as u32);
            }
            part
        });
        let mut found = Part::new(&ranges);
        let mut direct = Vec::new();
        for mut part in parts {
            direct.push(std::mem::take(&mut part.branches));
            found.take(part);
        }
        let Part {
            bodies,
            branches: mut by_table,
            indirect_calls,
            slot_uses,
            mut takers,
            labels,
            ways_out,
            tables,
            flag_uses,
            changes_behind,
            events,
            event_ends,
            ..
        } = found;
        let places = tables.read(image, &ranges, &mut by_table);
        let in_table = |place: u64| {
            let after = places.partition_point(|(start, _)| *start <= place);
            after > 0 && place < places[after - 1].1
        };
        let words = Sorted::new(image.code_pointers());
        let pointers = words.iter().filter(|(place, _)| !in_table(*place));
        let pointers = pointers.map(|(_, target)| *target).collect();
        let all = direct.iter().flatten().chain(&by_table);
        let branches = Sorted::sort(all, |branch| (branch.target, branch.from));
        let tables = || by_table.iter();
        let with_tables = tables().map(|branch| branch.range).collect();
        let tables = tables().map(|branch| (branch.from, branch.range)).collect();
        takers.sort_unstable();
        takers.dedup();
        let symbols = image.function_symbols();
        let exported = symbols.iter().filter(|symbol| symbol.is_exported);
        let mut survey = Self {
            bodies,
            branches,
            indirect_calls,
            slot_uses,
            plt: FxHashMap::default(),
            pointers: Sorted::of(pointers),
            exported: Sorted::of(exported.map(|symbol| symbol.address).collect()),
            symbols: Sorted::of(symbols.iter().map(|symbol| symbol.address).collect()),
            taken: Sorted::of(takers.iter().map(|(address, _)| *address).collect()),
            takers,
            labels: Sorted::of(labels),
            ways_out: Sorted::default(),
            flag_users: FxHashSet::default(),
            tables,
            with_tables,
            words,
            ranges,
            events,
            event_ends,
        };
        for (start, end) in image.plt_sections() {
            survey.decode_plt(image, slots, start, end);
        }
        survey.slot_uses.sort_by_key(|slot_use| slot_use.address);
        survey.ways_out = Sorted::new(survey.resolve_slots(image, slots, ways_out));
        for (range, behind) in changes_behind {
            let is_led_to = |at: &u64| !survey.branches_to(*at, at + 1).is_empty();
            if !behind.iter().any(is_led_to) {
                survey.bodies[range].traits.changes = true;
            }
        }
        // Behind a call that does not return there may be other code, led to from elsewhere.
        for (callee, behind, reader) in flag_uses {
            if survey.branches_to(behind, reader + 1).is_empty() {
                survey.flag_users.insert(callee);
            }
        }
        survey
    }

    /// Tells what jumps through words of memory mean: a library function, one of the image's own, by
    /// a word of the global offset table that is no import, or whatever a variable holds.
    fn resolve_slots(
        &self,
        image: &Image<'a>,
        slots: &FxHashMap<u64, u32>,
        mut ways_out: Vec<WayOut>,
    ) -> Vec<WayOut> {
        let constant: Vec<(u64, u64)> = image
            .loaded_sections()
            .filter(|section| section.name == b".got")
            .map(|section| {
                (
                    section.address,
                    section.address.saturating_add(section.size),
                )
            })
            .collect();
        for way in &mut ways_out {
            let Leaving::Slot { slot } = way.leaving else {
                continue;
            };
            if slots.contains_key(&slot) {
                continue;
            }
            let is_constant = constant
                .iter()
                .any(|(start, end)| (*start..*end).contains(&slot));
            let target = self.word_at(slot).filter(|_| is_constant);
            let is_other = |target: &u64| self.ranges[way.range as usize].address != *target;
            way.leaving = match target.filter(is_other) {
                Some(target) => Leaving::Jump { target },
                None => Leaving::Computed(Computed::UNKNOWN),
            };
        }
        ways_out
    }

    /// The stubs that lead into libraries. Linkers have many forms of them; each is straight code up to a jump through a slot.
    ///
    /// ```text
    ///  [endbr64]  [mov $index,%r11d]  jmp *slot(%rip)
    ///  mov slot(%rip),%r11 ; then code that jumps to what r11 holds (-z retpolineplt)
    /// ```
    fn decode_plt(&mut self, image: &Image<'a>, slots: &FxHashMap<u64, u32>, start: u64, end: u64) {
        let Some(bytes) = image.bytes_at(start, end.saturating_sub(start)) else {
            return;
        };
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        let mut straight = Vec::new();
        while decoder.can_decode() {
            let instruction = decoder.decode();
            if is_padding(&instruction) {
                straight.clear();
                continue;
            }
            straight.push(instruction.ip());
            if let Some(mut slot_use) = slot_use(&decoder, &instruction, slots) {
                if let SlotUseKind::Load(register) = slot_use.kind
                    && jumps_on(image, instruction.next_ip()) == Some(register)
                {
                    slot_use.kind = SlotUseKind::Jump;
                }
                if slot_use.kind == SlotUseKind::Jump {
                    let stub = straight.iter().map(|at| (*at, slot_use.slot));
                    self.plt.extend(stub);
                }
                slot_use.is_in_plt = true;
                self.slot_uses.push(slot_use);
            }
            if instruction.flow_control() != FlowControl::Next {
                straight.clear();
            }
        }
    }

    /// Index of the range that begins at `address`.
    pub(crate) fn range_starting_at(&self, address: u64) -> Option<usize> {
        self.ranges.at(address)
    }

    /// Whether the function that begins at `address` may be called other than by a direct branch.
    pub(crate) fn is_address_taken(&self, address: u64) -> bool {
        [&self.pointers, &self.exported, &self.taken]
            .iter()
            .any(|list| list.has(address))
    }

    /// What the word at `place` in data points to, if that is code.
    pub(crate) fn word_at(&self, place: u64) -> Option<u64> {
        self.words.at(place).map(|index| self.words[index].1)
    }

    /// Index of the range that `address` lies in.
    pub(crate) fn range_of(&self, address: u64) -> Option<usize> {
        let index = self.ranges.last_until(address)?;
        (address < self.ranges[index].end()).then_some(index)
    }

    /// The direct branches to addresses in `from..to`.
    pub(crate) fn branches_to(&self, from: u64, to: u64) -> &[Branch] {
        self.branches.between(from, to)
    }

    /// An address in `from..to` that pointers or symbols lead to.
    pub(crate) fn pointed_in(&self, from: u64, to: u64) -> Option<u64> {
        let in_list = |list: &Sorted<u64>| {
            let first = list.get(list.first_from(from)).copied();
            first.filter(|found| *found < to)
        };
        in_list(&self.pointers)
            .or_else(|| in_list(&self.symbols))
            .or_else(|| in_list(&self.labels))
    }

    /// Where execution may leave the range, by address.
    pub(crate) fn ways_out_of(&self, range: usize) -> &[WayOut] {
        let range = &self.ranges[range];
        self.ways_out.between(range.address, range.end())
    }

    /// What matters to r10 and r11 in a range that mentions one of them.
    pub(crate) fn events_of(&self, range: usize) -> &[Event] {
        let end = |range: usize| self.event_ends[range] as usize;
        let first = range.checked_sub(1).map_or(0, end);
        &self.events[first..end(range)]
    }

    /// A function symbol inside `from..to`.
    pub(crate) fn symbol_in(&self, from: u64, to: u64) -> Option<u64> {
        self.symbols
            .get(self.symbols.first_from(from))
            .copied()
            .filter(|at| *at < to)
    }
}

/// What decoding some of the ranges finds, one behind the other.
struct Part<'s, 'a> {
    ranges: &'s Sorted<CodeRange<'a>>,
    is_library: bool,
    bodies: Vec<Body>,
    branches: Vec<Branch>,
    indirect_calls: Vec<(u64, u32)>,
    slot_uses: Vec<SlotUse>,
    takers: Vec<(u64, u32)>,
    labels: Vec<u64>,
    ways_out: Vec<WayOut>,
    tables: Tables,
    flag_uses: Vec<FlagUse>,
    /// Ranges that change a register of arguments if nothing else leads to these addresses.
    changes_behind: Vec<(usize, Vec<u64>)>,
    events: Vec<Event>,
    event_ends: Vec<u32>,
    factory: InstructionInfoFactory,
}

impl<'s, 'a> Part<'s, 'a> {
    fn new(ranges: &'s Sorted<CodeRange<'a>>) -> Self {
        Self {
            ranges,
            is_library: false,
            bodies: Vec::new(),
            branches: Vec::new(),
            indirect_calls: Vec::new(),
            slot_uses: Vec::new(),
            takers: Vec::new(),
            labels: Vec::new(),
            ways_out: Vec::new(),
            tables: Tables::default(),
            flag_uses: Vec::new(),
            changes_behind: Vec::new(),
            events: Vec::new(),
            event_ends: Vec::new(),
            factory: InstructionInfoFactory::new(),
        }
    }

    /// Takes what stands behind this.
    fn take(&mut self, part: Self) {
        self.bodies.extend(part.bodies);
        self.indirect_calls.extend(part.indirect_calls);
        self.slot_uses.extend(part.slot_uses);
        self.takers.extend(part.takers);
        self.labels.extend(part.labels);
        self.ways_out.extend(part.ways_out);
        self.tables.mentioned.extend(part.tables.mentioned);
        self.tables.candidates.extend(part.tables.candidates);
        self.flag_uses.extend(part.flag_uses);
        self.changes_behind.extend(part.changes_behind);
        let before = self.events.len() as u32;
        self.events.extend(part.events);
        let ends = part.event_ends.into_iter();
        self.event_ends.extend(ends.map(|end| before + end));
    }

    /// What is known of the range that is decoded.
    fn body(&mut self) -> &mut Body {
        let last = self.bodies.len() - 1;
        &mut self.bodies[last]
    }

    fn decode_range(
        &mut self,
        image: &Image<'_>,
        slots: &FxHashMap<u64, u32>,
        index: usize,
        flow: &mut Flow,
    ) {
        let range = self.ranges[index];
        let bytes = image
            .bytes_at(range.address, range.size)
            .unwrap_or_default();
        let mut decoder = Decoder::with_ip(64, bytes, range.address, DecoderOptions::NONE);
        flow.begin();
        let mut walk = self.is_library.then(Walk::default);
        let mut end = range.address;
        let (first, first_event) = (self.tables.mentioned.len(), self.events.len());
        let mut computes_jumps = false;
        let at = index as u32;
        while decoder.can_decode() {
            let place = flow.next();
            decoder.decode_out(place);
            let instruction = *place;
            end = instruction.ip();
            if instruction.is_invalid() {
                self.body().undecodable = Some(instruction.ip());
                self.events
                    .extend(Event::of(&mut self.factory, &instruction, range.address, 0));
                break;
            }
            end = instruction.next_ip();
            if let Some(walk) = &mut walk {
                walk.take(&instruction);
            }
            self.take_addresses(image, &instruction, at);
            self.body().leaves |= leaves(&instruction, &range);
            let bounds = (range.address, range.end());
            let (way_out, flag_use) =
                flow.take(bounds, at, |taken| decoder.get_constant_offsets(taken));
            self.ways_out.extend(way_out);
            self.flag_uses.extend(flag_use);
            self.events.extend(Event::of(
                &mut self.factory,
                &instruction,
                range.address,
                flow.mentions,
            ));
            match instruction.flow_control() {
                FlowControl::IndirectBranch => {
                    computes_jumps |= !instruction.is_ip_rel_memory_operand();
                }
                FlowControl::IndirectCall => self.indirect_calls.push((instruction.next_ip(), at)),
                FlowControl::Next => {}
                _ => self.take_branch(&decoder, &instruction, at),
            }
            if let Some(slot_use) = slot_use(&decoder, &instruction, slots) {
                self.slot_uses.push(slot_use);
            }
        }
        self.body().sensitive = walk.and_then(|walk| walk.end(image, end, range.end()));
        self.body().traits = flow.end();
        if flow.traits.mentions == 0 {
            self.events.truncate(first_event);
        }
        let found = flow.changes_behind.drain(..);
        self.changes_behind
            .extend(found.map(|behind| (index, behind)));
        if computes_jumps {
            let Tables {
                mentioned,
                candidates,
            } = &mut self.tables;
            candidates.extend(mentioned[first..].iter().map(|table| (*table, at)));
        }
    }

    fn take_branch(&mut self, decoder: &Decoder<'_>, instruction: &Instruction, range: u32) {
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
        self.branches.push(Branch {
            from: instruction.ip(),
            target: instruction.near_branch_target(),
            range,
            length: instruction.len() as u8,
            field: if is_wide {
                offsets.immediate_offset() as u8
            } else {
                0
            },
            kind,
        });
    }

    /// Addresses that the instruction mentions without branching there: of functions, and of what
    /// may be a jump table.
    fn take_addresses(&mut self, image: &Image<'_>, instruction: &Instruction, range: u32) {
        if instruction.is_ip_rel_memory_operand() {
            let address = instruction.ip_rel_memory_address();
            if instruction.code() == Code::Lea_r64_m {
                if image.is_code(address) {
                    self.take_address(address, range);
                } else {
                    self.tables.mentioned.push(address);
                }
            }
        } else if instruction.op_count() > 0
            && instruction.memory_base() == Register::None
            && instruction.memory_displacement64() > 4096
        {
            self.tables
                .mentioned
                .push(instruction.memory_displacement64());
        }
        if image.kind() == Kind::Fixed {
            for operand in 0..instruction.op_count() {
                let kind = instruction.op_kind(operand);
                if matches!(
                    kind,
                    OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64
                ) {
                    let address = instruction.immediate(operand);
                    if image.is_code(address) {
                        self.take_address(address, range);
                    }
                }
            }
        }
    }

    fn take_address(&mut self, address: u64, range: u32) {
        if self.ranges.at(address).is_some() {
            self.takers.push((address, range));
        } else {
            self.labels.push(address);
        }
    }
}

/// Addresses in data that code mentions, and those among them that may be jump tables.
#[derive(Debug, Default)]
struct Tables {
    mentioned: Vec<u64>,
    /// Address, and the range whose computed jumps may use it.
    candidates: Vec<(u64, u32)>,
}

/// Words read of all tables together: no real image comes near, and hostile files get no further.
const MOST_TABLE_WORDS: usize = 1 << 22;

impl Tables {
    /// Adds the rows of the tables as branches; returns where tables of addresses lie (start, end).
    ///
    /// Compilers write tables of 32-bit offsets from the table's start (position independent) or of
    /// 64-bit addresses; each candidate is read as both. A table has a row that leads into its
    /// function; it ends at the first word that leads to no code (other rows lead to the function's
    /// `.cold` part), and at the latest where another mentioned address begins.
    fn read(
        mut self,
        image: &Image<'_>,
        ranges: &Sorted<CodeRange<'_>>,
        branches: &mut Vec<Branch>,
    ) -> Vec<(u64, u64)> {
        let mentioned = Sorted::sort(self.mentioned.iter(), |address| *address);
        self.candidates.sort_unstable();
        self.candidates.dedup();
        let mut places = Vec::new();
        let mut words = MOST_TABLE_WORDS;
        for (table, index) in self.candidates {
            let range = &ranges[index as usize];
            let next = mentioned.first_from(table.saturating_add(1));
            let end = mentioned.get(next).copied().unwrap_or(u64::MAX);
            let Some(bytes) = image.bytes_from(table) else {
                continue;
            };
            let bytes = &bytes[..bytes.len().min((end - table) as usize)];
            let offset = |word: &[u8]| {
                let offset = u32_at(word, 0)? as i32;
                Some(table.wrapping_add_signed(i64::from(offset)))
            };
            let narrow: Vec<u64> = rows(image, bytes, 4, offset, words);
            let wide: Vec<u64> = rows(image, bytes, 8, |word| u64_at(word, 0), words);
            words -= narrow.len().max(wide.len());
            let is_own = |targets: &[u64]| {
                // A row that leads to the entry alone may be one of a table of functions.
                let own = range.address + 1..range.end();
                targets.iter().any(|target| own.contains(target))
            };
            if is_own(&wide) {
                places.push((table, table + 8 * wide.len() as u64));
            }
            // Elsewhere only the starts of parts count: what is read beyond a table's end is noise.
            let counts = |target: &&u64| {
                (range.address..range.end()).contains(*target) || ranges.at(**target).is_some()
            };
            for targets in [narrow, wide].iter().filter(|targets| is_own(targets)) {
                branches.extend(targets.iter().filter(counts).map(|target| Branch {
                    from: table,
                    target: *target,
                    range: index,
                    length: 0,
                    field: 0,
                    kind: BranchKind::Table,
                }));
            }
        }
        places
    }
}

/// The targets in a table, up to the first word that leads to no code.
fn rows(
    image: &Image<'_>,
    bytes: &[u8],
    size: usize,
    target: impl Fn(&[u8]) -> Option<u64>,
    most: usize,
) -> Vec<u64> {
    bytes
        .chunks_exact(size)
        .map_while(target)
        .take_while(|target| image.is_code(*target))
        .take(most)
        .collect()
}

/// Whether the instruction may end the call of the function in `range`.
fn leaves(instruction: &Instruction, range: &CodeRange<'_>) -> bool {
    match instruction.flow_control() {
        FlowControl::Return | FlowControl::IndirectBranch => true,
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
            let target = instruction.near_branch_target();
            !(range.address..range.end()).contains(&target)
        }
        _ => false,
    }
}

pub(crate) fn has_near_branch(instruction: &Instruction) -> bool {
    instruction.op_count() > 0
        && matches!(
            instruction.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        )
}

fn slot_use(
    decoder: &Decoder<'_>,
    instruction: &Instruction,
    slots: &FxHashMap<u64, u32>,
) -> Option<SlotUse> {
    let has_memory =
        (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory);
    if !has_memory {
        return None;
    }
    let relative = instruction.is_ip_rel_memory_operand();
    let absolute = instruction.memory_base() == Register::None
        && instruction.memory_index() == Register::None
        && instruction.memory_segment() != Register::FS
        && instruction.memory_segment() != Register::GS;
    if !relative && !absolute {
        return None;
    }
    let slot = if relative {
        instruction.ip_rel_memory_address()
    } else {
        instruction.memory_displacement64()
    };
    slots.get(&slot)?;
    let kind = match instruction.code() {
        _ if !relative => SlotUseKind::Other,
        Code::Call_rm64 => SlotUseKind::Call,
        Code::Jmp_rm64 => SlotUseKind::Jump,
        Code::Mov_r64_rm64 => SlotUseKind::Load(instruction.op0_register()),
        _ => SlotUseKind::Other,
    };
    let offsets = decoder.get_constant_offsets(instruction);
    let is_wide = relative && offsets.displacement_size() == 4;
    Some(SlotUse {
        address: instruction.ip(),
        slot,
        length: instruction.len() as u8,
        field: if is_wide {
            offsets.displacement_offset() as u8
        } else {
            0
        },
        kind,
        is_in_plt: false,
    })
}

/// The register whose value the code at `at` jumps to, whatever else it does: a jump, or one that no processor predicts.
///
/// ```text
///      call 1f          `-mindirect-branch=thunk`, `-mretpoline`
///  0:  pause ; lfence ; jmp 0b
///  1:  mov %register,(%rsp)
///      ret
/// ```
pub(crate) fn jumps_to_register(image: &Image<'_>, at: u64) -> Option<Register> {
    let first = decode(image, at)?;
    let first = match first.code() {
        Code::Endbr64 => decode(image, first.next_ip())?,
        _ => first,
    };
    match first.code() {
        Code::Jmp_rm64 if first.op0_kind() == OpKind::Register => Some(first.op0_register()),
        Code::Call_rel32_64 => {
            let store = decode(image, first.near_branch_target())?;
            let is_slot = store.code() == Code::Mov_rm64_r64
                && store.op0_kind() == OpKind::Memory
                && store.memory_base() == Register::RSP
                && store.memory_index() == Register::None
                && store.memory_displacement64() == 0
                && store.segment_prefix() == Register::None;
            let goes = decode(image, store.next_ip())?.code() == Code::Retnq;
            (is_slot && goes).then(|| store.op1_register())
        }
        _ => None,
    }
}

/// The same behind a load in a stub, which may jump to code that all stubs share.
fn jumps_on(image: &Image<'_>, at: u64) -> Option<Register> {
    let first = decode(image, at)?;
    match first.code() {
        Code::Jmp_rel32_64 | Code::Jmp_rel8_64 => {
            jumps_to_register(image, first.near_branch_target())
        }
        _ => jumps_to_register(image, at),
    }
}

fn decode(image: &Image<'_>, at: u64) -> Option<Instruction> {
    let bytes = image.bytes_from(at).filter(|_| image.is_code(at))?;
    let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}
