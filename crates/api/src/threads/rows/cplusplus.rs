//! C++'s standard library: GNU's and LLVM's, without the versions of their namespaces and what templates are made for.
//!
//! Much of it are headers, which call pthread's functions in turn.

use super::Row;
use crate::threads::meaning::Does::*;
use crate::threads::meaning::Lock::{Guarded, Mutex, Read, ReadWrite};
use crate::threads::meaning::{Event, Meeting};

pub(super) const ROWS: &[Row] = rows! {
    "std::mutex::lock" "std::timed_mutex::lock" "std::recursive_*mutex::lock" => [Take(Mutex)];
    "std::timed_mutex::try_lock_*" "std::recursive_timed_mutex::try_lock_*" => [Take(Mutex), Limited];
    "std::timed_mutex::_M_*lock" "std::recursive_timed_mutex::_M_*lock" => [Take(Mutex), Limited];
    "std::mutex::try_lock" "std::timed_mutex::try_lock" "std::recursive_*mutex::try_lock" => [Take(Mutex), None];
    "std::mutex::unlock" "std::timed_mutex::unlock" "std::recursive_*mutex::unlock" => [Give(Mutex)];
    "std::shared_*mutex::lock_shared" "std::__shared_*mutex_*::lock_shared" => [Take(Read)];
    "std::shared_*mutex::try_lock_shared_*" "std::__shared_*mutex_*::try_lock_shared_*" => [Take(Read), Limited];
    "std::shared_*mutex::try_lock_shared" "std::__shared_*mutex_*::try_lock_shared" => [Take(Read), None];
    "std::shared_*mutex::lock" "std::__shared_*mutex_*::lock" => [Take(ReadWrite)];
    "std::shared_*mutex::try_lock_*" "std::__shared_*mutex_*::try_lock_*" => [Take(ReadWrite), Limited];
    "std::shared_*mutex::try_lock" "std::__shared_*mutex_*::try_lock" => [Take(ReadWrite), None];
    "std::shared_*mutex::unlock*" "std::__shared_*mutex_*::unlock*" => [Give(ReadWrite)];
    "std::lock_guard::lock_guard" "std::scoped_lock::scoped_lock" "std::lock" => [Take(Guarded)];
    "std::unique_lock::unique_lock" "std::unique_lock::lock" => [Take(Guarded)];
    "std::shared_lock::shared_lock" "std::shared_lock::lock" => [Take(Guarded)];
    "std::unique_lock::try_lock_*" "std::shared_lock::try_lock_*" => [Take(Guarded), Limited];
    "std::unique_lock::try_lock" "std::shared_lock::try_lock" "std::try_lock" => [Take(Guarded), None];
    "std::lock_guard::~lock_guard" "std::scoped_lock::~scoped_lock" => [Give(Guarded)];
    "std::unique_lock::~unique_lock" "std::unique_lock::unlock" => [Give(Guarded)];
    "std::shared_lock::~shared_lock" "std::shared_lock::unlock" => [Give(Guarded)];

    "std::condition_variable*::wait" => [Await(Event::Condition)];
    "std::condition_variable*::*wait*" => [Await(Event::Condition), Limited];
    "std::condition_variable*::notify_*" "std::notify_all_at_thread_exit" => [Notify];
    "std::condition_variable*" => [Object];

    // Who wants a future's value asks for it, and waits only if it is not there.
    "std::__atomic_futex_unsigned_base::*" "std::__atomic_futex_unsigned::_M_load_and_test*" => [Await(Event::Word)];
    "std::atomic::wait" "std::atomic_flag::wait" "std::__atomic_base::wait" => [Await(Event::Word)];
    "std::__atomic_wait*" "std::__libcpp_atomic_wait" "std::__cxx_atomic_wait" => [Await(Event::Word)];
    "std::atomic::notify_*" "std::atomic_flag::notify_*" "std::__atomic_base::notify_*" => [Notify];
    "std::__atomic_notify*" "std::__cxx_atomic_notify_*" => [Notify];

    "std::future::wait" "std::future::get" "std::shared_future::wait" "std::shared_future::get" => [Await(Event::Value)];
    "std::__basic_future::wait" "std::__assoc_sub_state::wait" "std::__assoc_sub_state::__sub_wait" => [Await(Event::Value)];
    "std::__future_base::_State_baseV2::wait" => [Await(Event::Value)];
    "std::__future_base::_State_baseV2::wait_*" => [Await(Event::Value), Limited];
    "std::future::wait_*" "std::shared_future::wait_*" "std::__basic_future::wait_*" => [Await(Event::Value), Limited];
    "std::__assoc_sub_state::wait_*" => [Await(Event::Value), Limited];
    "std::promise::set_*" => [Notify];

    "std::latch::wait" "std::latch::arrive_and_wait" => [Await(Event::Value)];
    "std::barrier::arrive_and_wait" "std::barrier::wait" "std::__tree_barrier::wait" => [Barrier(Meeting::Counted)];
    "std::latch::count_down" "std::barrier::arrive*" => [Notify];
    "std::counting_semaphore::acquire" => [Acquire];
    "std::counting_semaphore::try_acquire_*" => [Acquire, Limited];
    "std::counting_semaphore::try_acquire" => [Acquire, None];
    "std::counting_semaphore::release" => [Release];
    "std::call_once" "std::__call_once" => [Once];

    "std::thread::_M_start_thread" => [Create];
    // What a thread runs is an object, which it ends.
    "std::thread::_State_impl::~_State_impl" => [AfterThread];
    "std::thread::join" "std::jthread::join" "std::jthread::~jthread" => [Join];
    "std::this_thread::yield" => [Yield];
    "std::this_thread::*sleep_for" "std::this_thread::*sleep_until" => [Sleep { brief: true }];
    "std::chrono::*clock::now" => [Clock];

    "std::shared_ptr::use_count" "std::shared_ptr::unique" "std::weak_ptr::use_count" "std::weak_ptr::expired" => [References];
    "std::__shared_ptr::use_count" "std::__shared_ptr::unique" => [References];
    "std::__weak_ptr::use_count" "std::__weak_ptr::expired" => [References];
    "std::__shared_count::_M_unique" "std::__shared_count::_M_get_use_count" => [References];
    "std::__weak_count::_M_get_use_count" "std::__shared_weak_count::use_count" => [References];
    "std::_Sp_counted_*::_M_dispose" "std::_Sp_counted_*::_M_destroy" => [LastReference];
    "std::_Sp_counted_*::_M_release_last_use*" => [LastReference];
    "std::__future_base::_State_baseV2::_M_break_promise" => [LastReference];
    "std::deque::_M_reallocate_map" "std::packaged_task::~packaged_task" => [MakeRoom];
    "std::deque::__add_back_capacity" "std::deque::__add_front_capacity" => [MakeRoom];

    "std::terminate" "std::unexpected" "std::rethrow_*" "std::__throw_*" => [Fail];
};
