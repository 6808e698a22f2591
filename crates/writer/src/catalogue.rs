//! The functions of a run that is being written: names in, plans out.
//!
//! Symbols are given as functions come up, whatever image they are of, so an image has *blocks* of symbols, each
//! twice as large as the one before and with a plan of its own. All processes share them.

use crate::Error;
use crate::FunctionNumber;
use lockstep_format::bytes::{put, put_u32, put_u64};
use lockstep_format::check;
use lockstep_format::plan::{MAGIC, Role, VERSION, function, header, routine, section};
use lockstep_format::symbol::{FIRST_FUNCTION, SYMBOLS};
use lockstep_trace::c_name;
use lockstep_trace::mpi::{self, Does};
use rustc_hash::FxHashMap;
use serde_json::json;
use std::fs;
use std::path::Path;

/// Functions in an image's first block.
const FIRST_BLOCK: u32 = 1024;
/// A larger name is none.
const LONGEST_NAME: usize = 1 << 16;
/// All names together.
const MOST_BYTES: usize = 1 << 30;

/// A function as somebody else names it.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// Path of its image.
    pub image: &'a str,
    /// Its name in the symbol table.
    pub name: &'a str,
    /// Whether it is a library function that the image calls.
    pub imported: bool,
    /// Where it is defined.
    pub source: Option<(&'a str, u32)>,
}

/// All functions so far.
#[derive(Debug, Default)]
pub(crate) struct Images {
    /// By path: its number, and the block that is being filled.
    images: FxHashMap<String, (usize, Option<usize>)>,
    blocks: Vec<Block>,
    known: FxHashMap<(usize, bool, String), FunctionNumber>,
    /// Functions that initialise MPI.
    inits: Vec<FunctionNumber>,
    /// Symbols that blocks have.
    taken: u32,
    bytes: usize,
}

#[derive(Debug)]
struct Block {
    image: String,
    /// Number of its first function.
    first: u32,
    room: u32,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    imported: bool,
    source: Option<(String, u32)>,
}

/// A plan as the facts of a process name it.
#[derive(Debug)]
pub(crate) struct PlanFact {
    pub image: String,
    pub name: String,
    pub first: u32,
    pub count: usize,
}

impl Images {
    pub fn is_init(&self, function: FunctionNumber) -> bool {
        self.inits.contains(&function)
    }

    pub fn function(&mut self, named: &Named<'_>) -> Result<FunctionNumber, Error> {
        let number = self.images.len();
        let (image, block) = match self.images.get(named.image) {
            Some(known) => *known,
            None => {
                self.images.insert(named.image.to_owned(), (number, None));
                (number, None)
            }
        };
        let key = (image, named.imported, named.name.to_owned());
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        if named.name.len() > LONGEST_NAME {
            return Err(Error::TooMuch(format!(
                "expected function names of at most {LONGEST_NAME} bytes, found one of {}",
                named.name.len()
            )));
        }
        self.bytes += named.name.len();
        if self.bytes > MOST_BYTES {
            return Err(Error::TooMuch(format!(
                "expected at most {MOST_BYTES} bytes of function names, found more"
            )));
        }
        let has_room = |block: &usize| {
            let block = self.blocks.get(*block);
            block.is_some_and(|block| (block.rows.len() as u32) < block.room)
        };
        let block = match block.filter(has_room) {
            Some(block) => block,
            None => self.open(named.image, block)?,
        };
        let Some(block) = self.blocks.get_mut(block) else {
            return Ok(FunctionNumber(0));
        };
        let number = FunctionNumber(block.first + block.rows.len() as u32);
        block.rows.push(Row {
            name: named.name.to_owned(),
            imported: named.imported,
            source: named.source.map(|(file, line)| (file.to_owned(), line)),
        });
        if matches!(mpi::meaning(&c_name(named.name)).does, Does::Begin { .. }) {
            self.inits.push(number);
        }
        self.known.insert(key, number);
        Ok(number)
    }

