//! What the symbols of one process mean.

use crate::model::{Event, FunctionId};
use lockstep_format::symbol::{FIRST_FUNCTION, RETURN, TAIL};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The symbols of one process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Symbols {
    images: Vec<Block>,
    /// Symbols that no image has, once they were seen.
    strays: FxHashMap<u32, FunctionId>,
}

/// The dense block of symbols that an image got.
#[derive(Debug, Clone)]
struct Block {
    first: u32,
    functions: Arc<[FunctionId]>,
}

impl Symbols {
    /// Gives `functions` the symbols from `first` on. Of overlapping blocks the earlier one counts.
    pub fn add_image(&mut self, first: u32, functions: Arc<[FunctionId]>) {
        self.images.push(Block { first, functions });
    }

    pub fn add_stray(&mut self, symbol: u32, function: FunctionId) {
        self.strays.insert(symbol, function);
    }

    /// The event of this symbol; `None` for symbols that are reserved or unknown.
    #[inline]
    pub fn event(&self, symbol: u32) -> Option<Event> {
        match symbol {
            RETURN => Some(Event::Return),
            TAIL => Some(Event::Tail),
            reserved if reserved < FIRST_FUNCTION => None,
            _ => self
                .images
                .iter()
                .find_map(|block| {
                    let index = symbol.checked_sub(block.first)?;
                    block.functions.get(index as usize).copied()
                })
                .or_else(|| self.strays.get(&symbol).copied())
                .map(Event::Call),
        }
    }
}
