/* rusage REPORT SECONDS COMMAND...: runs COMMAND in a process group of its own, ends it when SECONDS are over, and
 * writes to REPORT: wall nanoseconds, microseconds of user and of system time of all that it waited for, exit status
 * (128 + n after signal n, 124 when its time was over), and the most kilobytes that one of them had. In C since only
 * getrusage tells microseconds. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t child;
static volatile sig_atomic_t alarms;

static void over(int signal) {
    (void)signal;
    kill(-child, alarms++ ? SIGKILL : SIGTERM);
    alarm(5);
}

static void stop(int signal) {
    kill(-child, SIGTERM);
    sleep(1);
    kill(-child, SIGKILL);
    _exit(128 + signal);
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    child = fork();
    if (child == 0) {
        setpgid(0, 0);
        execvp(argv[3], argv + 3);
        _exit(127);
    }
    setpgid(child, child);
    struct sigaction action = {.sa_handler = over};
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = stop;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    alarm((unsigned)atoi(argv[2]));
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        ;
    clock_gettime(CLOCK_MONOTONIC, &end);
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    FILE *report = fopen(argv[1], "w");
    if (!report)
        return 2;
    fprintf(report, "%lld %lld %lld %d %ld\n",
            (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec,
            usage.ru_utime.tv_sec * 1000000LL + usage.ru_utime.tv_usec,
            usage.ru_stime.tv_sec * 1000000LL + usage.ru_stime.tv_usec,
            alarms ? 124 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
            usage.ru_maxrss);
    return fclose(report) ? 2 : 0;
}
