// Runs the command that its arguments name as Linux 4.18 would: newer system calls are unknown, and so are newer
// advices of madvise and operations of prctl.
//
//   old_kernel COMMAND [ARGUMENT]...
//
// A right recording: as on any other kernel.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LAST_CALL = 334,               // rseq
    LAST_ADVICE = 19,              // MADV_KEEPONFORK
    LAST_KNOWN_ADVICE = 99,        // MADV_HWPOISON and its kin are old
    LAST_OPERATION = 53,           // PR_SET_SPECULATION_CTRL
    LAST_KNOWN_OPERATION = 99999,  // what is behind are letters: PR_SET_PTRACER is old
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (value))
// Jumps over this many lines.
#define CHOOSE_ABOVE(limit, yes, no) BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (limit), (yes), (no))
#define IF_ABOVE(limit, yes) CHOOSE_ABOVE((limit), (yes), 0)
#define UNLESS(value, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (no))

int main(int count, char **arguments) {
    struct sock_filter filter[] = {
        /*  0 */ LOAD(nr),
        /*  1 */ IF_ABOVE(LAST_CALL, 9),               // to 11
        /*  2 */ UNLESS(__NR_madvise, 3),              // to 6
        /*  3 */ LOAD(args[2]),
        /*  4 */ IF_ABOVE(LAST_KNOWN_ADVICE, 7),       // to 12
        /*  5 */ CHOOSE_ABOVE(LAST_ADVICE, 4, 6),      // to 10 or 12
        /*  6 */ UNLESS(__NR_prctl, 5),                // to 12
        /*  7 */ LOAD(args[0]),
        /*  8 */ IF_ABOVE(LAST_KNOWN_OPERATION, 3),    // to 12
        /*  9 */ CHOOSE_ABOVE(LAST_OPERATION, 0, 2),   // to 10 or 12
        /* 10 */ ANSWER(SECCOMP_RET_ERRNO | EINVAL),
        /* 11 */ ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
        /* 12 */ ANSWER(SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 77;
    execvp(arguments[1], arguments + 1);
    perror(arguments[1]);
    return 127;
}
