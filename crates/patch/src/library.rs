//! How a library function is recorded, by its name.

use lockstep_api::mpi::{Does, Function};
use lockstep_api::threads::{self, Lies, Object, Step, Success};
use lockstep_format::hold::code;
use lockstep_format::plan::{mechanism, routine};

/// Not calls of the program, or functions that count on their return address being the caller's
/// and do nothing but read it: left alone.
const UNTOUCHED: [&[u8]; 8] = [
    b"__libc_start_main",
    b"__cxa_finalize",
    b"__gmon_start__",
    b"mcount",
    b"_mcount",
    b"__fentry__",
    b"__morestack",
    b"backtrace",
];

/// What compilers put into programs for their own run-time libraries (transactions, sanitizers), which
/// tell by the return address where it stands.
const INSTRUMENTATION: [&[u8]; 7] = [
    b"_ITM_",
    b"__asan_",
    b"__hwasan_",
    b"__msan_",
    b"__sanitizer_",
    b"__tsan_",
    b"__ubsan_",
];

/// Read their return address (to find the calling object), or keep it for a second return: call and
/// return at once.
const INSTANT: [&[u8]; 12] = [
    b"getcontext",
    b"clone",
    b"clone3",
    b"dlopen",
    b"dlmopen",
    b"dlsym",
    b"dlvsym",
    b"dlclose",
    b"dladdr",
    b"dladdr1",
    b"dlinfo",
    b"dlerror",
];

/// The routine of entries that may begin a process in this very memory.
pub(crate) const SUSPEND: usize = routine::SUSPEND;

/// Whether calls of this library function are left as they are.
pub(crate) fn is_untouched(name: &[u8]) -> bool {
    let starts = |prefix: &&[u8]| name.starts_with(prefix);
    UNTOUCHED.contains(&name) || INSTRUMENTATION.iter().any(starts)
}

/// The mechanism for the library function `name`.
pub(crate) fn of_import(name: &[u8]) -> u32 {
    // Names of C++ are long, and a program has many: one letter is compared before the rest.
    let contains = |part: &[u8; 7]| {
        let mut windows = name.windows(part.len());
        windows.any(|window| window[4] == part[4] && window == part)
    };
    if name == b"vfork" || name == b"__vfork" {
        mechanism::VFORK
    } else if INSTANT.contains(&name) || name.ends_with(b"setjmp") {
        mechanism::INSTANT
    } else if contains(b"longjmp") || threads::meaning(name).never_returns() {
        mechanism::JUMP
    } else {
        mechanism::CALL_THROUGH
    }
}

/// Whether calls of the library function `name` may be recorded as those of a leaf, where its code allows it: not those that
/// questions about messages are asked of, nor those that take or give back a lock.
pub(crate) fn may_be_leaf(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    let stem = lower.strip_prefix(b"p").unwrap_or(&lower);
    of_import(name) == mechanism::CALL_THROUGH
        && !stem.starts_with(b"mpi_")
        && threads::meaning(name).object().is_none()
}

/// The mechanism that the name of an own function asks for: those that return twice, or elsewhere
/// than to their caller. `None` where its code decides.
pub(crate) fn of_own(name: &[u8]) -> Option<u32> {
    match of_import(name) {
        mechanism::CALL_THROUGH => None,
        // These look at their return address, and patched returns leave it.
        mechanism::INSTANT if name.starts_with(b"dl") => None,
        other => Some(other),
    }
}

/// The routine that serves a mechanism other than call-through.
pub(crate) fn routine(mechanism: u32) -> usize {
    match mechanism {
        mechanism::INSTANT => routine::INSTANT,
        mechanism::VFORK => routine::VFORK,
        _ => routine::JUMP,
    }
}

/// What the stub of a function says of the object that it takes or gives back.
pub(crate) fn code_of(object: Object) -> [u8; 2] {
    let step = match object.step {
        Step::Take { shared: false } => code::TAKE,
        Step::Take { shared: true } => code::SHARE,
        Step::Give => code::GIVE,
        Step::Await { through: false } => code::AWAIT,
        Step::Await { through: true } => code::AWAIT_THROUGH,
    };
    let success = match object.success {
        Success::Always => code::ALWAYS,
        Success::Zero => code::ZERO,
        Success::NotZero => code::NOT_ZERO,
        Success::True => code::TRUE,
    };
    let lies = match object.lies {
        Lies::Argument(index) => index,
        Lies::Only(number) => code::ONLY | number,
    };
    [step | success << 4, lies]
}

