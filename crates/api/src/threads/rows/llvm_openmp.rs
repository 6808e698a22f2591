//! LLVM's and Intel's runtime of OpenMP, libomp.

use super::Row;
use crate::threads::meaning::Does::*;
use crate::threads::meaning::{Event, Lock, Meeting, Tasks};

pub(super) const ROWS: &[Row] = rows! {
    "__kmpc_critical" "__kmpc_critical_with_hint" => [Take(Lock::SomeCritical)];
    "__kmpc_end_critical" => [Give(Lock::SomeCritical)];
    "__kmpc_atomic_start" => [Take(Lock::Atomic)];
    "__kmpc_atomic_end" => [Give(Lock::Atomic)];
    "__kmpc_ordered" => [Take(Lock::Ordered)];
    "__kmpc_end_ordered" => [Give(Lock::Ordered)];
    "__kmpc_set_lock*" => [Take(Lock::OpenMp)];
    "__kmpc_test_lock*" => [Take(Lock::OpenMp), None];
    "__kmpc_unset_lock*" => [Give(Lock::OpenMp)];
    "__kmpc_set_nest_lock*" => [Take(Lock::OpenMpNest)];
    "__kmpc_test_nest_lock*" => [Take(Lock::OpenMpNest), None];
    "__kmpc_unset_nest_lock*" => [Give(Lock::OpenMpNest)];
    "__kmpc_init_*lock*" "__kmpc_destroy_*lock*" => [Object];
    "__kmpc_doacross_wait" => [Await(Event::Value)];
    "__kmpc_doacross_post" => [Notify];

    "__kmpc_fork_call*" "__kmpc_fork_teams" => [Region { hands_out: false }];
    "__kmpc_barrier" => [Barrier(Meeting::Team)];
    "__kmpc_cancel_barrier" => [Barrier(Meeting::UntilCancelled)];
    "__kmpc_cancel" "__kmpc_cancellationpoint" => [Cancel];

    "__kmpc_dispatch_*" "__kmpc_dist_dispatch_*" "__kmpc_next_section" => [Work];
    "__kmpc_single" => [Single];
    "__kmpc_copyprivate*" => [WorkEnd];
    "__kmpc_reduce*" => [Reduce];

    "__kmpc_omp_taskwait*" "__kmpc_omp_wait_deps" "__kmpc_end_taskgroup" => [Task(Tasks::Wait)];
    "__kmpc_omp_taskyield" => [Task(Tasks::Yield)];
    "__kmpc_taskgroup" => [Task(Tasks::Group)];
    "__kmpc_omp_task*" "__kmpc_taskloop*" => [Task(Tasks::Make)];

    "__kmpc_global_thread_num" "__kmpc_global_num_threads" "__kmpc_bound_*" "__kmpc_in_parallel" => [Query];
};
