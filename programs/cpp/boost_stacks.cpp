// build: -lboost_context
// Fibers and coroutines of Boost.Context on stacks of three kinds, whose owners go before they have ended: Boost
// throws through their frames to have them unwound, and unmaps the stacks. Some throw by themselves, some are nested.
// A right recording: the same sums, and every destructor runs.
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <boost/coroutine2/all.hpp>
#include <cstdio>
#include <cstdlib>
#include <search.h>
#include <stdexcept>
#include <vector>

namespace context = boost::context;
using Numbers = boost::coroutines2::coroutine<int>;

static long sum;
static size_t one = 1;

struct Guard {
    int value;
    ~Guard() { sum += value; }
};

// Frames of a library lie among those of the program.
struct Producer {
    Numbers::push_type &out;
    int depth;
};
__attribute__((noinline)) static void produce(Producer &producer);
static int produce_deeper(const void *producer, const void *) {
    produce(*(Producer *)producer);
    return 0;
}
static void produce(Producer &producer) {
    Guard guard{producer.depth};
    if (producer.depth-- > 0) lfind(&producer, &producer, &one, 1, produce_deeper);
    producer.out(guard.value);
}

template <class Allocator> __attribute__((noinline)) static void coroutines(Allocator allocator, int count) {
    std::vector<Numbers::pull_type> all;
    for (int i = 0; i < count; i++)
        all.emplace_back(allocator, [i](Numbers::push_type &out) {
            Producer producer{out, i % 7};
            produce(producer);
            if (i % 3 == 0) throw std::runtime_error("enough");
        });
    for (int turn = 0; turn < 5; turn++)
        for (auto &numbers : all)
            try {
                if (numbers) sum += numbers.get(), numbers();
            } catch (std::runtime_error &) {
                sum += 1000;
            }
    // Every other one goes at once, from the middle on; the rest at the end.
    for (size_t i = all.size() / 2; i < all.size(); i++) all.erase(all.begin() + i);
}

static context::fiber hand_over(context::fiber &&from, int depth) {
    Guard guard{depth};
    if (depth == 0) return std::move(from).resume();
    return hand_over(std::move(from), depth - 1);
}
static void fibers(int count) {
    std::vector<context::fiber> all;
    for (int i = 0; i < count; i++) {
        context::protected_fixedsize_stack stack(64 * 1024);
        context::fiber fiber(std::allocator_arg, stack, [i](context::fiber &&from) {
            for (int turn = 0; turn < 3; turn++) {
                // A fiber within a fiber, left behind with it.
                context::fiber inner([](context::fiber &&outer) { return hand_over(std::move(outer), 2); });
                inner = std::move(inner).resume();
                from = hand_over(std::move(from), i % 5);
            }
            return std::move(from);
        });
        all.push_back(std::move(fiber).resume());
    }
    for (size_t i = 0; i < all.size(); i += 2) all[i] = std::move(all[i]).resume();
    all.clear();
    std::printf("%ld\n", sum);
}

int main() {
    for (int round = 0; round < 3; round++) {
        coroutines(boost::coroutines2::fixedsize_stack(32 * 1024), 60);
        std::printf("%ld\n", sum);
        coroutines(boost::coroutines2::protected_fixedsize_stack(32 * 1024), 60);
        std::printf("%ld\n", sum);
        fibers(60);
    }
    return 0;
}
