// After KratosMultiphysics/Kratos issue 8921: the first node of a model part is looked at, and a rank may have none.
//
// `bug`: the part is smaller, so that rank 3 has no node of it and dies of SIGSEGV in Distance_process::check_variables();
// the others come to the MPI_Allreduce of initialize().

#include <mpi.h>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

struct Node {
    int id;
    double distance, velocity;
    bool has_distance;
};

class Model_part {
public:
    Model_part(int nodes, int rank, int size) {
        for (int id = rank; id < nodes; id += size) all.push_back({id, 0.1 * id - 1, 0, true});
    }
    const Node *begin() const { return all.data(); }
    std::vector<Node> all;
};

class Distance_process {
public:
    explicit Distance_process(Model_part &part) : part(part) {}

    void initialize() {
        check_variables();
        double mine = -1e30, most = 0;
        for (const Node &node : part.all) mine = std::fmax(mine, std::fabs(node.distance));
        MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        scale = most;
    }

    void execute() {
        for (Node &node : part.all)
            if (std::fabs(node.distance) < 1e-3 * scale) node.distance = 1e-3 * scale;
    }

private:
    void check_variables() const {
        const Node &first = *part.begin();
        if (!first.has_distance) std::fprintf(stderr, "node %d has no distance\n", first.id); // HERE
    }
    Model_part &part;
    double scale = 0;
};

static double solve(Model_part &part, int step) {
    double mine = 0, all = 0;
    for (Node &node : part.all) {
        node.velocity += 0.1 * node.distance + step;
        mine += node.velocity;
    }
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bool bug = argc > 1 && std::strcmp(argv[1], "bug") == 0;
    Model_part whole(40, rank, size), inlet(bug ? size - 1 : 10, rank, size);
    double sum = 0;
    for (int step = 0; step < 3; step++) sum += solve(whole, step);
    Distance_process process(inlet);
    process.initialize();
    for (int step = 0; step < 5; step++) {
        process.execute();
        sum += solve(inlet, step);
    }
    if (rank == 0) std::printf("sum %g\n", sum);
    MPI_Finalize();
    return 0;
}
