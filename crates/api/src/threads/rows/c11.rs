//! C11's threads.

use super::Row;
use crate::threads::meaning::Does::*;
use crate::threads::meaning::{Event, Lock};

pub(super) const MUTEXES: &[Row] = rows! {
    "mtx_lock" => [Take(Lock::Mutex)];
    "mtx_timedlock" => [Take(Lock::Mutex), Limited];
    "mtx_trylock" => [Take(Lock::Mutex), None];
    "mtx_unlock" => [Give(Lock::Mutex)];
    "mtx_*" => [Object];
};

pub(super) const CONDITIONS: &[Row] = rows! {
    "cnd_wait" => [Await(Event::Condition)];
    "cnd_timedwait" => [Await(Event::Condition), Limited];
    "cnd_signal" "cnd_broadcast" => [Notify];
    "cnd_*" => [Object];
};

pub(super) const THREADS: &[Row] = rows! {
    "thrd_create" => [Create];
    "thrd_join" => [Join];
    "thrd_exit" => [EndThread];
    "thrd_sleep" => [Sleep { brief: true }];
    "thrd_yield" => [Yield];
    "thrd_current" "thrd_equal" => [Query];
};
