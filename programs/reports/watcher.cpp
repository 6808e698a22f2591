// After SpartanJ/efsw pull request 151: a destructor takes a lock and joins, under it, the thread that needs the lock to end.
//
// `bug`: ~Watcher() holds the lock of the watches while it joins the thread of watch(), which waits for that lock: main waits in
// join(), the thread in std::mutex::lock() of handle_events(). Main should give the lock back before.
// build: -pthread

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>

class Watcher {
public:
    explicit Watcher(bool bug) : bug(bug), thread([this] { watch(); }) {}

    ~Watcher() {
        if (bug) {
            std::lock_guard<std::mutex> guard(mutex);
            is_stopping = true;
            await_event();
            thread.join(); // HERE
            watches.clear();
        } else {
            is_stopping = true;
            thread.join();
            std::lock_guard<std::mutex> guard(mutex);
            watches.clear();
        }
    }

    int add(const std::string &path) {
        std::lock_guard<std::mutex> guard(mutex);
        int id = static_cast<int>(watches.size()) + 1;
        watches[id] = path;
        return id;
    }

    long events() const { return count; }

private:
    // An event is under way in the thread when the destructor runs.
    void await_event() {
        while (!is_in_event) std::this_thread::yield();
    }

    void handle_events() {
        is_in_event = true;
        std::lock_guard<std::mutex> guard(mutex); // HERE
        for (const auto &[id, path] : watches) count += id + static_cast<long>(path.size());
        is_in_event = false;
    }

    void watch() {
        while (!is_stopping) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            handle_events(); // HERE
        }
    }

    bool bug;
    std::mutex mutex;
    std::map<int, std::string> watches;
    std::atomic<bool> is_stopping{false}, is_in_event{false};
    std::atomic<long> count{0};
    std::thread thread;
};

int main(int argc, char **argv) {
    bool bug = argc > 1 && std::strcmp(argv[1], "bug") == 0;
    {
        Watcher watcher(bug);
        for (const char *path : {"/etc", "/usr/share", "/var/log"}) watcher.add(path);
        while (watcher.events() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::printf("stopped\n");
    return 0;
}
