// Children that are started in every other way: posix_spawn with file actions and attributes, execve with an
// environment of the program's own, env -i. What a child sees of its environment is its own business, so
// it prints how many arguments it got.
//
//   spawn [child N]
//
// A right trace shows the parent whole. Children with our variables are processes of the run, each with
// main > greet; those without them are not recorded.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
__attribute__((noinline)) int greet(int count, char **arguments) {
    printf("child %s of %d\n", arguments[2], count);
    return 10 + atoi(arguments[2]);
}
__attribute__((noinline)) int spawn(char **environment, char *number) {
    char *arguments[] = {"spawn", "child", number, NULL}, text[64] = "";
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all;
    int pipes[2], status;
    pid_t child;
    if (pipe(pipes)) return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, pipes[0]);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
    posix_spawn_file_actions_addclose(&actions, pipes[1]);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_init(&attributes);
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    if (posix_spawn(&child, "/proc/self/exe", &actions, &attributes, arguments, environment)) return -1;
    close(pipes[1]);
    if (read(pipes[0], text, sizeof text - 1) < 0) return -1;
    close(pipes[0]);
    waitpid(child, &status, 0);
    printf("spawned: %s", text);
    return WEXITSTATUS(status);
}
__attribute__((noinline)) int run(char **environment, char *number) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char *arguments[] = {"spawn", "child", number, NULL};
        execve("/proc/self/exe", arguments, environment);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
__attribute__((noinline)) int fails(void) {
    char *arguments[] = {"nothing", NULL};
    pid_t child;
    return posix_spawn(&child, "/no/such/program", NULL, NULL, arguments, environ) != 0 && execv("/no/such/program", arguments) == -1;
}

int main(int count, char **arguments) {
    if (count > 2) return greet(count, arguments);
    char *own[] = {"HOME=/", NULL};
    printf("%d\n", spawn(environ, "1"));
    printf("%d\n", spawn(own, "2"));
    printf("%d\n", run(environ, "3"));
    printf("%d\n", run(own, "4"));
    printf("fails %d\n", fails());
    return 0;
}
