//! What only one build calls, and the other could have called: no compiler inlined that there.
//!
//! ```text
//!  normal   main( setup apply_bc step )     its code calls apply_bc in 1 place
//!  faulty   main( setup step )              its code does, too: the run did not come there, and that is told
//! ```
//!
//! Such a call is told by the code of whoever made it, which has to call the function in the other build in as many
//! places: where some are gone a compiler inlined some, and those that are left may be others (on a path that ends the
//! program, say). Where that code calls a part of a function, the rest of it was inlined. A call through a pointer is one still
//! where the caller's code calls the same in both builds, and the address of the function is taken in the other (of two equal
//! functions a compiler may keep one). What a library calls back, or what begins a thread, nobody inlines where its address is taken.
//!
//! *Guarantees*: pure; what is not known (a plan of an older recorder, an imported run) tells for inlining. *Costs*: of the functions that one build alone calls, and
//! those that call them.

use lockstep_calltree::{FunctionKey, FunctionMap};
use lockstep_trace::{Function, FunctionId, Run, base_name, original_name};
use rustc_hash::{FxHashMap, FxHashSet};

/// The code of a function, of all functions of that name in a build.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Body {
    /// Its bytes.
    pub(crate) length: u64,
    /// In how many places it calls others.
    pub(crate) calls: FxHashMap<FunctionKey, u32>,
    /// Functions of which it calls a part.
    pub(crate) parts: FxHashSet<FunctionKey>,
    /// In how many places it calls what a pointer leads to.
    pub(crate) computed: u32,
    /// Whose addresses it takes.
    pub(crate) takes: FxHashSet<FunctionKey>,
    /// Whether its own address is taken.
    pub(crate) is_taken: bool,
}

/// What the code of a build could call: the bodies of each function, several where it has clones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Code {
    bodies: FxHashMap<FunctionKey, Vec<Body>>,
    /// Names of functions that could not be recorded.
    refused: FxHashSet<String>,
    /// Whether it has functions without names, or that were not to be recorded.
    has_strangers: bool,
}

/// Whether a compiler splits such a function off another.
fn is_part(function: &Function) -> bool {
    original_name(&function.linkage) != base_name(&function.linkage)
}

impl Code {
    /// Adds the bodies of a run's programs.
    pub(crate) fn add(&mut self, run: &Run, keys: &FunctionMap) {
        let coverage = || run.processes.iter().map(|it| &it.coverage);
        // Not all calls of these are recorded.
        let pointers: FxHashSet<&str> = coverage()
            .flat_map(|it| it.pointers.iter().map(|it| it.name.as_str()))
            .collect();
        let refused = coverage().flat_map(|it| it.refused.iter().map(|it| it.name.clone()));
        self.refused.extend(refused);
        self.has_strangers |= coverage().any(|it| it.left_out > 0);
        for (function, id) in run.functions.iter().zip((0..).map(FunctionId)) {
            self.has_strangers |= function.linkage.contains("+0x");
            // A part is told by who calls it.
            if function.imported || is_part(function) {
                continue;
            }
            let mut body = body(function, run, keys);
            body.is_taken &= !pointers.contains(function.name.as_str());
            let bodies = self.bodies.entry(keys.key(id)).or_default();
            if !bodies.contains(&body) {
                bodies.push(body);
            }
        }
    }

    fn bodies(&self, function: FunctionKey) -> &[Body] {
        self.bodies.get(&function).map_or(&[], Vec::as_slice)
    }

    /// Whether the build has that function.
    fn has(&self, function: FunctionKey) -> bool {
        !self.bodies(function).is_empty()
    }

    /// Whether it is known that the build does not have the function of that name.
    pub(crate) fn lacks(&self, function: FunctionKey, name: &str) -> bool {
        !(self.has_strangers || self.has(function) || self.refused.contains(name))
    }

    fn is_taken(&self, function: FunctionKey) -> bool {
        self.bodies(function).iter().any(|it| it.is_taken)
    }

    /// Whether a function calls the same in as many places in both builds: a compiler that did otherwise with what it calls
    /// would be seen there.
    fn goes_on_as(&self, other: &Self, function: FunctionKey) -> bool {
        let (own, others) = (self.bodies(function), other.bodies(function));
        let is_same = |(a, b): (&Body, &Body)| {
            (&a.calls, &a.parts, a.computed, &a.takes) == (&b.calls, &b.parts, b.computed, &b.takes)
        };
        !own.is_empty() && own.len() == others.len() && own.iter().zip(others).all(is_same)
    }

