// After dealii/dealii pull request 14356: a lock that all ranks hold together; its guard's destructor is collective, and runs
// while an exception unwinds the stack of one rank.
//
// `bug`: rank 2 throws in exchange(); on its way to the handler in main() the destructor of Scoped_lock goes into MPI_Barrier.
// The others wait for rank 2 in the MPI_Allreduce of exchange().

#include <mpi.h>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

class Collective_mutex {
public:
    explicit Collective_mutex(MPI_Comm communicator) : communicator(communicator) {}
    void lock() {
        if (is_used) MPI_Barrier(communicator);
        is_used = true;
    }
    void unlock() {
        MPI_Barrier(communicator); // HERE
    }

private:
    MPI_Comm communicator;
    bool is_used = false;
};

class Scoped_lock {
public:
    explicit Scoped_lock(Collective_mutex &mutex) : mutex(mutex) { mutex.lock(); }
    ~Scoped_lock() {
        mutex.unlock(); // HERE
    }

private:
    Collective_mutex &mutex;
};

struct Process {
    int rank, size;
    bool bug;
};

struct Particles {
    std::vector<double> positions;
    explicit Particles(int rank) {
        for (int i = 0; i < 20 + rank; i++) positions.push_back(0.1 * i + rank);
    }
    void move(const Process &process, int step) {
        for (double &position : positions) position += 0.05 * (step + 1);
        if (process.bug && process.rank == 2 && step == 4) positions[7] = 1e9;
    }
    void locate() const {
        for (double position : positions)
            if (position > 1e6) throw std::runtime_error("particle lost at " + std::to_string(position)); // HERE
    }
};

static long exchange(Collective_mutex &mutex, const Particles &particles) {
    Scoped_lock lock(mutex);
    long mine = static_cast<long>(particles.positions.size()), all = 0;
    particles.locate(); // HERE
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD); // HERE
    return all;
}

static int simulate(const Process &process) {
    Collective_mutex mutex(MPI_COMM_WORLD);
    Particles particles(process.rank);
    long all = 0;
    for (int step = 0; step < 8; step++) {
        particles.move(process, step);
        all = exchange(mutex, particles);
    }
    if (process.rank == 0) std::printf("%ld particles\n", all);
    return 0;
}

int main(int argc, char **argv) {
    Process process;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &process.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &process.size);
    process.bug = argc > 1 && std::strcmp(argv[1], "bug") == 0;
    try {
        simulate(process);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "rank %d: %s\n", process.rank, error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
