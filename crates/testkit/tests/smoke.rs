//! One recording, one comparison, one verdict: the shortest proof that the parts work together. It needs a C compiler only.

use lockstep_testkit::command;
use lockstep_testkit::{Recipe, Scratch, lockstep, record};
use serde_json::Value;

#[test]
fn the_faulty_thread_is_named() {
    let program = Recipe::new("threads/odd_even.c")
        .flags(&["-g", "-O1"])
        .build();
    let scratch = Scratch::new("smoke");
    let healthy = record(&scratch, &[], &[program.as_os_str()]);
    assert_eq!(healthy.outcome.status, 0, "{:#?}", healthy.outcome);
    let faulty = record(
        &scratch,
        &[],
        &[program.as_os_str(), "--bug".as_ref(), "swap".as_ref()],
    );
    assert_eq!(faulty.outcome.status, 0, "{:#?}", faulty.outcome);
    let mut compare = lockstep(&["compare", "--json"]);
    compare.args([&healthy.directory, &faulty.directory]);
    let outcome = command::run(&mut compare);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    let said: Value = serde_json::from_str(&outcome.stdout).expect("compare prints JSON");
    assert_eq!(said["differs"], true);
    assert_eq!(said["suspects"][0]["trace"], "0.6", "{said:#}");
}
