//! The MPI libraries of this machine, side by side.

use crate::artifacts::repository;
use crate::recipe::Recipe;
use crate::recording::{Recording, record, record_ended};
use crate::scratch::Scratch;
use crate::tools;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A text in which `@...@` stands for the number of the line of a program of `programs/mpi` that has what is between.
#[must_use]
pub fn with_lines(source: &str, text: &str) -> String {
    let source = repository().join("programs/mpi").join(source);
    let source = std::fs::read_to_string(source).expect("the source is there");
    let line_of = |text: &str| {
        let index = source.lines().position(|line| line.contains(text));
        index.unwrap_or_else(|| panic!("no line has {text}")) + 1
    };
    let parts = text.split('@').enumerate();
    let parts = parts.map(|(index, part)| match index % 2 {
        1 => line_of(part).to_string(),
        _ => part.to_owned(),
    });
    parts.collect()
}

/// One MPI library with its compilers and its launcher, under the names that Debian gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mpi {
    /// Open MPI.
    OpenMpi,
    /// MPICH.
    Mpich,
}

impl Mpi {
    /// Both.
    pub const ALL: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

    fn suffix(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "openmpi",
            Mpi::Mpich => "mpich",
        }
    }

    /// Its compiler for C.
    #[must_use]
    pub fn compiler(self) -> String {
        format!("mpicc.{}", self.suffix())
    }

    /// Its compiler for Fortran.
    #[must_use]
    pub fn fortran(self) -> String {
        format!("mpif90.{}", self.suffix())
    }

    /// Its compiler for C++.
    #[must_use]
    pub fn cpp(self) -> String {
        format!("mpicxx.{}", self.suffix())
    }

    /// Its launcher.
    #[must_use]
    pub fn launcher(self) -> String {
        format!("mpirun.{}", self.suffix())
    }

    /// The words that start `ranks` ranks of the command that follows.
    #[must_use]
    pub fn launch(self, ranks: usize) -> Vec<String> {
        vec![self.launcher(), "-n".to_owned(), ranks.to_string()]
    }

    /// A run of so many ranks of a program of `programs/mpi`, which does what the word says.
    #[must_use]
    pub fn record(self, scratch: &Scratch, source: &str, ranks: usize, word: &str) -> Recording {
        record(scratch, &[], &self.words(source, ranks, word))
    }

    /// The same of one that MPI ends.
    #[must_use]
    pub fn record_ended(
        self,
        scratch: &Scratch,
        source: &str,
        ranks: usize,
        word: &str,
    ) -> Recording {
        record_ended(scratch, &self.words(source, ranks, word))
    }

    /// The words of such a run.
    #[must_use]
    pub fn words(self, source: &str, ranks: usize, word: &str) -> Vec<String> {
        let program = self.recipe(source).flags(&["-g", "-O1"]).build();
        let mut words = self.launch(ranks);
        words.extend([program.display().to_string(), word.to_owned()]);
        words
    }

    /// Whether it is installed; said aloud if not.
    #[must_use]
    pub fn is_here(self) -> bool {
        tools::require(&[&self.compiler(), &self.launcher()])
    }

    /// A program of `programs/mpi` for this library.
    #[must_use]
    pub fn recipe(self, source: &str) -> Recipe {
        self.recipe_of(&format!("mpi/{source}"))
    }

    /// The program with this path under `programs/` for this library.
    #[must_use]
    pub fn recipe_of(self, source: &str) -> Recipe {
        let recipe = Recipe::new(source);
        if source.ends_with(".f90") {
            recipe.compiler(&self.fortran())
        } else if source.ends_with(".cpp") {
            recipe.compiler(&self.cpp())
        } else {
            recipe.compiler(&self.compiler())
        }
    }
}

/// Held by a test while its ranks run: many ranks that poll on few cores are slow enough alone. Two may run at a time,
/// since one of them mostly waits until its job has hung for long enough.
pub fn a_turn() -> MutexGuard<'static, ()> {
    static TURNS: [Mutex<()>; 2] = [const { Mutex::new(()) }; 2];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let taken = TURNS.iter().find_map(|turn| match turn.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    });
    taken.unwrap_or_else(|| {
        TURNS[next % 2]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    })
}
