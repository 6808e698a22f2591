//! Parts of traces (`--from`, `--to`): the tree of what lies between a call of one function and the next of another.
//!
//! ```text
//!   main  init  step  solve  ... step  solve ...  finish        --from step --to finish
//!               └──────────── the part ────────┘
//! ```
//! The part begins with the first call of the one and ends before the next call of the other. A return whose call lies
//! before the part is no part of it; a call that is open where the part ends is told as closed there, as it says nothing.

use crate::{Error, Part};

use super::filter;
use lockstep_calltree::{Builder, Forest, FunctionMap, Trace};
use lockstep_trace::{Event, Function, Run, Thread, c_name};
use regex::Regex;

/// Where parts begin and end.
#[derive(Default)]
pub(crate) struct Bounds {
    from: Option<Regex>,
    to: Option<Regex>,
}

impl Bounds {
    pub(crate) fn new(part: &Part) -> Result<Self, Error> {
        Ok(Self {
            from: filter::maybe("--from", part.from.as_deref())?,
            to: filter::maybe("--to", part.to.as_deref())?,
        })
    }

    /// What was given and no function's name is like, if there is such.
    pub(crate) fn refuse_strangers(
        &self,
        split_at: Option<&Regex>,
        forest: &Forest,
    ) -> Result<(), Error> {
        let told = [
            ("--from", self.from.as_ref()),
            ("--to", self.to.as_ref()),
            ("--split-at", split_at),
        ];
        for (option, regex) in told {
            let Some(regex) = regex else { continue };
            let mut functions = forest.functions().iter();
            if !functions.any(|function| regex.is_match(&c_name(&function.name))) {
                return Err(Error::Nothing(format!(
                    "{option}: expected a name among the functions of the runs, found `{regex}`, which is none of them"
                )));
            }
        }
        Ok(())
    }

    /// Whether traces are looked at as they are.
    pub(crate) fn is_none(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Of some traces of a run the trees of their parts, and where these lie.
    pub(crate) fn add_traces(
        &self,
        forest: &mut Forest,
        run: &Run,
        functions: &FunctionMap,
        threads: &[&Thread],
    ) -> Vec<(Trace, Cut)> {
        let of = |regex: &Option<Regex>| -> Vec<bool> {
            let is = |function: &Function| {
                regex
                    .as_ref()
                    .is_some_and(|regex| regex.is_match(&c_name(&function.name)))
            };
            run.functions.iter().map(is).collect()
        };
        let (starts, ends) = (of(&self.from), of(&self.to));
        let each = threads.iter().map(|thread| {
            let begins = self.from.is_none();
            cut(forest, functions, thread, begins, &starts, &ends)
        });
        each.collect()
    }
}

/// Where the events of a part lie in its trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The first event of the part, and that behind its last.
    from: u64,
    to: u64,
    /// Events between that are no part of it, ascending.
    dropped: Vec<u64>,
    /// Whether the part begins at all.
    pub(crate) begins: bool,
    /// Whether it ends before the trace does.
    pub(crate) ends: bool,
}

impl Cut {
    /// The event of the trace that is this one of the part.
    pub(crate) fn of_trace(&self, event: u64) -> u64 {
        let mut event = self.from + event;
        for dropped in &self.dropped {
            event += u64::from(*dropped <= event);
        }
        event
    }

    /// The event of the part that is this one of the trace, if it is one.
    pub(crate) fn of_part(&self, event: u64) -> Option<u64> {
        let inside = (self.from..self.to).contains(&event) && !self.dropped.contains(&event);
        let before = self.dropped.iter().filter(|it| **it < event).count();
        inside.then(|| event - self.from - before as u64)
    }
}

fn cut(
    forest: &mut Forest,
    functions: &FunctionMap,
    thread: &Thread,
    begins: bool,
    starts: &[bool],
    ends: &[bool],
) -> (Trace, Cut) {
    let mut found = Cut {
        from: if begins { 0 } else { thread.events },
        to: thread.events,
        begins,
        ..Cut::default()
    };
    let mut builder = Builder::new(forest);
    let (mut open, mut handed_over) = (0u64, false);
    for (event, at) in thread.events().zip(0..) {
        if let Event::Call(function) = event {
            let function = function.0 as usize;
            if found.begins && ends[function] {
                (found.to, found.ends) = (at, true);
                break;
            }
            if !found.begins && starts[function] {
                (found.from, found.begins) = (at, true);
            }
        }
        if !found.begins {
            continue;
        }
        match event {
            // A frame that is handed over ends with the call that comes next.
            Event::Call(_) => open += u64::from(!std::mem::take(&mut handed_over)),
            Event::Tail if open > 0 => handed_over = true,
            Event::Return if open > 0 => open -= 1,
            Event::Return | Event::Tail => {
                found.dropped.push(at);
                continue;
            }
        }
        builder.event(event, functions);
    }
    if found.ends {
        (0..open).for_each(|_| builder.ret());
    }
    let left_out = builder.left_out();
    let root = builder.finish();
    let trace = Trace {
        name: thread.name,
        root,
        left_out,
    };
    (trace, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_part_and_of_its_trace() {
        let cut = Cut {
            from: 10,
            to: 20,
            dropped: vec![12, 13, 17],
            begins: true,
            ends: true,
        };
        let all: Vec<u64> = (0..7).map(|event| cut.of_trace(event)).collect();
        assert_eq!(all, [10, 11, 14, 15, 16, 18, 19]);
        for (part, trace) in (0..).zip(all) {
            assert_eq!(cut.of_part(trace), Some(part));
        }
        for outside in [0, 9, 12, 13, 17, 20] {
            assert_eq!(cut.of_part(outside), None);
        }
    }
}
