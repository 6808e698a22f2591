// After Nek5000/parRSB pull request 44: a `break` out of an iteration on a norm that is not the same on all ranks.
//
// `bug`: rank 3 breaks out of lanczos() in iteration 6, before the reduction of the others' iteration 7, and goes to the
// MPI_Allgather of partition(). Rank 2 waits for it in MPI_Sendrecv, the others in the MPI_Allreduce of dot().
// build: -lm

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { N = 200, ITERATIONS = 12 };

static int rank, size, bug;

static double dot(const double *a, const double *b) {
    double mine = 0, all = 0;
    for (int i = 0; i < N; i++) mine += a[i] * b[i];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* HERE */
    return all;
}

static void apply_laplacian(const double *in, double *out) {
    double left = 0, right = 0;
    int below = rank > 0 ? rank - 1 : MPI_PROC_NULL, above = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Sendrecv(&in[0], 1, MPI_DOUBLE, below, 1, &right, 1, MPI_DOUBLE, above, 1, world, MPI_STATUS_IGNORE); /* HERE */
    MPI_Sendrecv(&in[N - 1], 1, MPI_DOUBLE, above, 2, &left, 1, MPI_DOUBLE, below, 2, world, MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++)
        out[i] = 2 * in[i] - (i ? in[i - 1] : left) - (i + 1 < N ? in[i + 1] : right);
}

static double local_norm(const double *v) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += v[i] * v[i];
    return sqrt(sum);
}

static int lanczos(double *v, double *w) {
    int iteration;
    for (iteration = 0; iteration < ITERATIONS; iteration++) {
        double alpha, norm;
        apply_laplacian(v, w);
        alpha = dot(v, w);
        for (int i = 0; i < N; i++) w[i] -= alpha * v[i];
        norm = sqrt(dot(w, w));
        double small = bug && rank == 3 && iteration == 6 ? 1e9 : 1e-12;
        if (local_norm(w) < small) break; /* HERE */
        for (int i = 0; i < N; i++) v[i] = w[i] / norm;
    }
    return iteration;
}

static int partition(const double *v) {
    double mine = v[0], all[64];
    int smaller = 0;
    MPI_Allgather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD); /* HERE */
    for (int other = 0; other < size; other++) smaller += all[other] < mine;
    return smaller;
}

int main(int argc, char **argv) {
    double v[N], w[N];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    for (int i = 0; i < N; i++) v[i] = 1.0 / (1 + rank * N + i);
    for (int level = 0; level < 2; level++) {
        int iterations = lanczos(v, w);
        int place = partition(v);
        if (rank == 0) printf("level %d: %d iterations, place %d\n", level, iterations, place);
    }
    MPI_Finalize();
    return 0;
}
