//! Everything that is written in assembly.

/// Keeps rax on the stack and puts the thread's block there; goes to `$none` if it has none.
macro_rules! thread_or {
    ($none:literal) => {
        concat!(
            "push rax\n",
            "mov rax, qword ptr [rip + lockstep_thread@gottpoff]\n",
            "mov rax, qword ptr fs:[rax]\n",
            "test rax, rax\n",
            "jz ",
            $none
        )
    };
}

/// Puts registers on the stack, one after the other.
macro_rules! push {
    ($($register:ident)+) => { concat!($("push ", stringify!($register), "\n",)+) };
}

/// Takes them back.
macro_rules! pop {
    ($($register:ident)+) => { concat!($("pop ", stringify!($register), "\n",)+) };
}

/// Saves xmm0 to xmm15 at the stack pointer, or loads them from there.
macro_rules! vectors {
    ($what:ident) => { vectors!($what 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (save $($n:literal)+) => { concat!($("movaps [rsp + 16*", $n, "], xmm", $n, "\n",)+) };
    (load $($n:literal)+) => { concat!($("movaps xmm", $n, ", [rsp + 16*", $n, "]\n",)+) };
}

/// Takes rax back, then the slow path of `{kind}`, then `$then`. The routine's slot holds our own return address: the call's is
/// above it.
macro_rules! slow_below {
    ($then:literal) => {
        concat!(
            "pop rax\n",
            "call 99f\n",
            $then,
            "\n",
            "99:\n",
            "push {kind}\n",
            "jmp {slow}"
        )
    };
}

pub mod arguments;
pub mod beside;
pub mod check;
pub mod every_time;
pub mod fault;
pub mod handlers;
pub mod holds;
pub mod memory;
pub mod pending;
pub mod routines;
pub mod slow;
pub mod spawn;
pub mod syscall;
pub mod timed;
