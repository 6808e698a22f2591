//! Functions at whose entry and returns nobody waits for r10 and r11, so that inline code need not save them.
//!
//! The ABI says so of every function; three things make it untrue of some. Compilers that know the callee
//! keep values in registers that it does not change (gcc's `-fipa-ra`); nested functions get their frame's
//! address in r10; hand-written code passes what it likes. So it is looked for, in the whole image:
//!
//! ```text
//!  taken   the function reads the register before it writes it, or jumps or calls to one that does,
//!          the register being untouched
//!  kept    a caller reads it behind the call before it writes it, or its own callers may
//!  opaque  the function calls what lies elsewhere: no caller can rely on r10 or r11 behind it
//!
//!  free  =  neither taken nor read behind a call, and opaque or not kept
//! ```
//! Callers in other images follow the ABI. *Costs*: a look at every path from a function's entry and behind
//! its direct calls, of those functions that mention r10 or r11 at all, within a bound: what takes longer is not free.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, OpKind, Register,
};
use lockstep_binary::Image;
use rustc_hash::FxHashSet;

use crate::domain::Domain;
use crate::flow::Traits;
use crate::survey::{BranchKind, Survey, has_near_branch};

/// Most instructions of a function that are looked at from one place, and for all its calls together.
const MOST_STEPS: usize = 2048;
const MOST_OF_FUNCTION: usize = 1 << 15;

const REGISTERS: [(Register, u8); 2] = [(Register::R10, Traits::R10), (Register::R11, Traits::R11)];

/// What is free, by the entry's range.
pub(crate) struct Scratch {
    free: Vec<bool>,
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

    fn add(&mut self, node: u32) {
        if !std::mem::replace(&mut self.found[node as usize], true) {
            self.open.push(node);
        }
    }

    /// Follows the arrows, but not beyond what `stops`.
    fn close(mut self, stops: &[bool]) -> Vec<bool> {
        while let Some(node) = self.open.pop() {
            if stops.get(node as usize) == Some(&true) {
                continue;
            }
            for next in self.arrows[node as usize].iter().copied() {
                self.add(next);
            }
        }
        self.found
    }
}

/// Where the value that a register has at some place goes.
#[derive(Default)]
struct Fate {
    /// It is read, or may be.
    is_read: bool,
    /// It is there where these functions are called or jumped to, by their ranges.
    reaches: Vec<u32>,
}

struct Search<'s, 'i, 'a> {
    image: &'i Image<'a>,
    survey: &'s Survey<'a>,
    factory: InstructionInfoFactory,
    /// Ranges, each as the entry's range of the function it belongs to.
    node: Vec<u32>,
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
        // Who calls or jumps to whom; what comes from nowhere known or leads into the midst of another.
        let mut callees = vec![Vec::new(); count];
        let mut callers = vec![Vec::new(); count];
        let mut opaque = vec![false; count];
        let mut odd = Vec::new();
        for branch in &survey.branches {
            let from = node[branch.range as usize];
            let Some(range) = survey.range_of(branch.target) else {
                opaque[from as usize] |= survey.plt.contains_key(&branch.target);
                continue;
            };
            let to = node[range];
            if to == from || branch.kind == BranchKind::Table {
                continue;
            }
            if survey.plt.contains_key(&branch.target) {
                opaque[from as usize] = true;
                continue;
            }
            callees[from as usize].push(to);
            callers[to as usize].push(from);
            if survey.ranges[range].address != branch.target {
                odd.push((from, to));
            }
        }
        for (_, range) in &survey.indirect_calls {
            opaque[node[*range as usize] as usize] = true;
        }
        let mut calls_elsewhere = Closure::new(&callers);
        for (at, is_opaque) in opaque.iter().enumerate() {
            if *is_opaque {
                calls_elsewhere.add(at as u32);
            }
        }
        let opaque = calls_elsewhere.close(&[]);
        let mut search = Search {
            image,
            survey,
            factory: InstructionInfoFactory::new(),
            node,
        };
        let mut free = vec![true; count];
        for register in REGISTERS {
            let (taken, read, kept) = search.look_for(register, &callees, &opaque, &odd);
            for at in 0..count {
                free[at] &= !taken[at] && !read[at] && (opaque[at] || !kept[at]);
            }
        }
        Self { free }
    }

    /// Whether the function that begins with `range` finds r10 and r11 free, and may leave them changed.
    pub(crate) fn is_free(&self, range: usize) -> bool {
        self.free.get(range) == Some(&true)
    }
}

