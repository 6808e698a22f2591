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
