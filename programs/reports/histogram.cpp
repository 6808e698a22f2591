// After dmlc/rabit issue 19: threads find out for which features a histogram has to be summed, in a vector<bool>, whose
// elements share words; a rank that loses one sums less often than the others.
//
// `bug`: rank 1 has lost feature 5 in tree 2 and makes one MPI_Allreduce less in sum_histograms(). All reductions are alike, so
// nothing is noticed until rank 1 comes to the MPI_Bcast of choose_split() while the others are in their last MPI_Allreduce.
// build: -fopenmp

#include <mpi.h>
#include <cstdio>
#include <cstring>
#include <vector>

enum { FEATURES = 8, BINS = 16 };

static int rank, size;
static bool bug;

struct Histogram {
    double bins[BINS];
};

static bool is_feature_ok(int feature, int tree) { return (feature + tree) % 3 != 0; }

static std::vector<bool> fill_histograms(std::vector<Histogram> &histograms, int tree) {
    std::vector<char> needed(FEATURES);
#pragma omp parallel for num_threads(2)
    for (int feature = 0; feature < FEATURES; feature++) {
        for (int bin = 0; bin < BINS; bin++) histograms[feature].bins[bin] = rank + 0.1 * bin + feature;
        needed[feature] = is_feature_ok(feature, tree);
    }
    std::vector<bool> flags(needed.begin(), needed.end());
    // What the race on a word does, made certain.
    if (bug && rank == 1 && tree == 2) flags[5] = false; // HERE
    return flags;
}

static void sum_histograms(std::vector<Histogram> &histograms, const std::vector<bool> &needed) {
    for (int feature = 0; feature < FEATURES; feature++) {
        if (!needed[feature]) continue; // HERE
        Histogram summed;
        MPI_Allreduce(histograms[feature].bins, summed.bins, BINS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); // HERE
        histograms[feature] = summed;
    }
}

static int choose_split(const std::vector<Histogram> &histograms) {
    int best = 0;
    if (rank == 0)
        for (int feature = 1; feature < FEATURES; feature++)
            if (histograms[feature].bins[3] > histograms[best].bins[3]) best = feature;
    MPI_Bcast(&best, 1, MPI_INT, 0, MPI_COMM_WORLD); // HERE
    return best;
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bug = argc > 1 && std::strcmp(argv[1], "bug") == 0;
    std::vector<Histogram> histograms(FEATURES);
    int sum = 0;
    for (int tree = 0; tree < 5; tree++) {
        std::vector<bool> needed = fill_histograms(histograms, tree);
        sum_histograms(histograms, needed);
        sum += choose_split(histograms);
    }
    if (rank == 0) std::printf("splits %d\n", sum);
    MPI_Finalize();
    return 0;
}
