// Calls the functions of `layers.c`: two of its calls of `layer` are its own, two are the library's, and one is made by a
// thread of the library.
#include <stdio.h>

int layer(int x);
int layers(int x);
void layer_apart(int x);

int main(void) {
    int sum = layer(0) + layer(1);
    sum += layers(10);
    layer_apart(3);
    printf("= %d\n", sum);
    return 0;
}
