// build: -pthread
// A process with children, a grandchild that loses its parent, and waits for any of them:
//
//   family waits      waits for all children: there is one; the grandchild is gone soon after its end, whoever takes it
//   family adopts     is a subreaper: it has two children, the grandchild comes to it
//   family stands     two threads want each other's lock: it never ends by itself
//   family leaves     a grandchild that sleeps, whose parent has ended; then the same standoff
//   family stubborn   the same, and the grandchild ignores SIGTERM
//
// A right recorder changes no number here, and leaves no process behind when it stops this.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void want(pthread_mutex_t *have, pthread_mutex_t *want) {
    pthread_mutex_lock(have);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(want);
}

static void *other(void *unused) {
    want(&second, &first);
    return unused;
}

static void standoff(void) {
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, other, NULL);
    want(&first, &second);
}

// The number of a grandchild whose parent has ended; it lives for so many milliseconds.
static pid_t grandchild(int milliseconds) {
    int line[2];
    if (pipe(line) != 0) exit(3);
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            close(line[1]);
            usleep(milliseconds * 1000);
            _exit(0);
        }
        if (write(line[1], &grandchild, sizeof grandchild) != sizeof grandchild) _exit(3);
        _exit(0);
    }
    pid_t found = 0;
    if (read(line[0], &found, sizeof found) != sizeof found) exit(3);
    close(line[0]);
    close(line[1]);
    return found;
}

static int children(void) {
    int count = 0;
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) count++;
    return count;
}

// On a busy machine the system's first process may take its time.
static int is_gone(pid_t process) {
    for (int i = 0; i < 3000; i++) {
        if (kill(process, 0) != 0 && errno == ESRCH) return 1;
        usleep(10000);
    }
    return 0;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "waits";
    if (strcmp(mode, "stands") == 0) standoff();
    if (strcmp(mode, "leaves") == 0 || strcmp(mode, "stubborn") == 0) {
        if (strcmp(mode, "stubborn") == 0) signal(SIGTERM, SIG_IGN);
        grandchild(100000);
        signal(SIGTERM, SIG_DFL);
        standoff();
    }
    if (strcmp(mode, "adopts") == 0) prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t it = grandchild(100);
    int count = children();
    printf("%d %d\n", count, is_gone(it));
    return 0;
}