    /// Whether it does, and is as long: the same compiler made the same of it.
    fn is_as_in(&self, other: &Self, function: FunctionKey) -> bool {
        let lengths = |code: &Self| -> Vec<u64> {
            let bodies = code.bodies(function).iter();
            bodies.map(|it| it.length).collect()
        };
        self.goes_on_as(other, function) && lengths(self) == lengths(other)
    }

    /// Functions that compilers can have inlined or moved in one build and not in the other: the code of some that call them is not
    /// the same, or pointers lead to them.
    pub(crate) fn changed(&self, other: &Self) -> FxHashSet<FunctionKey> {
        let mut changed = FxHashSet::default();
        let callers: FxHashSet<FunctionKey> = self
            .bodies
            .keys()
            .chain(other.bodies.keys())
            .copied()
            .collect();
        for caller in callers {
            let bodies = || self.bodies(caller).iter().chain(other.bodies(caller));
            if bodies().any(|it| it.is_taken) {
                changed.insert(caller);
            }
            if !self.is_as_in(other, caller) {
                let called = bodies().flat_map(|it| it.calls.keys().chain(&it.parts));
                changed.extend(called.copied());
            }
        }
        changed
    }

    /// Functions that the code calls by name.
    pub(crate) fn called(&self) -> FxHashSet<FunctionKey> {
        let bodies = self.bodies.values().flatten();
        bodies.flat_map(|it| it.calls.keys().copied()).collect()
    }
}

fn body(function: &Function, run: &Run, keys: &FunctionMap) -> Body {
    let code = &function.code;
    let mut body = Body {
        length: code.length,
        computed: code.computed,
        is_taken: code.is_taken,
        takes: code.takes.iter().map(|it| keys.key(*it)).collect(),
        ..Body::default()
    };
    for (callee, places) in &code.calls {
        let key = keys.key(*callee);
        if is_part(run.function(*callee)) {
            body.parts.insert(key);
        } else {
            *body.calls.entry(key).or_default() += places;
        }
    }
    body
}

fn places(body: &Body, callee: FunctionKey) -> u32 {
    body.calls.get(&callee).copied().unwrap_or(0)
}

/// A build that calls functions which the other does not call, and that other.
pub(crate) struct Beside<'a> {
    /// The code of the one.
    pub(crate) own: &'a Code,
    /// The code of the other.
    pub(crate) other: &'a Code,
    /// Whether the other calls a function.
    pub(crate) calls: &'a dyn Fn(FunctionKey) -> bool,
    /// Whether a function is a library's.
    pub(crate) is_imported: &'a dyn Fn(FunctionKey) -> bool,
}

impl Beside<'_> {
    /// Which of `alone`, functions that one build alone calls, each with its callers in it, the other build could have called,
    /// and by none of its callers inlined. `None` is who calls what begins a thread.
    pub(crate) fn reachable(
        &self,
        alone: &FxHashMap<FunctionKey, FxHashSet<Option<FunctionKey>>>,
    ) -> FxHashSet<FunctionKey> {
        let has = |function: &FunctionKey| self.other.has(*function);
        let mut found: FxHashSet<FunctionKey> = alone.keys().copied().filter(has).collect();
        // A caller that the other does not call, either, is told of only if it could have been called itself.
        loop {
            let before = found.len();
            let still: FxHashSet<FunctionKey> = (found.iter())
                .filter(|function| {
                    let mut callers = alone[*function].iter();
                    callers.all(|caller| {
                        *caller == Some(**function) || self.is_call(*caller, **function, &found)
                    })
                })
                .copied()
                .collect();
            found = still;
            if found.len() == before {
                return found;
            }
        }
    }

    /// Whether the other build's `caller` would have called that function as the one does.
    fn is_call(
        &self,
        caller: Option<FunctionKey>,
        function: FunctionKey,
        reachable: &FxHashSet<FunctionKey>,
    ) -> bool {
        let Some(caller) = caller else {
            return self.other.is_taken(function);
        };
        if !(self.calls)(caller) && !reachable.contains(&caller) {
            return false;
        }
        if (self.is_imported)(caller) {
            return self.other.is_taken(function);
        }
        let (own, others) = (self.own.bodies(caller), self.other.bodies(caller));
        let most = |of: &dyn Fn(&Body) -> u32| own.iter().map(of).max().unwrap_or(0);
        let fewest = |of: &dyn Fn(&Body) -> u32| others.iter().map(of).min().unwrap_or(0);
        let direct = most(&|it| places(it, function));
        if direct > 0 {
            let is_split = others.iter().any(|it| it.parts.contains(&function));
            return !is_split && fewest(&|it| places(it, function)) >= direct;
        }
        self.other.is_taken(function)
            && own.iter().any(|it| it.computed > 0)
            && self.own.goes_on_as(self.other, caller)
    }
}

#[cfg(test)]
#[path = "reached_tests.rs"]
mod tests;
