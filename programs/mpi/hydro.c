// A small hydrodynamics code: ranks in a ring, each step the smallest time step of all,
// then a leap-frog step (forces from the neighbours, then the elements), then the constraints on the next step.
//
//   hydro [STEPS]             no bug
//   hydro STEPS skip RANK     in the middle, RANK leaves the leap-frog step out: it is ahead, and its neighbours wait
//
// A right trace has STEPS calls of leap_frog in every rank, but for RANK, which has one less.

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 400 };

static int rank, size;
static double field[CELLS], force[CELLS], step_size = 1e-3;

__attribute__((noinline)) static void exchange(double *values, int tag) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request requests[4];
    double in[2], out[2] = {values[0], values[CELLS - 1]};
    MPI_Irecv(&in[0], 1, MPI_DOUBLE, left, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_DOUBLE, right, tag + 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&out[1], 1, MPI_DOUBLE, right, tag, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&out[0], 1, MPI_DOUBLE, left, tag + 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    values[0] += in[0] * 1e-6;
    values[CELLS - 1] += in[1] * 1e-6;
}

__attribute__((noinline)) static void stress(void) {
    for (int i = 1; i < CELLS - 1; i++) force[i] = field[i - 1] - 2 * field[i] + field[i + 1];
}

__attribute__((noinline)) static void hourglass(void) {
    for (int i = 2; i < CELLS - 2; i++) force[i] -= 0.01 * (field[i - 2] + field[i + 2]);
}

__attribute__((noinline)) static void nodal(void) {
    stress();
    hourglass();
    exchange(force, 10);
}

__attribute__((noinline)) static void equation_of_state(int region) {
    for (int i = region; i < CELLS; i += 4) field[i] += step_size * force[i] / (region + 1);
}

__attribute__((noinline)) static void elements(void) {
    exchange(field, 20);
    for (int region = 0; region < 4; region++) equation_of_state(region);
}

__attribute__((noinline)) static void leap_frog(void) {
    nodal();
    elements();
}

__attribute__((noinline)) static double constraints(void) {
    double most = 0;
    for (int i = 0; i < CELLS; i++)
        if (force[i] > most) most = force[i];
    return 1e-3 / (1 + most);
}

__attribute__((noinline)) static void reduce_step(double own) {
    MPI_Allreduce(&own, &step_size, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int steps = argc > 1 ? atoi(argv[1]) : 40;
    int skips = argc > 3 && strcmp(argv[2], "skip") == 0 && rank == atoi(argv[3]);
    double next = step_size;
    for (int i = 0; i < CELLS; i++) field[i] = i % 7 + rank;
    for (int step = 0; step < steps; step++) {
        if (step > 0) reduce_step(next);
        if (!(skips && step == steps / 2)) leap_frog();
        next = constraints();
    }
    MPI_Finalize();
    return 0;
}
