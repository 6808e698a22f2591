//! A plan does not depend on how many threads made it.
#![allow(clippy::unwrap_used)]

use lockstep_format::plan::Role;
use lockstep_patch::{Options, Scope, plan};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

#[test]
fn one_processor_makes_the_plan_that_all_make() {
    // This very test: it has more functions than a thread takes at a time.
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let scopes = [Role::Main, Role::Library].map(|role| Scope {
        own_functions: true,
        library_calls: true,
        ..Scope::from(role)
    });
    let made = || scopes.map(|scope| plan(&bytes, scope, &Options::default()).unwrap());
    let by_all = made();
    // The number of threads is that of the processors that the calling thread may run on.
    let allowed = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|at| allowed.is_set(*at)).unwrap();
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).unwrap();
    assert!(made() == by_all);
}
