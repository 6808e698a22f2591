//! What the symbols of one process mean.

use crate::model::{Event, FunctionId};
use lockstep_format::symbol::{FIRST_FUNCTION, RETURN, TAIL};
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// A function as its image's plan has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub function: FunctionId,
    /// Its symbol is a call and its return.
    pub is_leaf: bool,
}

/// Symbols below it are looked up in a table; more than any real process has.
const TABLE: usize = 1 << 20;
/// The main program's symbols are the first, and its image is told last.
const GAP: usize = 1 << 16;

/// The symbols of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Symbols {
    images: Vec<Block>,
    /// By symbol, as far as it is long.
    table: Vec<Option<Row>>,
    /// Those of the main program.
    main: Range<u32>,
    /// Symbols that no image has, once they were seen.
    strays: FxHashMap<u32, FunctionId>,
}

/// The dense block of symbols that an image got.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    first: u32,
    rows: Arc<[Row]>,
}

impl Symbols {
    /// Of a process whose main program has the symbols `main`, and whose images have dense blocks from these on.
    pub fn new(main: Range<u32>, images: Vec<(u32, Arc<[Row]>)>) -> Self {
        let mut symbols = Self {
            main,
            ..Self::default()
        };
        for (first, rows) in images {
            symbols.add_image(first, rows);
        }
        symbols
    }

    /// Gives `rows` the symbols from `first` on. Of overlapping blocks the earlier one counts.
    pub fn add_image(&mut self, first: u32, rows: Arc<[Row]>) {
        let start = first as usize;
        let end = start.saturating_add(rows.len());
        // Symbols are dense; where a damaged file says otherwise, a table would be mostly empty.
        if end <= TABLE && start <= self.table.len() + GAP {
            self.table.resize(self.table.len().max(end), None);
            for (place, row) in self.table.iter_mut().skip(start).zip(rows.iter()) {
                place.get_or_insert(*row);
            }
        }
        self.images.push(Block { first, rows });
    }

    /// Whether this is a function of the main program, or one that it calls. All are where it has
    /// none.
    #[inline]
    pub fn is_main(&self, symbol: u32) -> bool {
        self.main.contains(&symbol) || self.main.is_empty()
    }

    pub fn add_stray(&mut self, symbol: u32, function: FunctionId) {
        self.strays.insert(symbol, function);
    }

    /// The function that it stands for.
    pub fn function(&self, symbol: u32) -> Option<FunctionId> {
        self.row(symbol).map(|row| row.function)
    }

    #[inline]
    fn row(&self, symbol: u32) -> Option<Row> {
        if let Some(Some(row)) = self.table.get(symbol as usize) {
            return Some(*row);
        }
        self.row_elsewhere(symbol)
    }

    #[cold]
    fn row_elsewhere(&self, symbol: u32) -> Option<Row> {
        self.images
            .iter()
            .find_map(|block| {
                let index = symbol.checked_sub(block.first)?;
                block.rows.get(index as usize).copied()
            })
            .or_else(|| {
                self.strays.get(&symbol).map(|function| Row {
                    function: *function,
                    is_leaf: false,
                })
            })
    }
}

/// What they mean, of processes of one run: images share their rows. Never equal by chance.
impl Hash for Symbols {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for block in &self.images {
            (
                block.first,
                Arc::as_ptr(&block.rows).addr(),
                block.rows.len(),
            )
                .hash(state);
        }
        self.main.hash(state);
        if !self.strays.is_empty() {
            std::ptr::from_ref(self).addr().hash(state);
        }
    }
}

/// From symbols to events, in order: a leaf's symbol is a call and its return, except where its
/// frame had one before (inherited from the parent process, or handed over by another frame).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// Inherited calls that are still to come.
    inherited: u32,
    after_tail: bool,
}

impl Meaning {
    /// At the beginning of a stream with so many inherited calls.
    pub fn new(inherited: u32) -> Self {
        Self {
            inherited,
            after_tail: false,
        }
    }

    /// Whether no inherited calls are to come any more.
    pub fn is_settled(&self) -> bool {
        self.inherited == 0
    }

    /// The event of this symbol, and whether its return comes with it; `None` for symbols that are
    /// reserved or unknown.
    #[inline]
    pub fn of(&mut self, symbol: u32, symbols: &Symbols) -> Option<(Event, bool)> {
        let is_plain = std::mem::take(&mut self.after_tail);
        match symbol {
            RETURN => Some((Event::Return, false)),
            TAIL => {
                self.after_tail = true;
                Some((Event::Tail, false))
            }
            reserved if reserved < FIRST_FUNCTION => None,
            _ => {
                let is_inherited = self.inherited > 0;
                self.inherited -= u32::from(is_inherited);
                let row = symbols.row(symbol)?;
                let is_leaf = row.is_leaf && !is_plain && !is_inherited;
                Some((Event::Call(row.function), is_leaf))
            }
        }
    }
}
