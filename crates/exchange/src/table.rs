//! Tables as files of Parquet, whatever is in them.
//!
//! Rows are gathered into groups of [`GROUP`], which are compressed column by column and written as they fill: memory of
//! one group.

use parquet::basic::{Compression, Encoding, Type};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::io::{self, Write};
use std::sync::Arc;

/// Rows of a group: what engines give to a thread of theirs at once.
const GROUP: usize = 1 << 17;

/// What a column of a small table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Numbers.
    Numbers(&'static str),
    /// Texts.
    Texts(&'static str),
}

/// A cell of a small table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Nothing.
    None,
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

/// A small table: all of it is there before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, each with its name.
    pub columns: Vec<Column>,
    /// Its rows, a cell for each column.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// Writes it.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let columns = self.columns.iter().map(|column| match column {
            Column::Numbers(name) => format!("optional int64 {name};"),
            Column::Texts(name) => format!("optional binary {name} (STRING);"),
        });
        let columns: String = columns.collect();
        let schema = format!("message {} {{ {columns} }}", self.name);
        let mut file = File::new(&schema, &[], Vec::new(), out)?;
        for row in &self.rows {
            let cells = self.columns.iter().zip(row);
            file.row(cells.map(|(column, value)| match (column, value) {
                (_, Value::Text(it)) => Cell::Text(Some(text(it))),
                (_, Value::Number(it)) => Cell::Signed(Some(*it)),
                (Column::Texts(_), Value::None) => Cell::Text(None),
                (Column::Numbers(_), Value::None) => Cell::Signed(None),
            }))?;
        }
        file.finish()
    }
}

pub(crate) fn text(text: &str) -> ByteArray {
    text.as_bytes().to_vec().into()
}

/// The cells of a column, of a group. Where the schema asks for a value, there always is one.
enum Cells {
    Texts(Vec<Option<ByteArray>>),
    Numbers(Vec<Option<i64>>),
}

/// A cell.
pub(crate) enum Cell {
    Text(Option<ByteArray>),
    Number(Option<u64>),
    Signed(Option<i64>),
}

/// The file, and the rows of the group that is being filled.
pub(crate) struct File<'a, W> {
    out: &'a mut W,
    /// Bytes are handed on to `out` at the end of each group.
    writer: SerializedFileWriter<Vec<u8>>,
    columns: Vec<Cells>,
    rows: usize,
}

impl<'a, W: Write> File<'a, W> {
    /// With facts about all of it. Values of `counting` columns hardly come again, and differ little from row to row.
    pub fn new(
        schema: &str,
        counting: &[&str],
        facts: Vec<(&str, String)>,
        out: &'a mut W,
    ) -> io::Result<Self> {
        let schema = parse_message_type(schema).map_err(failed)?;
        let version = ("lockstep.version", env!("CARGO_PKG_VERSION").to_owned());
        let facts = [version].into_iter().chain(facts);
        let facts: Vec<KeyValue> = facts
            .map(|(key, value)| KeyValue::new(key.to_owned(), value))
            .collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(facts));
        let properties = counting.iter().fold(properties, |properties, name| {
            let column = || ColumnPath::from(*name);
            properties
                .set_column_dictionary_enabled(column(), false)
                .set_column_encoding(column(), Encoding::DELTA_BINARY_PACKED)
        });
        let columns = schema.get_fields().iter();
        let columns = columns.map(|field| match field.get_physical_type() {
            Type::INT64 => Cells::Numbers(Vec::new()),
            _ => Cells::Texts(Vec::new()),
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

    /// Adds a row.
    pub fn row(&mut self, cells: impl Iterator<Item = Cell>) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            match (column, cell) {
                (Cells::Texts(column), Cell::Text(cell)) => column.push(cell),
                (Cells::Numbers(column), Cell::Number(cell)) => {
                    column.push(cell.map(|it| i64::try_from(it).unwrap_or(i64::MAX)));
                }
                (Cells::Numbers(column), Cell::Signed(cell)) => column.push(cell),
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
                Cells::Texts(cells) => put::<ByteArrayType>(&mut writer, cells),
                Cells::Numbers(cells) => put::<Int64Type>(&mut writer, cells),
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

    /// Writes what is left, and ends the file.
    pub fn finish(mut self) -> io::Result<()> {
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
