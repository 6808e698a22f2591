use super::*;
use lockstep_calltree::{Builder, Function};
use proptest::prelude::*;

/// The frame of a function that makes these calls; `f(a b)` calls `f`, which calls `a` and `b`.
fn frame_in(forest: &mut Forest, text: &str) -> Sequence {
    let words = text.replace('(', " ( ").replace(')', " ) ");
    let mut keys = Vec::new();
    for word in words.split_whitespace() {
        keys.push(forest.add_function(Function {
            name: word.to_owned(),
            linkage: word.to_owned(),
            image: String::new(),
            imported: false,
        }));
    }
    let mut builder = Builder::new(forest);
    let mut words = words.split_whitespace().zip(keys).peekable();
    while let Some((word, key)) = words.next() {
        match word {
            ")" => builder.ret(),
            "(" => {}
            _ => {
                builder.call(key);
                if words.peek().is_none_or(|(next, _)| *next != "(") {
                    builder.ret();
                }
            }
        }
    }
    let root = builder.finish();
    let classes = Classes::of(forest);
    Settler::new(forest, &classes).frame(root).sequence
}

fn are_alike(a: &str, b: &str) -> bool {
    let mut forest = Forest::new();
    frame_in(&mut forest, a) == frame_in(&mut forest, b)
}

#[test]
fn what_is_asked_again_before_something_came_of_it_is_forgotten() {
    for often in [0, 1, 2, 9] {
        let again = |text: &str| text.repeat(often);
        for (once, more) in [
            (
                "start MPI_Test unpack",
                format!("start {} MPI_Test unpack", again("MPI_Test other ")),
            ),
            (
                "ready(MPI_Test) unpack",
                format!("{} ready(MPI_Test) unpack", again("ready(MPI_Test) ")),
            ),
            (
                "take(pthread_mutex_lock pthread_mutex_unlock) run",
                format!(
                    "{} take(pthread_mutex_lock pthread_mutex_unlock) run",
                    again("take(pthread_mutex_lock pthread_mutex_unlock) sched_yield ")
                ),
            ),
            (
                "pthread_mutex_lock pthread_mutex_unlock go",
                format!(
                    "{} pthread_mutex_lock pthread_mutex_unlock go",
                    again("pthread_mutex_lock pthread_mutex_unlock usleep ")
                ),
            ),
            (
                "pthread_mutex_lock pop pthread_mutex_unlock",
                format!(
                    "pthread_mutex_lock {} pop pthread_mutex_unlock",
                    again("pthread_cond_wait ")
                ),
            ),
        ] {
            assert!(are_alike(once, &more), "{more}");
        }
    }
}

#[test]
fn what_came_of_an_answer_is_kept() {
    let step = "compute MPI_Irecv MPI_Isend MPI_Test unpack ";
    assert!(!are_alike(&step.repeat(2), &step.repeat(3)));
    let step = "pthread_mutex_trylock work pthread_mutex_unlock ";
    assert!(!are_alike(&step.repeat(2), &step.repeat(3)));
    let step = "pthread_mutex_lock work pthread_mutex_unlock ";
    assert!(!are_alike(&step.repeat(2), &step.repeat(3)));
    assert!(!are_alike("a b a b c a b", "a b c a b a b"));
}

proptest! {
    /// However loops are folded: the same list is the same, and another one is not.
    #[test]
    fn lists_are_told_by_their_calls(
        a in prop::collection::vec(0..3u8, 0..24),
        b in prop::collection::vec(0..3u8, 0..24),
        times in 1..5usize,
    ) {
        let text = |list: &[u8]| -> String { list.iter().map(|it| format!("f{it} ")).collect() };
        let mut forest = Forest::new();
        let first = frame_in(&mut forest, &text(&a).repeat(times));
        let other = frame_in(&mut forest, &text(&b));
        let mut expected = (Sequence::default(), 1);
        for call in a.repeat(times) {
            let key = forest.functions().iter().position(|it| it.name == format!("f{call}"));
            let one = Sequence { length: 1, hash: key.unwrap_or_default() as u64 + 1 };
            expected = joined(expected, (one, BASE));
        }
        prop_assert_eq!(first, expected.0);
        prop_assert_eq!(first == other, a.repeat(times) == b);
    }
}
