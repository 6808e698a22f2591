//! Where nobody waits for r10 and r11, so that inline code need not save them.
//!
//! The ABI says that a call may change both; much makes it untrue. Compilers that know the callee keep values in registers
//! that it does not change (gcc's `-fipa-ra`); functions are declared to keep more than others (`preserve_most`,
//! `no_caller_saved_registers`), which a caller in another image, or behind a pointer, relies on; nested functions get their
//! frame's address in r10; hand-written code passes what it likes. So it is looked for, in the whole image:
//!
//! ```text
//!  taken     the function reads the register before it writes it, or jumps or calls to one that does, or jumps
//!            (itself, or one that it jumps to) to what is not known, the register being untouched
//!  kept      a caller reads it behind the call before it writes it; or its own callers may, and nothing in it
//!            says otherwise
//!  unknown   not all of its callers are known: pointers lead to it, other images see it, code without frame
//!            descriptions calls it
//!  ordinary  it returns with another value in a register that every convention which keeps more than the ABI
//!            says keeps as well (rcx, rdx, rsi, rdi, r8, r9), or calls such a function and saves nothing
//!
//!  free to leave changed, at a return:   not kept, and known or ordinary
//!  free to change, at an entry:          the same, and not taken
//!  free behind a library call:           free to leave changed in every function that makes it, and not read behind it
//! ```
//! *Costs*: those of [`crate::fate`], and a few looks at every call.

use lockstep_binary::Image;
use lockstep_format::bytes::u32_at;
use rustc_hash::FxHashSet;

use crate::computed::inside;
use crate::domain::Domain;
use crate::fate::{Fates, Search};
use crate::flow::{Leaving, Traits};
use crate::imports::Imports;
use crate::parallel;
use crate::survey::{BranchKind, SlotUseKind, Survey};

/// r10 and r11.
const BOTH: u8 = Traits::R10 | Traits::R11;

/// Where both are free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Free {
    pub at_entry: bool,
    pub at_return: bool,
}

/// What is free, by the entry's range.
pub(crate) struct Scratch {
    free: Vec<Free>,
    /// Ranges, each as the entry's range of the function it belongs to.
    node: Vec<u32>,
    /// Addresses behind calls where one of them is read.
    read_behind: FxHashSet<u64>,
    /// What code without frame descriptions branches to, and slots that it names.
    strays: FxHashSet<u64>,
}

/// Arrows between nodes, by where they begin. Each may have marks.
struct Arrows {
    /// Where the arrows of each node begin in `to`, and where the last end.
    first: Vec<u32>,
    to: Vec<u32>,
}

/// In an arrow: where the marks begin.
const MARKS: u32 = 30;

impl Arrows {
    fn new(count: usize, arrows: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut first = vec![0; count + 1];
        for (from, _) in arrows.clone() {
            first[from as usize + 1] += 1;
        }
        for node in 0..count {
            first[node + 1] += first[node];
        }
        let mut to = vec![0; first[count] as usize];
        let mut next = first.clone();
        for (from, target) in arrows {
            let at = &mut next[from as usize];
            to[*at as usize] = target;
            *at += 1;
        }
        Self { first, to }
    }

    /// The nodes that arrows lead to from a node, with the arrows' marks.
    fn of(&self, node: u32) -> impl Iterator<Item = (u32, u8)> + '_ {
        let node = node as usize;
        let arrows = &self.to[self.first[node] as usize..self.first[node + 1] as usize];
        let marks = |arrow: &u32| (arrow & ((1 << MARKS) - 1), (arrow >> MARKS) as u8);
        arrows.iter().map(marks)
    }
}

/// Bits of nodes, spread from these `members`: `next` tells the nodes that a node's bits go to, and which of them do.
fn spread<I: Iterator<Item = (u32, u8)>>(
    count: usize,
    members: impl Iterator<Item = (u32, u8)>,
    mut next: impl FnMut(u32, u8) -> I,
) -> Vec<u8> {
    let mut found = vec![0; count];
    let mut open: Vec<(u32, u8)> = members.collect();
    while let Some((node, bits)) = open.pop() {
        let known = &mut found[node as usize];
        let more = bits & !*known;
        if more != 0 {
            *known |= more;
            open.extend(next(node, more).filter(|(_, bits)| *bits != 0));
        }
    }
    found
}

/// Who calls or jumps to whom, by nodes.
struct Graph {
    callees: Arrows,
    /// Arrows of jumps are marked.
    callers: Arrows,
    /// Branches into the midst of another function.
    odd: Vec<(u32, u32)>,
}

/// The mark of arrows that are jumps.
const JUMP: u8 = 1;

