// Makes a function as it runs, and calls it: code that nobody can know in advance.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(void) {
    static const unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3}; // mov $42, %eax; ret
    void *memory = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 77;
    memcpy(memory, code, sizeof code);
    printf("%d\n", ((int (*)(void))memory)());
    return 0;
}
