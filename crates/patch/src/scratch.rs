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

use iced_x86::Register;
use lockstep_binary::Image;
use lockstep_format::bytes::u32_at;
use rustc_hash::FxHashSet;

use crate::computed::inside;
use crate::domain::Domain;
use crate::fate::{MOST_STEPS, Search};
use crate::flow::{Leaving, Traits};
use crate::imports::Imports;
use crate::survey::{BranchKind, SlotUseKind, Survey};

/// Most instructions that are looked at for all calls of a function together.
const MOST_OF_FUNCTION: usize = 1 << 15;

const REGISTERS: [(Register, u8); 2] = [(Register::R10, Traits::R10), (Register::R11, Traits::R11)];

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

/// A set of functions that grows along arrows.
struct Closure<'g> {
    arrows: &'g [Vec<u32>],
    found: Vec<bool>,
    open: Vec<u32>,
}

impl<'g> Closure<'g> {
    fn new(arrows: &'g [Vec<u32>]) -> Self {
        Self {
            arrows,
            found: vec![false; arrows.len()],
            open: Vec::new(),
        }
    }

    fn of(arrows: &'g [Vec<u32>], members: impl Iterator<Item = usize>) -> Vec<bool> {
        let mut closure = Self::new(arrows);
        members.for_each(|node| closure.add(node as u32));
        closure.close()
    }

    fn add(&mut self, node: u32) {
        if !std::mem::replace(&mut self.found[node as usize], true) {
            self.open.push(node);
        }
    }

    /// Follows the arrows.
    fn close(mut self) -> Vec<bool> {
        while let Some(node) = self.open.pop() {
            for next in self.arrows[node as usize].iter().copied() {
                self.add(next);
            }
        }
        self.found
    }
}

/// Who calls or jumps to whom, by nodes.
struct Graph {
    callees: Vec<Vec<u32>>,
    callers: Vec<Vec<u32>>,
    /// Those of them that jump.
    jumpers: Vec<Vec<u32>>,
    /// Branches into the midst of another function.
    odd: Vec<(u32, u32)>,
}

impl Graph {
    fn new(survey: &Survey<'_>, node: &[u32]) -> Self {
        let mut graph = Self {
            callees: vec![Vec::new(); node.len()],
            callers: vec![Vec::new(); node.len()],
            jumpers: vec![Vec::new(); node.len()],
            odd: Vec::new(),
        };
        for branch in &survey.branches {
            let from = node[branch.range as usize];
            let Some(range) = survey.range_of(branch.target) else {
                continue;
            };
            let to = node[range];
            let is_plt = survey.plt.contains_key(&branch.target);
            if to == from || branch.kind == BranchKind::Table || is_plt {
                continue;
            }
            graph.callees[from as usize].push(to);
            graph.callers[to as usize].push(from);
            if branch.kind != BranchKind::Call {
                graph.jumpers[to as usize].push(from);
            }
            if survey.ranges[range].address != branch.target {
                graph.odd.push((from, to));
            }
        }
        graph
    }
}

