// After lammps/lammps pull request 4428: an error that one rank meets is told with the function for errors of all ranks.
//
// `bug`: rank 1 finds that a pair cannot be computed and calls Error::all(), which begins with MPI_Barrier; its neighbours
// wait for it in the MPI_Sendrecv of Comm::forward(). It should call Error::one().

#include <mpi.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

struct World {
    MPI_Comm comm;
    int me, np;
};

class Error {
public:
    explicit Error(const World &world) : world(world) {}
    [[noreturn]] void all(const char *text) {
        MPI_Barrier(world.comm); // HERE
        if (world.me == 0) std::fprintf(stderr, "ERROR: %s\n", text);
        MPI_Finalize();
        std::exit(1);
    }
    [[noreturn]] void one(const char *text) {
        std::fprintf(stderr, "ERROR on proc %d: %s\n", world.me, text);
        MPI_Abort(world.comm, 1);
        std::exit(1);
    }

private:
    const World &world;
};

class Comm {
public:
    explicit Comm(const World &world) : world(world) {}
    void forward(std::vector<double> &atoms) {
        int above = (world.me + 1) % world.np, below = (world.me + world.np - 1) % world.np;
        double ghosts[2];
        MPI_Sendrecv(&atoms.back(), 1, MPI_DOUBLE, above, 0, &ghosts[0], 1, MPI_DOUBLE, below, 0, world.comm, // HERE
                     MPI_STATUS_IGNORE);                                                                     // HERE
        MPI_Sendrecv(&atoms.front(), 1, MPI_DOUBLE, below, 1, &ghosts[1], 1, MPI_DOUBLE, above, 1, world.comm,
                     MPI_STATUS_IGNORE);
        atoms.front() += 1e-3 * ghosts[0];
        atoms.back() += 1e-3 * ghosts[1];
    }

private:
    const World &world;
};

class Pair {
public:
    Pair(const World &world, Error &error, bool bug) : world(world), error(error), bug(bug) {}
    double compute(std::vector<double> &atoms, int step) {
        int status = model_compute(atoms, step);
        if (status != 0) error.all("KIM compute returned error"); // HERE
        double energy = 0;
        for (double atom : atoms) energy += atom * atom;
        return energy;
    }

private:
    int model_compute(std::vector<double> &atoms, int step) const {
        for (double &atom : atoms) atom *= 0.999;
        return bug && world.me == 1 && step == 14 ? 1 : 0;
    }
    const World &world;
    Error &error;
    bool bug;
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    World world{MPI_COMM_WORLD, 0, 0};
    MPI_Comm_rank(world.comm, &world.me);
    MPI_Comm_size(world.comm, &world.np);
    bool bug = argc > 1 && std::strcmp(argv[1], "bug") == 0;
    Error error(world);
    Comm comm(world);
    Pair pair(world, error, bug);
    std::vector<double> atoms(100, 1.0 + world.me);
    for (int step = 0; step < 30; step++) {
        comm.forward(atoms);
        double mine = pair.compute(atoms, step), all = 0;
        if (step % 10 == 9) {
            MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, world.comm);
            if (world.me == 0) std::printf("step %d: %g\n", step, all);
        }
    }
    MPI_Finalize();
    return 0;
}
