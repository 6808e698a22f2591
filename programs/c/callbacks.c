// Functions called through pointers: from a table, and by a library (qsort, bsearch, atexit).
// A right trace shows add, subtract, multiply under main; by_value under qsort and bsearch (calls of
// the library), and goodbye after main has returned.
#include <stdio.h>
#include <stdlib.h>

int add(int a, int b) { return a + b; }
int subtract(int a, int b) { return a - b; }
int multiply(int a, int b) { return a * b; }
int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
void goodbye(void) { puts("goodbye"); }

int main(void) {
    int (*volatile operations[])(int, int) = {add, subtract, multiply};
    int numbers[] = {5, 3, 9, 1, 7, 2}, wanted = 7;
    atexit(goodbye);
    for (int i = 0; i < 3; i++) printf("%d\n", operations[i](6, 3));
    qsort(numbers, 6, sizeof(int), by_value);
    int *found = bsearch(&wanted, numbers, 6, sizeof(int), by_value);
    printf("%d at %d\n", *found, (int)(found - numbers));
    return 0;
}
