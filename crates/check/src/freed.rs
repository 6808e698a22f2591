//! Handles that were freed and used again, where nobody can have made them anew in between.
//!
//! Libraries call MPI without being recorded, and what they make may have a handle that the program freed:
//!
//! ```text
//!  MPI_Type_free(t)   solver_type(&t)   MPI_Send(.., t, ..)     who knows: t may be another datatype
//!  MPI_Type_free(t)   printf(..)        MPI_Send(.., t, ..)     nobody made one
//! ```
//! *Guarantees*: what is told was used after a call of the same thread freed it, and between the two the thread, which is the only one of
//! its task, called no library but MPI and some of the C library and of Fortran's. *Not seen*: libraries that are called through pointers.
//! *Costs*: O(events from the beginning to the second of them), once for each kind of such a mistake, in runs that are over.

use crate::usage::{Suspect, Usage};
use lockstep_comm::Routines;
use lockstep_trace::{Event, Process, Run, c_name};

/// Events between the two that are looked at.
const MOST: u64 = 1 << 22;

/// Functions of the C library, none of which calls MPI; those that check sizes are `__NAME_chk`.
const HARMLESS: [&str; 40] = [
    "calloc",
    "clock_gettime",
    "cos",
    "exp",
    "fabs",
    "fclose",
    "fflush",
    "fopen",
    "fprintf",
    "fputc",
    "fputs",
    "free",
    "fwrite",
    "gettimeofday",
    "log",
    "malloc",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "nanosleep",
    "pow",
    "printf",
    "putchar",
    "puts",
    "rand",
    "realloc",
    "sin",
    "sleep",
    "snprintf",
    "sprintf",
    "sqrt",
    "srand",
    "strcmp",
    "strcpy",
    "strlen",
    "strncmp",
    "time",
    "usleep",
    "vsnprintf",
];

fn is_harmless(linkage: &str) -> bool {
    let name = c_name(linkage);
    let checked = name
        .strip_prefix("__")
        .and_then(|it| it.strip_suffix("_chk"));
    HARMLESS.contains(&checked.unwrap_or(&name)) || name.starts_with("_gfortran_")
}

/// Adds to the mistakes of tasks what is certain.
pub fn settle<'a>(run: &Run, usages: impl Iterator<Item = &'a mut Usage>) {
    let mut suspicious = usages.filter(|it| !it.suspects().is_empty()).peekable();
    if suspicious.peek().is_none() {
        return;
    }
    let routines = Routines::new(run);
    for usage in suspicious {
        let certain = usage
            .suspects()
            .iter()
            .filter(|it| is_certain(run, &routines, it));
        let certain: Vec<Suspect> = certain.cloned().collect();
        certain.into_iter().for_each(|it| usage.confirm(it));
    }
}

fn is_certain(run: &Run, routines: &Routines, it: &Suspect) -> bool {
    let is_its = |process: &&Process| process.threads.iter().any(|thread| thread.name == it.trace);
    let Some(process) = run.processes.iter().find(is_its) else {
        return false;
    };
    let [thread] = process.threads.as_slice() else {
        return false;
    };
    let Some(between) = it.used.checked_sub(it.freed).filter(|count| *count <= MOST) else {
        return false;
    };
    let is_all = process.coverage.left_out == 0 && process.losses.is_empty() && thread.dropped == 0;
    let is_quiet = |event: Event| match event {
        Event::Call(id) => run.functions.get(id.0 as usize).is_some_and(|function| {
            !function.imported || routines.get(id).is_some() || is_harmless(&function.linkage)
        }),
        Event::Return | Event::Tail => true,
    };
    let mut events = thread.events_from(it.freed);
    is_all && (0..between).all(|_| events.next().is_some_and(is_quiet))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_knows_nothing_of_mpi() {
        assert!(
            ["printf", "__printf_chk", "memcpy", "_gfortran_st_write"]
                .iter()
                .all(|it| is_harmless(it))
        );
        assert!(
            !["solver_type", "__solver_chk", "dlsym", "qsort"]
                .iter()
                .any(|it| is_harmless(it))
        );
    }
}
