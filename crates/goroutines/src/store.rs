//! The directory of a campaign: what was run, each run as an ordinary run, and what a replay needs.
//!
//! ```text
//! DIR/lockstep-go.json    what was asked for, and a row for each run
//! DIR/bin/N               the programs
//! DIR/run-N/              a run; beside its files: execution.json.gz, output.txt
//! ```

use crate::campaign::Run;
use crate::coverage::Usage;
use crate::execution::{End, Execution};
use crate::schedule::Plan;
use crate::trace;
use crate::verdict::Verdict;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};

/// The file that says what a directory is.
pub const MARKER: &str = "lockstep-go.json";
/// In the directory of a run.
pub const EXECUTION: &str = "execution.json.gz";
/// As it was called before it was compressed.
const PLAIN: &str = "execution.json";
/// No execution that is read is larger.
const MOST: u64 = 8 << 30;

/// What was asked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Campaign {
    /// Version of this file.
    pub version: u32,
    /// The seed that all follows from.
    pub seed: u64,
    /// Where the go command ran.
    pub directory: PathBuf,
    /// The module's `GOROOT`.
    pub root: PathBuf,
    /// Programs that were run.
    pub programs: Vec<Stored>,
    /// Usages that the sources of the packages have; `None` where they did not say.
    #[serde(default)]
    pub usages: Option<Vec<Usage>>,
    /// Runs, in order: `run-1` is the first.
    pub runs: Vec<Row>,
}

/// A program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stored {
    /// Its package.
    pub package: String,
    /// Where it runs.
    pub directory: PathBuf,
}

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// Index of its program.
    pub program: usize,
    /// The test, where it was one.
    pub test: Option<String>,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// How it was made.
    pub plan: Plan,
    /// Seconds that it was given.
    pub limit: f64,
    /// How it ended.
    pub end: End,
    /// What that was.
    pub verdict: Verdict,
    /// In one sentence.
    pub sentence: String,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Why a campaign cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A run could not be written.
    #[error(transparent)]
    Run(#[from] lockstep_writer::Error),
    /// It is something else.
    #[error("expected a directory that lockstep go wrote, found {}: {reason}", path.display())]
    Other {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
    |source| StoreError::File {
        path: path.to_owned(),
        source,
    }
}

/// Where program `index` of a campaign lies.
#[must_use]
pub fn program(directory: &Path, index: usize) -> PathBuf {
    directory.join("bin").join(index.to_string())
}

/// Where run `number` lies, from 1.
#[must_use]
pub fn run(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("run-{number}"))
}

impl Campaign {
    /// Writes run `number` beside the others.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn keep(
        &self,
        directory: &Path,
        number: usize,
        program: usize,
        of: &Run,
    ) -> Result<(), StoreError> {
        let place = run(directory, number);
        fs::create_dir(&place).map_err(file(&place))?;
        let status = match of.outcome.end {
            End::Exited(status) => u32::try_from(status).ok(),
            _ => None,
        };
        let name = self
            .programs
            .get(program)
            .map_or("program", |it| it.package.as_str());
        trace::write(&of.execution, name, of.outcome.pid, status, &place)?;
        let path = place.join("output.txt");
        fs::write(&path, &of.outcome.text).map_err(file(&path))?;
        let path = place.join(EXECUTION);
        // Of a livelock it is gigabytes, nearly all of them alike.
        let packed = File::create(&path).map(|it| GzEncoder::new(it, Compression::fast()));
        let text = packed.map(|it| BufWriter::with_capacity(1 << 16, it));
        text.and_then(|mut it| {
            serde_json::to_writer(&mut it, &of.execution)?;
            it.into_inner()?.finish()
        })
        .map(drop)
        .map_err(file(&path))
    }

    /// Writes what was asked for.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), StoreError> {
        let path = directory.join(MARKER);
        let draft = directory.join(".lockstep-go.json");
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        text.and_then(|it| fs::write(&draft, it))
            .and_then(|()| fs::rename(&draft, &path))
            .map_err(file(&path))
    }

    /// Reads what was asked for.
    ///
    /// # Errors
    /// Where it is no such directory.
    pub fn read(directory: &Path) -> Result<Self, StoreError> {
        parse(&directory.join(MARKER), directory, |it| {
            serde_json::from_slice(it)
        })
    }
}

/// The execution of run `number`.
///
/// # Errors
/// Where it is not there.
pub fn execution(directory: &Path, number: usize) -> Result<Execution, StoreError> {
    let place = run(directory, number);
    let found = execution_in(&place)?;
    found.ok_or_else(|| StoreError::Other {
        path: directory.to_owned(),
        reason: format!("{} is not there", place.join(EXECUTION).display()),
    })
}

/// The execution that a run is of; `None` where it is another run.
///
/// # Errors
/// Where it cannot be read.
pub fn execution_in(run: &Path) -> Result<Option<Execution>, StoreError> {
    let other = |path: &Path, reason: String| StoreError::Other {
        path: run.to_owned(),
        reason: format!("{}: {reason}", path.display()),
    };
    let path = run.join(EXECUTION);
    let bytes = match File::open(&path) {
        Ok(file) => {
            let mut bytes = Vec::new();
            GzDecoder::new(BufReader::new(file))
                .take(MOST)
                .read_to_end(&mut bytes)
                .map_err(|error| other(&path, error.to_string()))?;
            bytes
        }
        Err(error) if is_absent(&error) => match fs::read(run.join(PLAIN)) {
            Ok(bytes) => bytes,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(other(&run.join(PLAIN), error.to_string())),
        },
        Err(error) => return Err(other(&path, error.to_string())),
    };
    match Execution::read(&bytes) {
        Ok(execution) => Ok(Some(execution)),
        Err(error) => Err(other(&path, error.to_string())),
    }
}

/// Whether there is no such file, or nothing that one could be in.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn parse<T, E: std::fmt::Display>(
    path: &Path,
    directory: &Path,
    read: impl Fn(&[u8]) -> Result<T, E>,
) -> Result<T, StoreError> {
    let other = |reason: String| StoreError::Other {
        path: directory.to_owned(),
        reason: format!("{}: {reason}", path.display()),
    };
    let bytes = fs::read(path).map_err(|error| other(error.to_string()))?;
    read(&bytes).map_err(|error| other(error.to_string()))
}
