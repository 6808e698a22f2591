// After OPM/ResInsight issue 14596: a function with an orphaned `omp for` is called by one thread of a team only.
//
// `bug`: thread 0 alone converts the image, and the `omp for` of to_texture() ends with a barrier of the whole team; the others
// have come to the end of the parallel region. Thread 0 makes one barrier more than they do and waits for ever.
// build: -fopenmp

#include <omp.h>
#include <cstdio>
#include <cstring>
#include <vector>

enum { WIDTH = 64, HEIGHT = 64, THREADS = 4 };

struct Image {
    std::vector<unsigned char> pixels = std::vector<unsigned char>(WIDTH * HEIGHT * 3);
    std::vector<unsigned char> texture = std::vector<unsigned char>(WIDTH * HEIGHT * 4);
};

static void to_texture(Image &image) { // HERE
#pragma omp for // HERE
    for (int y = 0; y < HEIGHT; y++) // HERE
        for (int x = 0; x < WIDTH; x++) {
            for (int channel = 0; channel < 3; channel++)
                image.texture[(y * WIDTH + x) * 4 + channel] = image.pixels[(y * WIDTH + x) * 3 + channel];
            image.texture[(y * WIDTH + x) * 4 + 3] = 255;
        }
} // HERE

static void trace_rays(Image &image, int frame, int thread) {
    for (int y = thread; y < HEIGHT; y += THREADS)
        for (int x = 0; x < WIDTH; x++)
            for (int channel = 0; channel < 3; channel++)
                image.pixels[(y * WIDTH + x) * 3 + channel] = static_cast<unsigned char>(x * y + frame * channel);
}

static long paint(Image &image, int frame, bool is_overlaid) {
    long sum = 0;
#pragma omp parallel num_threads(THREADS)
    {
        int thread = omp_get_thread_num();
        trace_rays(image, frame, thread);
#pragma omp barrier
        if (is_overlaid) {
            if (thread == 0) to_texture(image); // HERE
        } else {
            to_texture(image);
        }
    }
    for (unsigned char value : image.texture) sum += value;
    return sum;
}

int main(int argc, char **argv) {
    bool bug = argc > 1 && std::strcmp(argv[1], "bug") == 0;
    Image image;
    long sum = 0;
    for (int frame = 0; frame < 10; frame++) {
        sum += paint(image, frame, bug && frame == 6);
        if (frame % 3 == 0) std::printf("frame %d\n", frame);
    }
    std::printf("sum %ld\n", sum);
    return 0;
}
