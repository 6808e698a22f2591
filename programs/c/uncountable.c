// A function that cannot be recorded: one byte long, none behind it, and a pointer leads there. It is called
// 12,345 times directly, from two threads and a forked child, and 10 times through the pointer.
// A right trace has no call of `tiny`; `info` tells its 12,345 calls (the child's 45 in the child), and that
// there may be more. With an argument it kills itself at the end.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

__asm__(".text\n"
        ".globl tiny\n"
        ".type tiny, @function\n"
        "tiny:\n"
        ".cfi_startproc\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size tiny, 1\n"
        ".type after_tiny, @function\n"
        "after_tiny:\n"
        ".cfi_startproc\n"
        "mov $1, %eax\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size after_tiny, 6\n");
void tiny(void);
int after_tiny(void);
void (*volatile pointer)(void) = tiny;

__attribute__((noinline)) void call(long times) {
    for (long i = 0; i < times; i++) tiny();
}
void *work(void *times) {
    call((long)times);
    return NULL;
}

int main(int count, char **words) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, (void *)6000L);
    call(6300);
    pthread_join(thread, NULL);
    for (int i = 0; i < 10; i++) pointer();
    fflush(stdout);
    if (fork() == 0) {
        call(45);
        _exit(0);
    }
    wait(NULL);
    if (count > 1) kill(getpid(), SIGKILL);
    return after_tiny() - 1;
}
