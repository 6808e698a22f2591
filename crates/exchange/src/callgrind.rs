//! Callgrind's profile format, for `callgrind_annotate` and KCachegrind.
//!
//! The cost `Calls` of a function is how often it was called; of a call, how many calls it led to, itself
//! included. Where times were recorded, `Nanoseconds` stands beside it (wall time, waiting included): what lies between two
//! times that were read counts for the function that was open all the while.
//! All chosen traces are summed up.

use crate::profile::{Folded, Profile};
use crate::spans::{Clock, Span, each_span, have_times};
use crate::text::plain;
use crate::view::View;
use lockstep_calltree::FunctionKey;
use lockstep_trace::{FunctionId, Thread};
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// Wall time by function, without and by edge with what was called.
#[derive(Default)]
struct Times {
    own: FxHashMap<FunctionKey, u64>,
    edges: FxHashMap<(FunctionKey, FunctionKey), u64>,
}

/// Writes it; whether with times.
pub(crate) fn write(
    folded: &Folded<'_>,
    threads: &[&Thread],
    view: &View,
    out: &mut impl Write,
) -> io::Result<bool> {
    let profile = folded.profile();
    let times = if have_times(threads) {
        Some(measure(folded, threads, &view.unfolded())?)
    } else {
        None
    };
    writeln!(out, "# callgrind format\nversion: 1")?;
    writeln!(out, "creator: lockstep {}", env!("CARGO_PKG_VERSION"))?;
    if let Some(process) = folded
        .run
        .processes
        .iter()
        .find(|it| folded.run.is_visible(it))
    {
        writeln!(out, "cmd: {}", plain(&process.program, '\n', ' '))?;
    }
    let names: Vec<String> = threads
        .iter()
        .map(|thread| thread.name.to_string())
        .collect();
    writeln!(out, "desc: Traces: {}", names.join(" "))?;
    writeln!(out, "positions: line")?;
    writeln!(out, "event: Calls : Calls")?;
    match &times {
        Some(times) => {
            writeln!(
                out,
                "event: Nanoseconds : Wall time in ns\nevents: Calls Nanoseconds"
            )?;
            let sum = times
                .own
                .values()
                .fold(0u64, |sum, it| sum.saturating_add(*it));
            writeln!(out, "summary: {} {sum}", profile.total)?;
        }
        None => writeln!(out, "events: Calls\nsummary: {}", profile.total)?,
    }
    Body {
        folded,
        profile: &profile,
        times: times.as_ref(),
        names: [Names::default(), Names::default(), Names::default()],
    }
    .write(out)?;
    Ok(times.is_some())
}

fn measure(folded: &Folded<'_>, threads: &[&Thread], view: &View) -> io::Result<Times> {
    struct Frame {
        function: FunctionKey,
        since: u64,
        within: u64,
    }
    fn close(stack: &mut Vec<Frame>, now: u64, times: &mut Times) {
        let Some(frame) = stack.pop() else { return };
        let took = now.saturating_sub(frame.since);
        *times.own.entry(frame.function).or_default() += took.saturating_sub(frame.within);
        if let Some(caller) = stack.last_mut() {
            caller.within += took;
            *times
                .edges
                .entry((caller.function, frame.function))
                .or_default() += took;
        }
    }
    let mut times = Times::default();
    for thread in threads {
        let mut stack: Vec<Frame> = Vec::new();
        let rest = each_span(thread, &Clock::Recorded, view, |moment, span, _| {
            let now = moment.shown;
            match span {
                Span::Open(id, _) => stack.push(Frame {
                    function: folded.functions.key(id),
                    since: now,
                    within: 0,
                }),
                Span::Close(..) => close(&mut stack, now, &mut times),
            }
            Ok(())
        })?;
        while !stack.is_empty() {
            close(&mut stack, rest.end, &mut times);
        }
    }
    Ok(times)
}

struct Body<'a> {
    folded: &'a Folded<'a>,
    profile: &'a Profile,
    times: Option<&'a Times>,
    /// Images, files, functions: a name stands once, with a number.
    names: [Names; 3],
}

const IMAGE: usize = 0;
const FILE: usize = 1;
const FUNCTION: usize = 2;

#[derive(Default)]
struct Names {
    known: FxHashMap<String, usize>,
}

impl Names {
    fn reference(&mut self, name: &str) -> String {
        let next = self.known.len() + 1;
        match self.known.get(name) {
            Some(number) => format!("({number})"),
            None => {
                self.known.insert(name.to_owned(), next);
                format!("({next}) {name}")
            }
        }
    }
}

impl Body<'_> {
    fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        let mut edges = self.profile.edges.iter().peekable();
        for (function, calls) in &self.profile.functions {
            writeln!(out)?;
            let line = self.header(*function, ["ob", "fl", "fn"], out)?;
            let own = self.times.and_then(|times| times.own.get(function));
            self.cost(line, *calls, own, out)?;
            while let Some(((_, callee), edge)) =
                edges.next_if(|((caller, _), _)| caller == function)
            {
                let target = self.header(*callee, ["cob", "cfi", "cfn"], out)?;
                writeln!(out, "calls={} {target}", edge.calls)?;
                let took = self
                    .times
                    .and_then(|times| times.edges.get(&(*function, *callee)));
                let at = self.call_line(*function, *callee).unwrap_or(line);
                self.cost(at, edge.inclusive, took, out)?;
            }
        }
        Ok(())
    }

    fn cost(
        &self,
        line: u32,
        calls: u64,
        time: Option<&u64>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        match self.times {
            Some(_) => writeln!(out, "{line} {calls} {}", time.copied().unwrap_or(0)),
            None => writeln!(out, "{line} {calls}"),
        }
    }

    /// Image, file and name of a function; its line, 0 where it is unknown.
    fn header(
        &mut self,
        key: FunctionKey,
        words: [&str; 3],
        out: &mut impl Write,
    ) -> io::Result<u32> {
        let function = self.folded.function(key);
        let image = function.map_or("???", |function| &function.image);
        let source = function.and_then(|function| function.source.as_ref());
        let file = source.map_or("???", |source| &source.file);
        let texts = [
            (IMAGE, image),
            (FILE, file),
            (FUNCTION, self.folded.name(key)),
        ];
        for (word, (kind, text)) in words.iter().zip(texts) {
            let name = self.names[kind].reference(&plain(text, '\n', ' '));
            writeln!(out, "{word}={name}")?;
        }
        Ok(source.map_or(0, |source| source.line))
    }

    /// The line of the call, where the caller calls it in one place only.
    fn call_line(&self, caller: FunctionKey, callee: FunctionKey) -> Option<u32> {
        let calls = &self.folded.function(caller)?.calls;
        let key = |id: &FunctionId| self.folded.functions.key(*id);
        let mut lines = calls.iter().filter(|(id, _)| key(id) == callee);
        match (lines.next(), lines.next()) {
            (Some((_, source)), None) => Some(source.line),
            _ => None,
        }
    }
}
