//! A walk over the control-flow graph of one function: in which loops it is, and how often it went round each.
//!
//! *Guarantees*: counters of a loop begin again each time it is entered. *Costs*: O(depth) a step; what is repeated
//! is a multiplication ([`Walk::follows`], [`Walk::repeat`]). *Not for*: which of the counts is the iteration, see
//! [`crate::shown`] and [`crate::iteration`].

use crate::iteration::Rounds;
use crate::nesting::{ENTRY, Loop, Nesting, Place};
use lockstep_calltree::FunctionKey;

/// Where a walk over a graph is, and in which iteration of the loops around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Walk {
    pub at: Place,
    /// The loops around `at`, outermost first.
    pub loops: Vec<Turn>,
    /// For each of them, how it went round since it entered.
    pub rounds: Vec<Rounds>,
    /// Loops that it left in this iteration of those around it, as it left them.
    pub left: Vec<Turn>,
}

/// An activation of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Turn {
    pub index: usize,
    /// The iteration, from 1: how often it came to where it entered (of an alternative, to any header).
    pub iteration: u64,
    /// How often it came to any header.
    pub passes: u64,
    /// The same, counting those of inner loops of the same header, too.
    pub total: u64,
    /// Through which header it was entered: an iteration begins there. (A task that does `b a` where
    /// another does `a b` enters by `b`; both are then in the same iteration.)
    pub entered: Place,
}

/// Where in an open call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Level {
    /// The function; `None` is the thread.
    pub function: Option<FunctionKey>,
    /// Which of the functions that it calls.
    pub at: Place,
    /// Whether that call is open; else it was the last.
    pub inside: bool,
    /// The loops of the function around it, outermost first.
    pub loops: Vec<Turn>,
    /// The same, if iterations begin with other calls, too ([`crate::nesting::Flow::otherwise`]).
    pub otherwise: Vec<Turn>,
}

impl Walk {
    pub fn new() -> Self {
        Self {
            at: ENTRY,
            loops: Vec::new(),
            rounds: Vec::new(),
            left: Vec::new(),
        }
    }

    /// One step. Counters of loops that are left or entered anew begin again. If it leads back in a loop, which
    /// of `loops` that is.
    pub fn step(&mut self, to: Place, nesting: &Nesting) -> Option<usize> {
        let around = nesting.around(to);
        let common = self
            .loops
            .iter()
            .zip(around)
            .take_while(|(turn, index)| turn.index == **index)
            .count();
        let gone = self.loops.drain(common..);
        self.left.extend(gone);
        self.rounds.truncate(common);
        let of = |turn: &Turn| &nesting.loops[turn.index];
        // The innermost loop that the edge leads back in.
        let at = self.at;
        let is_back = |it: &Loop| it.contains(at) && it.is_header(to);
        let innermost = self.loops.iter().rposition(|turn| is_back(of(turn)));
        if let Some(innermost) = innermost {
            let mut first = innermost;
            while first > 0
                && of(&self.loops[first]).is_shared
                && of(&self.loops[first - 1]).is_header(to)
            {
                first -= 1;
            }
            for turn in &mut self.loops[first..=innermost] {
                turn.total += 1;
            }
            for (index, rounds) in self.rounds.iter_mut().enumerate().skip(first) {
                if index <= innermost {
                    rounds.pass(to, index == innermost);
                }
            }
            let turn = &mut self.loops[innermost];
            let around = &nesting.loops[turn.index];
            turn.passes += 1;
            if around.is_alternative || turn.entered == to {
                turn.iteration += 1;
            }
            let begun = turn.index;
            self.left.retain(|it| !nesting.is_within(it.index, begun));
            self.loops.truncate(innermost + 1);
            self.rounds.truncate(innermost + 1);
        }
        for &index in &around[self.loops.len()..] {
            self.left.retain(|it| !nesting.is_within(it.index, index));
            let is_header = nesting.loops[index].is_header(to);
            self.rounds.push(Rounds::new(to, is_header));
            self.loops.push(Turn {
                index,
                iteration: 1,
                passes: 1,
                total: 1,
                entered: match nesting.loops[index].is_alternative {
                    true => nesting.loops[index].headers[0],
                    false => to,
                },
            });
        }
        self.at = to;
        innermost
    }

    /// Whether it came to the same node, with counters that did not begin again.
    pub fn follows(&self, before: &Self) -> bool {
        let mut turns = before.loops.iter().zip(&self.loops);
        let mut rounds = before.rounds.iter().zip(&self.rounds);
        before.at == self.at
            && before.left == self.left
            && before.loops.len() == self.loops.len()
            && turns.all(|(a, b)| {
                (a.index, a.entered) == (b.index, b.entered)
                    && a.iteration <= b.iteration
                    && a.passes <= b.passes
                    && a.total <= b.total
            })
            && rounds.all(|(a, b)| b.follows(a))
    }

    /// Goes on `times` more as from `before` to here.
    pub fn repeat(&mut self, before: &Self, times: u64) {
        for (turn, before) in self.loops.iter_mut().zip(&before.loops) {
            turn.iteration += times * (turn.iteration - before.iteration);
            turn.passes += times * (turn.passes - before.passes);
            turn.total += times * (turn.total - before.total);
        }
        for (rounds, before) in self.rounds.iter_mut().zip(&before.rounds) {
            rounds.repeat(before, times);
        }
    }

    /// It left all loops that it was in, and enters here those that it is in now.
    pub fn enter(&mut self, nesting: &Nesting) {
        let is_header = |turn: &Turn| nesting.loops[turn.index].is_header(self.at);
        let rounds = self
            .loops
            .iter()
            .map(|turn| Rounds::new(self.at, is_header(turn)));
        self.rounds = rounds.collect();
    }
}
