//! speedscope's file format, one evented profile a trace.
//!
//! Every event must nest and end: calls that were open at the end are closed there, and named in the
//! profile's name.

use crate::spans::{Clock, Moment, Span, each_span};
use crate::view::View;
use lockstep_trace::{FunctionId, Run, Thread};
use rustc_hash::FxHashMap;
use serde_json::json;
use std::io::{self, Write};

/// Open calls that a profile's name lists.
const NAMED: usize = 8;

pub(crate) fn write(
    run: &Run,
    threads: &[&Thread],
    (clock, view): (&Clock, &View),
    out: &mut impl Write,
) -> io::Result<u64> {
    let mut left_out = 0;
    // Frames get numbers as they come up, so they stand behind the profiles.
    let mut numbers: FxHashMap<FunctionId, usize> = FxHashMap::default();
    let mut frames: Vec<FunctionId> = Vec::new();
    writeln!(
        out,
        "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"lockstep {}\",\"name\":{},\"activeProfileIndex\":0,\"profiles\":[",
        env!("CARGO_PKG_VERSION"),
        json!(format!(
            "{} ({} times)",
            run.directory.display(),
            clock.name()
        )),
    )?;
    for (index, thread) in threads.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let unit = match clock {
            Clock::Recorded => "nanoseconds",
            Clock::Logical(_) => "none",
        };
        write!(
            out,
            "{comma}{{\"type\":\"evented\",\"unit\":\"{unit}\",\"events\":["
        )?;
        let mut first = None;
        let mut event =
            |out: &mut dyn Write, kind: char, function, moment: Moment| -> io::Result<()> {
                let time = moment.shown;
                let comma = if first.is_none() { "" } else { "," };
                first.get_or_insert(time);
                let next = numbers.len();
                let number = *numbers.entry(function).or_insert_with(|| {
                    frames.push(function);
                    next
                });
                write!(
                    out,
                    "{comma}\n{{\"type\":\"{kind}\",\"frame\":{number},\"at\":{time}"
                )?;
                // What its viewer passes over, and a reader may ask for.
                match (moment.measured(), moment.latest) {
                    (Some(_), _) => write!(out, "}}"),
                    (None, Some(latest)) => {
                        write!(out, ",\"between\":[{},{latest}]}}", moment.earliest)
                    }
                    (None, None) => write!(out, ",\"after\":{}}}", moment.earliest),
                }
            };
        let rest = each_span(thread, clock, view, |moment, span, _| match span {
            Span::Open(function, _) => event(out, 'O', function, moment),
            Span::Close(function, _) => event(out, 'C', function, moment),
        })?;
        left_out += rest.left_out;
        for function in rest.open.iter().rev() {
            event(out, 'C', *function, Moment::known(rest.end))?;
        }
        let mut name = thread.name.to_string();
        if !rest.open.is_empty() {
            let skipped = rest.open.len().saturating_sub(NAMED);
            let open: Vec<&str> = rest.open[skipped..]
                .iter()
                .map(|function| run.function(*function).name.as_str())
                .collect();
            let dots = if skipped > 0 { ".. > " } else { "" };
            name = format!("{name} (open at the end: {dots}{})", open.join(" > "));
        }
        let start = first.unwrap_or(0);
        write!(
            out,
            "],\"name\":{},\"startValue\":{start},\"endValue\":{}}}",
            json!(name),
            rest.end
        )?;
    }
    write!(out, "],\n\"shared\":{{\"frames\":[")?;
    for (index, function) in frames.iter().enumerate() {
        let function = run.function(*function);
        let mut frame = json!({"name": function.name});
        if let Some(source) = &function.source {
            frame["file"] = source.file.as_str().into();
            frame["line"] = source.line.into();
        }
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}\n{frame}")?;
    }
    writeln!(out, "]}}}}")?;
    Ok(left_out)
}