impl Graph {
    fn new(survey: &Survey<'_>, node: &[u32]) -> Self {
        let steps = parallel::by_pieces(survey.arriving.len(), |indices| {
            let (mut arrows, mut odd) = (Vec::with_capacity(indices.len()), Vec::new());
            for branch in &survey.arriving[indices] {
                let Some(range) = survey.range_of(branch.target) else {
                    continue;
                };
                let (from, to) = (node[branch.range as usize], node[range]);
                let is_table = branch.kind == BranchKind::Table;
                if from == to || is_table || survey.is_stub(branch.target) {
                    continue;
                }
                let is_jump = branch.kind != BranchKind::Call;
                arrows.push((from, to, u32::from(is_jump)));
                if survey.ranges[range].address != branch.target {
                    odd.push((from, to));
                }
            }
            (arrows, odd)
        });
        let arrows = steps.iter().flat_map(|(arrows, _)| arrows);
        let (callees, callers) = parallel::both(
            || Arrows::new(node.len(), arrows.clone().map(|it| (it.0, it.1))),
            || {
                let marked = |it: &(u32, u32, u32)| (it.1, it.0 | it.2 << MARKS);
                Arrows::new(node.len(), arrows.clone().map(marked))
            },
        );
        Self {
            callees,
            callers,
            odd: steps.into_iter().flat_map(|(_, odd)| odd).collect(),
        }
    }
}

impl Scratch {
    pub(crate) fn new<'a>(image: &Image<'a>, survey: &Survey<'a>, domain: &Domain<'a>) -> Self {
        let count = survey.ranges.len();
        let node: Vec<u32> = (0..count as u32)
            .map(|range| match domain.owner[range as usize] {
                Some(owner) => domain.functions[owner as usize].range as u32,
                None => range,
            })
            .collect();
        let mut mentions = vec![0; count];
        for (range, body) in survey.bodies.iter().enumerate() {
            mentions[node[range] as usize] |= body.traits.mentions;
        }
        let all = || 0..count as u32;
        let graph = Graph::new(survey, &node);
        let strays = strays(image, survey);
        let changes = all().filter(|at| survey.bodies[*at as usize].traits.changes);
        let changes = changes.map(|at| (node[at as usize], 1));
        let ordinary = spread(count, changes, |at, bits| {
            graph.callers.of(at).map(move |(from, _)| (from, bits))
        });
        let is_unsure = |at: &u32| {
            let entry = survey.ranges[*at as usize].address;
            let is_known = !survey.is_address_taken(entry) && !strays.contains(&entry);
            !is_known && ordinary[*at as usize] == 0
        };
        let fates = fates(&Search::new(image, survey, domain, &node), &mentions);
        let read = fates.iter().flat_map(|fates| &fates.kept).copied();
        let unsure = all().filter(is_unsure).map(|at| (at, BOTH));
        let kept = spread(count, read.chain(unsure), |at, bits| {
            graph.callees.of(at).map(move |(to, _)| (to, bits))
        });
        let leaves = |at: usize| leaves_to_unknown(image, survey, domain, at);
        let taken = taken(&fates, &graph, &node, &mentions, leaves);
        let free = kept.iter().zip(taken).map(|(kept, taken)| Free {
            at_entry: kept | taken == 0,
            at_return: *kept == 0,
        });
        let read_behind = fates.iter().flat_map(|fates| &fates.read_behind);
        Self {
            free: free.collect(),
            read_behind: read_behind.map(|(behind, _)| *behind).collect(),
            node,
            strays,
        }
    }

    /// Where the function that begins with `range` finds r10 and r11 free.
    pub(crate) fn free(&self, range: usize) -> Free {
        self.free.get(range).copied().unwrap_or_default()
    }

    /// Of each library function that may be a leaf: whether nobody waits for r10 and r11 behind its calls.
    pub(crate) fn free_imports<'a>(&self, survey: &Survey<'a>, calls: &Imports<'_>) -> Vec<bool> {
        let mut free: Vec<bool> = calls.rows.iter().map(|row| row.may_be_leaf).collect();
        for row in self.called_by_strays(survey, calls) {
            free[row as usize] = false;
        }
        let direct = survey.arriving.iter().filter_map(|branch| {
            let row = calls.row_of_slot(survey.slot_of_stub(branch.target)?)?;
            let behind = branch.from + u64::from(branch.length);
            let behind = (branch.kind == BranchKind::Call).then_some(behind);
            Some((row, branch.range, behind))
        });
        let by_slot = calls.sites.iter().filter(|(it, _)| !it.is_in_plt);
        let by_slot = by_slot.filter_map(|(slot_use, row)| {
            let range = survey.range_of(slot_use.address)? as u32;
            let behind = slot_use.address + u64::from(slot_use.length);
            let is_call = slot_use.kind == SlotUseKind::Call;
            Some((*row, range, is_call.then_some(behind)))
        });
        let hoisted = calls.hoisted_calls.iter().filter_map(|(behind, row)| {
            let range = survey.range_of(behind.checked_sub(1)?)? as u32;
            Some((*row, range, Some(*behind)))
        });
        for (row, range, behind) in direct.chain(by_slot).chain(hoisted) {
            let node = self.node[range as usize];
            let is_read = behind.is_some_and(|behind| self.read_behind.contains(&behind));
            free[row as usize] &= self.free(node as usize).at_return && !is_read;
        }
        free
    }

    /// Rows of library functions that code calls which is not looked at, or pointers may.
    fn called_by_strays(&self, survey: &Survey<'_>, calls: &Imports<'_>) -> Vec<u32> {
        let slots = self.strays.iter().copied();
        let stubs = survey.plt.iter().filter(|(at, _)| {
            self.strays.contains(at) || survey.is_address_taken(**at) || survey.labels.has(**at)
        });
        let slots = slots.chain(stubs.map(|(_, slot)| *slot));
        slots.filter_map(|slot| calls.row_of_slot(slot)).collect()
    }
}

