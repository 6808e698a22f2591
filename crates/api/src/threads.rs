//! Functions by which threads and processes wait for each other, and take and share work.
//!
//! pthread, C11's and C++'s threads, OpenMP's runtimes of GNU and LLVM, and the calls of POSIX that wait, start or end.
//! A name is taken as it comes: of a symbol, demangled, with `@plt`, with Fortran's underscore.
//!
//! ```
//! use lockstep_api::threads::{Does, Lock, Patience, meaning};
//!
//! let timed = meaning("pthread_mutex_timedlock");
//! assert_eq!(timed.does, Does::Take(Lock::Mutex));
//! assert_eq!(timed.patience, Patience::Limited);
//! let waits = meaning("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");
//! assert_eq!(waits, meaning("std::condition_variable::wait(std::unique_lock<std::mutex>&)"));
//! ```

mod meaning;
mod name;
mod object;
mod outlined;
mod rows;

pub use meaning::{Does, Event, Inner, Library, Lock, Meaning, Meeting, Patience, Tasks};
pub use object::{Lies, Object, Step, Success};
pub use outlined::{outlined, runtime};

/// What a function does; [`Meaning::UNKNOWN`] if it has no row.
#[must_use]
pub fn meaning(name: impl AsRef<[u8]>) -> Meaning {
    let name = name.as_ref();
    let name = name.strip_suffix(b"@plt").unwrap_or(name);
    let path = name::Path::of(name);
    let name = path.as_ref().map_or(name, name::Path::as_bytes);
    rows::find(name)
}

/// What a function does that a program calls in another library: of one that is not known, by the words in its name
/// (`g_cond_wait`, `uv_mutex_lock`).
#[must_use]
pub fn guess(name: impl AsRef<[u8]>) -> Meaning {
    let name = name.as_ref();
    match meaning(name) {
        Meaning::UNKNOWN => rows::guess(name),
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_mean_the_same() {
        let families: [(Does, Patience, &[&str]); 16] = [
            (
                Does::Take(Lock::Mutex),
                Patience::Endless,
                &[
                    "pthread_mutex_lock",
                    "__pthread_mutex_lock",
                    "mtx_lock",
                    "_ZNSt3__115recursive_mutex4lockEv",
                    "std::timed_mutex::lock()",
                ],
            ),
            (
                Does::Take(Lock::Mutex),
                Patience::Limited,
                &[
                    "pthread_mutex_clocklock",
                    "mtx_timedlock",
                    "std::timed_mutex::try_lock_for<long>(long const&)",
                ],
            ),
            (
                Does::Take(Lock::Mutex),
                Patience::None,
                &[
                    "pthread_mutex_trylock",
                    "mtx_trylock",
                    "_ZNSt3__15mutex8try_lockEv",
                ],
            ),
            (
                Does::Take(Lock::ReadWrite),
                Patience::Limited,
                &[
                    "pthread_rwlock_clockwrlock",
                    "std::shared_timed_mutex::try_lock_for<long>(long)",
                ],
            ),
            (
                Does::Give(Lock::ReadWrite),
                Patience::Endless,
                &[
                    "pthread_rwlock_unlock",
                    "_ZNSt3__119__shared_mutex_base13unlock_sharedEv",
                ],
            ),
            (
                Does::Take(Lock::OpenMpNest),
                Patience::Endless,
                &[
                    "omp_set_nest_lock",
                    "omp_set_nest_lock_",
                    "__kmpc_set_nest_lock",
                ],
            ),
            (
                Does::Take(Lock::Ordered),
                Patience::Endless,
                &["GOMP_ordered_start", "__kmpc_ordered"],
            ),
            (
                Does::Await(Event::Condition),
                Patience::Endless,
                &[
                    "pthread_cond_wait",
                    "cnd_wait",
                    "std::__1::condition_variable::wait(std::__1::unique_lock<std::__1::mutex>&)",
                ],
            ),
            (
                Does::Await(Event::Condition),
                Patience::Limited,
                &[
                    "pthread_cond_clockwait",
                    "cnd_timedwait",
                    "std::condition_variable::wait_for<long, std::ratio<1l> >(long)",
                ],
            ),
            (
                Does::Await(Event::Value),
                Patience::Endless,
                &[
                    "GOMP_doacross_ull_wait",
                    "__kmpc_doacross_wait",
                    "_ZNSt3__117__assoc_sub_state4waitEv",
                    "std::latch::wait() const",
                ],
            ),
            (
                Does::Acquire,
                Patience::Limited,
                &[
                    "sem_clockwait",
                    "std::counting_semaphore<3l>::try_acquire_for<long>(long)",
                ],
            ),
            (
                Does::Join,
                Patience::Endless,
                &[
                    "pthread_join",
                    "thrd_join",
                    "_ZNSt6thread4joinEv",
                    "std::jthread::~jthread()",
                ],
            ),
            (
                Does::Once,
                Patience::Endless,
                &[
                    "pthread_once",
                    "call_once",
                    "std::call_once<void (&)()>(std::once_flag&, void (&)())",
                ],
            ),
            (
                Does::Task(Tasks::Wait),
                Patience::Endless,
                &[
                    "GOMP_taskgroup_end",
                    "GOMP_taskwait_depend",
                    "__kmpc_omp_taskwait",
                    "__kmpc_end_taskgroup",
                ],
            ),
            (
                Does::Region { hands_out: false },
                Patience::Endless,
                &[
                    "GOMP_parallel",
                    "GOMP_parallel_sections",
                    "GOMP_teams_reg",
                    "__kmpc_fork_call",
                    "__kmpc_fork_teams",
                ],
            ),
            (
                Does::Poll,
                Patience::Endless,
                &["poll", "__poll_chk", "poll@plt", "epoll_pwait2", "pselect"],
            ),
        ];
        for (does, patience, names) in families {
            for name in names {
                let found = meaning(name);
                assert_eq!((found.does, found.patience), (does, patience), "{name}");
            }
        }
    }

    #[test]
    fn whose_a_function_is_that_has_no_row() {
        assert_eq!(meaning("GOMP_of_next_year").library, Library::Gnu);
        assert!(meaning("omp_display_env").is_openmp());
        for name in [
            "main",
            "step",
            "std_lock",
            "unlock",
            "MPI_Wait",
            "_ZN6Solver4waitEv",
            "",
        ] {
            assert_eq!(meaning(name), Meaning::UNKNOWN, "{name}");
        }
        assert_eq!(guess("g_thread_join").does, Does::Join);
        assert!(guess("uv_cond_wait").waits_for_others() && !guess("uv_mutex_unlock").waits());
    }

    #[test]
    fn bodies_of_regions() {
        let gnu = [
            "main._omp_fn.0",
            "solve(int)._omp_fn.12",
            "main._omp_fn.1.constprop.0",
        ];
        let llvm = [
            ".omp_outlined..1",
            "main.omp_outlined",
            ".omp_task_entry.",
            "_QQmain..omp_par",
        ];
        assert!(gnu.iter().all(|it| outlined(it) == Some(Library::Gnu)));
        assert!(llvm.iter().all(|it| outlined(it) == Some(Library::Llvm)));
        assert!(outlined("GOMP_parallel").is_none() && outlined("my_omp_function").is_none());
        assert_eq!(runtime("__kmpc_barrier"), Some(Library::Llvm));
    }
}
