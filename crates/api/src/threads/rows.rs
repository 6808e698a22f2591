//! The functions, by library.
//!
//! A line has names, what these functions do, and how long they wait if it is not until they have what they want. `*` in a name
//! stands for any letters. The first name that fits counts.

use super::meaning::{Does, Event, Library, Lock, Meaning, Patience};
use super::name::fits;

/// A function, or functions whose names are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    name: &'static str,
    does: Does,
    patience: Patience,
}

/// `names => [what they do];`, or `names => [what they do, how long they wait];`.
macro_rules! rows {
    ($($($name:literal)+ => $what:tt;)*) => { &[$($(rows!(@ $name $what),)+)*] };
    (@ $name:literal [$does:expr]) => { rows!(@ $name [$does, Endless]) };
    (@ $name:literal [$does:expr, $patience:ident]) => {
        crate::threads::rows::Row {
            name: $name,
            does: $does,
            patience: crate::threads::meaning::Patience::$patience,
        }
    };
}

mod c11;
mod cplusplus;
mod gnu_openmp;
mod llvm_openmp;
mod openmp;
mod pthread;
mod system;

/// Functions of a library, whose names begin alike.
struct Part {
    begins: &'static str,
    library: Library,
    rows: &'static [Row],
}

const fn part(begins: &'static str, library: Library, rows: &'static [Row]) -> Part {
    Part {
        begins,
        library,
        rows,
    }
}

const PARTS: [Part; 13] = [
    part("pthread_", Library::Pthread, pthread::ROWS),
    part("sem_", Library::Pthread, pthread::SEMAPHORES),
    part("mtx_", Library::C11, c11::MUTEXES),
    part("cnd_", Library::C11, c11::CONDITIONS),
    part("thrd_", Library::C11, c11::THREADS),
    part("std::", Library::Cplusplus, cplusplus::ROWS),
    part("omp_", Library::OpenMp, openmp::ROWS),
    part("GOMP_", Library::Gnu, gnu_openmp::ROWS),
    part("gomp_", Library::Gnu, gnu_openmp::INTERNAL),
    part("__kmpc_", Library::Llvm, llvm_openmp::ROWS),
    part("__kmp_", Library::Llvm, &[]),
    part("kmp_", Library::Llvm, &[]),
    part("", Library::System, system::ROWS),
];

/// What names say, of libraries that have no rows.
const WORDS: &[Row] = rows! {
    "*join*" => [Does::Join];
    "*wait*" "*sleep*" "*poll*" "*futex*" "*barrier*" "*recv*" "*accept*" => [Does::Await(Event::Value)];
    "*unlock*" => [Does::Other];
    "*_lock*" => [Does::Take(Lock::Guarded)];
};

/// What a function of an unknown library may do, by the words in its name.
pub(super) fn guess(name: &[u8]) -> Meaning {
    let row = WORDS.iter().find(|it| fits(it.name.as_bytes(), name));
    row.map_or(Meaning::UNKNOWN, |row| Meaning {
        does: row.does,
        ..Meaning::UNKNOWN
    })
}

/// What the function of this name does; one that begins as a library's do, and has no row, is that library's.
pub(super) fn find(name: &[u8]) -> Meaning {
    let own = find_exactly(name);
    // What `_FORTIFY_SOURCE` makes of a name, libc itself, and Fortran.
    let plain = name.strip_prefix(b"__").unwrap_or(name);
    let plain = plain.strip_suffix(b"_chk").unwrap_or(plain);
    let plain = match plain.strip_suffix(b"_") {
        Some(fortran) if plain.starts_with(b"omp_") => fortran,
        _ => plain,
    };
    if own.does != Does::Other || plain == name {
        return own;
    }
    match find_exactly(plain) {
        found if found.does != Does::Other => found,
        _ => own,
    }
}

fn find_exactly(name: &[u8]) -> Meaning {
    let is_its = |it: &&Part| name.starts_with(it.begins.as_bytes());
    let Some(part) = PARTS.iter().find(is_its) else {
        return Meaning::UNKNOWN;
    };
    let begun = part.begins.len();
    // Most are told apart by one letter.
    let is_it = |it: &&Row| match it.name.as_bytes().get(begun) {
        Some(letter @ (b'a'..=b'z' | b'_')) if name.get(begun) != Some(letter) => false,
        _ => fits(&it.name.as_bytes()[begun..], &name[begun..]),
    };
    match (part.rows.iter().find(is_it), part.library) {
        (Some(row), library) => Meaning {
            library,
            does: row.does,
            patience: row.patience,
        },
        (None, Library::System) => Meaning::UNKNOWN,
        (None, library) => Meaning {
            library,
            ..Meaning::UNKNOWN
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That of a row's own name.
    fn of(row: &Row) -> Meaning {
        find_exactly(row.name.replace('*', "x").as_bytes())
    }

    #[test]
    fn each_row_is_found_by_its_name() {
        for part in &PARTS {
            for (at, row) in part.rows.iter().enumerate() {
                assert!(row.name.starts_with(part.begins), "{}", row.name);
                let found = of(row);
                assert_eq!(
                    (found.does, found.patience),
                    (row.does, row.patience),
                    "{}",
                    row.name
                );
                let again = part.rows[at + 1..].iter().find(|it| it.name == row.name);
                assert_eq!(again, None);
            }
        }
    }
}
