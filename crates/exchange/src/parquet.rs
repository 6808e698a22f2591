//! A table of all calls for query engines (DuckDB, Polars, pandas): one row a call, in the order in which calls end, trace
//! by trace. The guide's page about taking runs elsewhere has the columns.
//!
//! Memory of a group of rows (see [`table`](crate::table)) and of the open calls.

use crate::spans::{Clock, Moment, Span, each_span};
use crate::table::{Cell, File, text};
use crate::view::View;
use lockstep_trace::{Annotated, Argument, FunctionId, Process, Run, SourceLine, Thread, Value};
use parquet::data_type::ByteArray;
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// The columns, in the order of [`Calls::row`]'s cells.
const SCHEMA: &str = "message calls {
    required binary trace (STRING);
    required binary process (STRING);
    optional int64 rank;
    required binary function (STRING);
    required binary image (STRING);
    required int64 depth;
    required int64 begin_event;
    optional int64 end_event;
    optional int64 parent_event;
    optional int64 begin_time;
    required int64 begin_earliest;
    optional int64 begin_latest;
    optional int64 end_time;
    optional int64 end_earliest;
    optional int64 end_latest;
    optional int64 dest;
    optional int64 source;
    optional int64 tag;
    optional int64 count;
    optional int64 root;
    optional binary comm (STRING);
    optional binary datatype (STRING);
    optional binary request (STRING);
    optional int64 from_source;
    optional int64 from_tag;
    optional int64 from_bytes;
    optional binary arguments (STRING);
    optional binary results (STRING);
    optional binary file (STRING);
    optional int64 line;
}";
/// Arguments that have a column of their own: their names in the calls, the first that a call has counts. What a status
/// says of the message that came stands in `from_source`, `from_tag` and `from_bytes`.
const TYPED: [&[&str]; 8] = [
    &["dest", "target_rank"],
    &["source"],
    &["tag", "sendtag"],
    &["count", "sendcount", "origin_count", "recvcount"],
    &["root"],
    &["comm"],
    &["datatype", "sendtype", "origin_datatype", "recvtype"],
    &["request"],
];
/// Columns whose values hardly come again, and differ little from row to row.
const COUNTING: [&str; 9] = [
    "begin_event",
    "end_event",
    "parent_event",
    "begin_time",
    "begin_earliest",
    "begin_latest",
    "end_time",
    "end_earliest",
    "end_latest",
];
pub(crate) fn write(
    run: &Run,
    threads: &[&Thread],
    (clock, view): (&Clock, &View),
    out: &mut impl Write,
) -> io::Result<()> {
    let mut calls = Calls {
        file: File::new(SCHEMA, &COUNTING, facts(threads, clock), out)?,
        texts: Texts::new(run),
    };
    for process in &run.processes {
        let own = |thread: &&&Thread| thread.name.process == process.name;
        for thread in threads.iter().filter(own) {
            let task = Task::new(process, thread);
            let mut open: Vec<Call> = Vec::new();
            each_span(thread, clock, view, |time, span, event| match span {
                Span::Open(function, arguments) => {
                    let caller = open.last().map(|it| it.function);
                    let line = event.line.clone();
                    let line = line.or_else(|| calls.texts.line(run, caller?, function));
                    open.push(Call {
                        function,
                        event: event.index,
                        time,
                        line,
                        typed: Typed::of(arguments.unwrap_or_default()),
                        arguments: arguments.and_then(json),
                    });
                    Ok(())
                }
                Span::Close(_, results) => match open.pop() {
                    Some(mut call) => {
                        call.typed.add(results.unwrap_or_default());
                        let end = End {
                            event,
                            time,
                            results: results.and_then(json),
                        };
                        calls.row(&task, &open, call, Some(end))
                    }
                    None => Ok(()),
                },
            })?;
            while let Some(call) = open.pop() {
                calls.row(&task, &open, call, None)?;
            }
        }
    }
    calls.file.finish()
}

/// What is the same for all calls of a trace.
struct Task {
    trace: ByteArray,
    process: ByteArray,
    rank: Option<u64>,
}

impl Task {
    fn new(process: &Process, thread: &Thread) -> Self {
        Self {
            trace: text(&thread.name.to_string()),
            process: text(&process.name.to_string()),
            rank: process.rank.map(u64::from),
        }
    }
}

/// A call that has begun.
struct Call {
    function: FunctionId,
    event: u64,
    time: Moment,
    arguments: Option<ByteArray>,
    /// Arguments that have columns of their own.
    typed: Typed,
    /// Which it stands in.
    line: Option<Arc<SourceLine>>,
}

/// Arguments that have columns of their own, in the order of [`TYPED`]; then what a status says.
#[derive(Default)]
struct Typed {
    arguments: [Option<Value>; TYPED.len()],
    status: Option<(i64, i64, i64)>,
}

impl Typed {
    fn of(arguments: &[Argument]) -> Self {
        let mut typed = Self::default();
        typed.add(arguments);
        typed
    }

    /// What stands there already stays.
    fn add(&mut self, arguments: &[Argument]) {
        for (place, names) in self.arguments.iter_mut().zip(TYPED) {
            let mut found = names
                .iter()
                .filter_map(|name| arguments.iter().find(|it| it.name == *name));
            if place.is_none() {
                *place = found.next().map(|it| it.value.clone());
            }
        }
        let mut statuses = arguments.iter().filter_map(|it| match it.value {
            Value::Status(source, tag, bytes) => Some((source, tag, bytes)),
            _ => None,
        });
        self.status = self.status.or_else(|| statuses.next());
    }

