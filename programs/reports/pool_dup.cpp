// After eth-cscs/DLA-Future pull request 423: one thread works through a queue of tasks, and the next algorithm begins with
// the blocking MPI_Comm_dup while sends of the last one are still behind it in the queue.
//
// `bug`: the queue of rank 1 has the start of the next algorithm before the send of the panel: its thread waits in the
// MPI_Comm_dup of start_algorithm(); rank 0 waits for the panel in the MPI_Recv of receive_panel(), rank 2 in MPI_Comm_dup.
// build: -pthread

#include <mpi.h>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

class Pool {
public:
    Pool() : worker([this] { run(); }) {}
    ~Pool() {
        submit(nullptr);
        worker.join();
    }
    void submit(std::function<void()> task) {
        std::lock_guard<std::mutex> guard(mutex);
        tasks.push_back(std::move(task));
        changed.notify_one();
    }
    void submit_both(std::function<void()> first, std::function<void()> second) {
        std::lock_guard<std::mutex> guard(mutex);
        tasks.push_back(std::move(first));
        tasks.push_back(std::move(second));
        changed.notify_one();
    }

private:
    void run() {
        for (;;) {
            std::unique_lock<std::mutex> guard(mutex);
            changed.wait(guard, [this] { return !tasks.empty(); });
            std::function<void()> task = std::move(tasks.front());
            tasks.pop_front();
            guard.unlock();
            if (!task) return;
            task();
        }
    }
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> tasks;
    std::thread worker;
};

static int rank, size;
static std::vector<double> panel(200000, 1.0);
static MPI_Comm next = MPI_COMM_NULL;

static void send_panel() {
    for (double &value : panel) value = value * 0.5 + rank;
    MPI_Send(panel.data(), static_cast<int>(panel.size()), MPI_DOUBLE, 0, 5, MPI_COMM_WORLD);
}

static void receive_panel() {
    for (int from = 1; from < size; from++)
        MPI_Recv(panel.data(), static_cast<int>(panel.size()), MPI_DOUBLE, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void start_algorithm() {
    if (next != MPI_COMM_NULL) MPI_Comm_free(&next);
    MPI_Comm_dup(MPI_COMM_WORLD, &next); // HERE
}

static void factorize(Pool &pool, bool is_swapped) {
    if (rank == 0)
        pool.submit_both(receive_panel, start_algorithm);
    else if (is_swapped)
        pool.submit_both(start_algorithm, send_panel);
    else
        pool.submit_both(send_panel, start_algorithm);
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bool bug = argc > 1 && std::strcmp(argv[1], "bug") == 0;
    {
        Pool pool;
        for (int matrix = 0; matrix < 4; matrix++) factorize(pool, bug && rank == 1 && matrix == 2);
    }
    int result = MPI_UNEQUAL;
    MPI_Comm_compare(MPI_COMM_WORLD, next, &result);
    if (rank == 0) std::printf("panel %g, %s\n", panel[0], result == MPI_CONGRUENT ? "congruent" : "not congruent");
    MPI_Comm_free(&next);
    MPI_Finalize();
    return 0;
}
