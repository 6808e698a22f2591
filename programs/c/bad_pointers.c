// Gives execve and sigaction pointers to memory that cannot be read, and to memory that ends where such memory begins.
// The kernel says EFAULT of the former to execve; libc faults itself with sigaction, and the handler leaps out of it.
// A right trace shows main > execute, set, and ten calls of after: nothing is lost by the faults.
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char *edge; // the end of a page, behind which nothing can be read
static sigjmp_buf out;

__attribute__((noinline)) static void after(int index) { printf("after %d\n", index); }

__attribute__((noinline)) static void execute(const char *what, const char *path, char **environment) {
    char *arguments[] = {"true", NULL};
    fflush(stdout);
    if (fork() == 0) {
        execve(path, arguments, environment);
        _exit(errno);
    }
    int status;
    wait(&status);
    printf("%s: %s\n", what, WEXITSTATUS(status) ? strerror(WEXITSTATUS(status)) : "executed");
}

static void leap(int number) { siglongjmp(out, number); }

__attribute__((noinline)) static void set(const char *what, void *action, void *former) {
    if (sigsetjmp(out, 1) == 0)
        printf("%s: %d\n", what, sigaction(SIGUSR1, action, former));
    else
        printf("%s: faulted\n", what);
}

static void handle(int number) { (void)number; }

int main(void) {
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page + 4096, 4096, PROT_NONE);
    edge = page + 4096;
    char **last = (char **)edge - 2;
    char *text = edge - 64;
    strcpy(text, "NAME=value");

    last[0] = text, last[1] = NULL;
    execute("an array up to the edge", "/bin/true", last);
    last[1] = text;
    execute("an array over the edge", "/bin/true", last);
    execute("no array", "/bin/true", (char **)edge);
    execute("a null", "/bin/true", NULL);
    char *strings[] = {text, edge, NULL};
    execute("no string", "/bin/true", strings);
    strings[1] = (char *)1;
    execute("a small number", "/bin/true", strings);
    char preload[] = "LD_PRELOAD=";
    char *short_of = edge - (sizeof preload - 1) - 1;
    memcpy(short_of, preload, sizeof preload - 1);
    edge[-1] = 'x';
    strings[1] = short_of;
    execute("a value over the edge", "/bin/true", strings);
    strings[1] = NULL;
    execute("no path", edge, strings);

    struct sigaction leaps = {.sa_handler = leap}, good = {.sa_handler = handle}, former;
    sigaction(SIGSEGV, &leaps, NULL);
    struct sigaction *close_by = (struct sigaction *)edge - 1;
    *close_by = good;
    set("an action up to the edge", close_by, &former);
    set("a former one up to the edge", NULL, close_by);
    printf("it is %s\n", close_by->sa_handler == handle ? "the handler" : "another");
    set("no action", edge, NULL);
    set("no former one", NULL, edge);
    set("an action over the edge", edge - 64, NULL);
    for (int index = 0; index < 10; index++) after(index);
    return 0;
}
