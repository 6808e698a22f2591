use super::*;

impl Code {
    /// Of such bodies.
    fn from_bodies(bodies: impl IntoIterator<Item = (FunctionKey, Body)>) -> Self {
        let mut code = Self::default();
        for (key, body) in bodies {
            code.bodies.entry(key).or_default().push(body);
        }
        code
    }
}

const MAIN: FunctionKey = FunctionKey(0);
const STEP: FunctionKey = FunctionKey(1);
const APPLY: FunctionKey = FunctionKey(2);
const CHECK: FunctionKey = FunctionKey(3);
const QSORT: FunctionKey = FunctionKey(9);

/// A body that calls these, each in so many places.
fn calls(callees: &[(FunctionKey, u32)]) -> Body {
    Body {
        calls: callees.iter().copied().collect(),
        ..Body::default()
    }
}

fn computed(places: u32) -> Body {
    Body {
        computed: places,
        ..Body::default()
    }
}

fn taken() -> Body {
    Body {
        is_taken: true,
        ..Body::default()
    }
}

fn code<const N: usize>(bodies: [(FunctionKey, Body); N]) -> Code {
    Code::from_bodies(bodies)
}

/// Which functions the other build could have called, of those that the one alone calls from these; the other calls main,
/// step and qsort.
fn reachable(
    own: &Code,
    other: &Code,
    alone: &[(FunctionKey, &[Option<FunctionKey>])],
) -> Vec<FunctionKey> {
    let beside = Beside {
        own,
        other,
        calls: &|it| [MAIN, STEP, QSORT].contains(&it),
        is_imported: &|it| it == QSORT,
    };
    let alone = alone.iter();
    let alone = alone.map(|(key, callers)| (*key, callers.iter().copied().collect()));
    let mut found: Vec<FunctionKey> = beside.reachable(&alone.collect()).into_iter().collect();
    found.sort_unstable();
    found
}

#[test]
fn what_the_others_code_still_calls_was_not_inlined() {
    let code = code([(MAIN, calls(&[(APPLY, 1)])), (APPLY, Body::default())]);
    assert_eq!(reachable(&code, &code, &[(APPLY, &[Some(MAIN)])]), [APPLY]);
}

#[test]
fn what_it_calls_in_fewer_places_may_have_been_inlined() {
    let own = code([(MAIN, calls(&[(APPLY, 2)]))]);
    for places in [0, 1] {
        let other = code([(MAIN, calls(&[(APPLY, places)])), (APPLY, Body::default())]);
        assert_eq!(reachable(&own, &other, &[(APPLY, &[Some(MAIN)])]), []);
    }
    // Nor is anything known of a build without plans.
    let other = Code::default();
    assert_eq!(reachable(&own, &other, &[(APPLY, &[Some(MAIN)])]), []);
}

#[test]
fn what_one_caller_inlined_was_inlined() {
    let own = code([(MAIN, calls(&[(APPLY, 1)])), (STEP, calls(&[(APPLY, 1)]))]);
    let other = code([
        (MAIN, calls(&[(APPLY, 1)])),
        (STEP, calls(&[])),
        (APPLY, calls(&[])),
    ]);
    let alone: [(_, &[_]); 1] = [(APPLY, &[Some(MAIN), Some(STEP)])];
    assert_eq!(reachable(&own, &other, &alone), []);
}

#[test]
fn a_call_of_a_part_is_none_of_the_whole() {
    let own = code([(MAIN, calls(&[(APPLY, 1)]))]);
    let split = Body {
        parts: [APPLY].into_iter().collect(),
        ..calls(&[(APPLY, 1)])
    };
    let other = code([(MAIN, split), (APPLY, Body::default())]);
    assert_eq!(reachable(&own, &other, &[(APPLY, &[Some(MAIN)])]), []);
}

#[test]
fn of_several_clones_each_has_to_call_it() {
    let own = code([(STEP, calls(&[(APPLY, 1)]))]);
    let clones = [
        (STEP, calls(&[(APPLY, 1)])),
        (STEP, calls(&[])),
        (APPLY, calls(&[])),
    ];
    assert_eq!(
        reachable(&own, &code(clones), &[(APPLY, &[Some(STEP)])]),
        []
    );
}

#[test]
fn what_was_not_come_to_would_have_called_the_rest() {
    let whole = code([
        (MAIN, calls(&[(APPLY, 1)])),
        (APPLY, calls(&[(CHECK, 1)])),
        (CHECK, calls(&[(CHECK, 1)])),
    ]);
    let alone: [(_, &[_]); 2] = [(APPLY, &[Some(MAIN)]), (CHECK, &[Some(APPLY), Some(CHECK)])];
    assert_eq!(reachable(&whole, &whole, &alone), [APPLY, CHECK]);
    // Where the caller was inlined nobody knows what became of its callee.
    let inlined = code([
        (MAIN, calls(&[])),
        (APPLY, calls(&[(CHECK, 1)])),
        (CHECK, calls(&[(CHECK, 1)])),
    ]);
    assert_eq!(reachable(&whole, &inlined, &alone), []);
}

#[test]
fn a_call_by_a_pointer_stays_one_in_code_that_calls_the_same() {
    let by_pointer = code([(MAIN, computed(1)), (APPLY, taken())]);
    let alone: [(_, &[_]); 1] = [(APPLY, &[Some(MAIN)])];
    assert_eq!(reachable(&by_pointer, &by_pointer, &alone), [APPLY]);
    let guessed = Body {
        takes: [APPLY].into_iter().collect(),
        ..computed(1)
    };
    for other in [
        code([(MAIN, computed(0)), (APPLY, taken())]),
        code([(MAIN, computed(2)), (APPLY, taken())]),
        code([(MAIN, guessed), (APPLY, taken())]),
        // Two equal functions may have become one.
        code([(MAIN, computed(1))]),
        code([(MAIN, computed(1)), (APPLY, Body::default())]),
    ] {
        assert_eq!(reachable(&by_pointer, &other, &alone), []);
    }
}

#[test]
fn what_a_library_calls_back_or_begins_a_thread_is_called_by_its_address() {
    for caller in [Some(QSORT), None] {
        let alone: [(_, &[_]); 1] = [(APPLY, &[caller])];
        let own = Code::default();
        assert_eq!(reachable(&own, &code([(APPLY, taken())]), &alone), [APPLY]);
        assert_eq!(reachable(&own, &code([(APPLY, calls(&[]))]), &alone), []);
    }
}

#[test]
fn what_is_called_by_code_that_goes_on_alike_is_not_changed() {
    let before = code([
        (MAIN, calls(&[(STEP, 1), (QSORT, 1)])),
        (STEP, calls(&[(APPLY, 1)])),
        (APPLY, calls(&[])),
    ]);
    assert!(before.changed(&before).is_empty());
    let now = code([
        (MAIN, calls(&[(STEP, 1), (QSORT, 1), (APPLY, 1)])),
        (STEP, calls(&[(CHECK, 1)])),
        (APPLY, calls(&[])),
    ]);
    let all = [STEP, APPLY, CHECK, QSORT].into_iter().collect();
    assert_eq!(before.changed(&now), all);
    // Another compiler may evaluate in another order what it calls all the same.
    let longer = Body {
        length: 8,
        ..calls(&[(APPLY, 1)])
    };
    let by_another = code([
        (MAIN, calls(&[(STEP, 1), (QSORT, 1)])),
        (STEP, longer),
        (APPLY, calls(&[])),
    ]);
    assert_eq!(before.changed(&by_another), [APPLY].into_iter().collect());
}
