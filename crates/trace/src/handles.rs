//! What the handles of a process are called that the standard predefines.
//!
//! Where Open MPI has its objects is a fact of each process; all else is a table of [`constants`].

use lockstep_api::mpi::Language;
use lockstep_api::mpi::constants::{self, Class, name_of_symbol};
use rustc_hash::FxHashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The MPI library of a process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Library {
    /// Names of Open MPI's objects.
    names: Arc<[String]>,
    /// Where they are, ascending, and which name each has.
    places: Box<[(i64, u32)]>,
}

/// Lists of names: processes with the same library have the same names, at other addresses.
#[derive(Debug, Default)]
pub(crate) struct NameLists(Mutex<FxHashSet<Arc<[String]>>>);

impl NameLists {
    fn share(&self, names: Vec<String>) -> Arc<[String]> {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lists.get(&names[..]) {
            return Arc::clone(known);
        }
        let names: Arc<[String]> = names.into();
        lists.insert(Arc::clone(&names));
        names
    }
}

impl Library {
    /// From a process's facts: symbols and addresses.
    pub fn new(handles: &[(String, u64)], lists: &NameLists) -> Self {
        let names = handles.iter().map(|(symbol, _)| standard_name(symbol));
        let names = lists.share(names.collect());
        let mut places: Vec<(i64, u32)> = (handles.iter().zip(0..))
            .map(|((_, address), name)| (*address as i64, name))
            .collect();
        // The main program's copies come first, and count.
        places.sort_unstable();
        places.dedup_by_key(|place| place.0);
        Self {
            names,
            places: places.into(),
        }
    }

    fn constants(&self) -> constants::Library {
        match self.places.is_empty() {
            true => constants::Library::Mpich,
            false => constants::Library::OpenMpi,
        }
    }

    /// The standard's name of a handle, if it has one.
    pub fn name(&self, class: Class, raw: i64, language: Language) -> Option<&str> {
        let place = self.places.binary_search_by_key(&raw, |place| place.0);
        match (self.constants(), language) {
            (constants::Library::OpenMpi, Language::C) => {
                let (_, name) = self.places.get(place.ok()?)?;
                self.names.get(*name as usize).map(String::as_str)
            }
            (library, _) => library.handle(class, raw, language),
        }
    }

    /// The standard's name of the class of an error code.
    pub fn error_class(&self, code: i32) -> Option<&'static str> {
        self.constants().error_class(code)
    }

    /// The standard's name of a special rank.
    pub fn rank_name(&self, rank: i64) -> Option<&'static str> {
        self.constants().rank(rank)
    }
}

/// The standard's name of what a symbol of Open MPI holds.
fn standard_name(symbol: &str) -> String {
    format!("MPI_{}", name_of_symbol(symbol).to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_either_library() {
        let handles = [("ompi_mpi_comm_world", 0x4000), ("ompi_mpi_op_sum", 0x5000)]
            .map(|(name, at)| (name.to_owned(), at));
        let open_mpi = Library::new(&handles, &NameLists::default());
        let name = |class, raw, language| open_mpi.name(class, raw, language);
        assert_eq!(
            name(Class::Comm, 0x4000, Language::C),
            Some("MPI_COMM_WORLD")
        );
        assert_eq!(name(Class::Op, 0x5000, Language::C), Some("MPI_SUM"));
        assert_eq!(name(Class::Op, 0x6000, Language::C), None);
        let fortran = name(Class::Datatype, 7, Language::Fortran);
        assert_eq!(fortran, Some("MPI_INTEGER"));
        assert_eq!(open_mpi.rank_name(-2), Some("MPI_PROC_NULL"));

        let mpich = Library::default();
        let world = mpich.name(Class::Comm, 0x4400_0000, Language::C);
        assert_eq!(world, Some("MPI_COMM_WORLD"));
        assert_eq!(mpich.rank_name(-2), Some("MPI_ANY_SOURCE"));
    }

    #[test]
    fn symbols_of_open_mpi() {
        assert_eq!(standard_name("ompi_request_null"), "MPI_REQUEST_NULL");
        assert_eq!(standard_name("ompi_mpi_unsigned_long"), "MPI_UNSIGNED_LONG");
    }
}
