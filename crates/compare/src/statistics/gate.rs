//! A gate: whether a run does what normal runs do, strictly (`baseline check`).
//!
//! ```text
//!  traces ─► what each call made, without what is timing ─► sums by process ─► compared with what normal runs have
//!              (settled)                                     (behaviour)          (allowed)
//! ```
//! [`crate::compare()`] explains a difference to people, and asks how probable it is; this decides, by one rule ([`allowed`]), and says what
//! is called no more, what is new, what is called more or less often, and in another order. Two builds are compared by the names
//! of functions. If both were compiled with the same options nothing is left out. If not, those functions are that the code of one
//! of the builds cannot contain.
//!
//! *Guarantees*: what is allowed beside some normal runs is allowed beside more of them. *Costs*: linear in the trees.

mod allowed;
pub(crate) mod answer;
mod behaviour;
mod quiet;
mod settled;
mod words;

use crate::difftrace::names::are_two;
use crate::difftrace::pairing::visible;
use crate::difftrace::sequence::Lens;
use crate::difftrace::trees::Trees;
use crate::structure::arguments::Said;
use crate::structure::builds::contained::cannot_contain;
use crate::structure::source::lines;
use crate::{Error, Options};
use allowed::{Departure, departures};
use answer::{Compiled, Detail, Difference, Gate, Kind};
use behaviour::{Behaviour, behaviours};
use lockstep_calltree::FunctionKey;
use lockstep_trace::{ProcessName, Run, c_name, is_standard};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// Whether two builds were compiled with the same options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SameFlags {
    /// As the records of the binaries say; without one they were not.
    #[default]
    Auto,
    /// They were.
    Yes,
    /// They were not.
    No,
}

/// What a gate can be told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    /// How often loops go round is no matter.
    pub ignores_counts: bool,
    /// Whether two builds were compiled with the same options.
    pub same_flags: SameFlags,
}

/// Decides about two builds.
fn compiled(runs: &[&Run], rules: Rules) -> Compiled {
    if !are_two(runs) {
        return Compiled::Once;
    }
    let options = |run: &Run| -> BTreeSet<BTreeSet<String>> {
        let programs = visible(run).filter(|it| !it.is_launcher());
        programs.map(|it| it.compiled.options.clone()).collect()
    };
    let mut all = runs.iter().map(|run| options(run));
    let first = all.next().unwrap_or_default();
    let is_known = !first.is_empty() && first.iter().all(|it| !it.is_empty());
    match rules.same_flags {
        SameFlags::Yes => Compiled::Alike,
        SameFlags::Auto if is_known && all.all(|it| it == first) => Compiled::Alike,
        SameFlags::Auto | SameFlags::No => Compiled::Otherwise,
    }
}

/// Whether `run` does what the normal runs do.
///
/// # Errors
/// No normal run; a pattern that does not parse; traces that are too large.
pub fn gate(normals: &[&Run], run: &Run, options: &Options, rules: Rules) -> Result<Gate, Error> {
    if normals.is_empty() {
        return Err(Error::Nothing("expected a normal run, found none".into()));
    }
    let runs: Vec<&Run> = normals.iter().copied().chain([run]).collect();
    let mut trees = Trees::new(&runs, options)?.refuse_some()?;
    let builds = compiled(&runs, rules);
    let mut left_out = FxHashSet::default();
    if builds == Compiled::Otherwise {
        left_out = cannot_contain(&trees);
        trees.leave_out(left_out.iter().copied());
    }
    let lens = (!options.sweep).then(|| Lens::of(options));
    trees.close(lens.as_ref());
    let mut all = behaviours(&trees);
    let now = all.pop().unwrap_or_default();
    let before: Vec<_> = all.iter().collect();
    let found = departures(&before, &now, rules.ignores_counts);
    let case = Case {
        trees: &trees,
        before: &before,
        now: &now,
        builds,
    };
    let differences = case.differences(found);
    let left_out: BTreeSet<String> = (left_out.iter())
        .map(|it| trees.forest.function(*it).name.clone())
        .collect();
    Ok(Gate {
        differs: !differences.is_empty(),
        verdict: words::verdict(&differences, normals.len()),
        builds,
        left_out: left_out.into_iter().collect(),
        differences,
    })
}

/// What is needed to tell of departures.
struct Case<'a> {
    trees: &'a Trees<'a>,
    before: &'a [&'a Behaviour],
    now: &'a Behaviour,
    builds: Compiled,
}

