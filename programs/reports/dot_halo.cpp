// After su2code/SU2 issue 1241: a dot product inside of a parallel region; the master thread reduces over the ranks only if
// the vector has a halo, and not every rank's has one.
//
// `bug`: the part of rank 3 has no halo, so its master thread skips the MPI_Allreduce of dot() and goes on to the MPI_Barrier of
// the time step; the others wait for it in MPI_Allreduce. The threads are innocent.
// build: -fopenmp

#include <mpi.h>
#include <cstdio>
#include <cstring>
#include <vector>

static int rank, size;

struct Vector {
    std::vector<double> values;
    int owned;
    int elements() const { return static_cast<int>(values.size()); }
};

struct Shared {
    double sum = 0;
};

// Called by all threads of a team.
static double dot(const Vector &a, const Vector &b, Shared &shared) {
#pragma omp barrier
#pragma omp master
    shared.sum = 0;
#pragma omp barrier
    double part = 0;
#pragma omp for nowait
    for (int i = 0; i < a.owned; i++) part += a.values[i] * b.values[i];
#pragma omp atomic
    shared.sum += part;
#pragma omp barrier
    if (a.elements() != a.owned) { // HERE
#pragma omp master
        {
            double mine = shared.sum;
            MPI_Allreduce(&mine, &shared.sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); // HERE
        }
    }
#pragma omp barrier
    return shared.sum;
}

static double smooth(Vector &x, int sweeps) {
    Shared shared;
    double norm = 0;
#pragma omp parallel num_threads(2)
    for (int sweep = 0; sweep < sweeps; sweep++) {
#pragma omp for
        for (int i = 0; i < x.owned; i++) x.values[i] *= 0.9;
        double square = dot(x, x, shared);
#pragma omp master
        norm = square;
    }
    return norm;
}

static Vector make_vector(bool has_halo) {
    int halo = has_halo ? 4 : 0;
    Vector vector{std::vector<double>(64 + halo, 1.0 + rank), 64};
    return vector;
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bool bug = argc > 1 && std::strcmp(argv[1], "bug") == 0;
    Vector fine = make_vector(true), coarse = make_vector(!(bug && rank == 3));
    double norm = 0;
    for (int step = 0; step < 5; step++) {
        norm = smooth(fine, 3);
        if (step >= 2) norm += smooth(coarse, 2);
        MPI_Barrier(MPI_COMM_WORLD); // HERE
    }
    if (rank == 0) std::printf("norm %g\n", norm);
    MPI_Finalize();
    return 0;
}
