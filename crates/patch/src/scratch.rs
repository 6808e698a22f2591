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
//! *Costs*: a look at every path from a function's entry and behind its direct calls, of those functions that
//! mention r10 or r11 at all.

use lockstep_binary::Image;
use lockstep_format::bytes::u32_at;
use rustc_hash::FxHashSet;

use crate::computed::inside;
use crate::domain::Domain;
use crate::fate::{Fate, MOST_STEPS, REGISTERS, Search};
use crate::flow::Leaving;
use crate::imports::Imports;
use crate::parallel;
use crate::survey::{Branch, BranchKind, SlotUseKind, Survey};

/// Most events that are looked at for all calls of a function together.
const MOST_OF_FUNCTION: usize = 1 << 15;

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
    /// Which of the two each function has as an operand, by node.
    mentions: Vec<u8>,
    /// What code without frame descriptions branches to, and slots that it names.
    strays: FxHashSet<u64>,
}

/// Arrows between nodes, by where they begin.
struct Arrows {
    /// Where the arrows of each node begin in `to`, and where the last end.
    first: Vec<u32>,
    to: Vec<u32>,
}

impl Arrows {
    fn new(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut first = vec![0; count + 1];
        for (from, _) in pairs.clone() {
            first[from as usize + 1] += 1;
        }
        for node in 0..count {
            first[node + 1] += first[node];
        }
        let mut to = vec![0; first[count] as usize];
        let mut next = first.clone();
        for (from, target) in pairs {
            let at = &mut next[from as usize];
            to[*at as usize] = target;
            *at += 1;
        }
        Self { first, to }
    }

    fn of(&self, node: usize) -> &[u32] {
        &self.to[self.first[node] as usize..self.first[node + 1] as usize]
    }

    /// The nodes that arrows lead to from `members`, and these.
    fn closure(&self, members: impl Iterator<Item = usize>) -> Vec<bool> {
        let mut found = vec![false; self.first.len() - 1];
        let mut open: Vec<usize> = members.collect();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut found[node], true) {
                open.extend(self.of(node).iter().map(|next| *next as usize));
            }
        }
        found
    }
}

/// A direct branch from one function to another.
#[derive(Clone, Copy)]
struct Step {
    from: u32,
    to: u32,
    /// Of a call: the address behind it.
    behind: Option<u64>,
    /// It leads into the midst of the other.
    is_odd: bool,
    is_to_stub: bool,
}

/// Who calls or jumps to whom, by nodes.
struct Graph {
    callees: Arrows,
    callers: Arrows,
    /// Those of them that jump.
    jumpers: Arrows,
    /// Branches into the midst of another function.
    odd: Vec<(u32, u32)>,
    /// Calls of those that mention r10 or r11, by caller.
    calls: Vec<Step>,
}

impl Graph {
    fn new(survey: &Survey<'_>, node: &[u32], mentions: &[u8]) -> Self {
        let step = |branch: &Branch| {
            let range = survey.range_of(branch.target)?;
            let is_call = branch.kind == BranchKind::Call;
            Some(Step {
                from: node[branch.range as usize],
                to: node[range],
                behind: is_call.then_some(branch.from + u64::from(branch.length)),
                is_odd: survey.ranges[range].address != branch.target,
                is_to_stub: survey.plt.contains_key(&branch.target),
            })
        };
        let steps = parallel::by_pieces(survey.arriving.len(), |indices| {
            let branches = survey.arriving[indices].iter();
            let branches = branches.filter(|it| it.kind != BranchKind::Table);
            branches.filter_map(step).collect::<Vec<Step>>()
        });
        let others = steps.iter().flatten();
        let others = others.filter(|it| it.from != it.to && !it.is_to_stub);
        let count = node.len();
        let jumps = others.clone().filter(|it| it.behind.is_none());
        let odd = others.clone().filter(|it| it.is_odd);
        let calls = steps.iter().flatten();
        let calls = calls.filter(|it| it.behind.is_some() && !it.is_to_stub);
        let calls = calls.filter(|it| mentions[it.from as usize] != 0);
        let mut calls: Vec<Step> = calls.copied().collect();
        calls.sort_unstable_by_key(|it| (it.from, it.behind));
        Self {
            callees: Arrows::new(count, others.clone().map(|it| (it.from, it.to))),
            callers: Arrows::new(count, others.clone().map(|it| (it.to, it.from))),
            jumpers: Arrows::new(count, jumps.map(|it| (it.to, it.from))),
            odd: odd.map(|it| (it.from, it.to)).collect(),
            calls,
        }
    }
}

