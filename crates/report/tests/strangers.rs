//! Names, paths and arguments come from strangers' programs: whatever they contain, the page has
//! exactly the elements and attributes that it has with harmless names.

mod fixture;

use lockstep_compare::Comparison;
use lockstep_report::{Page, RunPart, lattice_dot, lattice_svg};
use lockstep_trace::TraceName;
use proptest::prelude::*;

/// Elements with the names of their attributes, in order, as a browser's tokeniser finds them: the
/// slow way, one character after the other. Text of `style` and `title` is passed over as it would be.
fn elements(html: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let Some(first) = rest.chars().next() else {
            break;
        };
        if !(first.is_ascii_alphabetic() || first == '/' || first == '!' || first == '?') {
            continue;
        }
        let (element, after) = tag(rest);
        rest = after;
        for raw in ["style", "title", "script", "textarea"] {
            let inside_svg = raw == "title"
                && found
                    .iter()
                    .rev()
                    .find(|it: &&String| **it == "svg" || it.starts_with("svg ") || **it == "/svg")
                    .is_some_and(|it| it != "/svg");
            if element == raw && !inside_svg {
                let end = rest
                    .to_ascii_lowercase()
                    .find(&format!("</{raw}"))
                    .unwrap_or(rest.len());
                rest = &rest[end..];
            }
        }
        found.push(element);
    }
    found
}

/// One tag: its name and its attributes' names; what follows it.
fn tag(text: &str) -> (String, &str) {
    let mut element = String::new();
    let mut quote = None;
    for (index, c) in text.char_indices() {
        match (quote, c) {
            (None, '>') => return (element, &text[index + 1..]),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            // Values stand in quotes; all else is names.
            (None, c) => element.push(c),
            (Some(_), _) => {}
        }
    }
    (element, "")
}

/// Text that is nothing but trouble, and ordinary random text.
fn hostile() -> impl Strategy<Value = String> {
    let trouble = prop_oneof![
        Just("<script>alert(1)</script>"),
        Just("</title><img src=x onerror=alert(1)>"),
        Just("\" onload=\"alert(1)"),
        Just("' onmouseover='alert(1)"),
        Just("</style></svg><svg onload=alert(1)>"),
        Just("--><!-- <a href=javascript:alert(1)>"),
        Just("&lt;b&gt;&#60;i&#62;"),
        Just("\u{202e}\u{0}\u{1b}[2J\r\n\t"),
        Just("<![CDATA[<x>]]>"),
        Just("{{7*7}}`${1}`\\\\"),
    ];
    prop_oneof![
        trouble.prop_map(str::to_owned),
        "\\PC{1,24}",
        any::<String>()
    ]
    .prop_map(|text| {
        if text.is_empty() {
            "-".to_owned()
        } else {
            text
        }
    })
}

/// The same page with every text given by `name`.
fn page(analysed: &fixture::Analysed, name: &dyn Fn(&str) -> String) -> String {
    let runs = [false, true].map(|faulty| fixture::run(16, faulty, name));
    let mut loops = analysed.loops.clone();
    for loops in &mut loops {
        for body in &mut loops.loops {
            body.name = name(&body.name);
            body.body.iter_mut().for_each(|it| *it = name(it));
        }
        for trace in &mut loops.traces {
            trace.tokens.iter_mut().for_each(|it| *it = name(it));
            trace.open = vec![name("open")];
        }
    }
    let mut lattices = analysed.lattices.clone();
    for concept in lattices
        .iter_mut()
        .flat_map(|lattice| &mut lattice.concepts)
    {
        for texts in [
            &mut concept.extent,
            &mut concept.intent,
            &mut concept.own_objects,
            &mut concept.own_attributes,
        ] {
            texts.iter_mut().for_each(|it| *it = name(it));
        }
    }
    let mut comparison: Comparison = analysed.comparison.clone();
    comparison.verdict = name("verdict");
    comparison.notes = vec![name("note")];
    comparison.view.filter = name("filter");
    comparison
        .table
        .iter_mut()
        .for_each(|row| row.filter = name("filter"));
    for suspect in &mut comparison.suspects {
        suspect.reasons = vec![name("reason")];
    }
    let labels = [name("normal"), name("faulty")];
    let parts = [0, 1].map(|index| RunPart {
        label: &labels[index],
        run: &runs[index],
        loops: Some(&loops[index]),
        similarity: None,
        lattice: Some(&lattices[index]),
    });
    let mut tree = fixture::tree(&runs[1], TraceName::new(5, 0));
    tree.label = name("label");
    let diff = fixture::diff(&runs);
    let mut html = Page {
        title: name("title"),
        runs: parts.into(),
        comparison: Some(&comparison),
        diffs: vec![diff],
        trees: vec![tree],
        goroutines: None,
    }
    .html();
    html.push_str(&lattice_svg(&lattices[0]));
    html
}

#[test]
fn the_tokeniser_sees_what_a_browser_would() {
    assert_eq!(
        elements("a < b <p class=\"x>y\">&lt;i></p>"),
        ["p class=", "/p"]
    );
    assert_eq!(
        elements("<style>a > b <i></style><b>"),
        ["style", "/style", "b"]
    );
    assert_eq!(
        elements("<title><b></title><svg><title><i></title></svg>"),
        ["title", "/title", "svg", "title", "i", "/title", "/svg"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn strangers_names_stay_text(names in proptest::collection::vec(hostile(), 1..6)) {
        let analysed = fixture::analysed(6);
        // Which name stands where follows from the harmless text, so that equal texts stay equal.
        let number = |text: &str| text.bytes().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        let stranger = |text: &str| format!("{}{}", names[number(text) % names.len()], number(text));
        let harmless = |text: &str| format!("name{}", number(text));
        let page_of_stranger = page(&analysed, &stranger);
        prop_assert_eq!(elements(&page_of_stranger), elements(&page(&analysed, &harmless)));
        let steering = page_of_stranger.contains(['\u{0}', '\u{202e}']);
        prop_assert!(!steering);
    }

    #[test]
    fn strangers_names_stay_strings_in_dot(name in hostile()) {
        let analysed = fixture::analysed(4);
        let mut lattice = analysed.lattices[0].clone();
        for concept in &mut lattice.concepts {
            concept.own_attributes.iter_mut().for_each(|it| it.clone_from(&name));
        }
        // Outside of quoted strings nothing of it is left.
        let mut outside = String::new();
        let (mut quoted, mut escaped) = (false, false);
        for c in lattice_dot(&lattice).chars() {
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                c if !quoted => outside.push(c),
                _ => {}
            }
        }
        prop_assert!(!quoted);
        prop_assert!(outside.chars().all(|c| c.is_ascii_alphanumeric() || " \n[]{}=,;->_".contains(c)), "{}", outside);
    }
}
