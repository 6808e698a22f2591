// A collector looks up each return address on the stack in a table of the compiler's, as that of OCaml's native programs
// does: it must find those of the program. Called back by a library function, whose return address is on the stack.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// By this name such programs are known.
void caml_init_frame_descriptors(void) { puts("table"); }

static uintptr_t *base, from, to;
static int found;

static int collect(const void *a, const void *b) {
  for (uintptr_t *word = __builtin_frame_address(0); word < base; word++)
    found += *word > from && *word < to;
  return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void work(void) {
  int numbers[] = {2, 1};
  base = __builtin_frame_address(0);
  from = (uintptr_t)work;
  to = from + 512;
  qsort(numbers, 2, sizeof *numbers, collect);
  printf("%d %s\n", numbers[0], found ? "found" : "lost");
}

int main(void) {
  caml_init_frame_descriptors();
  work();
  work();
  return found ? 0 : 1;
}
