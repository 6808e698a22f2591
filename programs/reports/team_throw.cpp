// After h2oai/datatable pull request 2521: some threads of a team are at a barrier when another one throws and does not come.
//
// `bug`: thread 2 throws while it parses chunk 5, leaves the loop, and goes to the end of the region; the others wait for it at
// the barrier of parse(): they make one barrier more than thread 2.
// build: -fopenmp

#include <omp.h>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

enum { THREADS = 4, CHUNKS = 8 };

struct Chunk {
    std::string text;
    long sum = 0;
};

static std::vector<Chunk> make_chunks(bool bug) {
    std::vector<Chunk> chunks(THREADS * CHUNKS);
    for (int i = 0; i < THREADS * CHUNKS; i++)
        for (int field = 0; field < 50; field++) chunks[i].text += std::to_string(i * field) + ",";
    if (bug) chunks[5 * THREADS + 2].text += "N/A,";
    return chunks;
}

static void parse_chunk(Chunk &chunk) {
    size_t begin = 0;
    while (begin < chunk.text.size()) {
        size_t end = chunk.text.find(',', begin);
        std::string field = chunk.text.substr(begin, end - begin);
        if (field.find_first_not_of("0123456789") != std::string::npos) throw std::invalid_argument(field); // HERE
        chunk.sum += std::stol(field);
        begin = end + 1;
    }
}

static std::string parse(std::vector<Chunk> &chunks) {
    std::string error;
#pragma omp parallel num_threads(THREADS)
    {
        int thread = omp_get_thread_num();
        try {
            for (int round = 0; round < CHUNKS; round++) {
                parse_chunk(chunks[round * THREADS + thread]); // HERE
#pragma omp barrier // HERE
            }
        } catch (const std::exception &thrown) { // HERE
#pragma omp critical
            error = thrown.what();
        }
    } // HERE
    return error;
}

int main(int argc, char **argv) {
    bool bug = argc > 1 && std::strcmp(argv[1], "bug") == 0;
    std::vector<Chunk> chunks = make_chunks(bug);
    std::string error = parse(chunks);
    if (!error.empty()) {
        std::fprintf(stderr, "cannot parse %s\n", error.c_str());
        return 1;
    }
    long sum = 0;
    for (const Chunk &chunk : chunks) sum += chunk.sum;
    std::printf("sum %ld\n", sum);
    return 0;
}
