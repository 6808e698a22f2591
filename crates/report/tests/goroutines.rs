//! A page about a Go program, as a stranger's run might have it.

use lockstep_goroutines::{Coverage, Execution, Tree, judge, shiviz};
use lockstep_report::{GoPart, GoRun, Page};
use serde_json::json;
use std::collections::BTreeMap;

const HOSTILE: &str = "</code><script>alert(1)</script>\u{202e}";

/// Main waits for a lock that a worker holds, which waits to send to main.
fn execution(name: &str) -> Execution {
    let site =
        |line: u32| json!({ "file": format!("/src/{name}.go"), "line": line, "function": name });
    let goroutine = |number: u64, parent: Option<u32>, reason: &str| {
        json!({
            "number": number, "parent": parent, "created_at": parent.map(|_| 2), "entry": name, "is_system": false,
            "state": { "waiting": reason }, "stack": [], "own": null
        })
    };
    let event = |who: u32, site: u32, what: serde_json::Value| json!({ "time": site * 1000, "goroutine": who, "site": site, "what": what });
    let request = |action: &str, object: u32| json!({ "Request": { "action": action, "object": object, "cases": [], "default": false, "amount": 0, "on_behalf": false } });
    let text = json!({
        "sites": (0..8).map(site).collect::<Vec<_>>(),
        "objects": [{ "kind": "Mutex", "first": 1 }, { "kind": { "Channel": { "capacity": 0 } }, "first": 0 }],
        "goroutines": [goroutine(1, None, "mutex"), goroutine(7, Some(0), "send")],
        "test": null,
        "events": [
            event(0, 0, json!({ "Make": 1 })),
            event(0, 2, request("go", 0)),
            event(0, 2, json!({ "Create": 1 })),
            event(0, 2, json!({ "Complete": { "action": "go", "case": null, "ok": true } })),
            event(1, 3, request("lock", 0)),
            event(1, 3, json!({ "Complete": { "action": "lock", "case": null, "ok": true } })),
            event(1, 4, request("send", 1)),
            event(1, 4, json!({ "Park": "send" })),
            event(0, 5, request("lock", 0)),
            event(0, 5, json!({ "Park": "mutex" })),
        ],
        "prints": [], "main_ended": false, "end": "quiescent",
        "output": { "races": [], "fatal": null, "failed_tests": [], "failures": [], "own": [] },
        "proven_leaks": null, "timers": 0, "functions": 0, "clock": false, "stretched": 0, "looked": false, "lost": 0
    });
    Execution::read(text.to_string().as_bytes()).expect("an execution")
}

fn page(name: &str) -> String {
    let execution = execution(name);
    let mut tree = Tree::default();
    tree.add(&execution);
    let source = vec![format!("line of {name}"); 9];
    let page = Page {
        title: name.to_owned(),
        runs: Vec::new(),
        comparison: None,
        diffs: Vec::new(),
        trees: Vec::new(),
        goroutines: Some(GoPart {
            label: name.to_owned(),
            runs: vec![GoRun {
                number: 1,
                of: name.to_owned(),
                verdict: "global-deadlock".to_owned(),
                is_bug: true,
                sentence: name.to_owned(),
            }],
            execution: &execution,
            judgement: &judge(&execution),
            tree: &tree,
            coverage: &Coverage::of(&execution).report(),
            sources: &BTreeMap::from([(format!("/src/{name}.go"), source)]),
        }),
    };
    page.html()
}

#[test]
fn a_deadlock_is_drawn_with_its_source() {
    let page = page("main");
    for said in [
        "global-deadlock: ",
        ">Who waits for whom</h2>",
        ">Timeline</h2>",
        ">Goroutine tree</h2>",
        ">Coverage</h2>",
        ">Executions</h2>",
        ">Log for ShiViz</h2>",
        "goroutine 7",
        "send main.go:4",
        "    5  line of main",
        "main {&quot;main&quot;:1}",
    ] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
    assert!(shiviz::log(&execution("main")).starts_with("main {\"main\":1}\n"));
}

#[test]
fn what_strangers_say_is_text() {
    let page = page(HOSTILE);
    assert!(!page.contains("<script"), "{page}");
    assert!(!page.contains('\u{202e}'), "{page}");
}