impl Search<'_, '_, '_> {
    /// Functions that take the register; those behind whose call it is read; those that their callers may
    /// keep it across.
    fn look_for(
        &mut self,
        (register, bit): (Register, u8),
        callees: &[Vec<u32>],
        opaque: &[bool],
        odd: &[(u32, u32)],
    ) -> (Vec<bool>, Vec<bool>, Vec<bool>) {
        let survey = self.survey;
        let count = survey.ranges.len();
        let mut mentions = vec![false; count];
        for (range, body) in survey.bodies.iter().enumerate() {
            mentions[self.node[range] as usize] |= body.traits.mentions & bit != 0;
        }
        // An arrow from each function to those that hand it the register untouched.
        let mut hands = vec![Vec::new(); count];
        let mut takes = Vec::new();
        let mut read = vec![false; count];
        for at in 0..count {
            if self.node[at] as usize != at {
                continue;
            }
            if !mentions[at] {
                callees[at]
                    .iter()
                    .for_each(|to| hands[*to as usize].push(at as u32));
                continue;
            }
            let mut steps = MOST_STEPS;
            let fate = self.follow(at as u32, survey.ranges[at].address, register, &mut steps);
            if fate.is_read {
                takes.push(at as u32);
            }
            fate.reaches
                .iter()
                .for_each(|to| hands[*to as usize].push(at as u32));
        }
        let mut taken = Closure::new(&hands);
        takes.into_iter().for_each(|at| taken.add(at));
        for (from, to) in odd {
            if mentions[*to as usize] {
                taken.add(*from);
                taken.add(*to);
            }
        }
        let mut left = vec![MOST_OF_FUNCTION; count];
        for branch in &survey.branches {
            let at = self.node[branch.range as usize];
            let Some(to) = survey.range_of(branch.target) else {
                continue;
            };
            let to = self.node[to];
            if branch.kind != BranchKind::Call || !mentions[at as usize] || read[to as usize] {
                continue;
            }
            let behind = branch.from + u64::from(branch.length);
            let left = &mut left[at as usize];
            let mut steps = MOST_STEPS.min(*left);
            let given = steps;
            read[to as usize] |= self.follow(at, behind, register, &mut steps).is_read;
            *left -= given - steps;
        }
        let mut kept = Closure::new(callees);
        for (at, is_read) in read.iter().enumerate() {
            if *is_read {
                kept.add(at as u32);
            }
        }
        let kept = kept.close(opaque);
        (taken.close(&[]), read, kept)
    }

    /// What becomes of the register's value from `start` on, in the function whose node is `node`.
    fn follow(&mut self, node: u32, start: u64, register: Register, steps: &mut usize) -> Fate {
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
        register: Register,
        steps: &mut usize,
        open: &mut Vec<u64>,
        fate: &mut Fate,
    ) {
        let range = self
            .survey
            .range_of(start)
            .filter(|at| self.node[*at] == node);
        let bytes = range.and_then(|range| {
            let end = self.survey.ranges[range].end();
            self.image.bytes_at(start, end - start)
        });
        let Some(bytes) = bytes else {
            // Behind the end of what is known.
            fate.is_read = true;
            return;
        };
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        while decoder.can_decode() {
            let instruction = decoder.decode();
            if *steps == 0 || instruction.is_invalid() {
                fate.is_read = true;
                return;
            }
            *steps -= 1;
            match self.use_of(&instruction, register) {
                Use::None => {}
                Use::Written => return,
                Use::Read => {
                    fate.is_read = true;
                    return;
                }
            }
            let flow = instruction.flow_control();
            match flow {
                FlowControl::Next => {}
                FlowControl::Call if has_near_branch(&instruction) => {
                    let target = instruction.near_branch_target();
                    if self.survey.plt.contains_key(&target) {
                        return;
                    }
                    fate.reaches.extend(self.node_at(target));
                }
                // The kernel takes an argument in r10, and changes r11.
                FlowControl::Call => {
                    fate.is_read = register == Register::R10;
                    return;
                }
                FlowControl::IndirectCall | FlowControl::Return => return,
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
                    if has_near_branch(&instruction) =>
                {
                    let target = instruction.near_branch_target();
                    match self.node_at(target) {
                        Some(to) if to == node => open.push(target),
                        Some(_) if self.survey.plt.contains_key(&target) => {}
                        Some(to) => fate.reaches.push(to),
                        None => {}
                    }
                    if flow == FlowControl::UnconditionalBranch {
                        return;
                    }
                }
                FlowControl::IndirectBranch if instruction.is_ip_rel_memory_operand() => return,
                FlowControl::Interrupt | FlowControl::Exception => return,
                _ => {
                    fate.is_read = true;
                    return;
                }
            }
        }
        open.push(decoder.ip());
    }

    /// The function that `address` belongs to, by its entry's range.
    fn node_at(&self, address: u64) -> Option<u32> {
        self.survey.range_of(address).map(|range| self.node[range])
    }

    fn use_of(&mut self, instruction: &iced_x86::Instruction, register: Register) -> Use {
        if !mentions(instruction, register) {
            return Use::None;
        }
        let info = self.factory.info(instruction);
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
}

#[derive(Clone, Copy)]
enum Use {
    None,
    Written,
    Read,
}

/// Whether the register, or part of it, is an operand or part of one.
pub(crate) fn mentions(instruction: &iced_x86::Instruction, register: Register) -> bool {
    (0..instruction.op_count()).any(|operand| match instruction.op_kind(operand) {
        OpKind::Register => instruction.op_register(operand).full_register() == register,
        OpKind::Memory => {
            let parts = [instruction.memory_base(), instruction.memory_index()];
            parts.iter().any(|part| part.full_register() == register)
        }
        _ => false,
    })
}
