// fork: parent and child go on from the same stack, each on its own; the child forks again.
// A right trace shows three processes. The child's begins with the inherited open calls (main,
// generation, fork), returns from fork, calls work, generation(2)...; the parent's has no event of the
// child. Each prints once, in the order grandchild, child, parent.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) int work(int n) { return n * n + 1; }
__attribute__((noinline)) int generation(int depth) {
    if (depth == 3) return 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int below = generation(depth + 1);
        printf("generation %d: %d\n", depth, work(depth) + below);
        fflush(stdout);
        _exit(depth);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

int main(void) {
    int status = generation(1);
    printf("parent: %d\n", work(10) + status);
    return 0;
}
