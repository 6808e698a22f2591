//! Paths of functions as the helper writes them down.

use super::walk::all;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn function(name: &str, steps: &str) -> Function {
    Function {
        function: name.to_owned(),
        file: "f.go".to_owned(),
        steps: serde_json::from_str(steps).unwrap_or_else(|error| panic!("{error}: {steps}")),
    }
}

/// `lock 3 p0.mu`, as the helper has it.
fn step(what: &str, line: u32, path: &str) -> String {
    let lock = format!(r#"{{"path":"{path}","class":"T.mu","said":"t.mu"}}"#);
    format!(r#"{{"do":"{what}","line":{line},"lock":{lock}}}"#)
}

/// What is found, by lines: `again 3 5`, `kept 3 7`.
fn found(functions: &[Function]) -> Vec<String> {
    let paths = Paths::of(functions);
    let words = paths.hazards.iter().map(|it| match it {
        Hazard::Again { held, wanted } => {
            let via: String = wanted
                .via
                .iter()
                .map(|it| format!(" via {}", it.line))
                .collect();
            format!("again {} {}{via}", held.place.line, wanted.place.line)
        }
        Hazard::Kept { held, out } => format!("kept {} {}", held.place.line, out.line),
    });
    words.collect()
}

fn of_one(steps: &str) -> Vec<String> {
    found(&[function("f", steps)])
}

#[test]
fn a_round_that_keeps_the_lock_meets_it_again() {
    let (lock, unlock) = (step("lock", 2, "p0.mu"), step("unlock", 4, "p0.mu"));
    let body = format!(
        r#"{lock}, {{"do":"branch","if":"t.full","arms":[[{unlock},{{"do":"return","line":5}}],[]]}}"#
    );
    let endless = format!(r#"[{{"do":"loop","endless":true,"body":[{body}]}}]"#);
    assert_eq!(of_one(&endless), ["again 2 2"]);
}

#[test]
fn a_way_out_that_keeps_what_another_gives_back() {
    let (lock, unlock) = (step("lock", 2, "p0.mu"), step("unlock", 6, "p0.mu"));
    let early = r#"{"do":"branch","if":"t.busy","arms":[[{"do":"return","line":4}],[]]}"#;
    let late = r#"{"do":"return","line":7}"#;
    assert_eq!(
        of_one(&format!("[{lock},{early},{unlock},{late}]")),
        ["kept 2 4"]
    );
    // A deferred unlock is on every way, a function that leaves it to its caller on none, and one that another
    // function ends is meant so.
    let deferred = format!(r#"{{"do":"defer","body":[{unlock}]}}"#);
    assert!(of_one(&format!("[{lock},{deferred},{early},{late}]")).is_empty());
    assert!(of_one(&format!("[{lock},{early},{late}]")).is_empty());
    let first = function("f", &format!("[{lock},{early},{unlock},{late}]"));
    let other = function("g", &format!("[{}]", step("unlock", 9, "p1.mu")));
    assert!(found(&[first, other]).is_empty());
}

#[test]
fn what_is_asked_twice_has_one_answer_unless_it_changes() {
    let (lock, unlock) = (step("lock", 2, "p0.mu"), step("unlock", 4, "p0.mu"));
    let when = |step: &str| format!(r#"{{"do":"branch","if":"busy","arms":[[{step}],[]]}}"#);
    let out = r#"{"do":"return","line":5}"#;
    let same = format!("[{},{},{out}]", when(&lock), when(&unlock));
    assert!(of_one(&same).is_empty());
    let changed = r#"{"do":"assign","is":["busy"]}"#;
    let other = format!("[{},{changed},{},{out}]", when(&lock), when(&unlock));
    // On the fourth way it is unlocked without being held: somebody else's lock, so nothing is said.
    assert!(of_one(&other).is_empty());
    let early = r#"{"do":"branch","if":"busy","arms":[[{"do":"return","line":3}],[]]}"#;
    let kept = format!("[{lock},{changed},{early},{unlock},{out}]");
    assert_eq!(of_one(&kept), ["kept 2 3"]);
}

#[test]
fn callers_hear_of_what_is_locked_below_even_in_a_circle_of_calls() {
    let call = |line: u32, to: &str, on: &str| {
        format!(r#"{{"do":"call","line":{line},"to":"{to}","passed":["{on}"]}}"#)
    };
    let maybe = |step: String| format!(r#"{{"do":"branch","arms":[[{step}],[]]}}"#);
    let lock = step("lock", 2, "p0.mu");
    let deferred = format!(
        r#"{{"do":"defer","body":[{}]}}"#,
        step("unlock", 3, "p0.mu")
    );
    let get = format!("[{lock},{deferred},{}]", maybe(call(4, "fill", "p0")));
    let fill = format!("[{}]", maybe(call(8, "get", "p0")));
    for order in [["get", "fill"], ["fill", "get"]] {
        let steps = |name: &str| if name == "get" { &get } else { &fill };
        let all = order.map(|it| function(it, steps(it)));
        assert_eq!(found(&all), ["again 2 2 via 4 via 8"]);
    }
    // Another object's.
    let other = format!("[{lock},{deferred},{}]", maybe(call(4, "fill", "p1")));
    assert!(found(&[function("get", &other), function("fill", &fill)]).is_empty());
    // What is locked only where the caller says so is not every caller's.
    let given = |step: &str| format!(r#"[{{"do":"branch","given":true,"arms":[[{step}],[]]}}]"#);
    let get = format!("[{lock},{deferred},{}]", call(4, "put", "p0"));
    let both = [
        function("get", &get),
        function("put", &given(&step("lock", 9, "p0.mu"))),
    ];
    assert!(found(&both).is_empty());
}

#[test]
fn functions_that_lock_for_their_callers() {
    let call = |line: u32, to: &str| {
        format!(r#"{{"do":"call","line":{line},"to":"{to}","passed":["p0"]}}"#)
    };
    let enter = function("enter", &format!("[{}]", step("lock", 2, "p0.mu")));
    let leave = function("leave", &format!("[{}]", step("unlock", 5, "p0.mu")));
    let right = format!(
        "[{},{},{},{}]",
        call(10, "enter"),
        call(11, "leave"),
        call(12, "enter"),
        call(13, "leave")
    );
    assert!(found(&[enter.clone(), leave.clone(), function("f", &right)]).is_empty());
    // A lock that is given back for a while is free then.
    let wait = format!(
        "[{},{}]",
        step("unlock", 20, "p0.mu"),
        step("lock", 21, "p0.mu")
    );
    let held = format!(
        "[{},{},{}]",
        step("lock", 30, "p0.mu"),
        call(31, "wait"),
        step("unlock", 32, "p0.mu")
    );
    assert!(found(&[function("wait", &wait), function("f", &held)]).is_empty());
    // With everybody's locks in sight: those of `enter` are told where it is called twice.
    let twice = format!("[{},{}]", call(10, "enter"), call(11, "enter"));
    let (paths, _) = {
        let all_of = [enter, leave, function("f", &twice)];
        let (paths, handed) = all(&all_of);
        (paths.hazards, handed.len())
    };
    assert_eq!(paths.len(), 1);
}

#[test]
fn a_variable_that_changes_is_another_object() {
    let steps = format!(
        r#"[{},{{"do":"assign","is":["t"]}},{}]"#,
        step("lock", 2, "v:1"),
        step("lock", 3, "v:1")
    );
    assert!(of_one(&steps).is_empty());
}

#[test]
fn orders_of_locks_are_told_with_what_leads_to_them() {
    let other = r#"{"do":"lock","line":9,"lock":{"path":"p0.mu","class":"U.mu","said":"u.mu"}}"#;
    let first = format!(
        r#"[{},{{"do":"call","line":3,"to":"g","passed":["p0.home"]}}]"#,
        step("lock", 2, "p0.mu")
    );
    let paths = Paths::of(&[function("f", &first), function("g", &format!("[{other}]"))]);
    let [nesting] = &paths.nestings[..] else {
        panic!("{paths:?}")
    };
    assert_eq!(
        (&*nesting.held.class, &*nesting.wanted.class),
        ("T.mu", "U.mu")
    );
    assert_eq!(nesting.wanted.via.len(), 1);
    assert!(paths.hazards.is_empty());
}

#[test]
fn too_many_states_are_given_up() {
    let branches: Vec<String> = (0..20)
        .map(|it| {
            let lock = step("lock", it + 1, &format!("p0.m{it}"));
            format!(r#"{{"do":"branch","arms":[[{lock}],[]]}}"#)
        })
        .collect();
    assert!(of_one(&format!("[{}]", branches.join(","))).is_empty());
}

/// Steps of one function; lines are given when they are there.
fn steps(depth: u32, in_loop: bool) -> BoxedStrategy<Vec<Step>> {
    let lock = |path: &'static str| Lock {
        path: path.to_owned(),
        class: path.to_owned(),
        said: path.to_owned(),
    };
    let path = prop_oneof![Just("p0.a"), Just("p0.b")];
    let leaf = prop_oneof![
        3 => path.clone().prop_map(move |it| Step::Lock { line: 0, lock: lock(it) }),
        3 => path.clone().prop_map(move |it| Step::Unlock { line: 0, lock: lock(it) }),
        1 => Just(Step::Return { line: 0 }),
        1 => path.prop_map(move |it| Step::Defer { body: vec![Step::Unlock { line: 0, lock: lock(it) }] }),
    ];
    let jump = prop_oneof![
        Just(Step::Break {
            label: String::new()
        }),
        Just(Step::Continue {
            label: String::new()
        }),
    ];
    let leaf = if in_loop {
        prop_oneof![8 => leaf, 2 => jump].boxed()
    } else {
        leaf.boxed()
    };
    if depth == 0 {
        return prop::collection::vec(leaf, 0..4).boxed();
    }
    let branch =
        prop::collection::vec(steps(depth - 1, in_loop), 2).prop_map(|arms| Step::Branch {
            arms,
            asks: String::new(),
            label: String::new(),
            breaks: false,
            given: false,
        });
    let each = (steps(depth - 1, true), any::<bool>()).prop_map(|(body, endless)| Step::Loop {
        body,
        label: String::new(),
        endless,
    });
    let literal = steps(depth - 1, false).prop_map(|body| Step::Literal { body });
    prop::collection::vec(
        prop_oneof![4 => leaf, 2 => branch, 1 => each, 1 => literal],
        0..5,
    )
    .boxed()
}

fn number(steps: &mut [Step], next: &mut u32) {
    for step in steps {
        *next += 1;
        match step {
            Step::Lock { line, .. } | Step::Unlock { line, .. } | Step::Return { line } => {
                *line = *next
            }
            Step::Branch { arms, .. } => arms.iter_mut().for_each(|it| number(it, next)),
            Step::Loop { body, .. } | Step::Literal { body } | Step::Defer { body } => {
                number(body, next)
            }
            _ => {}
        }
    }
}

enum Left {
    No,
    Out,
    Break,
    Continue,
}

/// One way through a function, by throws of a coin: the slow and sure reading of what steps mean.
struct One<'s> {
    coins: &'s [bool],
    at: usize,
    held: Vec<(&'s str, u32)>,
    deferred: Vec<&'s [Step]>,
    again: BTreeSet<(u32, u32)>,
    /// It unlocked what it does not hold: what follows is no matter of this function alone.
    is_others: bool,
    /// It goes no further: it waits for itself, or goes round for ever.
    is_stuck: bool,
}

impl<'s> One<'s> {
    fn coin(&mut self) -> bool {
        self.at += 1;
        self.coins.get(self.at - 1).copied().unwrap_or(false)
    }

    fn whole(&mut self, steps: &'s [Step]) {
        let outer = std::mem::take(&mut self.deferred);
        self.go(steps);
        for body in std::mem::replace(&mut self.deferred, outer)
            .into_iter()
            .rev()
        {
            self.go(body);
        }
    }

    fn go(&mut self, steps: &'s [Step]) -> Left {
        for step in steps {
            if self.is_stuck {
                return Left::Out;
            }
            match step {
                Step::Lock { line, lock } => {
                    for (_, at) in self.held.iter().filter(|it| it.0 == lock.path) {
                        self.again.insert((*at, *line));
                        self.is_stuck = true;
                    }
                    self.held.push((&lock.path, *line));
                }
                Step::Unlock { lock, .. } => {
                    match self.held.iter().rposition(|it| it.0 == lock.path) {
                        Some(at) => drop(self.held.remove(at)),
                        None => self.is_others = true,
                    }
                }
                Step::Branch { arms, .. } => {
                    let arm = usize::from(self.coin());
                    match self.go(&arms[arm]) {
                        Left::No => {}
                        left => return left,
                    }
                }
                Step::Loop { body, endless, .. } => {
                    for round in 0.. {
                        // An endless one is left by its own steps: where they do not, nothing behind it is done.
                        if round == 2 && *endless {
                            self.is_stuck = true;
                            return Left::Out;
                        }
                        if round == 2 || !endless && self.coin() {
                            break;
                        }
                        match self.go(body) {
                            Left::No | Left::Continue => {}
                            Left::Break => break,
                            Left::Out => return Left::Out,
                        }
                    }
                }
                Step::Literal { body } => self.whole(body),
                Step::Defer { body } => self.deferred.push(body),
                Step::Return { .. } => return Left::Out,
                Step::Break { .. } => return Left::Break,
                Step::Continue { .. } => return Left::Continue,
                _ => {}
            }
        }
        Left::No
    }
}

proptest! {
    /// Every lock that some way through a function takes again is among what all ways together show.
    #[test]
    fn no_way_shows_more_than_all_ways(
        mut steps in steps(2, false),
        coins in prop::collection::vec(any::<bool>(), 24),
    ) {
        number(&mut steps, &mut 0);
        let function = Function { function: "f".to_owned(), file: "f.go".to_owned(), steps: steps.clone() };
        let functions = [function];
        let (paths, _) = all(&functions);
        let known: BTreeSet<(u32, u32)> = paths.hazards.iter().filter_map(|it| match it {
            Hazard::Again { held, wanted } => Some((held.place.line, wanted.place.line)),
            Hazard::Kept { .. } => None,
        }).collect();
        let mut one = One { coins: &coins, at: 0, held: Vec::new(), deferred: Vec::new(), again: BTreeSet::new(), is_others: false, is_stuck: false };
        one.whole(&steps);
        if !one.is_others {
            prop_assert!(one.again.is_subset(&known), "{:?} {:?}", one.again, known);
        }
    }
}
