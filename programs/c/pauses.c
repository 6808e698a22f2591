// Calls that wait, and what the program's own clock says before and behind each: a line NAME BEFORE BEHIND, in nanoseconds of the
// monotonic clock. A right trace has begin and end of each call between the two, and hardly less than all of it. With an
// argument it waits so many times as often.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../own_clock.h"

static struct {
  const char *name;
  unsigned long before, behind;
} said[100000];
static int count;

#define CLOCKED(function, ...)     \
  do {                             \
    unsigned long before = now();  \
    function(__VA_ARGS__);         \
    said[count].behind = now();    \
    said[count].before = before;   \
    said[count++].name = #function; \
  } while (0)

static sem_t wanted;
static volatile double sum;

static void *waker(void *unused) {
  usleep(20000);
  sem_post(&wanted);
  return unused;
}

static __attribute__((noinline)) void computes(void) {
  for (int i = 0; i < 2000000; i++) sum += i;
}

int main(int count_of_arguments, char **arguments) {
  int rounds = count_of_arguments > 1 ? atoi(arguments[1]) : 1;
  struct reading first = reading();
  int ends[2];
  char byte = 1;
  if (pipe(ends)) return 1;
  sem_init(&wanted, 0, 0);
  for (int round = 0; round < rounds; round++) {
    pthread_t thread;
    CLOCKED(usleep, 30000);
    computes();
    pthread_create(&thread, 0, waker, 0);
    CLOCKED(sem_wait, &wanted);
    CLOCKED(pthread_join, thread, 0);
    struct pollfd what = {ends[0], POLLIN, 0};
    CLOCKED(poll, &what, 1, 10);
    // Short ones.
    for (int i = 0; i < 400; i++) {
      CLOCKED(write, ends[1], &byte, 1);
      CLOCKED(read, ends[0], &byte, 1);
    }
    pid_t child = fork();
    if (child == 0) {
      usleep(20000);
      _exit(0);
    }
    CLOCKED(waitpid, child, 0, 0);
  }
  struct reading last = reading();
  for (int i = 0; i < count; i++)
    printf("%s %ld %ld\n", said[i].name, scaled(said[i].before, first, last), scaled(said[i].behind, first, last));
  return 0;
}
