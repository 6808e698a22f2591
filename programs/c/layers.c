// A library whose functions are called by a program, by each other through the linkage table, and in a thread of its own;
// as a program's own main, too, where it is run by another.
// build: -pthread
#include <pthread.h>
#include <stdio.h>

__attribute__((noinline)) static int layer_inside(int x) {
    __asm__ volatile("");
    return 2 * x + 1;
}

__attribute__((noinline)) int layer(int x) {
    int y = layer_inside(x);
    printf("%d ", y);
    return y;
}

int layers(int x) {
    int y = layer(x) + layer(x + 1);
    puts("");
    return y;
}

static void *layer_thread(void *x) {
    layer(*(int *)x);
    return 0;
}

void layer_apart(int x) {
    pthread_t thread;
    pthread_create(&thread, 0, layer_thread, &x);
    pthread_join(thread, 0);
}

int main(void) {
    printf("= %d\n", layers(1));
    return 0;
}
