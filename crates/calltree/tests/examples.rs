//! Small trees, written out.

#![allow(clippy::unwrap_used)]

use lockstep_calltree::{Builder, Forest, Function, NodeId};
use lockstep_loops::Names;

/// Builds a tree from words: `f(` calls f, `)` returns, `f` does both, `~` hands over to the next call.
fn tree(forest: &mut Forest, text: &str) -> NodeId {
    enum Event {
        Call(lockstep_calltree::FunctionKey),
        Return,
        Tail,
    }
    let mut events = Vec::new();
    for word in text.replace(')', " ) ").split_whitespace() {
        let mut call = |name: &str| {
            Event::Call(forest.add_function(Function {
                name: name.to_owned(),
                linkage: name.to_owned(),
                image: String::new(),
                imported: false,
            }))
        };
        match (word, word.strip_suffix('(')) {
            (")", _) => events.push(Event::Return),
            ("~", _) => events.push(Event::Tail),
            (_, Some(name)) => events.push(call(name)),
            (name, None) => {
                events.push(call(name));
                events.push(Event::Return);
            }
        }
    }
    let mut builder = Builder::new(forest);
    for event in events {
        match event {
            Event::Call(function) => builder.call(function),
            Event::Return => builder.ret(),
            Event::Tail => builder.tail(),
        }
    }
    builder.finish()
}

fn outline(text: &str) -> Vec<String> {
    let mut forest = Forest::new();
    let root = tree(&mut forest, text);
    let mut names = Names::new();
    forest.name_loops(root, &mut names);
    let lines = forest.outline(root, &names);
    lines.iter().map(ToString::to_string).collect()
}

#[test]
fn loops_are_shown_once() {
    let iteration = |times: usize| format!("f( {} g ) h ", "a ".repeat(times));
    let text = format!("main( {}{}{})", iteration(2), iteration(3), iteration(2));
    assert_eq!(
        outline(&text),
        [
            "main",
            "  L1^3",
            "    f",
            "      L0^2..3",
            "        a",
            "      g",
            "    h",
        ]
    );
}

#[test]
fn a_tail_call_is_nested() {
    assert_eq!(
        outline("main( f( a ~ g( b ) c )"),
        ["main", "  f", "    a", "    ~> g", "      b", "  c"]
    );
    // Both returns come when the callee returns: call main, f, a, return, g, b, return, return, return.
    let mut forest = Forest::new();
    let root = tree(&mut forest, "main( f( a ~ g( b ) c )");
    assert_eq!(forest.node(root).events, 12);
    let at = forest.position(root, 5).unwrap();
    assert_eq!(forest.stack_names(&at.stack), ["main", "f", "g", "b"]);
    assert!(at.stack[2].tail);
    let at = forest.position(root, 8).unwrap();
    assert!(at.is_return);
    assert_eq!(forest.stack_names(&at.stack), ["main", "f"]);
}

#[test]
fn open_calls_and_returns_without_a_call() {
    assert_eq!(
        outline(") main( a a b("),
        ["return", "main  (open)", "  L0^2", "    a", "  b  (open)"]
    );
    // An open call is not absorbed: two closed ones are a loop, the third stands alone.
    assert_eq!(
        outline("main( a a a("),
        ["main  (open)", "  L0^2", "    a", "  a  (open)"]
    );
    // A hand-over at the end of the trace, and one to nobody.
    assert_eq!(outline("main( f( ~"), ["main  (open)", "  f  (open)"]);
    assert_eq!(outline("~ main( f( ~ ) )"), ["main", "  f"]);
}

#[test]
fn where_a_trace_ends() {
    let end = |text: &str| {
        let mut forest = Forest::new();
        let root = tree(&mut forest, text);
        let mut names = Names::new();
        forest.name_loops(root, &mut names);
        let end = forest.end(root);
        let stack = forest.stack_names(&end.stack).join(" ");
        let loops = end.loops.iter();
        let loops: Vec<String> = loops
            .map(|at| format!("{}:{}@{}", names.label(at.body), at.iteration, at.depth))
            .collect();
        (stack, loops.join(" "))
    };
    let expect = |text: &str, stack: &str, loops: &str| {
        assert_eq!(end(text), (stack.to_owned(), loops.to_owned()), "{text}");
    };
    expect("main( recv send recv send recv( ", "main recv", "L0:3@1");
    expect(
        "main( recv send recv send recv send( ",
        "main send",
        "L0:3@1",
    );
    expect("main( recv send recv send send( ", "main send", "");
    expect(
        "main( step( a ) step( a ) step( b b b( ",
        "main step b",
        "L0:3@1 L1:3@2",
    );
    expect("main( a a )", "", "");
}

#[test]
fn positions_in_loops() {
    let mut forest = Forest::new();
    let body = "f( a a a ) g ";
    let root = tree(&mut forest, &format!("main( {})", body.repeat(5)));
    let mut names = Names::new();
    forest.name_loops(root, &mut names);
    // main, three iterations of 10 events, f, a, return, and then the second a.
    let at = forest.position(root, 1 + 30 + 1 + 2).unwrap();
    assert_eq!(forest.stack_names(&at.stack), ["main", "f", "a"]);
    let loops: Vec<_> = at
        .loops
        .iter()
        .map(|at| (names.label(at.body), at.iteration, at.of, at.depth))
        .collect();
    assert_eq!(
        loops,
        [("L1".to_owned(), 4, 5, 1), ("L0".to_owned(), 2, 3, 2)]
    );
}

#[test]
fn the_same_loop_of_two_builds() {
    // Functions are told apart by image and linkage name.
    let mut forest = Forest::new();
    let function = |image: &str| Function {
        name: "f".to_owned(),
        linkage: "f".to_owned(),
        image: image.to_owned(),
        imported: false,
    };
    let a = forest.add_function(function("one"));
    assert_eq!(forest.add_function(function("one")), a);
    assert_ne!(forest.add_function(function("two")), a);
}
