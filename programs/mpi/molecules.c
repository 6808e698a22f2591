// Molecular dynamics on a line of cells: ghosts from both neighbours in each step, atoms that wander to the next rank,
// neighbour lists made anew only when an atom has moved far, so that loops over atoms and neighbours differ from step
// to step and from rank to rank.
//
//   molecules [STEPS]
//
// A right trace has STEPS calls of integrate in every rank.

#include <mpi.h>
#include <stdlib.h>

enum { MOST = 400, PER_RANK = 60, NEIGHBOURS = 8 };

typedef struct {
    double x, v, f, listed_at;
} Atom;

static int rank, size, count, ghosts;
static Atom atoms[MOST];
static double ghost[2 * MOST];
static int neighbours[MOST][NEIGHBOURS], found[MOST];
static unsigned state;

static double random_number(void) {
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) / (1 << 24);
}

__attribute__((noinline)) static int swap(double *out, int many, int to, int from, double *in) {
    int more = 0;
    MPI_Status status;
    MPI_Sendrecv(&many, 1, MPI_INT, to, 1, &more, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &status);
    MPI_Request request;
    if (more) MPI_Irecv(in, more, MPI_DOUBLE, from, 2, MPI_COMM_WORLD, &request);
    if (many) MPI_Send(out, many, MPI_DOUBLE, to, 2, MPI_COMM_WORLD);
    if (more) MPI_Wait(&request, &status);
    return more;
}

__attribute__((noinline)) static int pack(double *out, int up) {
    int many = 0;
    for (int i = 0; i < count; i++)
        if (up ? atoms[i].x > rank + 0.9 : atoms[i].x < rank + 0.1) out[many++] = atoms[i].x;
    return many;
}

__attribute__((noinline)) static void borders(void) {
    double out[MOST];
    int right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    ghosts = swap(out, pack(out, 1), right, left, ghost);
    ghosts += swap(out, pack(out, 0), left, right, ghost + ghosts);
}

__attribute__((noinline)) static void unpack(const double *in, int many) {
    for (int i = 0; i < many && count < MOST; i += 2) atoms[count++] = (Atom){in[i], in[i + 1], 0, in[i]};
}

__attribute__((noinline)) static void migrate(int up) {
    double out[2 * MOST], in[2 * MOST];
    int to = up ? rank + 1 : rank - 1, from = up ? rank - 1 : rank + 1, many = 0;
    for (int i = 0; i < count;) {
        if (up ? atoms[i].x <= rank + 1 || to >= size : atoms[i].x >= rank || to < 0) {
            i++;
            continue;
        }
        out[many++] = atoms[i].x;
        out[many++] = atoms[i].v;
        atoms[i] = atoms[--count];
    }
    if (to < 0 || to >= size) to = MPI_PROC_NULL;
    if (from < 0 || from >= size) from = MPI_PROC_NULL;
    unpack(in, swap(out, many, to, from, in));
}

__attribute__((noinline)) static void build_one(int i) {
    found[i] = 0;
    for (int j = 0; j < count && found[i] < NEIGHBOURS; j++) {
        double apart = atoms[i].x - atoms[j].x;
        if (i != j && apart * apart < 0.0025) neighbours[i][found[i]++] = j;
    }
    atoms[i].listed_at = atoms[i].x;
}

__attribute__((noinline)) static int must_rebuild(void) {
    int own = 0, any;
    for (int i = 0; i < count; i++) {
        double moved = atoms[i].x - atoms[i].listed_at;
        own |= moved * moved > 0.0004;
    }
    MPI_Allreduce(&own, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    return any;
}

__attribute__((noinline)) static double pair(double apart) {
    double square = apart * apart + 1e-3;
    return apart * (1e-6 / (square * square) - 1e-3 / square);
}

__attribute__((noinline)) static void force(void) {
    for (int i = 0; i < count; i++) {
        atoms[i].f = 0;
        for (int k = 0; k < found[i]; k++) atoms[i].f += pair(atoms[i].x - atoms[neighbours[i][k]].x);
        for (int k = 0; k < ghosts; k++) atoms[i].f += 1e-9 * (atoms[i].x - ghost[k]);
    }
}

__attribute__((noinline)) static void integrate(void) {
    for (int i = 0; i < count; i++) {
        atoms[i].v += 1e-3 * atoms[i].f;
        atoms[i].x += 0.05 * atoms[i].v;
        if (atoms[i].x < 0 || atoms[i].x > size) atoms[i].v = -atoms[i].v;
    }
}

__attribute__((noinline)) static void thermostat(void) {
    double own = 0, all;
    for (int i = 0; i < count; i++) own += atoms[i].v * atoms[i].v;
    MPI_Reduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    double scale = rank == 0 && all > 10 ? 0.9 : 1;
    MPI_Bcast(&scale, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) atoms[i].v *= scale;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int steps = argc > 1 ? atoi(argv[1]) : 60;
    state = 17u * (unsigned)rank + 5;
    for (count = 0; count < PER_RANK; count++) {
        double x = rank + random_number();
        atoms[count] = (Atom){x, random_number() - 0.5, 0, x};
    }
    for (int i = 0; i < count; i++) build_one(i);
    for (int step = 0; step < steps; step++) {
        integrate();
        if (must_rebuild()) {
            migrate(1);
            migrate(0);
            borders();
            for (int i = 0; i < count; i++) build_one(i);
        } else {
            borders();
        }
        force();
        if (step % 10 == 0) thermostat();
    }
    MPI_Finalize();
    return 0;
}
