// A binary search tree: random inserts, then walks over all of it.
// usage: search_tree [KEYS] [WALKS]
//
// A right trace has deep, irregular recursion that repeats exactly in every walk.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct node { unsigned key; struct node *left, *right; };
static uint64_t state = 88172645463325252u;
static uint64_t total;

static inline unsigned draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)(state >> 33);
}

__attribute__((noinline)) static struct node *insert(struct node *at, unsigned key) {
    if (!at) {
        at = calloc(1, sizeof *at);
        at->key = key;
    } else if (key < at->key) {
        at->left = insert(at->left, key);
    } else {
        at->right = insert(at->right, key);
    }
    return at;
}

__attribute__((noinline)) static void visit(struct node *at) { total += at->key; }

__attribute__((noinline)) static void walk(struct node *at) {
    if (at->left) walk(at->left);
    visit(at);
    if (at->right) walk(at->right);
}

int main(int argc, char **argv) {
    int keys = argc > 1 ? atoi(argv[1]) : 10000, walks = argc > 2 ? atoi(argv[2]) : 60;
    struct node *root = NULL;
    for (int i = 0; i < keys; i++) root = insert(root, draw());
    for (int i = 0; i < walks; i++) walk(root);
    printf("%llu\n", (unsigned long long)total);
    return 0;
}
