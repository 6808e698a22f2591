//! `docs/trace-format.md` says what the constants say: every row of every byte table, both ways.
#![allow(clippy::unwrap_used)]

use lockstep_format::codec::Kind;
use lockstep_format::{capture, hold, pack, plan, process, sealed, side};
use std::collections::BTreeMap;

const DOCUMENT: &str = include_str!("../../../docs/trace-format.md");

/// Names and offsets of the byte tables, by heading.
fn tables() -> BTreeMap<&'static str, BTreeMap<&'static str, usize>> {
    let mut tables: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    let mut heading = "";
    for line in DOCUMENT.lines() {
        if let Some(text) = line.strip_prefix("### ") {
            heading = text;
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, offset, name, _, ..] = cells[..]
            && let Ok(offset) = offset.parse()
            && let Some(name) = name
                .strip_prefix('`')
                .and_then(|name| name.strip_suffix('`'))
        {
            tables.entry(heading).or_default().insert(name, offset);
        }
    }
    tables
}

macro_rules! constants {
    ($module:path: $($name:ident)*) => {{
        use $module as module;
        BTreeMap::from([$((stringify!($name), module::$name)),*])
    }};
}

#[test]
fn every_table_equals_its_constants() {
    let expected = BTreeMap::from([
        (
            "Header",
            constants!(process::header: MAGIC VERSION BYTE_ORDER CODEC PID PARENT EXEC_COUNT
            START_TIME CREATED CHECK CREATED_CLOCK FLAGS END_KIND END_CODE CLEARING LOSSES COUNTERS),
        ),
        (
            "Chunk",
            constants!(process::chunk: MAGIC KIND LENGTH THREAD SEQUENCE USED PAYLOAD_CHECK
            CHECK SIZE),
        ),
        (
            "Thread",
            constants!(process::thread: TID INHERITED STARTED SEGMENT FIRST BEFORE CHECK PHASE COMMITTED INTENT
            LAST_SYMBOLS LAST_TICKS ARGUMENTS_LOST CLOSED SEGMENT_ARGUMENTS SEGMENT_INFERRED SEGMENT_TIMES HOLDS
            MORE_HOLDS CLOCKS MORE_ROWS STAGING MIRROR STAMPS DATA),
        ),
        ("Hold", constants!(hold::row: ADDRESS BEHIND WHAT SIZE)),
        ("Stamp", constants!(process::stamp: TICKS POINT SIZE)),
        (
            "Clock",
            constants!(process::clock: TICKS NANOSECONDS CHECK SIZE),
        ),
        ("Side chunk", constants!(side::control: WORD DATA)),
        (
            "Pack header",
            constants!(pack::header: MAGIC VERSION MEMBERS LENGTH CHECK SIZE),
        ),
        (
            "Pack member",
            constants!(pack::member: MAGIC LENGTH CONTENT_CHECK NAME_LENGTH NAME CHECK SIZE),
        ),
        (
            "Sealed header",
            constants!(sealed::header: MAGIC VERSION SLOTS BASE_NODES NODES TREES ELEMENTS SECTIONS
            CHECK SIZE),
        ),
        (
            "Section",
            constants!(sealed::section: OFFSET LENGTH CHECK SIZE),
        ),
        (
            "State",
            constants!(process::state: BYTES SYMBOLS LEAVES STREAM_CHECK TAIL_LENGTH TAIL CHECK SIZE),
        ),
        (
            "Plan header",
            constants!(plan::header: MAGIC VERSION CHECK ROLE SYMBOLS LOW HIGH FIXED
            BUILD_ID_LENGTH BUILD_ID SECTIONS HEAD TRACED COUNTERS LEFT_OUT SIGNALS
            REACH_LOW REACH_HIGH SIZE),
        ),
        ("Fixup", constants!(plan::fixup: AT KIND VALUE SIZE)),
        (
            "Site",
            constants!(plan::site: ADDRESS LENGTH FIELD TARGET GROUP OLD NEW SIZE),
        ),
        (
            "Function",
            constants!(plan::function: ADDRESS LENGTH NAME NAME_LENGTH ORIGIN MECHANISM
            CALL_SITE SIZE),
        ),
        (
            "Refusal",
            constants!(plan::refusal: ADDRESS NAME NAME_LENGTH REASON REASON_LENGTH KIND COUNTER MORE SIZE),
        ),
        (
            "Call site",
            constants!(plan::call_site: RETURN CALLER CALLEE SIZE),
        ),
        (
            "Choice",
            constants!(plan::choice: KIND FOUND PATTERN PATTERN_LENGTH SIZE),
        ),
        (
            "Export",
            constants!(plan::export: NAME NAME_LENGTH FUNCTION SIZE),
        ),
        ("Closed", constants!(plan::closed: ADDRESS SLOT SIZE)),
        (
            "Origin",
            constants!(plan::origin: AT BODY LENGTH ADDRESS ORDER SIZE),
        ),
    ]);
    assert_eq!(tables(), expected);
}

#[test]
fn values_in_the_text() {
    let says = |text: String| assert!(DOCUMENT.contains(&text), "the document lacks: {text}");
    says(format!("version {}\n", process::VERSION));
    says(format!("A header page of {} bytes", process::PAGE));
    says(format!("the first ends at {} bytes", process::FIRST_EXTENT));
    says(format!("the next multiple of {}.", process::EXTENT));
    says(format!(
        "| {} u64 | events that are not",
        process::thread::STAGING_WORDS
    ));
    says(format!(
        "| {} u64 | return address",
        process::thread::MIRROR_WORDS
    ));
    says(format!(
        "| {} u64 | lost events",
        process::header::LOSS_COUNT
    ));
    says(format!("| {} bytes | what ends", process::state::TAIL_ROOM));
    says(format!("| {} pairs of u32 |", plan::section::COUNT));
    says(process::loss::NAMES.join(", "));
    says(format!("| {} rows | base", sealed::section::COUNT));
    says(format!(
        "`LSPLAN`, two zeros |\n| 8 | `VERSION` | u32 | {} |",
        plan::VERSION
    ));
    says(format!(
        "`LOCKSTEP` |\n| 8 | `VERSION` | u32 | {} |",
        process::VERSION
    ));
    let (clocks, stamps) = (process::thread::CLOCK_COUNT, process::thread::STAMP_COUNT);
    says(format!(
        "| {clocks} clocks | the first reading of the clocks, then the {} latest",
        clocks - 1
    ));
    says(format!("| {stamps} stamps |"));
    says(format!(
        "arguments, which begin at byte {}",
        side::segment::ARGUMENTS
    ));
    says(format!(
        "times, which begin at byte {}",
        side::segment::TIMES
    ));
    says(format!(
        "inferred returns, which begin at byte {}",
        side::segment::INFERRED
    ));
    says(format!("less\nthan {} ticks lie between", plan::SHORT));
    says(format!("the low {} bits", side::control::BYTES));
    says(format!("at most {} integers of 64 bits", side::MOST_VALUES));
    says(format!("at most {} of them (none", capture::MOST_ELEMENTS));
    for kind in Kind::ALL {
        says(format!("{} `{}`", kind as u32, kind.name()));
    }
}