impl Scratch {
    pub(crate) fn new(image: &Image<'_>, survey: &Survey<'_>, domain: &Domain<'_>) -> Self {
        let count = survey.ranges.len();
        let node: Vec<u32> = (0..count as u32)
            .map(|range| match domain.owner[range as usize] {
                Some(owner) => domain.functions[owner as usize].range as u32,
                None => range,
            })
            .collect();
        let graph = Graph::new(survey, &node);
        let strays = strays(image, survey);
        let changes = (0..count).filter(|at| survey.bodies[*at].traits.changes);
        let ordinary = Closure::of(&graph.callers, changes.map(|at| node[at] as usize));
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
        let mut mentions = vec![0; count];
        for (range, body) in survey.bodies.iter().enumerate() {
            mentions[node[range] as usize] |= body.traits.mentions;
        }
        let mut search = Search::new(image, survey, &node);
        for register in REGISTERS {
            let mentions: Vec<bool> = mentions.iter().map(|it| it & register.1 != 0).collect();
            let read = read_behind_calls(&mut search, survey, &node, &mentions, register.0);
            let members = (0..count).filter(|at| read[*at] || unsure[*at]);
            let kept = Closure::of(&graph.callees, members);
            let leaves = |at: usize| leaves_to_unknown(image, survey, domain, at);
            let taken = taken(
                &mut search,
                (survey, &node),
                &graph,
                &mentions,
                register.0,
                leaves,
            );
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
    pub(crate) fn free_imports(
        &self,
        image: &Image<'_>,
        survey: &Survey<'_>,
        calls: &Imports<'_>,
    ) -> Vec<bool> {
        let mut free: Vec<bool> = calls.rows.iter().map(|row| row.may_be_leaf).collect();
        for row in self.called_by_strays(survey, calls) {
            free[row as usize] = false;
        }
        let direct = survey.branches.iter().filter_map(|branch| {
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
            for (register, bit) in REGISTERS {
                let mut steps = MOST_STEPS;
                let mentions = self.mentions[node as usize] & bit != 0;
                *is_free &= !mentions || !search.follow(node, behind, register, &mut steps).is_read;
            }
        }
        free
    }

    /// Rows of library functions that code calls which is not looked at, or pointers may.
    fn called_by_strays(&self, survey: &Survey<'_>, calls: &Imports<'_>) -> Vec<u32> {
        let slots = self.strays.iter().copied();
        let stubs = survey.plt.iter().filter(|(at, _)| {
            self.strays.contains(at)
                || survey.is_address_taken(**at)
                || survey.labels.binary_search(at).is_ok()
        });
        let slots = slots.chain(stubs.map(|(_, slot)| *slot));
        slots.filter_map(|slot| calls.row_of_slot(slot)).collect()
    }
}

/// Functions behind whose call the register is read before it is written.
fn read_behind_calls(
    search: &mut Search<'_, '_, '_>,
    survey: &Survey<'_>,
    node: &[u32],
    mentions: &[bool],
    register: Register,
) -> Vec<bool> {
    let mut read = vec![false; node.len()];
    let mut left = vec![MOST_OF_FUNCTION; node.len()];
    for branch in &survey.branches {
        let at = node[branch.range as usize];
        let Some(to) = survey.range_of(branch.target) else {
            continue;
        };
        let to = node[to] as usize;
        if branch.kind != BranchKind::Call || !mentions[at as usize] || read[to] {
            continue;
        }
        let behind = branch.from + u64::from(branch.length);
        let left = &mut left[at as usize];
        let mut steps = MOST_STEPS.min(*left);
        let given = steps;
        let fate = search.follow(at, behind, register, &mut steps);
        read[to] |= fate.is_read;
        *left -= given - steps;
    }
    read
}

/// Functions that take the register.
fn taken(
    search: &mut Search<'_, '_, '_>,
    (survey, node): (&Survey<'_>, &[u32]),
    graph: &Graph,
    mentions: &[bool],
    register: Register,
    leaves_to_unknown: impl Fn(usize) -> bool,
) -> Vec<bool> {
    // An arrow from each function to those that hand it the register untouched.
    let mut hands = vec![Vec::new(); node.len()];
    let mut takes = Vec::new();
    let mut hands_out = Vec::new();
    for at in (0..node.len()).filter(|at| node[*at] as usize == *at) {
        let reaches = if mentions[at] {
            let mut steps = MOST_STEPS;
            let start = survey.ranges[at].address;
            let fate = search.follow(at as u32, start, register, &mut steps);
            if fate.is_read {
                takes.push(at as u32);
            }
            if fate.is_handed_out {
                hands_out.push(at);
            }
            fate.reaches
        } else {
            if leaves_to_unknown(at) {
                hands_out.push(at);
            }
            graph.callees[at].clone()
        };
        for to in reaches {
            hands[to as usize].push(at as u32);
        }
    }
    let mut taken = Closure::new(&hands);
    takes.into_iter().for_each(|at| taken.add(at));
    for (from, to) in &graph.odd {
        if mentions[*to as usize] {
            taken.add(*from);
            taken.add(*to);
        }
    }
    let handed_out = Closure::of(&graph.jumpers, hands_out.into_iter());
    let taken = taken.close().into_iter().zip(handed_out);
    taken
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
        let mut next = survey.ranges.partition_point(|range| range.address < start);
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
