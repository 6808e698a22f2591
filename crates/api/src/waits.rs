//! Which library functions wait: a table of names.
//!
//! Three answers: a function exists to wait, such as a receive that finds its message there; it never waits; or nothing is known.

use crate::mpi::is_called_by_programs;

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

/// Functions that exist to wait for somebody: another thread or process, a device, a point in time.
const OFTEN: [&str; 106] = [
    "accept",
    "accept4",
    "aio_suspend",
    "call_once",
    "clock_nanosleep",
    "cnd_timedwait",
    "cnd_wait",
    "connect",
    "copy_file_range",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "fcntl",
    "fcntl64",
    "fdatasync",
    "flock",
    "fsync",
    "getaddrinfo",
    "io_getevents",
    "io_uring_enter",
    "ioctl",
    "lockf",
    "lockf64",
    "mq_receive",
    "mq_send",
    "mq_timedreceive",
    "mq_timedsend",
    "msgrcv",
    "msgsnd",
    "msync",
    "mtx_lock",
    "mtx_timedlock",
    "nanosleep",
    "omp_set_lock",
    "omp_set_nest_lock",
    "open",
    "open64",
    "openat",
    "openat64",
    "pause",
    "pclose",
    "poll",
    "ppoll",
    "pread",
    "pread64",
    "preadv",
    "preadv64",
    "pselect",
    "pthread_barrier_wait",
    "pthread_clockjoin_np",
    "pthread_cond_clockwait",
    "pthread_cond_timedwait",
    "pthread_cond_wait",
    "pthread_join",
    "pthread_mutex_clocklock",
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_once",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_timedwrlock",
    "pthread_rwlock_wrlock",
    "pthread_spin_lock",
    "pthread_timedjoin_np",
    "pwrite",
    "pwrite64",
    "pwritev",
    "pwritev64",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "sched_yield",
    "select",
    "sem_clockwait",
    "sem_timedwait",
    "sem_wait",
    "semop",
    "semtimedop",
    "send",
    "sendfile",
    "sendfile64",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "sigsuspend",
    "sigtimedwait",
    "sigwait",
    "sigwaitinfo",
    "sleep",
    "splice",
    "syscall",
    "system",
    "thrd_join",
    "thrd_sleep",
    "usleep",
    "vmsplice",
    "wait",
    "wait3",
    "wait4",
    "waitid",
    "waitpid",
    "write",
    "writev",
];
/// Likewise, by how the name begins: OpenMP's runtimes, threads, conditions and futures of C++.
const OFTEN_FAMILIES: [&str; 11] = [
    "PMPI_",
    "pmpi_",
    "GOMP_",
    "__kmpc_",
    "_ZNSt6thread4join",
    "_ZNSt18condition_variable",
    "_ZNSt3__118condition_variable",
    "_ZNSt3__15mutex4lock",
    "_ZNSt3__16thread4join",
    "_ZNSt28__atomic_futex_unsigned_base",
    "_ZNSt11this_thread",
];

/// Memory, texts, characters, numbers, and the time: over as soon as the clock would have been read.
const NEVER: [&str; 128] = [
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
    "clock_gettime",
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
    "gettimeofday",
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
    "time",
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

/// Likewise, by how the name begins: characters, `new` and `delete` of C++, questions to OpenMP.
const NEVER_FAMILIES: [&str; 7] = [
    "__ctype_", "_Zda", "_Zdl", "_Zna", "_Znw", "omp_get_", "omp_in_",
];

/// Whether calls of the library function `name` wait.
#[must_use]
pub fn waits(name: &[u8]) -> Waits {
    let Ok(name) = core::str::from_utf8(name) else {
        return Waits::Perhaps;
    };
    if is_called_by_programs(name.as_bytes()) || is_often(name) {
        return Waits::Often;
    }
    let begins = |families: &[&str]| families.iter().any(|it| name.starts_with(it));
    // Numbers of another size, and the names behind `-ffast-math`.
    let plain = plain(name);
    let plain = plain.strip_suffix("_finite").unwrap_or(plain);
    let shorter = plain.strip_suffix(['f', 'l']).unwrap_or(plain);
    let is_short = |name| NEVER.contains(&name);
    if is_short(name) || is_short(plain) || is_short(shorter) || begins(&NEVER_FAMILIES) {
        Waits::Never
    } else {
        Waits::Perhaps
    }
}

fn is_often(name: &str) -> bool {
    OFTEN.contains(&plain(name)) || OFTEN_FAMILIES.iter().any(|it| name.starts_with(it))
}

/// Without what `_FORTIFY_SOURCE` makes of a name, and libc itself.
fn plain(name: &str) -> &str {
    let plain = name.strip_prefix("__").unwrap_or(name);
    plain.strip_suffix("_chk").unwrap_or(plain)
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
