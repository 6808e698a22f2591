//! What the linear decode of everything that has a frame description ([`crate::part`]) tells of the image: who branches where,
//! which slots are called, read or passed on, and what a computed jump can reach.

use std::ops::Range;

use iced_x86::Register;
use lockstep_binary::{CodeRange, Image};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::fate::Event;
use crate::flow::{Computed, Leaving, Traits, WayOut};
use crate::parallel;
use crate::part::{Found, Joined, Part};
use crate::sensitive::Sensitive;
use crate::slots::decode_plt;
use crate::sorted::Sorted;
use crate::tables::{self, Mentions};

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

impl Branch {
    /// What branches are sorted by.
    pub(crate) fn key(&self) -> (u64, u64) {
        (self.target, self.from)
    }
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
    /// Calls, branches from another range, and rows of jump tables, by target.
    pub arriving: Sorted<Branch>,
    /// What was found in the ranges, a piece of them after the other.
    pub parts: Vec<Found>,
    /// By address.
    pub slot_uses: Vec<SlotUse>,
    /// Entry of a PLT stub -> slot.
    pub plt: FxHashMap<u64, u64>,
    /// Where they all lie.
    plt_extent: Range<u64>,
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
    /// Ranges whose callers look at the flags that they leave behind.
    pub flag_users: FxHashSet<u64>,
    /// Jump tables: their address, and the range that jumps by them.
    pub tables: FxHashSet<(u64, u32)>,
    /// Ranges that jump by a table that is known.
    pub with_tables: FxHashSet<u32>,
}

impl<'a> Survey<'a> {
    pub(crate) fn new(image: &Image<'a>, slots: &FxHashMap<u64, u32>, is_library: bool) -> Self {
        let ranges = Sorted::new(image.ranges());
        let mentions = Mentions::new(image);
        let decode = || {
            parallel::by_pieces(ranges.len(), |indices| {
                let mut part = Part::new(image, &ranges, slots, &mentions, is_library);
                indices.for_each(|index| part.decode_range(index));
                part.end()
            })
        };
        let (words, decoded) = parallel::both(|| Sorted::new(image.code_pointers()), decode);
        let mut parts = Vec::with_capacity(decoded.len());
        let mut joined = Joined::default();
        for (found, once) in decoded {
            parts.push(found);
            joined.take(once);
        }
        let Joined {
            bodies,
            slot_uses,
            mut takers,
            labels,
            tables,
            flag_uses,
            changes_behind,
        } = joined;
        let (by_table, places) = tables::read(image, &ranges, &mentions, tables);
        let in_table = |place: u64| {
            let after = places.partition_point(|(start, _)| *start <= place);
            after > 0 && place < places[after - 1].1
        };
        let pointers = words.iter().filter(|(place, _)| !in_table(*place));
        let pointers = pointers.map(|(_, target)| *target).collect();
        let direct = parts.iter().map(|part| &part.branches[..]);
        let all: Vec<&[Branch]> = direct.chain([&by_table[..]]).collect();
        let arriving = Sorted::sort(&all, Branch::key);
        let tables = || by_table.iter();
        let with_tables = tables().map(|branch| branch.range).collect();
        let tables = tables().map(|branch| (branch.from, branch.range)).collect();
        takers.sort_unstable();
        takers.dedup();
        let symbols = image.function_symbols();
        let exported = symbols.iter().filter(|symbol| symbol.is_exported);
        let mut survey = Self {
            bodies,
            arriving,
            parts,
            slot_uses,
            plt: FxHashMap::default(),
            plt_extent: 0..0,
            pointers: Sorted::of(pointers),
            exported: Sorted::of(exported.map(|symbol| symbol.address).collect()),
            symbols: Sorted::of(symbols.iter().map(|symbol| symbol.address).collect()),
            taken: Sorted::of(takers.iter().map(|(address, _)| *address).collect()),
            takers,
            labels: Sorted::of(labels),
            flag_users: FxHashSet::default(),
            tables,
            with_tables,
            words,
            ranges,
        };
        for (start, end) in image.plt_sections() {
            let (uses, stubs) = decode_plt(image, slots, start, end);
            survey.slot_uses.extend(uses);
            survey.plt.extend(stubs);
        }
        let stubs = || survey.plt.keys().copied();
        survey.plt_extent = stubs().min().unwrap_or(0)..stubs().max().map_or(0, |last| last + 1);
        survey.slot_uses.sort_by_key(|slot_use| slot_use.address);
        survey.resolve_slots(image, slots);
        for (range, behind) in changes_behind {
            let is_led_to = |at: &u64| survey.is_led_to(*at, at + 1);
            if !behind.iter().any(is_led_to) {
                survey.bodies[range].traits.changes = true;
            }
        }
        // Behind a call that does not return there may be other code, led to from elsewhere.
        for (callee, behind, reader) in flag_uses {
            if !survey.is_led_to(behind, reader + 1) {
                survey.flag_users.insert(callee);
            }
        }
        survey
    }

