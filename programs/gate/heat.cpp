// A rod that cools, step by step, on a team of threads. The gate's campaign changes it and builds it again
// (crates/testkit/src/gate.rs has the changes as edits of these lines).
//
// build: -fopenmp
#include <cstddef>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

struct Rod {
    std::vector<double> now, next;
};

struct Term {
    virtual ~Term() = default;
    virtual void add(Rod &rod, std::size_t at) const = 0;
};

struct Spread : Term {
    void add(Rod &rod, std::size_t at) const override;
};

struct Loss : Term {
    void add(Rod &rod, std::size_t at) const override;
};

void Spread::add(Rod &rod, std::size_t at) const {
    const std::size_t last = rod.now.size() - 1;
    const double left = rod.now[at > 0 ? at - 1 : 0], right = rod.now[at < last ? at + 1 : last];
    rod.next[at] = 0.5 * rod.now[at] + 0.25 * (left + right);
}

void Loss::add(Rod &rod, std::size_t at) const {
    rod.next[at] -= 0.001 * rod.now[at];
}

void fill(Rod &rod, std::size_t cells) {
    rod.now.assign(cells, 1.0);
    rod.next.assign(cells, 0.0);
    rod.now[cells / 2] = 20.0;
}

void apply(Rod &rod, const Term &term) {
#pragma omp parallel for schedule(static)
    for (std::size_t at = 0; at < rod.now.size(); at++)
        term.add(rod, at);
}

void bound(Rod &rod) {
    rod.next.front() = rod.next.back() = 1.0;
}

void turn(Rod &rod) {
    std::swap(rod.now, rod.next);
}

double heat(const Rod &rod) {
    double total = 0;
#pragma omp parallel for reduction(+ : total) schedule(dynamic, 16)
    for (std::size_t at = 0; at < rod.now.size(); at++)
        total += rod.now[at];
    return total;
}

void report(int step, double total) {
    std::printf("%d %.6g\n", step, total);
}

void settle(Rod &rod) {
    for (double &cell : rod.now)
        if (cell < 0)
            cell = 0;
}

int main() {
    Rod rod;
    fill(rod, 64);
    std::vector<std::unique_ptr<Term>> terms;
    terms.emplace_back(new Spread);
    terms.emplace_back(new Loss);
    for (int step = 0; step < 20; step++) {
        for (const auto &term : terms)
            apply(rod, *term);
        bound(rod);
        turn(rod);
        if (step % 4 == 0)
            report(step, heat(rod));
    }
    settle(rod);
    report(20, heat(rod));
}
