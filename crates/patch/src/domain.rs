//! Which ranges are functions, and which belong to one: the `.cold` parts.

use std::borrow::Cow;

use iced_x86::{Code, Decoder, DecoderOptions, Register};
use lockstep_binary::{Image, RangeKind};
use rustc_hash::FxHashMap;

use crate::survey::{BranchKind, Survey};

/// A function of the image.
#[derive(Debug, Clone)]
pub(crate) struct Function<'a> {
    /// Its entry's range.
    pub range: usize,
    /// Linkage name, or `+0x1234`.
    pub name: Cow<'a, [u8]>,
}

/// The functions by address, and the function that each range belongs to.
pub(crate) struct Domain<'a> {
    pub functions: Vec<Function<'a>>,
    /// By range; `None` for what is no function's.
    pub owner: Vec<Option<u32>>,
    /// (function, range), sorted.
    parts: Vec<(u32, u32)>,
}

impl<'a> Domain<'a> {
    pub(crate) fn new(image: &Image<'a>, survey: &Survey<'a>) -> Self {
        let mut owner: Vec<Option<u32>> = vec![None; survey.ranges.len()];
        let parents = parents(survey);
        let start = Start::read(image, survey);
        let mut functions = Vec::new();
        for (index, range) in survey.ranges.iter().enumerate() {
            let is_runtime = start.runtime.contains(&range.address);
            if range.kind != RangeKind::Function || parents[index].is_some() || is_runtime {
                continue;
            }
            owner[index] = Some(functions.len() as u32);
            let name = match range.name {
                Some(name) => Cow::Borrowed(name),
                None if start.main == Some(range.address) => Cow::Borrowed(&b"main"[..]),
                None => Cow::Owned(format!("+{:#x}", range.address).into_bytes()),
            };
            functions.push(Function { range: index, name });
        }
        // A part of a part is a part of the whole; damaged files may have circles.
        for index in 0..survey.ranges.len() {
            let mut at = index;
            for _ in 0..8 {
                let Some(parent) = parents[at] else { break };
                at = parent;
            }
            owner[index] = owner[at];
        }
        let owned = owner.iter().enumerate();
        let mut parts: Vec<(u32, u32)> = owned
            .filter_map(|(range, owner)| Some(((*owner)?, range as u32)))
            .collect();
        parts.sort_unstable();
        Self {
            functions,
            owner,
            parts,
        }
    }

    /// The ranges of a function, by address: its entry's and its parts.
    pub(crate) fn ranges_of(&self, function: u32) -> impl Iterator<Item = usize> + '_ {
        let first = self.parts.partition_point(|part| part.0 < function);
        let parts = self.parts[first..].iter();
        parts
            .take_while(move |part| part.0 == function)
            .map(|part| part.1 as usize)
    }

    /// The function that `address` belongs to.
    pub(crate) fn function_at(&self, survey: &Survey<'_>, address: u64) -> Option<u32> {
        self.owner[survey.range_of(address)?]
    }
}

/// For each range that is a part: the range that it is a part of.
fn parents(survey: &Survey<'_>) -> Vec<Option<usize>> {
    let named = survey.ranges.iter().filter_map(|it| it.parent_name());
    let mut by_name: FxHashMap<&[u8], Vec<usize>> = named.map(|name| (name, Vec::new())).collect();
    for (index, range) in survey.ranges.iter().enumerate() {
        let name = range.name.filter(|_| range.kind == RangeKind::Function);
        if let Some(named) = name.and_then(|name| by_name.get_mut(name)) {
            named.push(index);
        }
    }
    let parent_of = |index: usize| {
        let range = survey.ranges[index];
        match range.kind {
            RangeKind::Part => match range.parent_name().and_then(|name| by_name.get(name)) {
                Some(named) if named.len() == 1 => named.first().copied(),
                Some(named) if !named.is_empty() => jumping_ranges(survey, index)
                    .find(|from| named.contains(from))
                    .or(named.first().copied()),
                _ => jumping_ranges(survey, index).next(),
            },
            RangeKind::Function if range.name.is_none() => unnamed_parent(survey, index),
            _ => None,
        }
    };
    (0..survey.ranges.len()).map(parent_of).collect()
}

/// The other ranges that jump into a range, by the address jumped to.
fn jumping_ranges<'s>(survey: &'s Survey<'_>, index: usize) -> impl Iterator<Item = usize> + 's {
    let range = survey.ranges[index];
    survey
        .arriving_at(range.address, range.end())
        .iter()
        .filter(move |branch| branch.kind != BranchKind::Call && branch.range as usize != index)
        .map(|branch| branch.range as usize)
}

/// In stripped files, a part that needs no frame looks like a function. It is a part where nothing
/// calls it or takes its address and one other range alone goes there, and either it jumps back into
/// that range, or it never returns (what ends the program is called, not jumped to), or a condition
/// or a jump table leads there. The latter may also be a tail call, as LLVM makes them; but functions
/// are aligned, with padding before them, and parts are not.
fn unnamed_parent(survey: &Survey<'_>, index: usize) -> Option<usize> {
    let range = survey.ranges[index];
    if survey.is_address_taken(range.address) {
        return None;
    }
    let mut parent = None;
    let mut is_conditional = false;
    for branch in survey.arriving_at(range.address, range.end()) {
        let from = branch.range as usize;
        if from == index {
            continue;
        }
        if branch.kind == BranchKind::Call || parent.is_some_and(|parent| parent != from) {
            return None;
        }
        parent = Some(from);
        is_conditional |= branch.kind != BranchKind::Jump;
    }
    let parent = parent?;
    let whole = survey.ranges[parent];
    let jumps_back = || {
        survey
            .arriving_at(whole.address + 1, whole.end())
            .iter()
            .any(|branch| branch.range as usize == index && branch.kind != BranchKind::Call)
    };
    let is_aligned = || {
        let before = index
            .checked_sub(1)
            .map(|before| survey.ranges[before].end());
        range.address.is_multiple_of(16) && before.is_some_and(|end| end < range.address)
    };
    let is_part = is_conditional || !survey.bodies[index].leaves;
    (jumps_back() || is_part && !is_aligned()).then_some(parent)
}

/// What `_start` passes to the C library.
#[derive(Debug, Default)]
struct Start {
    main: Option<u64>,
    /// Functions that older C libraries link into the program, to run its constructors.
    runtime: Vec<u64>,
}

impl Start {
    fn read(image: &Image<'_>, survey: &Survey<'_>) -> Self {
        let mut start = Self::default();
        let range = survey.range_starting_at(image.entry());
        let range = range.map(|index| survey.ranges[index]);
        let bytes = range.and_then(|range| image.bytes_at(range.address, range.size));
        let decoder = Decoder::with_ip(
            64,
            bytes.unwrap_or_default(),
            image.entry(),
            DecoderOptions::NONE,
        );
        for instruction in decoder {
            let address = match instruction.code() {
                Code::Lea_r64_m if instruction.is_ip_rel_memory_operand() => {
                    instruction.ip_rel_memory_address()
                }
                Code::Mov_rm64_imm32 | Code::Mov_r32_imm32 => instruction.immediate(1),
                _ => continue,
            };
            if survey.range_starting_at(address).is_none() {
                continue;
            }
            match instruction.op0_register().full_register() {
                Register::RDI => start.main = Some(address),
                Register::RCX | Register::R8 => start.runtime.push(address),
                _ => {}
            }
        }
        start
    }
}
