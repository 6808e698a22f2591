//! Functions, across processes and runs.

use lockstep_loops::Hasher128;
use lockstep_trace::threads::{self, Meaning};
use lockstep_trace::{c_name, mpi};
use std::collections::HashMap;

/// A function, as an index into [`crate::Forest::functions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionKey(pub u32);

/// A function as all runs of a forest know it: identified by image and linkage name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Name for people.
    pub name: String,
    /// Name in the symbol table.
    pub linkage: String,
    /// File name of its image; empty for the program itself, which may be called otherwise in
    /// another build, and `library` for what it calls in libraries.
    pub image: String,
    /// Whether it is a library function that the program calls.
    pub imported: bool,
}

/// The functions of a forest, each identity once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Functions {
    list: Vec<Function>,
    hashes: Vec<u128>,
    meanings: Vec<Meaning>,
    of_mpi: Vec<mpi::Meaning>,
    by_identity: HashMap<(String, String), FunctionKey>,
}

impl Functions {
    pub fn list(&self) -> &[Function] {
        &self.list
    }

    /// Content address of a function's identity.
    pub fn hash(&self, key: FunctionKey) -> u128 {
        self.hashes[key.0 as usize]
    }

    /// What each does to other threads and processes, by its name.
    pub fn meanings(&self) -> &[Meaning] {
        &self.meanings
    }

    /// What each does in MPI, by its name.
    pub fn of_mpi(&self) -> &[mpi::Meaning] {
        &self.of_mpi
    }

    pub fn intern(&mut self, function: Function) -> FunctionKey {
        let identity = (function.image.clone(), function.linkage.clone());
        if let Some(key) = self.by_identity.get(&identity) {
            return *key;
        }
        let mut hasher = Hasher128::new();
        hasher.bytes(function.image.as_bytes());
        hasher.bytes(function.linkage.as_bytes());
        let key = FunctionKey(self.list.len() as u32);
        self.hashes.push(hasher.finish());
        self.meanings.push(threads::meaning(&function.name));
        self.of_mpi.push(mpi::meaning(&c_name(&function.name)));
        self.list.push(function);
        self.by_identity.insert(identity, key);
        key
    }
}
