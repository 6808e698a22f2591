//! Which object a call takes, gives back, or waits on, and how its result tells whether it got it.
//!
//! Two locks of one kind are told apart by their addresses. A call has that in an argument; what exists once in a process has none.
//!
//! ```
//! use lockstep_api::threads::{Lies, Step, Success, meaning};
//!
//! let object = meaning("pthread_mutex_trylock").object().unwrap();
//! assert_eq!(object.step, Step::Take { shared: false });
//! assert_eq!((object.lies, object.success), (Lies::Argument(0), Success::Zero));
//! assert_eq!(meaning("pthread_join").object(), None);
//! ```

use super::meaning::{Does, Event, Library, Lock, Meaning, Patience};

/// An object that threads wait for each other by, as a call has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// What the call does with it.
    pub step: Step,
    /// Where its address is.
    pub lies: Lies,
    /// Which result says that the call got it.
    pub success: Success,
}

/// What a call does with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Takes it.
    Take {
        /// Whether others may have it as well.
        shared: bool,
    },
    /// Gives it back.
    Give,
    /// Waits until it is signalled, and gives back the lock in the second argument meanwhile.
    Await {
        /// Whether that argument is the address of something that begins with the lock's address.
        through: bool,
    },
}

/// Where an object's address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lies {
    /// In this argument, from 0.
    Argument(u8),
    /// Nowhere: there is one of this kind in a process. Kinds are numbered from 1.
    Only(u8),
}

/// Which result says that a call got an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Success {
    /// Any.
    Always,
    /// 0, or that who had it before died.
    Zero,
    /// An `int` that is not 0.
    NotZero,
    /// The `bool` true.
    True,
}

impl Meaning {
    /// The object that such a call takes, gives back or waits on; `None` of other calls.
    #[must_use]
    pub const fn object(self) -> Option<Object> {
        let step = match self.does {
            Does::Take(Lock::Guarded) | Does::Give(Lock::Guarded) => return None,
            Does::Take(lock) => Step::Take {
                shared: matches!(lock, Lock::Read),
            },
            Does::Acquire => Step::Take { shared: false },
            Does::Give(_) | Does::Release => Step::Give,
            Does::Await(Event::Condition) => Step::Await {
                through: matches!(self.library, Library::Cplusplus),
            },
            _ => return None,
        };
        Some(Object {
            step,
            lies: self.lies(),
            success: self.success(),
        })
    }

    const fn lies(self) -> Lies {
        match (self.does, self.library) {
            (Does::Take(Lock::Critical) | Does::Give(Lock::Critical), _) => Lies::Only(1),
            (Does::Take(Lock::Atomic) | Does::Give(Lock::Atomic), _) => Lies::Only(2),
            (Does::Take(Lock::Ordered) | Does::Give(Lock::Ordered), _) => Lies::Only(3),
            // Behind where it is called, and by whom.
            (_, Library::Llvm) => Lies::Argument(2),
            _ => Lies::Argument(0),
        }
    }

    const fn success(self) -> Success {
        match (self.library, self.patience) {
            (Library::Pthread | Library::C11, _) => Success::Zero,
            (_, Patience::Endless) => Success::Always,
            (Library::Cplusplus, _) => Success::True,
            _ => Success::NotZero,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::meaning;
    use super::*;

    #[test]
    fn of_every_library() {
        let take = Step::Take { shared: false };
        let first = Lies::Argument(0);
        let cases = [
            ("pthread_mutex_lock", take, first, Success::Zero),
            (
                "pthread_rwlock_tryrdlock",
                Step::Take { shared: true },
                first,
                Success::Zero,
            ),
            ("pthread_rwlock_wrlock", take, first, Success::Zero),
            ("pthread_spin_unlock", Step::Give, first, Success::Zero),
            ("mtx_timedlock", take, first, Success::Zero),
            ("sem_wait", take, first, Success::Zero),
            ("sem_post", Step::Give, first, Success::Zero),
            ("omp_set_lock_", take, first, Success::Always),
            ("omp_test_nest_lock", take, first, Success::NotZero),
            ("GOMP_critical_name_end", Step::Give, first, Success::Always),
            ("GOMP_critical_start", take, Lies::Only(1), Success::Always),
            ("__kmpc_critical", take, Lies::Argument(2), Success::Always),
            (
                "__kmpc_test_lock",
                take,
                Lies::Argument(2),
                Success::NotZero,
            ),
            ("std::__1::mutex::try_lock()", take, first, Success::True),
            (
                "pthread_cond_timedwait",
                Step::Await { through: false },
                first,
                Success::Zero,
            ),
            (
                "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
                Step::Await { through: true },
                first,
                Success::Always,
            ),
        ];
        for (name, step, lies, success) in cases {
            let expected = Object {
                step,
                lies,
                success,
            };
            assert_eq!(meaning(name).object(), Some(expected), "{name}");
        }
        for name in [
            "pthread_mutex_init",
            "pthread_join",
            "GOMP_barrier",
            "sem_init",
            "main",
        ] {
            assert_eq!(meaning(name).object(), None, "{name}");
        }
    }
}