    /// Tells what jumps through words of memory mean: a library function, one of the image's own, by
    /// a word of the global offset table that is no import, or whatever a variable holds.
    fn resolve_slots(&mut self, image: &Image<'a>, slots: &FxHashMap<u64, u32>) {
        let got = image.loaded_sections();
        let got = got.filter(|section| section.name == b".got");
        let constant: Vec<(u64, u64)> = got
            .map(|it| (it.address, it.address.saturating_add(it.size)))
            .collect();
        let mut parts = std::mem::take(&mut self.parts);
        for part in &mut parts {
            for index in std::mem::take(&mut part.slot_jumps) {
                let way = &mut part.ways_out.rows[index as usize];
                let Leaving::Slot { slot } = way.leaving else {
                    continue;
                };
                if slots.contains_key(&slot) {
                    continue;
                }
                let mut constant = constant.iter();
                let is_constant = constant.any(|(start, end)| (*start..*end).contains(&slot));
                let target = self.word_at(slot).filter(|_| is_constant);
                let is_other = |target: &u64| self.ranges[way.range as usize].address != *target;
                way.leaving = match target.filter(is_other) {
                    Some(target) => Leaving::Jump { target },
                    None => Leaving::Computed(Computed::UNKNOWN),
                };
            }
        }
        self.parts = parts;
    }

    /// Index of the range that begins at `address`.
    pub(crate) fn range_starting_at(&self, address: u64) -> Option<usize> {
        self.ranges.at(address)
    }

    /// Whether a stub that leads into a library stands at `address`.
    pub(crate) fn is_stub(&self, address: u64) -> bool {
        self.slot_of_stub(address).is_some()
    }

    /// The slot that such a stub leads through.
    pub(crate) fn slot_of_stub(&self, address: u64) -> Option<u64> {
        // Most addresses are those of functions.
        let stub = Some(address).filter(|at| self.plt_extent.contains(at))?;
        self.plt.get(&stub).copied()
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

    /// The branches to addresses in `from..to`, by target and place.
    pub(crate) fn branches_to(&self, from: u64, to: u64) -> impl Iterator<Item = Branch> + '_ {
        let mut arriving = self.arriving_at(from, to).iter().copied().peekable();
        let mut inner = self.inner_to(from, to).peekable();
        std::iter::from_fn(move || match (arriving.peek(), inner.peek()) {
            (Some(one), Some(other)) if one.key() <= other.key() => arriving.next(),
            (_, Some(_)) => inner.next(),
            _ => arriving.next(),
        })
    }

    /// Those of them that stay in their range and call nothing.
    fn inner_to(&self, from: u64, to: u64) -> impl Iterator<Item = Branch> + '_ {
        let first = self.ranges.last_until(from).unwrap_or(0);
        let ranges = self.ranges.iter().enumerate().skip(first);
        let ranges = ranges.take_while(move |(_, range)| range.address < to);
        ranges.flat_map(move |(index, range)| {
            let offset = |address: u64| address.saturating_sub(range.address);
            let (part, at) = self.part_of(index);
            let inner = part.inner.of(at);
            let first = inner.partition_point(|it| u64::from(it.target) < offset(from));
            let inner = inner[first..].iter();
            let inner = inner.take_while(move |it| u64::from(it.target) < offset(to));
            inner.map(move |it| it.branch(range.address, index as u32))
        })
    }

    /// The calls to addresses in `from..to`, the branches from other ranges, and rows of jump tables, by target and place.
    pub(crate) fn arriving_at(&self, from: u64, to: u64) -> &[Branch] {
        self.arriving.between(from, to)
    }

    /// Whether a branch leads to an address in `from..to`.
    pub(crate) fn is_led_to(&self, from: u64, to: u64) -> bool {
        self.branches_to(from, to).next().is_some()
    }

    /// The piece that a range was decoded in, and which of its ranges it is.
    fn part_of(&self, range: usize) -> (&Found, usize) {
        (
            &self.parts[range / parallel::PIECE],
            range % parallel::PIECE,
        )
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
        let (part, at) = self.part_of(range);
        part.ways_out.of(at)
    }

    /// What matters to r10 and r11 in a range that mentions one of them.
    pub(crate) fn events_of(&self, range: usize) -> &[Event] {
        let (part, at) = self.part_of(range);
        part.events.of(at)
    }

    /// A function symbol inside `from..to`.
    pub(crate) fn symbol_in(&self, from: u64, to: u64) -> Option<u64> {
        self.symbols
            .get(self.symbols.first_from(from))
            .copied()
            .filter(|at| *at < to)
    }
}
