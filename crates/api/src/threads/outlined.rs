//! What compilers call the bodies of OpenMP's regions and tasks, which become functions of their own.

use super::{Library, meaning};

/// The runtime that a function was outlined for, if it was: `main._omp_fn.0` of GNU's compilers, `main.omp_outlined.1` of LLVM's.
#[must_use]
pub fn outlined(name: &str) -> Option<Library> {
    const GNU: [&str; 2] = ["._omp_fn.", "._omp_cpyfn."];
    const LLVM: [&str; 4] = [
        ".omp_outlined",
        "omp_outlined.",
        ".omp_task_entry.",
        "..omp_par",
    ];
    let has = |words: &[&str]| words.iter().any(|it| name.contains(it));
    match () {
        // All others of a program have none of these letters in a row.
        () if !name.contains("omp_") => None,
        () if has(&GNU) => Some(Library::Gnu),
        () if has(&LLVM) => Some(Library::Llvm),
        () => None,
    }
}

/// The runtime of OpenMP that a function belongs to, or was outlined for.
#[must_use]
pub fn runtime(name: &str) -> Option<Library> {
    match meaning(name).library {
        library @ (Library::Gnu | Library::Llvm) => Some(library),
        _ => outlined(name),
    }
}