impl Case<'_> {
    fn name(&self, function: FunctionKey) -> String {
        self.trees.forest.function(function).name.clone()
    }

    /// Departures as differences: those of several processes once, without those that say no more than another.
    fn differences(&self, found: Vec<(ProcessName, Departure)>) -> Vec<Difference> {
        // Whose number of calls is not as before.
        let mut changed: BTreeSet<(ProcessName, FunctionKey)> = BTreeSet::new();
        // Whose calls are not as many as before.
        let mut callers: BTreeSet<(ProcessName, Option<FunctionKey>)> = BTreeSet::new();
        let mut names: BTreeSet<(ProcessName, String)> = BTreeSet::new();
        for (process, departure) in &found {
            if let Departure::Calls { edge, .. } = departure {
                changed.insert((*process, edge.1));
                callers.insert((*process, edge.0));
                names.insert((*process, c_name(&self.name(edge.1)).into_owned()));
            }
        }
        let mut told: BTreeMap<String, (bool, Difference)> = BTreeMap::new();
        for (process, departure) in found {
            let says_more = match &departure {
                Departure::Order { function, .. } => {
                    !callers.contains(&(process, Some(*function)))
                        && !changed.contains(&(process, *function))
                }
                Departure::Given { function, .. } => !names.contains(&(process, function.clone())),
                _ => true,
            };
            if !says_more {
                continue;
            }
            let mut difference = self.difference(process, &departure);
            difference.follows = match &departure {
                Departure::Calls {
                    edge: (Some(caller), callee),
                    ..
                } => caller != callee && changed.contains(&(process, *caller)),
                _ => false,
            };
            let key = format!(
                "{:?} {:?} {:?} {:?} {:?} {}",
                difference.kind,
                difference.function,
                difference.caller,
                difference.normal,
                difference.detail,
                difference.follows
            );
            match told.get_mut(&key) {
                Some((_, same)) => same.processes.push(process),
                None => {
                    told.insert(key, (self.is_library(&departure), difference));
                }
            }
        }
        // What the program's own functions do comes before what they call in libraries.
        let mut all: Vec<(bool, Difference)> = told.into_values().collect();
        all.sort_by_key(|(is_library, it)| {
            (
                it.follows,
                *is_library,
                it.kind,
                it.caller.clone(),
                it.function.clone(),
            )
        });
        let mut all: Vec<Difference> = all.into_iter().map(|(_, it)| it).collect();
        // Two functions that call each other explain nothing.
        if all.iter().all(|it| it.follows) {
            all.iter_mut().for_each(|it| it.follows = false);
        }
        all
    }

    /// Whether it is about a call of a library's function.
    fn is_library(&self, departure: &Departure) -> bool {
        let Departure::Calls { edge, .. } = departure else {
            return false;
        };
        let function = self.trees.forest.function(edge.1);
        function.imported || is_standard(&function.name)
    }

    fn difference(&self, process: ProcessName, departure: &Departure) -> Difference {
        let mut told = Difference {
            processes: vec![process],
            is_alone: self.now.processes.len() == 1,
            ..Difference::default()
        };
        match departure {
            Departure::Missing => told.kind = Kind::Missing,
            Departure::Extra => told.kind = Kind::Extra,
            Departure::End { normal, now } => {
                told.kind = Kind::End;
                told.detail = Some(Detail::End {
                    now: words::ended(*now),
                    normal: words::ended(*normal),
                });
            }
            Departure::Calls { edge, normal, now } => {
                told.function = Some(self.name(edge.1));
                told.caller = edge.0.map(|it| self.name(it));
                told.normal = Some([normal.fewest, normal.most]);
                told.now = Some(*now);
                told.kind = match () {
                    () if *now == 0 && !is_called(self.now, process, edge.1) => Kind::Gone,
                    () if normal.most == 0
                        && !(self.before.iter()).any(|it| is_called(it, process, edge.1)) =>
                    {
                        Kind::New
                    }
                    () => Kind::Count,
                };
                told.source = self.source(*edge);
                told.may_be_inlined = self.builds == Compiled::Otherwise
                    && matches!(told.kind, Kind::Gone | Kind::New)
                    && self.is_unsure(told.kind);
            }
            Departure::Order { function, new } => {
                told.function = Some(self.name(*function));
                let name = |it: &Option<FunctionKey>| it.map(|it| self.name(it));
                told.detail = (new.as_ref()).map(|(a, b)| Detail::Pair(name(a), name(b)));
                let callee = new.and_then(|it| it.1);
                told.source = callee.and_then(|it| self.source((Some(*function), it)));
            }
            Departure::Given {
                function,
                said,
                normal,
            } => {
                told.kind = Kind::Argument;
                told.function = Some(function.clone());
                told.detail = said.as_ref().map(|(name, said)| Detail::Argument {
                    name,
                    now: said.to_string(),
                    normal: normal.iter().map(Said::to_string).collect(),
                });
            }
        }
        told
    }

    /// Whether the build that does not call a function has nothing that says whether it was inlined.
    fn is_unsure(&self, kind: Kind) -> bool {
        let unknown = |run: &Run| {
            let mut programs = visible(run).filter(|it| !it.is_launcher());
            programs.any(|it| it.compiled.inlined.is_none())
        };
        match kind {
            Kind::Gone => unknown(self.trees.last().run),
            _ => self.trees.normals().iter().any(|it| unknown(it.run)),
        }
    }

    /// Where one calls the other: in this run's program, or in that of a normal one.
    fn source(
        &self,
        (caller, callee): (Option<FunctionKey>, FunctionKey),
    ) -> Option<(String, u32)> {
        let line = lines(self.trees, caller?, callee).into_iter().next()?;
        Some((line.file, line.line))
    }
}

/// Whether a process calls a function at all, whoever does.
fn is_called(run: &Behaviour, process: ProcessName, function: FunctionKey) -> bool {
    let of_process = run.processes.get(&process);
    of_process.is_some_and(|it| {
        let mut calls = it.calls.iter();
        calls.any(|(edge, amount)| edge.1 == function && amount.times > 0)
    })
}

impl Gate {
    /// The differences in sentences, causes alone.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        let causes = self.differences.iter().filter(|it| !it.follows);
        causes.map(words::sentence)
    }
}