    /// Its cells.
    fn cells(self) -> impl Iterator<Item = Cell> {
        let is_text = |index: usize| index >= 5;
        let arguments = self.arguments.into_iter().enumerate();
        let arguments = arguments.map(move |(index, value)| match value {
            Some(value) if is_text(index) => Cell::Text(Some(text(&value.to_string()))),
            None if is_text(index) => Cell::Text(None),
            Some(
                Value::Number(number) | Value::Rank { rank: number, .. } | Value::Tag(Some(number)),
            ) => Cell::Signed(Some(number)),
            _ => Cell::Signed(None),
        });
        let status = self.status;
        let status = [
            status.map(|it| it.0),
            status.map(|it| it.1),
            status.map(|it| it.2),
        ];
        arguments.chain(status.map(Cell::Signed))
    }
}

/// How it ended.
struct End<'a> {
    event: &'a Annotated,
    time: Moment,
    results: Option<ByteArray>,
}

/// Texts that come again and again, shared by their rows.
struct Texts {
    /// Name and image of every function.
    functions: Vec<(ByteArray, ByteArray)>,
    files: FxHashMap<String, ByteArray>,
    /// The one line in which a function calls another.
    lines: FxHashMap<(FunctionId, FunctionId), Option<Arc<SourceLine>>>,
}

impl Texts {
    fn new(run: &Run) -> Self {
        let functions = run.functions.iter();
        Self {
            functions: functions
                .map(|it| (text(&it.name), text(&it.image)))
                .collect(),
            files: FxHashMap::default(),
            lines: FxHashMap::default(),
        }
    }

    /// The line in which `caller` calls `callee`, if it does so in one place only.
    fn line(
        &mut self,
        run: &Run,
        caller: FunctionId,
        callee: FunctionId,
    ) -> Option<Arc<SourceLine>> {
        let find = || {
            let calls = run.function(caller).calls.iter();
            let mut lines = calls.filter(|(id, _)| *id == callee).map(|it| &it.1);
            let first = lines.next()?;
            lines.all(|it| it == first).then(|| Arc::new(first.clone()))
        };
        let line = self.lines.entry((caller, callee)).or_insert_with(find);
        line.clone()
    }

    fn file(&mut self, name: &str) -> ByteArray {
        if let Some(known) = self.files.get(name) {
            return known.clone();
        }
        let file = text(name);
        self.files.insert(name.to_owned(), file.clone());
        file
    }
}

/// As an object, name by name; none where there is nothing to show.
fn json(arguments: &[Argument]) -> Option<ByteArray> {
    let shown = arguments.iter().filter(|it| it.value.is_shown());
    let object: serde_json::Map<String, serde_json::Value> = shown
        .map(|it| (it.name.to_owned(), typed(&it.value)))
        .collect();
    (!object.is_empty()).then(|| text(&serde_json::Value::Object(object).to_string()))
}

/// Numbers as numbers, all else as it is printed.
fn typed(value: &Value) -> serde_json::Value {
    match value {
        Value::Number(number)
        | Value::Rank {
            rank: number,
            name: None,
        }
        | Value::Tag(Some(number)) => (*number).into(),
        Value::Numbers(count, numbers) if *count == numbers.len() as i64 => {
            numbers.as_slice().into()
        }
        other => other.to_string().into(),
    }
}

/// The table, and texts that its rows share.
struct Calls<'a, W> {
    file: File<'a, W>,
    texts: Texts,
}

impl<W: Write> Calls<'_, W> {
    /// Adds `call`, which was made from the innermost of `open`.
    fn row(
        &mut self,
        task: &Task,
        open: &[Call],
        call: Call,
        end: Option<End<'_>>,
    ) -> io::Result<()> {
        let (name, image) = self.texts.functions[call.function.0 as usize].clone();
        let line = call.line.as_deref();
        let (begin, ended) = (call.time, end.as_ref().map(|it| it.time));
        let cells = [
            Cell::Text(Some(task.trace.clone())),
            Cell::Text(Some(task.process.clone())),
            Cell::Number(task.rank),
            Cell::Text(Some(name)),
            Cell::Text(Some(image)),
            Cell::Number(Some(open.len() as u64)),
            Cell::Number(Some(call.event)),
            Cell::Number(end.as_ref().map(|it| it.event.index)),
            Cell::Number(open.last().map(|it| it.event)),
            Cell::Number(begin.measured()),
            Cell::Number(Some(begin.earliest)),
            Cell::Number(begin.latest),
            Cell::Number(ended.and_then(Moment::measured)),
            Cell::Number(ended.map(|it| it.earliest)),
            Cell::Number(ended.and_then(|it| it.latest)),
        ];
        let rest = [
            Cell::Text(call.arguments),
            Cell::Text(end.and_then(|it| it.results)),
            Cell::Text(line.map(|it| self.texts.file(&it.file))),
            Cell::Number(line.map(|it| it.line.into())),
        ];
        let cells = cells.into_iter().chain(call.typed.cells()).chain(rest);
        self.file.row(cells)
    }
}

/// Which times these are.
fn facts(threads: &[&Thread], clock: &Clock) -> Vec<(&'static str, String)> {
    let unit = match clock {
        Clock::Recorded => "nanoseconds",
        Clock::Logical(_) => "events",
    };
    let times = threads.first().and_then(|thread| thread.times.as_ref());
    let zero = times.and_then(|it| Some((it.zero()?, it.date()?)));
    let mut facts = vec![
        ("lockstep.clock", clock.name().to_owned()),
        ("lockstep.unit", unit.to_owned()),
    ];
    if let Some((monotonic, date)) = zero {
        facts.push(("lockstep.zero.monotonic", monotonic.to_string()));
        facts.push(("lockstep.zero.date", date.to_string()));
    }
    facts
}
