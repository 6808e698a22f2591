//! Everything as one JSON document, one line an event: for scripts. The guide's page about taking runs
//! elsewhere has the keys.

use crate::kept::Kept;
use crate::spans::{Clock, Stamped};
use crate::view::View;
use lockstep_trace::{Event, Function, Process, Run, Thread, Times};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Grows where a key changes its meaning.
const VERSION: u32 = 2;

pub(crate) fn write(
    run: &Run,
    threads: &[&Thread],
    (clock, view): (&Clock, &View),
    out: &mut impl Write,
) -> io::Result<()> {
    let unit = match clock {
        Clock::Recorded => "nanoseconds",
        Clock::Logical(_) => "events",
    };
    let times = threads.first().and_then(|thread| thread.times.as_ref());
    write!(
        out,
        "{{\"lockstep_events\":{VERSION},\"clock\":\"{}\",\"unit\":\"{unit}\",\"zero\":{},\n\"functions\":",
        clock.name(),
        json!({"monotonic": times.and_then(Times::zero), "date": times.and_then(Times::date)}),
    )?;
    list(out, run.functions.iter().map(function))?;
    write!(out, ",\n\"processes\":")?;
    let has_chosen = |process: &&Process| {
        threads
            .iter()
            .any(|thread| thread.name.process == process.name)
    };
    list(out, run.processes.iter().filter(has_chosen).map(process))?;
    write!(out, ",\n\"traces\":[")?;
    for (index, thread) in threads.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let open: Vec<u32> = thread.open.iter().map(|frame| frame.function.0).collect();
        write!(
            out,
            "{comma}\n{{\"trace\":\"{}\",\"tid\":{},\"open\":{},\"events\":[",
            thread.name,
            thread.tid,
            json!(open)
        )?;
        let mut comma = "";
        for (moment, event) in Kept::new(Stamped::new(thread, clock), view) {
            let time = match (moment.measured(), moment.latest) {
                (Some(time), _) => time.to_string(),
                (None, Some(latest)) => format!("[{},{latest}]", moment.earliest),
                (None, None) => format!("[{},null]", moment.earliest),
            };
            match event.event {
                Event::Call(function) => {
                    write!(out, "{comma}\n[\"call\",{time},{}", function.0)?;
                }
                Event::Return => write!(out, "{comma}\n[\"return\",{time}")?,
                Event::Tail => write!(out, "{comma}\n[\"tail\",{time}")?,
            }
            if let Some(arguments) = event.arguments.filter(|it| !it.is_empty()) {
                let texts = arguments.iter().map(|it| (it.name, it.value.to_string()));
                let object: serde_json::Map<String, Value> = texts
                    .map(|(name, text)| (name.to_owned(), text.into()))
                    .collect();
                write!(out, ",{}", Value::Object(object))?;
            }
            write!(out, "]")?;
            comma = ",";
        }
        write!(out, "]}}")?;
    }
    writeln!(out, "]}}")
}

fn list(out: &mut impl Write, values: impl Iterator<Item = Value>) -> io::Result<()> {
    write!(out, "[")?;
    for (index, value) in values.enumerate() {
        write!(out, "{}\n{value}", if index == 0 { "" } else { "," })?;
    }
    write!(out, "]")
}

fn function(function: &Function) -> Value {
    let mut value = json!({
        "name": function.name,
        "linkage": function.linkage,
        "image": function.image,
        "imported": function.imported,
    });
    if let Some(source) = &function.source {
        value["file"] = source.file.as_str().into();
        value["line"] = source.line.into();
    }
    value
}

fn process(process: &Process) -> Value {
    json!({
        "process": process.name.to_string(),
        "rank": process.rank,
        "pid": process.pid,
        "host": process.host,
        "program": process.program,
        "end": process.end.to_string(),
    })
}