impl Scratch {
    pub(crate) fn new<'a>(image: &Image<'a>, survey: &Survey<'a>, domain: &Domain<'_>) -> Self {
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
        let graph = Graph::new(survey, &node, &mentions);
        let strays = strays(image, survey);
        let changes = (0..count).filter(|at| survey.bodies[*at].traits.changes);
        let ordinary = graph.callers.closure(changes.map(|at| node[at] as usize));
        let is_unsure = |at: usize| {
            let entry = survey.ranges[at].address;
            let is_known = !survey.is_address_taken(entry) && !strays.contains(&entry);
            !is_known && !ordinary[at]
        };
        let unsure: Vec<bool> = (0..count).map(is_unsure).collect();
        let mut free = vec![
            Free {
                at_entry: true,
                at_return: true,
            };
            count
        ];
        let leaves = |at: usize| leaves_to_unknown(image, survey, domain, at);
        for (_, register) in REGISTERS {
            let mentions: Vec<bool> = mentions.iter().map(|it| it & register != 0).collect();
            let search = || Search::new(image, survey, &node);
            let read = read_behind_calls(search, &graph, &mentions, register);
            let unsure = (0..count).filter(|at| unsure[*at]);
            let kept = graph.callees.closure(read.into_iter().chain(unsure));
            let subject = (survey, &node[..]);
            let taken = taken(search, subject, &graph, &mentions, register, leaves);
            for at in 0..count {
                free[at].at_return &= !kept[at];
                free[at].at_entry &= !kept[at] && !taken[at];
            }
        }
        Self {
            free,
            node,
            mentions,
            strays,
        }
    }

    /// Where the function that begins with `range` finds r10 and r11 free.
    pub(crate) fn free(&self, range: usize) -> Free {
        self.free.get(range).copied().unwrap_or_default()
    }

    /// Of each library function that may be a leaf: whether nobody waits for r10 and r11 behind its calls.
    pub(crate) fn free_imports<'a>(
        &self,
        image: &Image<'a>,
        survey: &Survey<'a>,
        calls: &Imports<'_>,
    ) -> Vec<bool> {
        let mut free: Vec<bool> = calls.rows.iter().map(|row| row.may_be_leaf).collect();
        for row in self.called_by_strays(survey, calls) {
            free[row as usize] = false;
        }
        let direct = survey.arriving.iter().filter_map(|branch| {
            let row = calls.row_of_slot(*survey.plt.get(&branch.target)?)?;
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
        let mut search = Search::new(image, survey, &self.node);
        for (row, range, behind) in direct.chain(by_slot).chain(hoisted) {
            let node = self.node[range as usize];
            let is_free = &mut free[row as usize];
            *is_free = *is_free && self.free(node as usize).at_return;
            let (true, Some(behind)) = (*is_free, behind) else {
                continue;
            };
            for (_, register) in REGISTERS {
                let mut steps = MOST_STEPS;
                let mentions = self.mentions[node as usize] & register != 0;
                *is_free &= !mentions || !search.is_read(node, behind, register, &mut steps);
            }
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

/// Functions behind whose call the register is read before it is written.
fn read_behind_calls<'s, 'i: 's, 'a: 'i>(
    search: impl Fn() -> Search<'s, 'i, 'a> + Sync,
    graph: &Graph,
    mentions: &[bool],
    register: u8,
) -> Vec<usize> {
    let by_caller = graph.calls.chunk_by(|one, other| one.from == other.from);
    let by_caller = by_caller.filter(|calls| mentions[calls[0].from as usize]);
    let by_caller: Vec<&[Step]> = by_caller.collect();
    let read = parallel::by_pieces(by_caller.len(), |indices| {
        let mut search = search();
        let mut read = Vec::new();
        for calls in &by_caller[indices] {
            let mut left = MOST_OF_FUNCTION;
            for call in *calls {
                let mut steps = MOST_STEPS.min(left);
                left -= steps;
                let behind = call.behind.unwrap_or_default();
                if search.is_read(call.from, behind, register, &mut steps) {
                    read.push(call.to as usize);
                }
                left += steps;
            }
        }
        read
    });
    read.into_iter().flatten().collect()
}

/// Functions that take the register.
fn taken<'s, 'i: 's, 'a: 'i>(
    search: impl Fn() -> Search<'s, 'i, 'a> + Sync,
    (survey, node): (&Survey<'_>, &[u32]),
    graph: &Graph,
    mentions: &[bool],
    register: u8,
    leaves_to_unknown: impl Fn(usize) -> bool + Sync,
) -> Vec<bool> {
    let fates = parallel::by_pieces(node.len(), |nodes| {
        let mut search = search();
        let fate = |at: usize| {
            if node[at] as usize != at {
                return Fate::default();
            }
            if mentions[at] {
                let mut steps = MOST_STEPS;
                let start = survey.ranges[at].address;
                return search.follow(at as u32, start, register, &mut steps);
            }
            Fate {
                is_handed_out: leaves_to_unknown(at),
                ..Fate::default()
            }
        };
        nodes.map(fate).collect::<Vec<Fate>>()
    });
    let fates: Vec<Fate> = fates.into_iter().flatten().collect();
    // An arrow from each function to those that hand it the register untouched.
    let reaches = |(at, fate): (usize, &'_ Fate)| {
        let callees = match mentions[at] {
            true => &[][..],
            false => graph.callees.of(at),
        };
        let reached = fate.reaches.clone();
        let reached = callees.iter().copied().chain(reached);
        reached.map(move |to| (to, at as u32))
    };
    let hands = fates.iter().enumerate().flat_map(reaches);
    let hands = Arrows::new(node.len(), hands);
    let odd = graph.odd.iter().filter(|(_, to)| mentions[*to as usize]);
    let odd = odd.flat_map(|(from, to)| [*from as usize, *to as usize]);
    let takes = (0..node.len()).filter(|at| fates[*at].is_read);
    let taken = hands.closure(takes.chain(odd)).into_iter();
    let hands_out = (0..node.len()).filter(|at| fates[*at].is_handed_out);
    let handed_out = graph.jumpers.closure(hands_out);
    taken
        .zip(handed_out)
        .map(|(is_taken, is_handed)| is_taken || is_handed)
        .collect()
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
                    survey.plt.contains_key(&target) || survey.range_of(target).is_none()
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
