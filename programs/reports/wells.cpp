// After OPM/opm-common pull request 4849: wells that several ranks share are tested in the order of an unordered container.
//
// `bug`: the table of rank 2 was filled in another order, so that rank 2 tests the injector first. It waits in the
// MPI_Allreduce of the injector's communicator, the others in that of the producer's: a deadlock that rank 2's order makes.

#include <mpi.h>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

struct Well {
    std::string name;
    MPI_Comm communicator;
    double pressure;

    double sum(double value) const {
        double all = 0;
        MPI_Allreduce(&value, &all, 1, MPI_DOUBLE, MPI_SUM, communicator); // HERE
        return all;
    }
};

class Well_model {
public:
    Well_model(int rank, bool bug) : rank(rank), bug(bug) {
        for (const char *name : {"PROD-1", "INJ-1", "PROD-2"}) {
            Well well{name, MPI_COMM_NULL, 100.0 + rank};
            // PROD-2 lies within ranks 0 and 1.
            int color = well.name == "PROD-2" && rank > 1 ? MPI_UNDEFINED : 0;
            MPI_Comm_split(MPI_COMM_WORLD, color, rank, &well.communicator);
            if (well.communicator != MPI_COMM_NULL) wells.push_back(well);
        }
    }
    ~Well_model() {
        for (Well &well : wells) MPI_Comm_free(&well.communicator);
    }

    // The wells that were closed by their limits, as the table of tests gives them.
    std::vector<const Well *> closed_wells(int report) const {
        std::vector<const Well *> closed;
        for (const Well &well : wells)
            if (well.name != "PROD-2" || report % 2 == 0) closed.push_back(&well);
        if (bug && rank == 2 && report == 3) std::swap(closed[0], closed[1]); // HERE
        return closed;
    }

    int test_wells(int report) const {
        int opened = 0;
        for (const Well *well : closed_wells(report)) {
            double rate = well->sum(0.1 * rank + report); // HERE
            if (rate > 0.5) opened++;
        }
        return opened;
    }

    double newton(int report) const {
        double residual = 1;
        for (int iteration = 0; iteration < 4 && residual > 1e-3; iteration++) {
            double mine = residual * (0.1 + 0.01 * rank) / (report + 1);
            MPI_Allreduce(&mine, &residual, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        }
        return residual;
    }

private:
    int rank;
    bool bug;
    std::vector<Well> wells;
};

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    bool bug = argc > 1 && std::strcmp(argv[1], "bug") == 0;
    {
        Well_model model(rank, bug);
        for (int report = 0; report < 6; report++) {
            int opened = model.test_wells(report);
            double residual = model.newton(report);
            if (rank == 0) std::printf("report %d: %d wells, residual %g\n", report, opened, residual);
        }
    }
    MPI_Finalize();
    return 0;
}
