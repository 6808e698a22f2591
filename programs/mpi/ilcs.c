// build: -fopenmp
// Iterative local champion search for the travelling salesman, after the thesis' section 3.4: in each rank a master
// (thread 0) and workers (--workers, default 4). A worker takes seeds, makes a random tour from each, improves it (2-opt),
// and copies it to its champion, in a critical section, if it is better. The masters agree on the best champion (two
// Allreduce), its owner copies it into the buffer of a Bcast, in a critical section. Once more after the threads.
//
//   ilcs [--bug NAME] [--at P.T.I] [--workers N] [--cities N] [--rounds N] [--still MILLISECONDS] [--seeds N]
//
// It ends after --rounds rounds of the masters (default 12), or, with --still, when the champion has not improved for so
// long: the papers' rule, which makes no two runs alike. A worker takes seeds until then, or --seeds of them: the masters
// wait for these, so that the same rank owns the champion in every round of every run. Healthy and faulty runs are runs of one binary: --bug says what is wrong, --at in which process, thread and iteration where the name
// says "1". The names are the papers' (what-process-thread-iteration).
//
// A right trace: master `P.0` with MPI_Allreduce, MPI_Allreduce, MPI_Bcast in every round, GOMP_critical_start, memcpy,
// GOMP_critical_end where P owns the champion; workers `P.1` to `P.4` with CPU_Exec, and the same three calls around a copy.

#include <mpi.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CITIES = 256, MOST_THREADS = 64 };

struct champion {
  long quality;
  int tour[MOST_CITIES];
};

static int cities = 24, workers = 4, rounds = 12, still, seeds;
static const char *bug = "none";
static int at_process = -1, at_thread = 4, at_iteration = 1;
static int rank, ranks;
static long x[MOST_CITIES], y[MOST_CITIES];
static struct champion champions[MOST_THREADS], best;
static volatile bool go_on = true;
static int done;

// What the bug is, read once: no call may differ between healthy and faulty runs but those that the bug is about.
enum what { MIS_CRIT, MIS_CRIT_2, MIS_CRIT_3, OP_1, SIZE_1, OP_2, SIZE_2, SIZE_BCAST, INF_LOOP };
static const char *const names[] = {"misCrit-", "misCrit2-", "misCrit3-", "allRed1wrgOp-", "allRed1wrgSize-",
                                    "allRed2wrgOp-", "allRed2wrgSize-", "bcastWrgSize-", "infLoop-"};
static int what = -1;
static bool all_threads;

static inline __attribute__((always_inline)) const char *behind(const char *text, const char *prefix) {
  for (; *prefix; text++, prefix++)
    if (*text != *prefix)
      return 0;
  return text;
}

static inline __attribute__((always_inline)) void read_bug(void) {
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
    const char *where = behind(bug, names[i]);
    if (!where || (where[0] != 'a' && rank != at_process))
      continue;
    what = i;
    while (*where && *where != '-')
      where++;
    all_threads = !*where || where[1] == 'a' || where[1] == 'x';
  }
}

static inline __attribute__((always_inline)) void read_place(const char *text) {
  int *to[] = {&at_process, &at_thread, &at_iteration};
  for (int i = 0; i < 3; i++) {
    for (*to[i] = 0; *text >= '0' && *text <= '9'; text++)
      *to[i] = 10 * *to[i] + *text - '0';
    if (*text == '.')
      text++;
  }
}

// Whether this is the bug, and this process and thread have it; -1 is any thread.
static inline __attribute__((always_inline)) bool has(enum what it, int thread) {
  return what == (int)it && (thread < 0 || all_threads || thread == at_thread);
}

static inline __attribute__((always_inline)) long distance(int a, int b) {
  return labs(x[a] - x[b]) + labs(y[a] - y[b]);
}

size_t CPU_Init(void) {
  unsigned long state = 12345;
  for (int city = 0; city < cities; city++) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    x[city] = state >> 40 & 1023;
    y[city] = state >> 52 & 1023;
  }
  for (int thread = 0; thread < MOST_THREADS; thread++)
    champions[thread].quality = 1l << 40;
  best.quality = 1l << 40;
  return sizeof(long) + sizeof(int) * cities;
}

__attribute__((noinline)) static bool improve(int *tour) {
  bool better = false;
  for (int i = 1; i < cities - 1; i++)
    for (int j = i + 1; j < cities; j++) {
      int after = tour[(j + 1) % cities];
      long gain = distance(tour[i - 1], tour[i]) + distance(tour[j], after) -
                  distance(tour[i - 1], tour[j]) - distance(tour[i], after);
      if (gain > 0) {
        for (int a = i, b = j; a < b; a++, b--) {
          int kept = tour[a];
          tour[a] = tour[b];
          tour[b] = kept;
        }
        better = true;
      }
    }
  return better;
}

