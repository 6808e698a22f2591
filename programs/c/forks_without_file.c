/* A child that can make no file of its own, since the process may have no larger files ("size") or no further ones open ("files")
 * by then: it runs to its end, and its calls of step, five, are lost and counted in its parent's. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) int step(int n)
{
    __asm__ volatile("" ::: "memory");
    return n + 1;
}

int main(int count, char **words)
{
    int is_size = count > 1 && strcmp(words[1], "size") == 0;
    struct rlimit none = {0, 0};
    int status = 0, sum = step(0);
    fflush(stdout);
    setrlimit(is_size ? RLIMIT_FSIZE : RLIMIT_NOFILE, &none);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 5; i++)
            sum = step(sum);
        _exit(sum);
    }
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
    return 0;
}
