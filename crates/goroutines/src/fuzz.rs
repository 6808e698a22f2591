//! Bodies for hostile input: the ring that a program shares with us, and what was kept of an execution.
//!
//! Whatever is accepted is analysed and written as a run, as the commands do. Nothing here may panic, and nothing but time and memory
//! in proportion to the input may be taken.

use crate::capture;
use crate::execution::{End, Execution, Output};
use crate::foresight::Foresight;
use crate::ring::{self, Policy, Ring, kind};
use crate::symbols::{Program, Symbols};
use crate::{Coverage, Tree, dot, judge, predict, trace, waits};
use std::path::Path;

/// Bytes of a function of the program that records are of.
const FUNCTION: u64 = 64;

/// Records of a ring behind a header that is as it should be, and the same bytes as the whole of a ring; a run is
/// written below `directory`, which is there and empty.
///
/// # Panics
/// Where a reader does what it must not.
pub fn ring(records: &[u8], directory: &Path) {
    let _ = Ring::read(records);
    if let Ok(ring) = Ring::read(&whole(records)) {
        analyse(&captured(&ring), directory);
    }
}

/// What was kept of an execution; a run is written below `directory`, which is there and empty.
///
/// # Panics
/// Where a reader does what it must not.
pub fn execution(kept: &[u8], directory: &Path) {
    if let Ok(execution) = Execution::read(kept) {
        analyse(&execution, directory);
    }
}

fn captured(ring: &Ring<'_>) -> Execution {
    let names = [
        "main.main",
        "main.worker",
        "main.worker.func1",
        "time.Sleep",
    ];
    let program = Program::of_functions(&names, FUNCTION);
    let symbols = Symbols::of(&program);
    capture::execution(ring, &symbols, End::Quiescent, Output::default())
}

fn analyse(execution: &Execution, directory: &Path) {
    let _ = judge(execution);
    let _ = waits(execution);
    let _ = predict(execution);
    let mut coverage = Coverage::new();
    coverage.add(execution);
    let _ = coverage.report().text();
    let mut tree = Tree::default();
    tree.add(execution);
    let _ = (dot::tree(&tree), dot::waits(execution));
    let mut foresight = Foresight::default();
    foresight.learn(execution);
    let _ = foresight.propose();
    if trace::write(execution, "program", 7, None, directory).is_ok() {
        let own = execution.goroutines.iter().filter(|it| !it.is_system);
        assert_eq!(trace::order(execution).len(), own.count());
    }
}

/// A ring with these records in its first chunks.
fn whole(records: &[u8]) -> Vec<u8> {
    ring::holding(&Policy::undisturbed(1), records)
}

/// Records that [`ring`] accepts: main makes a channel and a goroutine, which sends, locks and waits.
#[must_use]
pub fn records() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut time = 0_u64;
    let mut put = |who: u64, kind: u8, value: u64| {
        time += 1;
        let place = (who - 1) * FUNCTION + time % FUNCTION + 1;
        for word in [time, place << 32 | who, value << 16 | u64::from(kind)] {
            bytes.extend(word.to_le_bytes());
        }
    };
    put(1, kind::MAKE, 0x40);
    for round in 0..4 {
        put(1, kind::CREATE, 2 + round);
        for usage in [kind::LOCK, kind::SEND, kind::UNLOCK, kind::ADD, kind::DONE] {
            let object = if usage == kind::SEND { 0x40 } else { 0x80 };
            put(2 + round % 2, usage, object);
            put(2 + round % 2, kind::COMPLETE, object);
        }
        put(1, kind::RECEIVE, 0x40);
        put(1, kind::PARK, 0);
        put(2, kind::READY, 1);
        put(1, kind::COMPLETE, 1);
        put(2 + round, kind::END, 0);
    }
    put(1, kind::WAIT, 0x100);
    put(1, kind::PARK, 0);
    bytes
}

/// What is kept of the execution that [`records`] tell, as [`execution`] reads it.
#[must_use]
pub fn kept() -> Vec<u8> {
    let bytes = whole(&records());
    let ring = Ring::read(&bytes).unwrap_or_default();
    serde_json::to_vec(&captured(&ring)).unwrap_or_default()
}
