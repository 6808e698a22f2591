// Alternating directions in the manner of BT: systems along x are solved in each rank, those along y are cut by the
// ranks, so that elimination goes up through them and substitution comes back down, a block of columns at a time.
//
//   adi [STEPS]
//
// A right trace has STEPS calls of add in every rank.

#include <mpi.h>
#include <stdlib.h>

enum { ROWS = 6, COLUMNS = 64, BLOCKS = 4, BLOCK = COLUMNS / BLOCKS };

static int rank, size;
static double u[ROWS][COLUMNS], rhs[ROWS][COLUMNS];

__attribute__((noinline)) static void copy_faces(void) {
    double in[COLUMNS];
    MPI_Request requests[4];
    int count = 0;
    if (rank > 0) {
        MPI_Irecv(in, COLUMNS, MPI_DOUBLE, rank - 1, 10, MPI_COMM_WORLD, &requests[count++]);
        MPI_Isend(u[0], COLUMNS, MPI_DOUBLE, rank - 1, 11, MPI_COMM_WORLD, &requests[count++]);
    }
    double above[COLUMNS];
    if (rank < size - 1) {
        MPI_Irecv(above, COLUMNS, MPI_DOUBLE, rank + 1, 11, MPI_COMM_WORLD, &requests[count++]);
        MPI_Isend(u[ROWS - 1], COLUMNS, MPI_DOUBLE, rank + 1, 10, MPI_COMM_WORLD, &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

__attribute__((noinline)) static void compute_rhs(int row) {
    for (int i = 1; i < COLUMNS - 1; i++) rhs[row][i] = u[row][i - 1] - 2 * u[row][i] + u[row][i + 1];
}

__attribute__((noinline)) static double binvcrhs(double pivot, double value) {
    for (int i = 0; i < 5; i++) pivot = 0.5 * (pivot + 1);
    return value / pivot;
}

__attribute__((noinline)) static void solve_row(int row) {
    for (int i = 1; i < COLUMNS; i += 8) rhs[row][i] = binvcrhs(2, rhs[row][i] + 0.1 * rhs[row][i - 1]);
}

__attribute__((noinline)) static void solve_block(int block, double *edge) {
    for (int i = 0; i < BLOCK; i++) {
        double *it = &rhs[ROWS - 1][block * BLOCK + i];
        *it = edge[i] = binvcrhs(2, *it + 0.1 * edge[i]);
    }
}

__attribute__((noinline)) static void back_substitute(int block, double *edge) {
    for (int i = 0; i < BLOCK; i++) edge[i] = rhs[0][block * BLOCK + i] -= 0.05 * edge[i];
}

__attribute__((noinline)) static void receive_info(int from, int tag, double *edge) {
    MPI_Recv(edge, BLOCK, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void send_info(int to, int tag, double *edge) {
    MPI_Send(edge, BLOCK, MPI_DOUBLE, to, tag, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void x_solve(void) {
    for (int row = 0; row < ROWS; row++) solve_row(row);
}

__attribute__((noinline)) static void y_solve(void) {
    double edge[BLOCK] = {0};
    for (int block = 0; block < BLOCKS; block++) {
        if (rank > 0) receive_info(rank - 1, 20 + block, edge);
        solve_block(block, edge);
        if (rank < size - 1) send_info(rank + 1, 20 + block, edge);
    }
    for (int block = BLOCKS - 1; block >= 0; block--) {
        if (rank < size - 1) receive_info(rank + 1, 30 + block, edge);
        back_substitute(block, edge);
        if (rank > 0) send_info(rank - 1, 30 + block, edge);
    }
}

__attribute__((noinline)) static void add(void) {
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < COLUMNS; i++) u[row][i] += 1e-3 * rhs[row][i];
}

__attribute__((noinline)) static double norm(void) {
    double own = u[0][1] * u[0][1], all;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int steps = argc > 1 ? atoi(argv[1]) : 40;
    double last = 0;
    MPI_Bcast(&steps, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++) {
        copy_faces();
        for (int row = 0; row < ROWS; row++) compute_rhs(row);
        x_solve();
        y_solve();
        add();
        if (step % 10 == 9) last = norm();
    }
    double all;
    MPI_Reduce(&last, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
