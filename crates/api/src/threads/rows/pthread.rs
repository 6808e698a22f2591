//! POSIX' threads and semaphores.

use super::Row;
use crate::threads::meaning::Does::*;
use crate::threads::meaning::Lock::{Mutex, Read, ReadWrite, Spin};
use crate::threads::meaning::{Event, Meeting};

pub(super) const ROWS: &[Row] = rows! {
    "pthread_mutex_lock" => [Take(Mutex)];
    "pthread_mutex_timedlock" "pthread_mutex_clocklock" => [Take(Mutex), Limited];
    "pthread_mutex_trylock" => [Take(Mutex), None];
    "pthread_mutex_unlock" => [Give(Mutex)];
    "pthread_rwlock_wrlock" => [Take(ReadWrite)];
    "pthread_rwlock_timedwrlock" "pthread_rwlock_clockwrlock" => [Take(ReadWrite), Limited];
    "pthread_rwlock_trywrlock" => [Take(ReadWrite), None];
    "pthread_rwlock_rdlock" => [Take(Read)];
    "pthread_rwlock_timedrdlock" "pthread_rwlock_clockrdlock" => [Take(Read), Limited];
    "pthread_rwlock_tryrdlock" => [Take(Read), None];
    "pthread_rwlock_unlock" => [Give(ReadWrite)];
    "pthread_spin_lock" => [Take(Spin)];
    "pthread_spin_trylock" => [Take(Spin), None];
    "pthread_spin_unlock" => [Give(Spin)];
    "pthread_cond_wait" => [Await(Event::Condition)];
    "pthread_cond_timedwait" "pthread_cond_clockwait" => [Await(Event::Condition), Limited];
    "pthread_cond_signal" "pthread_cond_broadcast" => [Notify];
    "pthread_barrier_wait" => [Barrier(Meeting::Counted)];
    "pthread_mutex_*" "pthread_rwlock_*" "pthread_spin_*" "pthread_cond_*" "pthread_barrier_*" => [Object];
    "pthread_once" => [Once];
    "pthread_create" => [Create];
    "pthread_join" => [Join];
    "pthread_timedjoin_np" "pthread_clockjoin_np" => [Join, Limited];
    "pthread_tryjoin_np" => [Join, None];
    "pthread_exit" => [EndThread];
    // glibc's, with `__` before it: what comes behind the handlers of a thread that ends.
    "pthread_unwind_next" => [Unwind];
    "pthread_kill" "pthread_sigqueue" => [Raise];
    "pthread_yield" => [Yield];
    "pthread_self" "pthread_equal" => [Query];
};

pub(super) const SEMAPHORES: &[Row] = rows! {
    "sem_wait" => [Acquire];
    "sem_timedwait" "sem_clockwait" => [Acquire, Limited];
    "sem_trywait" => [Acquire, None];
    "sem_post" => [Release];
    "sem_*" => [Object];
};
