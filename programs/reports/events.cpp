// After precice/precice issue 1635: a registry of timed events is a static object, and an event that still runs then is
// stopped with a barrier by the destructor, behind MPI_Finalize.
//
// `bug`: all ranks leave an event running: each dies of the MPI_Barrier of Event::stop(), called after MPI_Finalize from the
// destructor of the registry.

#include <mpi.h>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

class Event {
public:
    void start() {
        begin = MPI_Wtime();
        is_running = true;
    }
    void stop(bool with_barrier) {
        if (!is_running) return;
        if (with_barrier) MPI_Barrier(MPI_COMM_WORLD); // HERE
        seconds += MPI_Wtime() - begin;
        is_running = false;
        count++;
    }
    ~Event() {
        stop(true); // HERE
    }
    double seconds = 0;
    int count = 0;

private:
    double begin = 0;
    bool is_running = false;
};

class Registry {
public:
    static Registry &instance() {
        static Registry registry;
        return registry;
    }
    Event &event(const std::string &name) { return events[name]; }
    void print() const {
        for (const auto &[name, event] : events) std::printf("%s: %d times\n", name.c_str(), event.count);
    }

private:
    std::map<std::string, Event> events;
};

static double advance(int rank, int step) {
    Event &event = Registry::instance().event("advance");
    event.start();
    double mine = rank + step, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    event.stop(false);
    return all;
}

int main(int argc, char **argv) {
    int rank;
    bool bug = argc > 1 && std::strcmp(argv[1], "bug") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Event &global = Registry::instance().event("global");
    global.start();
    double sum = 0;
    for (int step = 0; step < 10; step++) sum += advance(rank, step);
    if (!bug) global.stop(true);
    if (rank == 0) {
        std::printf("sum %g\n", sum);
        Registry::instance().print();
    }
    MPI_Finalize();
    return 0;
}
