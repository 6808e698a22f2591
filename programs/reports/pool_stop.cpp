// After bshoshany/thread-pool issue 93 and elf-audio/mzgl pull request 101: a pool is told to stop without the lock, between a
// worker's look at the condition and its sleep.
//
// `bug`: stop() sets the flag and notifies while the last worker has just seen that there is nothing to do: the notice is lost.
// The worker waits for ever in the condition variable, in next_task(); main waits for the worker in join(), in stop().
// build: -pthread

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

class Pool {
public:
    Pool(int threads, bool bug) : bug(bug) {
        for (int i = 0; i < threads; i++) workers.emplace_back([this, i] { work(i); });
    }

    void add(int task) {
        std::lock_guard<std::mutex> guard(mutex);
        tasks.push_back(task);
        changed.notify_one();
    }

    long stop() {
        if (bug) {
            while (!is_looking) std::this_thread::yield();
            stopped = true;
            changed.notify_all(); // HERE
        } else {
            std::lock_guard<std::mutex> guard(mutex);
            stopped = true;
            changed.notify_all();
        }
        for (std::thread &worker : workers) worker.join(); // HERE
        return sum;
    }

private:
    bool is_idle() {
        bool idle = tasks.empty() && !stopped;
        if (bug && idle && sum == 780) {
            // The window between the look and the sleep, made wide.
            is_looking = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        return idle;
    }

    int next_task() {
        std::unique_lock<std::mutex> guard(mutex);
        while (is_idle()) changed.wait(guard); // HERE
        if (tasks.empty()) return -1;
        int task = tasks.front();
        tasks.pop_front();
        return task;
    }

    void work(int) {
        for (int task = next_task(); task >= 0; task = next_task()) {
            std::lock_guard<std::mutex> guard(mutex);
            sum += task;
        }
    }

    bool bug;
    volatile bool stopped = false, is_looking = false;
    long sum = 0;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<int> tasks;
    std::vector<std::thread> workers;
};

int main(int argc, char **argv) {
    bool bug = argc > 1 && std::strcmp(argv[1], "bug") == 0;
    Pool pool(bug ? 1 : 3, bug);
    for (int task = 0; task < 40; task++) pool.add(task);
    std::printf("sum %ld\n", pool.stop());
    return 0;
}
