//! GNU's runtime of OpenMP, libgomp.

use super::Row;
use crate::threads::meaning::Does::*;
use crate::threads::meaning::{Event, Lock, Meeting, Tasks};

pub(super) const ROWS: &[Row] = rows! {
    "GOMP_critical_start" => [Take(Lock::Critical)];
    "GOMP_critical_end" => [Give(Lock::Critical)];
    "GOMP_critical_name_start" => [Take(Lock::NamedCritical)];
    "GOMP_critical_name_end" => [Give(Lock::NamedCritical)];
    "GOMP_atomic_start" => [Take(Lock::Atomic)];
    "GOMP_atomic_end" => [Give(Lock::Atomic)];
    "GOMP_ordered_start" => [Take(Lock::Ordered)];
    "GOMP_ordered_end" => [Give(Lock::Ordered)];
    "GOMP_doacross_*wait" => [Await(Event::Value)];
    "GOMP_doacross_*post" => [Notify];

    "GOMP_parallel_end" => [WorkEnd];
    "GOMP_parallel_loop_*dynamic*" "GOMP_parallel_loop_*guided*" => [Region { hands_out: true }];
    "GOMP_parallel_loop_*runtime*" => [Region { hands_out: true }];
    "GOMP_parallel*" "GOMP_teams_reg" => [Region { hands_out: false }];
    "GOMP_barrier" => [Barrier(Meeting::Team)];
    "GOMP_barrier_cancel" => [Barrier(Meeting::UntilCancelled)];
    "GOMP_cancel" "GOMP_cancellation_point" => [Cancel];

    "GOMP_loop_end" "GOMP_loop_end_cancel" "GOMP_sections_end" "GOMP_sections_end_cancel" => [WorkEnd];
    "GOMP_loop_*dynamic*" "GOMP_loop_*guided*" "GOMP_loop_*runtime*" => [Work];
    // An argument says how these hand out.
    "GOMP_loop_start" "GOMP_loop_ordered_start" "GOMP_loop_doacross_start" => [Work];
    "GOMP_loop_ull_start" "GOMP_loop_ull_ordered_start" "GOMP_loop_ull_doacross_start" => [Work];
    "GOMP_sections*_start" "GOMP_sections*_next" => [Work];
    "GOMP_single_start" "GOMP_single_copy_start" => [Single];
    "GOMP_single_copy_end" => [WorkEnd];

    "GOMP_taskwait*" "GOMP_taskgroup_end" => [Task(Tasks::Wait)];
    "GOMP_taskyield" => [Task(Tasks::Yield)];
    "GOMP_taskgroup_start" => [Task(Tasks::Group)];
    "GOMP_task" "GOMP_taskloop*" => [Task(Tasks::Make)];
    "GOMP_taskgroup_reduction_*" "GOMP_task_reduction_*" => [Task(Tasks::Other)];
};

/// Where its own code is recorded.
pub(super) const INTERNAL: &[Row] = rows! {
    "gomp_mutex_lock*" => [Take(Lock::Mutex)];
    "gomp_mutex_unlock*" => [Give(Lock::Mutex)];
    "gomp_mutex_*" => [Object];
    "gomp_barrier_wait*" "gomp_team_barrier_wait*" => [Barrier(Meeting::Team)];
};
