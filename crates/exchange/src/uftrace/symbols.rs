//! Names for addresses: where images were loaded, and their symbols.

use crate::error::Error;
use crate::lines::Lines;
use rustc_hash::FxHashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Symbols of all images together.
const MOST_SYMBOLS: usize = 1 << 24;

/// A name at an address.
#[derive(Debug)]
pub(super) struct Symbol {
    at: u64,
    pub name: String,
    /// A library function that the image calls.
    pub imported: bool,
    /// Marks the end of something.
    is_end: bool,
}

/// The symbols of all images, read when they are asked for.
#[derive(Debug)]
pub(super) struct Symbols {
    /// By path of the image.
    images: FxHashMap<String, Vec<Symbol>>,
    /// By file name of the image, for files that do not tell its path.
    by_name: FxHashMap<String, String>,
}

impl Symbols {
    pub fn read(directory: &Path, has_sizes: bool) -> Result<Self, Error> {
        let mut symbols = Self {
            images: FxHashMap::default(),
            by_name: FxHashMap::default(),
        };
        let entries = fs::read_dir(directory).map_err(|error| Error::read(directory, error))?;
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| Error::read(directory, error))?.path();
            if path.extension().is_some_and(|it| it == "sym") {
                paths.push(path);
            }
        }
        paths.sort();
        let mut count = 0;
        for path in paths {
            symbols.read_file(&path, has_sizes, &mut count)?;
        }
        Ok(symbols)
    }

    fn read_file(&mut self, path: &Path, has_sizes: bool, count: &mut usize) -> Result<(), Error> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut image = stem.clone().into_owned();
        let mut found = Vec::new();
        let mut lines = Lines::open(path)?;
        while let Some(line) = lines.next()? {
            if let Some(comment) = line.strip_prefix('#') {
                if let Some(told) = comment.trim().strip_prefix("path name: ") {
                    told.clone_into(&mut image);
                }
                continue;
            }
            let fields = if has_sizes { 4 } else { 3 };
            let words: Vec<&str> = line.splitn(fields, ' ').collect();
            let symbol = match (words.as_slice(), has_sizes) {
                ([at, kind, name], false) | ([at, _, kind, name], true) => {
                    u64::from_str_radix(at, 16).ok().map(|at| Symbol {
                        at,
                        name: (*name).to_owned(),
                        imported: *kind == "P",
                        is_end: *kind == "?",
                    })
                }
                _ => None,
            };
            let Some(symbol) = symbol else {
                let place = lines.place();
                let found = format!("{line:.80?}");
                return Err(Error::wrong(
                    path,
                    place,
                    "address, kind and name of a symbol",
                    found,
                ));
            };
            *count += 1;
            if *count > MOST_SYMBOLS {
                let expected = format!("at most {MOST_SYMBOLS} symbols in all");
                return Err(Error::wrong(path, lines.place(), expected, "more"));
            }
            found.push(symbol);
        }
        found.sort_by_key(|symbol| symbol.at);
        self.by_name.insert(stem.into_owned(), image.clone());
        self.images.insert(image, found);
        Ok(())
    }

    fn of(&self, image: &str) -> Option<&Vec<Symbol>> {
        self.images.get(image).or_else(|| {
            let name = image.rsplit('/').next()?;
            self.images.get(self.by_name.get(name)?)
        })
    }

    /// The symbol that `offset` lies in.
    pub fn find(&self, image: &str, offset: u64) -> Option<&Symbol> {
        let symbols = self.of(image)?;
        let behind = symbols.partition_point(|symbol| symbol.at <= offset);
        let symbol = symbols.get(behind.checked_sub(1)?)?;
        (!symbol.is_end).then_some(symbol)
    }
}

/// Where the images of a session were loaded.
#[derive(Debug)]
pub(super) struct Session {
    /// Beginning, end, where the image begins, its path; in the order of the beginnings.
    images: Vec<(u64, u64, u64, String)>,
}

impl Session {
    pub fn read(path: &Path) -> Result<Self, Error> {
        let mut lines = Lines::open(path)?;
        let mut images: Vec<(u64, u64, u64, String)> = Vec::new();
        while let Some(line) = lines.next()? {
            let mut words = line.split_ascii_whitespace();
            let range = words.next().and_then(|range| {
                let (start, end) = range.split_once('-')?;
                let number = |text| u64::from_str_radix(text, 16).ok();
                Some((number(start)?, number(end)?))
            });
            let Some((start, end)) = range else {
                let place = lines.place();
                let found = format!("{line:.80?}");
                return Err(Error::wrong(
                    path,
                    place,
                    "START-END and a path, as in /proc/PID/maps",
                    found,
                ));
            };
            // Permissions, offset, device, inode, path.
            let image = match words.nth(4) {
                Some(path) if path.starts_with('/') => path.to_owned(),
                _ => continue,
            };
            let base = images.iter().find(|(.., path)| *path == image);
            let base = base.map_or(start, |(.., base, _)| *base);
            images.push((start, end, base, image));
        }
        images.sort();
        Ok(Self { images })
    }

    /// An image that was loaded later, as far as it has symbols.
    pub fn load(&mut self, base: u64, path: &str, symbols: &Symbols) {
        let last = symbols.of(path).and_then(|symbols| symbols.last());
        let length = last.map_or(0, |symbol| symbol.at).saturating_add(4096);
        let end = base.saturating_add(length);
        self.images.push((base, end, base, path.to_owned()));
        self.images.sort();
    }

    /// The image at an address, and where in it.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let behind = self.images.partition_point(|(start, ..)| *start <= address);
        let (_, end, base, path) = self.images.get(behind.checked_sub(1)?)?;
        (address < *end).then(|| (path.as_str(), address.saturating_sub(*base)))
    }
}
