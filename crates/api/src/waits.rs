//! Which library functions wait: those of MPI, those of [`threads`], and a table of names that never do.
//!
//! Three answers: a function exists to wait, such as a receive that finds its message there; it never waits; or nothing is known.

use crate::mpi::is_mpi;
use crate::threads::{self, Does};

/// Whether calls of a library function wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// They may: their times are kept however short they are.
    Often,
    /// Nothing is known: times of calls that took long are kept.
    Perhaps,
    /// No: they are not measured.
    Never,
}

/// Memory, texts, characters, numbers: over as soon as the clock would have been read.
const NEVER: [&str; 125] = [
    "__errno_location",
    "abs",
    "acos",
    "aligned_alloc",
    "asin",
    "atan",
    "atan2",
    "atof",
    "atoi",
    "atol",
    "bcmp",
    "bcopy",
    "bsearch",
    "bzero",
    "cabs",
    "calloc",
    "cbrt",
    "ceil",
    "cexp",
    "copysign",
    "cos",
    "cosh",
    "div",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "floor",
    "fmax",
    "fmin",
    "fmod",
    "free",
    "frexp",
    "getenv",
    "hypot",
    "index",
    "isalnum",
    "isalpha",
    "isdigit",
    "islower",
    "isprint",
    "ispunct",
    "isspace",
    "isupper",
    "isxdigit",
    "ldexp",
    "lgamma",
    "llround",
    "log",
    "log10",
    "log1p",
    "log2",
    "lrint",
    "lround",
    "malloc",
    "memalign",
    "memccpy",
    "memchr",
    "memcmp",
    "memcpy",
    "memmem",
    "memmove",
    "mempcpy",
    "memrchr",
    "memset",
    "modf",
    "nearbyint",
    "posix_memalign",
    "pow",
    "rand",
    "random",
    "realloc",
    "round",
    "sin",
    "sincos",
    "sinh",
    "sqrt",
    "stpcpy",
    "stpncpy",
    "strcasecmp",
    "strcat",
    "strchr",
    "strchrnul",
    "strcmp",
    "strcoll",
    "strcpy",
    "strcspn",
    "strdup",
    "strlcat",
    "strlcpy",
    "strlen",
    "strncasecmp",
    "strncat",
    "strncmp",
    "strncpy",
    "strndup",
    "strnlen",
    "strpbrk",
    "strrchr",
    "strsep",
    "strspn",
    "strstr",
    "strtod",
    "strtof",
    "strtok",
    "strtok_r",
    "strtol",
    "strtold",
    "strtoll",
    "strtoul",
    "strtoull",
    "tan",
    "tolower",
    "toupper",
    "towlower",
    "towupper",
    "wcschr",
    "wcscmp",
    "wcscpy",
    "wcslen",
    "wcsncpy",
    "wmemcpy",
    "wmemset",
];

/// Likewise, by how the name begins: characters, `new` and `delete` of C++.
const NEVER_FAMILIES: [&str; 5] = ["__ctype_", "_Zda", "_Zdl", "_Zna", "_Znw"];

/// Whether calls of the library function `name` wait.
#[must_use]
pub fn waits(name: &[u8]) -> Waits {
    let meaning = threads::meaning(name);
    match core::str::from_utf8(name) {
        _ if meaning.waits() || is_mpi(name) => Waits::Often,
        _ if matches!(meaning.does, Does::Query | Does::Clock) => Waits::Never,
        Ok(name) if is_never(name) => Waits::Never,
        _ => Waits::Perhaps,
    }
}

/// Whether it is in the table, by its name; as a number of another size, checked, or behind `-ffast-math`.
fn is_never(name: &str) -> bool {
    let plain = name.strip_prefix("__").unwrap_or(name);
    let plain = plain.strip_suffix("_chk").unwrap_or(plain);
    let plain = plain.strip_suffix("_finite").unwrap_or(plain);
    let shorter = plain.strip_suffix(['f', 'l']).unwrap_or(plain);
    let is_one = |name| NEVER.contains(&name);
    is_one(name)
        || is_one(plain)
        || is_one(shorter)
        || NEVER_FAMILIES.iter().any(|it| name.starts_with(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name() {
        let often = [
            "MPI_Recv",
            "mpi_barrier_",
            "PMPI_Wait",
            "usleep",
            "__read_chk",
            "__poll_chk",
            "GOMP_critical_start",
            "__kmpc_barrier",
            "omp_set_lock",
            "pthread_mutex_lock",
            "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
        ];
        let perhaps = ["solver_solve", "printf", "fwrite", "cudaDeviceSynchronize"];
        let never = [
            "malloc",
            "__memcpy_chk",
            "strlen",
            "_Znwm",
            "sinf",
            "__exp_finite",
            "toupper",
            "clock_gettime",
            "omp_get_thread_num",
        ];
        let all = |names: &[&str], expected| {
            for name in names {
                assert_eq!(waits(name.as_bytes()), expected, "{name}");
            }
        };
        all(&often, Waits::Often);
        all(&perhaps, Waits::Perhaps);
        all(&never, Waits::Never);
    }
}