long CPU_Exec(long seed, struct champion *found) {
  unsigned long state = seed * 2862933555777941757ul + 3037000493ul;
  for (int city = 0; city < cities; city++)
    found->tour[city] = city;
  for (int city = cities - 1; city > 0; city--) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    int other = (state >> 33) % (city + 1), kept = found->tour[city];
    found->tour[city] = found->tour[other];
    found->tour[other] = kept;
  }
  while (improve(found->tour))
    ;
  found->quality = 0;
  for (int city = 0; city < cities; city++)
    found->quality += distance(found->tour[city], found->tour[(city + 1) % cities]);
  return found->quality;
}

void CPU_Output(const struct champion *champion) {
  printf("champion of %d cities: %ld\n", cities, champion->quality);
}

static void worker(int thread, size_t size) {
  struct champion found;
  for (long iteration = 0; go_on && (!seeds || iteration < seeds); iteration++) {
    long seed = (iteration * ranks + rank) * MOST_THREADS + thread;
    long quality = CPU_Exec(seed, &found);
    if (has(INF_LOOP, thread) && iteration == at_iteration) {
      __atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
      for (;;)
        ;
    }
    if (quality < champions[thread].quality) {
      if (has(MIS_CRIT, thread)) {
        memcpy(&champions[thread], &found, size);
      } else {
#pragma omp critical
        memcpy(&champions[thread], &found, size);
      }
    }
  }
  __atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
}

// The masters agree on the best champion; its quality.
static long exchange(size_t size, enum what missing) {
  int own = 1;
  for (int thread = 2; thread <= workers; thread++)
    if (champions[thread].quality < champions[own].quality)
      own = thread;
  // A count that is too large has room.
  long quality[64] = {champions[own].quality}, least[64];
  bool size1 = has(SIZE_1, -1), size2 = has(SIZE_2, -1);
  MPI_Allreduce(quality, least, size1 ? 32 : 1, MPI_LONG,
                has(OP_1, -1) ? MPI_MAX : MPI_MIN, MPI_COMM_WORLD);
  int owner[64] = {quality[0] <= least[0] ? rank : ranks}, first[64];
  MPI_Allreduce(owner, first, size2 ? 32 : 1, MPI_INT,
                has(OP_2, -1) ? MPI_MAX : MPI_MIN, MPI_COMM_WORLD);
  int root = first[0] < ranks ? first[0] : 0;
  if (root == rank) {
    if (has(missing, -1)) {
      memcpy(&best, &champions[own], size);
    } else {
#pragma omp critical
      memcpy(&best, &champions[own], size);
    }
  }
  MPI_Bcast(&best, has(SIZE_BCAST, -1) ? (int)size / 2 : (int)size, MPI_BYTE, root,
            MPI_COMM_WORLD);
  return best.quality;
}

static void master(size_t size) {
  // No call in here: how often would differ from run to run.
  while (seeds && __atomic_load_n(&done, __ATOMIC_ACQUIRE) < workers)
    ;
  double improved = MPI_Wtime();
  long before = 1l << 40;
  for (int round = 0;; round++) {
    usleep(2000);
    long quality = exchange(size, MIS_CRIT_2);
    if (quality < before)
      improved = MPI_Wtime();
    before = quality;
    // All ranks must end in the same round: rank 0 says when.
    int over = still ? (MPI_Wtime() - improved) * 1000 > still : round + 1 >= rounds;
    MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (over)
      break;
  }
  go_on = false;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i + 1 < argc; i += 2) {
    const char *name = argv[i], *value = argv[i + 1];
    if (behind(name, "--bug"))
      bug = value;
    else if (behind(name, "--at"))
      read_place(value);
    else if (behind(name, "--workers"))
      workers = atoi(value);
    else if (behind(name, "--cities"))
      cities = atoi(value);
    else if (behind(name, "--rounds"))
      rounds = atoi(value);
    else if (behind(name, "--still"))
      still = atoi(value);
    else if (behind(name, "--seeds"))
      seeds = atoi(value);
  }
  read_bug();
  if (workers < 1 || workers >= MOST_THREADS || cities < 4 || cities > MOST_CITIES)
    MPI_Abort(MPI_COMM_WORLD, 2);

  int cpus = workers, gpus = 0, all_cpus = 0, all_gpus = 0;
  MPI_Reduce(&cpus, &all_cpus, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&gpus, &all_gpus, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  size_t size = CPU_Init();
  MPI_Barrier(MPI_COMM_WORLD);
#pragma omp parallel num_threads(workers + 1)
  {
    int thread = omp_get_thread_num();
    if (thread == 0)
      master(size);
    else
      worker(thread, size);
  }
  exchange(size, MIS_CRIT_3);
  if (rank == 0)
    CPU_Output(&best);
  MPI_Finalize();
  return 0;
}
