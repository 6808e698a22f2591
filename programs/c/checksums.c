// Checks its own code, as programs do that are afraid of being changed: in memory, and in its file.
// Where functions are recorded, memory has jumps where the file has none: the program notices, and nothing else
// happens. A right trace shows guarded 1000 times.
// build: -rdynamic
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) long guarded(long x) {
    long result = 0;
    for (long i = 0; i < 4; i++) result += x ^ i;
    __asm__ volatile("");
    return result;
}

static unsigned sum(const unsigned char *bytes, size_t size) {
    unsigned sum = 5381;
    for (size_t i = 0; i < size; i++) sum = sum * 33 + bytes[i];
    return sum;
}

// The program's first executable segment: where it is in memory, and in the file.
static int text(struct dl_phdr_info *info, size_t size, void *found) {
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X)) continue;
        unsigned char *memory = (unsigned char *)info->dlpi_addr + segment->p_vaddr;
        unsigned char *copy = malloc(segment->p_filesz);
        FILE *file = fopen("/proc/self/exe", "r");
        if (!file || fseek(file, (long)segment->p_offset, SEEK_SET) || fread(copy, 1, segment->p_filesz, file) != segment->p_filesz) abort();
        fclose(file);
        // Every byte can be read, and the file's are the file's.
        *(int *)found = sum(memory, segment->p_filesz) == sum(copy, segment->p_filesz);
        free(copy);
        return 1;
    }
    return 0;
}

int main(void) {
    int same = 0;
    long total = 0;
    for (long i = 0; i < 1000; i++) total += guarded(i);
    dl_iterate_phdr(text, &same);
    printf("%ld, code %s\n", total, same ? "as in the file" : "changed");
    return 0;
}
