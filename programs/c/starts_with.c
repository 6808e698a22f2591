// Starts a program with an environment of one variable: starts_with WAY NAME=VALUE PROGRAM.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 4) return 2;
    char *environment[] = {words[2], NULL}, *arguments[] = {words[3], NULL};
    const char *way = words[1];
    pid_t child = 0;
    int status = 0;
    if (strcmp(way, "execve") == 0) execve(words[3], arguments, environment);
    if (strcmp(way, "execle") == 0) execle(words[3], words[3], NULL, environment);
    if (strcmp(way, "fexecve") == 0) fexecve(open(words[3], O_RDONLY), arguments, environment);
    if (strcmp(way, "posix_spawn") == 0) posix_spawn(&child, words[3], NULL, NULL, arguments, environment);
    if (strcmp(way, "vfork") == 0 && (child = vfork()) == 0) {
        execve(words[3], arguments, environment);
        _exit(3);
    }
    if (child <= 0 || waitpid(child, &status, 0) != child) return 4;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}
