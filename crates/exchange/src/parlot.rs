//! Files of the original tool, ParLOT.
//!
//! ```text
//! PREFIX.HOST.PID.info   "+", path of the image, then one function name a line: name 1, 2, ...
//! PREFIX.HOST.PID.N      one thread: 16-bit words, 0 for every return, else the number of a name;
//!                        compressed as the codec `seed-parlot`
//! ```
//! Nothing in them tells times, ends, or who is which rank: processes are numbered in the order of host and
//! process id, and calls that never returned are open.

use crate::error::{Error, Place};
use crate::lines::Lines;
use lockstep_format::codec::{AnyDecoder, DecodeError, Decoder, Kind, Source};
use lockstep_writer::{Builder, FunctionNumber, Growing, Named, ProcessFacts};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// A word has 16 bits.
const MOST_NAMES: usize = 65_535;

/// Files of one process.
#[derive(Debug, Default)]
struct Files {
    info: Option<PathBuf>,
    threads: BTreeMap<u32, PathBuf>,
}

/// Reads the files in the directory `path`, or those of one process where it is one of its files.
pub(crate) fn read(path: &Path, run: &mut Builder) -> Result<Vec<String>, Error> {
    let mut found = find(path)?;
    if path.is_file() {
        let wanted = path.file_name().and_then(|name| parts(name.to_str()?));
        found.retain(|key, _| wanted.as_ref().is_some_and(|(wanted, _)| wanted == key));
    }
    found.retain(|_, files| !files.threads.is_empty());
    if found.is_empty() {
        return Err(Error::wrong(
            path,
            Place::Whole,
            "files of ParLOT (NAME.HOST.PID.0 beside NAME.HOST.PID.info)",
            "none",
        ));
    }
    for ((prefix, host, pid), files) in &found {
        let Some(info) = &files.info else {
            let missing = format!("{prefix}.{host}.{pid}.info");
            return Err(Error::wrong(path, Place::Whole, missing, "no such file"));
        };
        let (image, names) = read_names(info)?;
        let process = run.process(ProcessFacts {
            host: host.clone(),
            program: image.clone(),
            pid: *pid,
            ..ProcessFacts::default()
        })?;
        let functions: Vec<FunctionNumber> = names
            .iter()
            .map(|name| {
                run.function(&Named {
                    image: &image,
                    name,
                    imported: false,
                    source: None,
                })
            })
            .collect::<Result<_, _>>()?;
        for (thread, file) in &files.threads {
            run.begin(process, pid.wrapping_add(*thread))?;
            read_thread(file, &functions, run)?;
            run.end()?;
        }
    }
    Ok(vec![
        "ParLOT's files tell no times and not how processes ended".to_owned(),
    ])
}

type Key = (String, String, u32);

/// The process and the last part of a file name.
fn parts(name: &str) -> Option<(Key, &str)> {
    let (rest, last) = name.rsplit_once('.')?;
    let (rest, pid) = rest.rsplit_once('.')?;
    let (prefix, host) = rest.split_once('.')?;
    Some((
        (prefix.to_owned(), host.to_owned(), pid.parse().ok()?),
        last,
    ))
}

fn find(path: &Path) -> Result<BTreeMap<Key, Files>, Error> {
    let directory = if path.is_dir() {
        path
    } else {
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    };
    let mut found: BTreeMap<Key, Files> = BTreeMap::new();
    let entries = fs::read_dir(directory).map_err(|error| Error::read(path, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| Error::read(path, error))?;
        let name = entry.file_name();
        let Some((key, last)) = name.to_str().and_then(parts) else {
            continue;
        };
        if last == "info" {
            found.entry(key).or_default().info = Some(entry.path());
        } else if let Ok(thread) = last.parse() {
            let threads = &mut found.entry(key).or_default().threads;
            threads.insert(thread, entry.path());
        }
    }
    Ok(found)
}

/// The image's path and the names, in the order of their numbers.
fn read_names(path: &Path) -> Result<(String, Vec<String>), Error> {
    let mut lines = Lines::open(path)?;
    match lines.next()? {
        Some(plus) if plus == "+" => {}
        other => {
            let found = other.map_or_else(|| "the end".to_owned(), |line| format!("{line:.60?}"));
            return Err(Error::wrong(
                path,
                lines.place(),
                "a line with a plus sign",
                found,
            ));
        }
    }
    let Some(image) = lines.next()? else {
        return Err(Error::wrong(
            path,
            lines.place(),
            "the path of an image",
            "the end",
        ));
    };
    let mut names = Vec::new();
    while let Some(name) = lines.next()? {
        if names.len() == MOST_NAMES {
            let place = lines.place();
            return Err(Error::wrong(
                path,
                place,
                format!("at most {MOST_NAMES} names"),
                "more",
            ));
        }
        names.push(name);
    }
    Ok((image, names))
}

/// A file as a decoder takes it.
struct Bytes {
    reader: BufReader<File>,
    length: u64,
    taken: u64,
    error: Option<std::io::Error>,
}

impl Source for Bytes {
    fn take(&mut self) -> Option<u8> {
        if self.taken == self.length {
            return None;
        }
        let mut byte = [0];
        match self.reader.read_exact(&mut byte) {
            Ok(()) => {
                self.taken += 1;
                Some(byte[0])
            }
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }

    fn left(&self) -> u64 {
        self.length - self.taken
    }
}

fn read_thread(path: &Path, functions: &[FunctionNumber], run: &mut Builder) -> Result<(), Error> {
    let file = File::open(path).map_err(|error| Error::read(path, error))?;
    let metadata = file.metadata().map_err(|error| Error::read(path, error))?;
    let mut bytes = Bytes {
        reader: BufReader::new(file),
        length: metadata.len(),
        taken: 0,
        error: None,
    };
    let mut decoder = Box::new(AnyDecoder::<Growing, Growing>::new(Kind::SeedParlot));
    loop {
        let word = match decoder.next(&mut bytes) {
            Ok(Some(word)) => word,
            Ok(None) => return Ok(()),
            Err(error) => {
                if let Some(error) = bytes.error.take() {
                    return Err(Error::read(path, error));
                }
                let place = Place::Byte(bytes.taken);
                return Err(match error {
                    DecodeError::CutOff => {
                        Error::wrong(path, place, "the rest of a code", "the end of the file")
                    }
                    other => Error::wrong(path, place, "a stream of ParLOT", other.to_string()),
                });
            }
        };
        if word == 0 {
            run.ret(None)?;
            continue;
        }
        let Some(function) = functions.get(word as usize - 1) else {
            return Err(Error::wrong(
                path,
                Place::Byte(bytes.taken),
                format!("the number of a function, up to {}", functions.len()),
                word.to_string(),
            ));
        };
        run.call(*function, None)?;
    }
}
