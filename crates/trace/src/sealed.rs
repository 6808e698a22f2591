//! Sealed runs: one file instead of the process files, with the trees of all threads, equal ones once, and what
//! stood beside their events (`docs/trace-format.md`).
//!
//! *Guarantees*: events, ends, stacks and notes are those of the run as it was recorded; a file that is cut off or
//! changed is refused with the place. *Costs*: opening reads names and what stands beside the events; trees are read
//! once, when events are asked for, by whoever comes first: about a microsecond for each element that is told,
//! memory for distinct behaviour. *Not for*: making the trees, which `calltree` does.

mod differences;
mod file;
pub mod fuzz;
mod record;
mod seal;
mod tell;
mod tree;
mod verify;

pub use crate::stream::Growing;
pub use file::Name;
pub(crate) use file::{Sealed, SealedProcess, SealedThread};
pub use seal::{SealError, Sizes, Store, TreeOf, Trees, seal};
pub(crate) use tree::{Names, Walk};
pub use tree::{Strays, Tree};

use crate::frames::Frames;
use std::sync::Arc;

/// The events of a thread in a sealed run.
#[derive(Debug)]
pub(crate) struct SealedStream {
    pub sealed: Arc<Sealed>,
    pub names: Arc<Names>,
    pub root: u32,
    pub strays: Vec<u64>,
}

impl SealedStream {
    /// `None` where the trees cannot be read, which opening a run for its events says.
    pub fn walk(&self) -> Option<Walk<'_>> {
        let tree = self.sealed.tree().ok()?;
        Some(Walk::new(tree, &self.names, self.root, &self.strays))
    }

    /// How many events there are, by its tree.
    pub fn events(&self, tree: &Tree) -> u64 {
        tree.events(self.root)
            .saturating_add(self.strays.len() as u64)
    }

    /// The open calls right after event `index`.
    pub fn stack_at(&self, index: u64) -> Option<Frames> {
        let mut walk = self.walk()?;
        walk.skip_to(index + 1);
        let was_stray = self.strays.binary_search(&index).is_ok();
        Some(walk.frames(was_stray))
    }
}

/// Of a thread in a sealed run: where its tree is.
#[derive(Debug, Clone, Copy)]
pub struct SealedTree<'a> {
    /// The trees of the run.
    pub tree: &'a Tree,
    /// Which is its.
    pub root: u32,
    pub(crate) names: &'a Names,
    pub(crate) file: &'a Sealed,
}

impl SealedTree<'_> {
    /// The function that a label names.
    #[must_use]
    pub fn function(&self, label: u32) -> crate::FunctionId {
        self.names.of(label).0
    }

    /// Whether two threads' trees are in one store.
    #[must_use]
    pub fn same_store(&self, other: &Self) -> bool {
        std::ptr::eq(self.file, other.file)
    }

    /// Whether two names may be one function: then the folding of the tree is not that of its functions.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        let mut seen = rustc_hash::FxHashSet::default();
        !self
            .names
            .rows
            .iter()
            .all(|(function, _)| *function == Names::OTHER || seen.insert(*function))
    }
}