/// What becomes of values in the functions that mention registers.
fn fates(search: &Search<'_, '_, '_>, mentions: &[u8]) -> Vec<Fates> {
    let nodes = (0..mentions.len()).filter(|at| mentions[*at] != 0);
    let nodes: Vec<usize> = nodes.collect();
    parallel::by_pieces(nodes.len(), |indices| {
        let (mut search, mut found) = (search.clone(), Fates::default());
        for node in &nodes[indices] {
            search.look_at(*node as u32, mentions[*node], &mut found);
        }
        found
    })
}

/// Functions that take registers.
fn taken(
    fates: &[Fates],
    graph: &Graph,
    node: &[u32],
    mentions: &[u8],
    leaves_to_unknown: impl Fn(usize) -> bool + Sync,
) -> Vec<u8> {
    let count = node.len();
    let reached = fates.iter().flat_map(|fates| &fates.reached);
    let reached = reached.map(|(to, from, bits)| (*to, *from | u32::from(*bits) << MARKS));
    let reached = Arrows::new(count, reached);
    let of = || fates.iter().flat_map(|fates| &fates.of);
    let odd = graph.odd.iter();
    let odd = odd.flat_map(|(from, to)| [*from, *to].map(|at| (at, mentions[*to as usize])));
    // Who hands over a register untouched takes it, too: one that does not mention it always does.
    let takes = of().map(|fate| (fate.node, fate.read)).chain(odd);
    let taken = spread(count, takes, |at, bits| {
        let callers = graph.callers.of(at);
        let callers = callers.map(move |(from, _)| (from, bits & !mentions[from as usize]));
        let untouched = reached.of(at);
        callers.chain(untouched.map(move |(from, registers)| (from, bits & registers)))
    });
    let leaves = parallel::each(count, |at| {
        node[at] as usize == at && mentions[at] != BOTH && leaves_to_unknown(at)
    });
    let leaves = (0..count as u32).filter(|at| leaves[*at as usize]);
    let leaves = leaves.map(|at| (at, BOTH & !mentions[at as usize]));
    let hands_out = of().map(|fate| (fate.node, fate.handed_out)).chain(leaves);
    let handed_out = spread(count, hands_out, |at, bits| {
        let callers = graph.callers.of(at);
        callers.map(move |(from, mark)| (from, if mark == JUMP { bits } else { 0 }))
    });
    let both = taken.into_iter().zip(handed_out);
    both.map(|(taken, handed)| taken | handed).collect()
}

/// Whether a function ends with a jump to what is not known.
fn leaves_to_unknown(
    image: &Image<'_>,
    survey: &Survey<'_>,
    domain: &Domain<'_>,
    node: usize,
) -> bool {
    let Some(function) = domain.owner[node] else {
        return false;
    };
    let mut ranges = domain.ranges_of(function);
    ranges.any(|range| {
        survey
            .ways_out_of(range)
            .iter()
            .any(|way| match way.leaving {
                Leaving::Jump { target } | Leaving::Conditional { target } => {
                    survey.is_stub(target) || survey.range_of(target).is_none()
                }
                Leaving::Slot { .. } => true,
                Leaving::Computed(jump) => inside(image, survey, domain, way, &jump).is_none(),
                Leaving::Return { .. } | Leaving::Odd => false,
            })
    })
}

/// What code that has no frame description may branch to, and words that it may name: whatever a displacement in it, behind
/// something that looks like the instruction, leads to.
fn strays(image: &Image<'_>, survey: &Survey<'_>) -> FxHashSet<u64> {
    const FIELD: usize = 4;
    let mut found = FxHashSet::default();
    let plt = image.plt_sections();
    for (start, end) in image.code_sections() {
        if plt.iter().any(|section| section.0 == start) {
            continue;
        }
        let mut at = start;
        let mut next = survey.ranges.first_from(start);
        while at < end {
            let range = survey.ranges.get(next);
            let gap = range.map_or(end, |range| range.address.min(end));
            let bytes = image
                .bytes_at(at, gap.saturating_sub(at))
                .unwrap_or_default();
            let mut before = 0;
            for (index, window) in bytes.windows(1 + FIELD).enumerate() {
                let opcode = window[0];
                let is_branch = matches!(opcode, 0xe8 | 0xe9)
                    || before == 0x0f && matches!(opcode, 0x80..=0x8f);
                before = opcode;
                // Or an operand relative to rip.
                if is_branch || opcode & 0xc7 == 5 {
                    let distance = u32_at(window, 1).map_or(0, |field| i64::from(field as i32));
                    let behind = at + (index + 1 + FIELD) as u64;
                    found.insert(behind.wrapping_add_signed(distance));
                }
            }
            let Some(range) = range else { break };
            at = range.end().max(gap);
            next += 1;
        }
    }
    found
}
