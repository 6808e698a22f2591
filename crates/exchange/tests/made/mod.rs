//! Foreign traces of known events.
#![allow(dead_code, clippy::unwrap_used)]

use lockstep_exchange::{Origin, Target, View, export, import};
use lockstep_format::codec::memory::Memory;
use lockstep_format::codec::{AnyEncoder, Kind, Sink};
use lockstep_testkit::Scratch;
use lockstep_trace::Run;
use proptest::prelude::*;
use std::fmt::Write;

/// An event of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Call(u16),
    Return,
}

/// Functions that a trace may call.
pub const FUNCTIONS: u16 = 12;

pub fn name(function: u16) -> String {
    format!("function_{function}")
}

/// Calls and returns, never more returns than calls; what is open at the end stays so.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![(0..FUNCTIONS).prop_map(Step::Call), Just(Step::Return),];
    prop::collection::vec(step, 0..120).prop_map(|steps| {
        let mut open = 0;
        let mut kept = Vec::new();
        for step in steps {
            match step {
                Step::Call(_) => open += 1,
                Step::Return if open == 0 => continue,
                Step::Return => open -= 1,
            }
            kept.push(step);
        }
        kept
    })
}

#[derive(Default)]
struct Words(Vec<u32>);

impl Memory for Words {
    fn words(&mut self, count: usize) -> &mut [u32] {
        if self.0.len() < count {
            self.0.resize(count.next_power_of_two(), 0);
        }
        &mut self.0
    }

    fn present(&self) -> &[u32] {
        &self.0
    }
}

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn put(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

/// Names, and the stream of one thread.
pub fn parlot_files(steps: &[Step]) -> Vec<Vec<u8>> {
    let mut info = "+\n/opt/app\n".to_owned();
    for function in 0..FUNCTIONS {
        writeln!(info, "{}", name(function)).unwrap();
    }
    let mut encoder: Box<AnyEncoder<Words, Words>> = Box::default();
    let mut stream = Bytes(Vec::new());
    for step in steps {
        let word = match step {
            Step::Call(function) => u32::from(*function) + 1,
            Step::Return => 0,
        };
        assert!(encoder.push(Kind::SeedParlot, word, &mut stream));
    }
    let tail = encoder.tail(Kind::SeedParlot);
    stream.0.extend(&tail.bytes[..tail.length]);
    vec![info.into_bytes(), stream.0]
}

/// `info`, `task.txt`, a map, symbols, records.
pub fn uftrace_files(steps: &[Step]) -> Vec<Vec<u8>> {
    let mut info = b"Ftrace!\0".to_vec();
    info.extend(4u32.to_le_bytes());
    info.extend(40u16.to_le_bytes());
    info.extend([1, 2]);
    info.extend(0x363u64.to_le_bytes());
    info.extend([0; 16]);
    info.extend(b"exename:/opt/app\nexit_status:768\nosinfo:hostname=node\n");
    let task = "SESS timestamp=0.000000001 pid=7 sid=1 exename=\"/opt/app\"\n\
                TASK timestamp=0.000000002 tid=7 pid=7\n";
    let map = "00400000-00500000 r-xp 00000000 00:00 0     /opt/app\n\
               7fff00000000-7fff00001000 rw-p 00000000 00:00 0     [stack]\n";
    let mut symbols = "# symbols: 12\n# path name: /opt/app\n".to_owned();
    for function in 0..FUNCTIONS {
        writeln!(
            symbols,
            "{:016x} T {}",
            0x100 * u64::from(function),
            name(function)
        )
        .unwrap();
    }
    let mut records = Vec::new();
    let mut open: Vec<u16> = Vec::new();
    for (step, time) in steps.iter().zip(100u64..) {
        let (kind, depth, function) = match step {
            Step::Call(function) => {
                open.push(*function);
                (0, open.len() - 1, *function)
            }
            Step::Return => {
                let function = open.pop().unwrap();
                (1, open.len(), function)
            }
        };
        let address = 0x40_0000 + 0x100 * u64::from(function) + 4;
        let word = kind | 5 << 3 | (depth as u64) << 6 | address << 16;
        records.extend(time.to_le_bytes());
        records.extend(word.to_le_bytes());
    }
    let text = |text: &str| text.as_bytes().to_vec();
    vec![info, text(task), text(map), text(&symbols), records]
}

/// One event a line: calls that return as X, in the order of their ends, the others as B.
pub fn chrome_json(steps: &[Step]) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut open = Vec::new();
    for (step, time) in steps.iter().zip(100..) {
        match step {
            Step::Call(function) => open.push((*function, time)),
            Step::Return => {
                let (function, begin) = open.pop().unwrap();
                lines.push(format!(
                    "{{\"name\":\"{}\",\"ph\":\"X\",\"ts\":{begin},\"dur\":{},\"pid\":7,\"tid\":7}}",
                    name(function),
                    time - begin
                ));
            }
        }
    }
    for (function, begin) in open {
        lines.push(format!(
            "{{\"name\":\"{}\",\"ph\":\"B\",\"ts\":{begin},\"pid\":7,\"tid\":\"7\",\"args\":{{\"a\":[1]}}}}",
            name(function)
        ));
    }
    format!(
        "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}",
        lines.join(",\n")
    )
    .into_bytes()
}

/// Anchor, definitions, events: what we write of [`chrome_json`].
pub fn otf2_files(steps: &[Step]) -> Vec<Vec<u8>> {
    let scratch = Scratch::new("otf2");
    let source = scratch.join("trace.json");
    // What has no events has no threads: one that is left out.
    let mut json = chrome_json(steps);
    if steps.is_empty() {
        json = b"[{\"ph\":\"E\",\"ts\":1,\"pid\":1,\"tid\":1}]".to_vec();
    }
    std::fs::write(&source, json).unwrap();
    let run = scratch.join("run");
    import(Origin::Chrome, &source, &run, false)
        .unwrap()
        .draft
        .keep()
        .unwrap();
    let run = Run::open(&run).unwrap();
    let threads: Vec<_> = run.traces().collect();
    let archive = scratch.join("archive");
    let whole = (Target::Otf2, &View::default());
    export(&run, &threads, whole, &archive, false).unwrap();
    ["traces.otf2", "traces.def", "traces/0.evt"]
        .map(|name| std::fs::read(archive.join(name)).unwrap())
        .to_vec()
}
