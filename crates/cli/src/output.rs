//! Everything that leaves this program: results on stdout, remarks on stderr, tables, colour.

use anyhow::Result;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
pub use lockstep_report::grouped;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

/// Where results are written.
pub type Out<'a> = BufWriter<Shown<io::StdoutLock<'a>>>;

/// Text on its way out. Names come from strangers' programs: whoever prints them makes them [`printable`], in one line; what was
/// forgotten is made so here, except line breaks, tabs and our own colours. JSON has rules of its own.
pub struct Shown<W> {
    out: W,
    is_text: bool,
    is_coloured: bool,
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_plain = |byte: &u8| (b' '..0x7f).contains(byte) || *byte == b'\n';
        if !self.is_text || bytes.iter().all(is_plain) {
            self.out.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let text = String::from_utf8_lossy(bytes);
        let is_coloured = self.is_coloured;
        let clean = lockstep_trace::printable_but(&text, |c| {
            matches!(c, '\n' | '\t') || c == '\x1b' && is_coloured
        });
        self.out.write_all(clean.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Runs `write` on stdout. A reader that went away (`| head`) is no failure: the rest is not
/// written, and the command ends with the status that it would have had.
pub fn print(write: impl FnOnce(&mut Out<'_>) -> io::Result<()>) -> Result<()> {
    print_as(true, write)
}

/// The same of data whose format says how each character stands: JSON.
pub fn data(write: impl FnOnce(&mut Out<'_>) -> io::Result<()>) -> Result<()> {
    print_as(false, write)
}

fn print_as(is_text: bool, write: impl FnOnce(&mut Out<'_>) -> io::Result<()>) -> Result<()> {
    let out = Shown {
        out: io::stdout().lock(),
        is_text,
        is_coloured: coloured(),
    };
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let result = write(&mut out).and_then(|()| out.flush());
    // What is left in the buffer after a failure would be tried again on drop.
    let _ = out.into_parts();
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(anyhow::Error::new(error).context("stdout could not be written")),
        Ok(()) => Ok(()),
    }
}

/// The version of what JSON documents hold. A field that is added does not change it; one that is removed or changed does.
pub const SCHEMA: u32 = 1;

/// A JSON document as the program prints it: an object whose first field is its version.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Document<T> {
    /// Version of the fields. New fields do not change it: ignore fields that you do not know.
    #[schemars(extend("const" = SCHEMA))]
    schema: u32,
    #[serde(flatten)]
    fields: T,
}

impl<T: serde::Serialize> Document<T> {
    pub fn new(fields: T) -> Self {
        Self {
            schema: SCHEMA,
            fields,
        }
    }

    pub fn text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

/// Prints one JSON document and a newline.
pub fn json(value: &impl serde::Serialize) -> Result<()> {
    data(|out| {
        serde_json::to_writer(&mut *out, &Document::new(value))?;
        writeln!(out)
    })
}

/// `1 event`, `2 events`, `1,000 processes`.
pub fn plural(number: u64, what: &str) -> String {
    let ending = match (number, what.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {what}{ending}", grouped(number))
}

/// One line on stderr.
pub fn complain(message: &str) {
    let line = message
        .split('\n')
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(" ");
    // Nothing can be done where stderr is closed.
    let _ = writeln!(io::stderr(), "lockstep: {}", printable(line.trim_end()));
}

/// An error and its causes, as far as those before do not tell them already: some errors of ours and of libraries end
/// with their cause's words and give it as their source as well.
pub fn with_causes(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if told.is_empty() {
            told = cause;
        } else if !told.ends_with(&cause) {
            told.push_str(": ");
            told.push_str(&cause);
        }
    }
    told
}

/// What the reader should know besides the result: notes of an opened run, say. One line each.
pub fn remark(notes: &[String]) {
    for note in notes {
        complain(note);
    }
}

/// Status 0 where nothing was found, 1 where something was.
pub fn found(something: bool) -> ExitCode {
    ExitCode::from(u8::from(something))
}

/// A name from a stranger's program as it may be shown on a terminal, in one line.
pub fn printable(text: &str) -> String {
    lockstep_trace::printable(text).into_owned()
}

/// How a piece of text stands out on a terminal.
#[derive(Clone, Copy)]
pub enum Style {
    /// The sentence that matters.
    Bold,
    /// In both runs.
    Common,
    /// In the normal run only.
    Normal,
    /// In the faulty run only.
    Faulty,
    /// In both, but not the same.
    Changed,
    /// Beside the point.
    Faint,
}

/// Whether colour is wanted: stdout is a terminal and `NO_COLOR` is unset or empty.
pub fn coloured() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// `text` in that style, as it is where colour is not wanted.
pub fn styled(style: Style, text: impl Display) -> String {
    if !coloured() {
        return text.to_string();
    }
    let code = match style {
        Style::Bold => "1",
        Style::Common => "32",
        Style::Normal => "34",
        Style::Faulty => "31",
        Style::Changed => "33",
        Style::Faint => "2",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Columns of the terminal; `None` where stdout is none (then nothing is wrapped).
pub fn width() -> Option<u16> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0)
}

/// A table without lines: columns two blanks apart, those named in `numbers` to the right. Cells are
/// wrapped only on a terminal.
pub fn table(
    header: &[&str],
    numbers: &[usize],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell)));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if numbers.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    if let Some(width) = width() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    table.trim_fmt()
}

/// `text` broken at blanks to fit the terminal, later lines indented; as it is where there is none.
pub fn wrapped(text: &str, indent: usize) -> String {
    let Some(width) = width() else {
        return text.to_owned();
    };
    wrap(text, usize::from(width), indent)
}

fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut lines = String::new();
    let mut column = indent;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > indent && column + 1 + length > width {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if !lines.is_empty() {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines
}

/// A bar on stderr, hidden where that is no terminal.
pub fn progress(what: &'static str) -> ProgressBar {
    // The first report tells the length.
    let bar = ProgressBar::new(1);
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len}") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_at_blanks() {
        assert_eq!(wrap("one two three", 80, 0), "one two three");
        assert_eq!(wrap("one two three", 8, 2), "one\n  two\n  three");
        assert_eq!(
            wrap("unbreakablelongword x", 5, 0),
            "unbreakablelongword\nx"
        );
    }

    #[test]
    fn every_document_begins_with_its_version() {
        let fields = serde_json::json!({"a": [1], "z": null});
        let text = Document::new(&fields).text().unwrap_or_default();
        assert_eq!(text, r#"{"schema":1,"a":[1],"z":null}"#);
        // What is no object has no place for a version.
        assert!(Document::new(&[1, 2]).text().is_err());
    }

    #[test]
    fn hostile_names_cannot_steer_the_terminal() {
        assert_eq!(printable("plain::name<T>"), "plain::name<T>");
        assert_eq!(printable("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
    }
}
