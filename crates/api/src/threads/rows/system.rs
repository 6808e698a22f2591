//! Calls of POSIX and of compilers' own libraries that wait, start processes or end them.

use super::Row;
use crate::threads::meaning::Does::*;
use crate::threads::meaning::{Event, Inner};

pub(super) const ROWS: &[Row] = rows! {
    "call_once" => [Once];
    "nanosleep" "clock_nanosleep" "usleep" => [Sleep { brief: true }];
    "sleep" => [Sleep { brief: false }];
    "sched_yield" => [Yield];
    "clock_gettime" "gettimeofday" "time" "clock" => [Clock];
    "poll" "ppoll" "select" "pselect" "epoll_wait" "epoll_pwait" "epoll_pwait2" => [Poll];
    "futex" => [Await(Event::Word)];
    "pause" "sigsuspend" "sigwait" "sigwaitinfo" => [Await(Event::Signal)];
    "sigtimedwait" => [Await(Event::Signal), Limited];

    "fork" "_Fork" "vfork" "clone" "posix_spawn" "posix_spawnp" "popen" => [Start { waits: false }];
    "system" => [Start { waits: true }];
    "wait" "wait3" "wait4" "waitid" "waitpid" "pclose" => [Child];

    "exit" "_exit" "_Exit" "quick_exit" => [Exit];
    "abort" => [Abort];
    "__assert_fail" "__assert_perror_fail" "__stack_chk_fail" => [Fail];
    "__cxa_bad_cast" "__cxa_bad_typeid" "__cxa_pure_virtual" "__cxa_deleted_virtual" => [Fail];
    "__cxa_throw_bad_array_length" "__cxa_throw_bad_array_new_length" => [Fail];
    "__cxa_call_terminate" "__cxa_call_unexpected" => [Fail];
    "raise" "kill" "killpg" "tgkill" "sigqueue" => [Raise];
    "__cxa_throw" "__cxa_rethrow" => [Throw];
    "_Unwind_RaiseException" "_Unwind_ForcedUnwind" "_Unwind_SjLj_Resume" => [Unwind];
    "_Unwind_Resume" "_Unwind_Resume_or_Rethrow" => [Unwind];
    "swapcontext" "setcontext" => [Jump];

    "accept" "accept4" "recv" "recvfrom" "recvmsg" "recvmmsg" "mq_receive" "msgrcv" => [Receive];
    "mq_timedreceive" => [Receive, Limited];
    "open" "open64" "openat" "openat64" "fcntl" "fcntl64" "ioctl" "syscall" => [Kernel];
    "read" "readv" "pread" "pread64" "preadv" "preadv64" => [Kernel];
    "write" "writev" "pwrite" "pwrite64" "pwritev" "pwritev64" => [Kernel];
    "send" "sendto" "sendmsg" "sendmmsg" "mq_send" "mq_timedsend" "msgsnd" "connect" "getaddrinfo" => [Kernel];
    "sendfile" "sendfile64" "splice" "vmsplice" "copy_file_range" => [Kernel];
    "fsync" "fdatasync" "msync" "flock" "lockf" "lockf64" "semop" "semtimedop" => [Kernel];
    "aio_suspend" "io_getevents" "io_uring_enter" => [Kernel];

    "malloc" "calloc" "realloc" "reallocarray" "free" "cfree" => [Inner(Inner::Heap)];
    "aligned_alloc" "memalign" "posix_memalign" "valloc" "pvalloc" => [Inner(Inner::Heap)];
    "malloc_trim" "malloc_stats" "malloc_info" "mallinfo" "mallinfo2" => [Inner(Inner::Heap)];
    "strdup" "strndup" "wcsdup" "asprintf" "vasprintf" "getline" "getdelim" => [Inner(Inner::Heap)];
    "fopen" "fopen64" "fdopen" "fclose" "opendir" "closedir" => [Inner(Inner::Heap)];
    "_Znw*" "_Zna*" "_Zdl*" "_Zda*" => [Inner(Inner::Heap)];
    "localtime" "localtime_r" "mktime" "tzset" "strftime" "timelocal" => [Inner(Inner::Zone)];
    "syslog" "vsyslog" "openlog" "closelog" "setlogmask" => [Inner(Inner::Log)];
};