    /// A new block behind all others; its number.
    fn open(&mut self, image: &str, full: Option<usize>) -> Result<usize, Error> {
        let full = full.and_then(|full| self.blocks.get(full));
        let left = SYMBOLS - FIRST_FUNCTION - self.taken;
        let room = full.map_or(FIRST_BLOCK, |block| block.room * 2).min(left);
        if room == 0 {
            return Err(Error::TooMuch(format!(
                "expected at most {} functions, found more",
                SYMBOLS - FIRST_FUNCTION
            )));
        }
        let number = self.blocks.len();
        self.blocks.push(Block {
            image: image.to_owned(),
            first: self.taken,
            room,
            rows: Vec::new(),
        });
        self.taken += room;
        if let Some((_, block)) = self.images.get_mut(image) {
            *block = Some(number);
        }
        Ok(number)
    }

    /// Writes plans and lines.
    pub fn write(&self, directory: &Path) -> Result<Vec<PlanFact>, Error> {
        let mut facts = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            let name = format!("imported-{number}");
            let write = |path: &Path, bytes: &[u8]| {
                fs::write(path, bytes).map_err(|error| Error::write(path, error))
            };
            let plan = directory.join("plans").join(format!("{name}.plan"));
            write(&plan, &block.plan())?;
            if let Some(lines) = block.lines() {
                let path = directory.join("lines").join(format!("{name}.json"));
                write(&path, lines.to_string().as_bytes())?;
            }
            facts.push(PlanFact {
                image: block.image.clone(),
                name: format!("{name}.plan"),
                first: FIRST_FUNCTION + block.first,
                count: block.rows.len(),
            });
        }
        Ok(facts)
    }
}

impl Block {
    /// Its plan: functions and their names; nothing to patch. A function's address is its row, from 1.
    fn plan(&self) -> Vec<u8> {
        let mut strings = Vec::new();
        let mut functions = vec![0; self.rows.len() * function::SIZE];
        let places = functions.chunks_exact_mut(function::SIZE);
        for ((row, place), address) in self.rows.iter().zip(places).zip(1..) {
            put_u64(place, function::ADDRESS, address);
            put_u32(place, function::NAME, strings.len() as u32);
            put_u32(place, function::NAME_LENGTH, row.name.len() as u32);
            let origin = if row.imported {
                function::IMPORT
            } else {
                function::OWN
            };
            put_u32(place, function::ORIGIN, origin);
            strings.extend_from_slice(row.name.as_bytes());
        }
        let mut sections: [Vec<u8>; section::COUNT] = Default::default();
        sections[section::CODE] = vec![0; 8 * routine::COUNT];
        sections[section::FUNCTIONS] = functions;
        sections[section::STRINGS] = strings;

        let mut plan = vec![0; header::SIZE];
        put(&mut plan, header::MAGIC, &MAGIC);
        put_u32(&mut plan, header::VERSION, VERSION);
        put_u32(&mut plan, header::ROLE, Role::Library as u32);
        put_u32(&mut plan, header::SYMBOLS, self.rows.len() as u32);
        put_u32(&mut plan, header::TRACED, 1);
        for (index, bytes) in sections.iter().enumerate() {
            plan.resize(plan.len().next_multiple_of(8), 0);
            let start = plan.len() as u32;
            let at = header::SECTIONS + 8 * index;
            put_u32(&mut plan, at, start);
            put_u32(&mut plan, at + 4, bytes.len() as u32);
            plan.extend_from_slice(bytes);
        }
        let sum = check::crc32c(&plan[header::ROLE..]);
        put_u32(&mut plan, header::CHECK, sum);
        plan
    }

    fn lines(&self) -> Option<serde_json::Value> {
        let functions: serde_json::Map<String, serde_json::Value> = self
            .rows
            .iter()
            .zip(1..)
            .filter_map(|(row, address): (_, u64)| {
                let (file, line) = row.source.as_ref()?;
                Some((format!("{address:#x}"), json!([file, line])))
            })
            .collect();
        (!functions.is_empty()).then(|| json!({"functions": functions}))
    }
}
