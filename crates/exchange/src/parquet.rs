//! A table of all calls for query engines (DuckDB, Polars, pandas): one row a call, in the order in which calls end, trace
//! by trace. The guide's page about taking runs elsewhere has the columns.
//!
//! Rows are gathered into groups of [`GROUP`], which are compressed column by column and written as they fill: memory of
//! one group and of the open calls.

use crate::spans::{Clock, Moment, Span, each_span};
use crate::view::View;
use lockstep_trace::{Annotated, Argument, FunctionId, Process, Run, SourceLine, Thread, Value};
use parquet::basic::{Compression, Encoding, Type};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// The columns, in the order of [`File::row`]'s cells.
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
/// Rows of a group: what engines give to a thread of theirs at once.
const GROUP: usize = 1 << 17;

pub(crate) fn write(
    run: &Run,
    threads: &[&Thread],
    (clock, view): (&Clock, &View),
    out: &mut impl Write,
) -> io::Result<()> {
    let mut file = File::new(threads, clock, out)?;
    let mut texts = Texts::new(run);
    for process in &run.processes {
        let own = |thread: &&&Thread| thread.name.process == process.name;
        for thread in threads.iter().filter(own) {
            let task = Task::new(process, thread);
            let mut open: Vec<Call> = Vec::new();
            each_span(thread, clock, view, |time, span, event| match span {
                Span::Open(function, arguments) => {
                    let caller = open.last().map(|it| it.function);
                    let line = event.line.clone();
                    let line = line.or_else(|| texts.line(run, caller?, function));
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
                        file.row(&task, &mut texts, &open, call, Some(end))
                    }
                    None => Ok(()),
                },
            })?;
            while let Some(call) = open.pop() {
                file.row(&task, &mut texts, &open, call, None)?;
            }
        }
    }
    file.finish()
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

fn text(text: &str) -> ByteArray {
    text.as_bytes().to_vec().into()
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

/// One column of a group. Where the schema asks for a value, there always is one.
enum Column {
    Texts(Vec<Option<ByteArray>>),
    Numbers(Vec<Option<i64>>),
}

/// A cell.
enum Cell {
    Text(Option<ByteArray>),
    Number(Option<u64>),
    Signed(Option<i64>),
}

/// The file, and the rows of the group that is being filled.
struct File<'a, W> {
    out: &'a mut W,
    /// Bytes are handed on to `out` at the end of each group.
    writer: SerializedFileWriter<Vec<u8>>,
    columns: Vec<Column>,
    rows: usize,
}

impl<'a, W: Write> File<'a, W> {
    fn new(threads: &[&Thread], clock: &Clock, out: &'a mut W) -> io::Result<Self> {
        let schema = parse_message_type(SCHEMA).map_err(failed)?;
        let unit = match clock {
            Clock::Recorded => "nanoseconds",
            Clock::Logical(_) => "events",
        };
        let times = threads.first().and_then(|thread| thread.times.as_ref());
        let zero = times.and_then(|it| Some((it.zero()?, it.date()?)));
        let mut facts = vec![
            ("lockstep.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("lockstep.clock", clock.name().to_owned()),
            ("lockstep.unit", unit.to_owned()),
        ];
        if let Some((monotonic, date)) = zero {
            facts.push(("lockstep.zero.monotonic", monotonic.to_string()));
            facts.push(("lockstep.zero.date", date.to_string()));
        }
        let facts = facts.into_iter();
        let facts: Vec<KeyValue> = facts
            .map(|(key, value)| KeyValue::new(key.to_owned(), value))
            .collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(facts));
        let properties = COUNTING.into_iter().fold(properties, |properties, name| {
            let column = || ColumnPath::from(name);
            properties
                .set_column_dictionary_enabled(column(), false)
                .set_column_encoding(column(), Encoding::DELTA_BINARY_PACKED)
        });
        let columns = schema.get_fields().iter();
        let columns = columns.map(|field| match field.get_physical_type() {
            Type::INT64 => Column::Numbers(Vec::new()),
            _ => Column::Texts(Vec::new()),
        });
        Ok(Self {
            columns: columns.collect(),
            writer: SerializedFileWriter::new(
                Vec::new(),
                Arc::new(schema),
                Arc::new(properties.build()),
            )
            .map_err(failed)?,
            out,
            rows: 0,
        })
    }

    /// Adds `call`, which was made from the innermost of `open`.
    fn row(
        &mut self,
        task: &Task,
        texts: &mut Texts,
        open: &[Call],
        call: Call,
        end: Option<End<'_>>,
    ) -> io::Result<()> {
        let (name, image) = texts.functions[call.function.0 as usize].clone();
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
            Cell::Text(line.map(|it| texts.file(&it.file))),
            Cell::Number(line.map(|it| it.line.into())),
        ];
        let cells = cells.into_iter().chain(call.typed.cells()).chain(rest);
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            match (column, cell) {
                (Column::Texts(column), Cell::Text(cell)) => column.push(cell),
                (Column::Numbers(column), Cell::Number(cell)) => {
                    column.push(cell.map(|it| i64::try_from(it).unwrap_or(i64::MAX)));
                }
                (Column::Numbers(column), Cell::Signed(cell)) => column.push(cell),
                _ => {
                    return Err(io::Error::other(
                        "a cell is of another kind than its column",
                    ));
                }
            }
        }
        self.rows += 1;
        if self.rows == GROUP {
            self.group()
        } else {
            Ok(())
        }
    }

    /// Writes the rows that were gathered.
    fn group(&mut self) -> io::Result<()> {
        self.rows = 0;
        let mut group = self.writer.next_row_group().map_err(failed)?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column().map_err(failed)? else {
                break;
            };
            match column {
                Column::Texts(cells) => put::<ByteArrayType>(&mut writer, cells),
                Column::Numbers(cells) => put::<Int64Type>(&mut writer, cells),
            }
            .map_err(failed)?;
            writer.close().map_err(failed)?;
        }
        group.close().map_err(failed)?;
        self.hand_on()
    }

    fn hand_on(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        self.out.write_all(self.writer.inner())?;
        self.writer.inner_mut().clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.group()?;
        }
        self.writer.finish().map_err(failed)?;
        self.hand_on()
    }
}

/// Writes the cells of a column, and leaves none.
fn put<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: &mut Vec<Option<T::T>>,
) -> Result<usize, ParquetError> {
    // Which rows have a value: read where the schema lets some have none.
    let levels: Vec<i16> = cells.iter().map(|cell| cell.is_some().into()).collect();
    let values: Vec<T::T> = cells.drain(..).flatten().collect();
    writer
        .typed::<T>()
        .write_batch(&values, Some(&levels), None)
}

fn failed(error: ParquetError) -> io::Error {
    io::Error::other(error)
}
