// Forbids itself what a recorder needs: openat, fallocate, mmap and madvise fail from then on.
//
//   seccomp
//
// A right recording: the program runs to its end, and what found no room is counted.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REFUSE(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

__attribute__((noinline)) unsigned long mix(unsigned long x) {
    __asm__ volatile("");
    return x * 6364136223846793005 + 1442695040888963407;
}
// Calls in an order that repeats nowhere, so that no compression keeps them.
__attribute__((noinline)) unsigned long left(unsigned long x) { return mix(x) ^ 1; }
__attribute__((noinline)) unsigned long right(unsigned long x) { return mix(x) ^ 2; }

int main(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(__NR_openat), REFUSE(__NR_fallocate), REFUSE(__NR_mmap), REFUSE(__NR_madvise), REFUSE(__NR_ftruncate),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    puts("before");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 77;
    unsigned long x = 1;
    for (long i = 0; i < 2000000; i++) x = x >> 63 ? left(x) : right(x);
    printf("after %lx, open %d, mmap %d\n", x, open("/dev/null", O_RDONLY), mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    return 0;
}
