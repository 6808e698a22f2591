// vfork and exec, and posix_spawn, system and popen: children that share the parent's memory for a
// while.
// A right trace shows, in the parent, vfork called and returned once, then waitpid, then each of the
// others, all balanced; what the child does before exec is not recorded.
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
__attribute__((noinline)) int run_true(void) {
    int status = -1;
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

int main(void) {
    char *arguments[] = {"sh", "-c", "exit 4", NULL}, line[64] = "";
    int status;
    pid_t child;
    printf("vfork %d\n", run_true());
    posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ);
    waitpid(child, &status, 0);
    printf("posix_spawn %d\n", WEXITSTATUS(status));
    status = system("exit 5");
    printf("system %d\n", WEXITSTATUS(status));
    FILE *pipe = popen("echo six", "r");
    if (!fgets(line, sizeof line, pipe)) return 1;
    pclose(pipe);
    printf("popen %s", line);
    return 0;
}