/// Where unwinding begins: libgcc_s, then what libunwind has in its place.
const UNWINDER: [&[u8]; 12] = [
    b"_Unwind_RaiseException",
    b"_Unwind_Resume",
    b"_Unwind_Resume_or_Rethrow",
    b"_Unwind_ForcedUnwind",
    b"_Unwind_Backtrace",
    b"unw_backtrace",
    b"unw_init_local",
    b"unw_init_local2",
    b"__unw_init_local",
    b"_ULx86_64_init_local",
    b"_ULx86_64_init_local2",
    b"_Ux86_64_init_local",
];

/// The one place from which glibc sets handlers: `sigaction`, `signal` and its own needs lead there.
const SETS_HANDLER: &[u8] = b"__libc_sigaction";

/// By which glibc executes programs, whichever function it was asked by, and with an environment as the third argument.
const EXECUTES: [&[u8]; 2] = [b"execve", b"fexecve"];

/// The hooked entries of a library, and what they run.
pub(crate) fn hook(role: lockstep_format::plan::Role, name: &[u8]) -> Option<usize> {
    use lockstep_format::plan::Role;
    let any = |names: &[&[u8]]| names.contains(&name);
    let (hooked, routine) = match role {
        Role::Main | Role::Library => (false, routine::RESTORE),
        Role::Unwinder => (UNWINDER.contains(&name), routine::RESTORE),
        Role::Mpi => (is_mpi_init(name), routine::MPI),
        Role::Libc if name == SETS_HANDLER => (true, routine::SIGNALS),
        Role::Libc if any(&EXECUTES) => (true, routine::EXEC),
        Role::Libc => (any(&[b"_exit", b"_Exit"]), routine::END),
        Role::Linker => (name == b"_dl_debug_state", routine::LOADED),
    };
    hooked.then_some(routine)
}

/// `MPI_Init`, `PMPI_Init_thread`, `mpi_init_`, `MPI_INIT`, `pmpi_init_f08_`...
fn is_mpi_init(name: &[u8]) -> bool {
    let function = Function::of(name);
    function.is_some_and(|it| matches!(it.meaning().does, Does::Begin { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanisms_by_name() {
        let cases: [(&[u8], u32); 10] = [
            (b"__sigsetjmp", mechanism::INSTANT),
            (b"_setjmp", mechanism::INSTANT),
            (b"siglongjmp", mechanism::JUMP),
            (b"__longjmp_chk", mechanism::JUMP),
            (b"vfork", mechanism::VFORK),
            (b"fork", mechanism::CALL_THROUGH),
            (b"dlsym", mechanism::INSTANT),
            (b"dl_iterate_phdr", mechanism::CALL_THROUGH),
            (b"__cxa_throw", mechanism::JUMP),
            (b"MPI_Send", mechanism::CALL_THROUGH),
        ];
        for (name, expected) in cases {
            assert_eq!(
                of_import(name),
                expected,
                "{}",
                String::from_utf8_lossy(name)
            );
        }
        assert!(is_untouched(b"_ITM_registerTMCloneTable"));
        assert!(is_untouched(b"__asan_report_store4") && !is_untouched(b"__assert_fail"));
    }

    #[test]
    fn objects_in_two_bytes() {
        let code_of = |name: &str| threads::meaning(name).object().map(code_of);
        let zero = code::ZERO << 4;
        assert_eq!(code_of("pthread_mutex_lock"), Some([code::TAKE | zero, 0]));
        assert_eq!(
            code_of("pthread_rwlock_rdlock"),
            Some([code::SHARE | zero, 0])
        );
        assert_eq!(
            code_of("GOMP_critical_end"),
            Some([code::GIVE, code::ONLY | 1])
        );
        let tests = [code::TAKE | code::NOT_ZERO << 4, 2];
        assert_eq!(code_of("__kmpc_test_lock"), Some(tests));
        assert_eq!(code_of("usleep"), None);
        assert!(!may_be_leaf(b"pthread_spin_unlock") && may_be_leaf(b"strlen"));
    }

    #[test]
    fn initialisation_in_every_spelling() {
        let yes: [&[u8]; 9] = [
            b"MPI_Init",
            b"PMPI_Init",
            b"MPI_Init_thread",
            b"mpi_init_",
            b"mpi_init__",
            b"MPI_INIT_THREAD",
            b"mpi_init_thread_f08_",
            b"pmpi_init_f",
            b"mpi_init",
        ];
        for name in yes {
            assert!(is_mpi_init(name), "{}", String::from_utf8_lossy(name));
        }
        let no: [&[u8]; 4] = [
            b"MPI_Initialized",
            b"mpi_initialized_",
            b"ompi_mpi_init",
            b"mpir_init",
        ];
        for name in no {
            assert!(!is_mpi_init(name), "{}", String::from_utf8_lossy(name));
        }
    }
}
