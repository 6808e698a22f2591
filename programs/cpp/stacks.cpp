// build: -pthread
// stacks SEED COUNT [ALLOWED]: lives of stacks, drawn at random. Each sequence maps stacks side by side, switches to them by
// instructions of its own or by swapcontext, and leaves them: by return, exception, longjmp, out of a signal handler
// on an alternate stack, or for good. Their memory is unmapped, kept from being read, wiped, or used by another stack.
// With 1 as the last word it forbids itself process_vm_readv and process_vm_writev, with 0 openat too.
// A right recording: the same sums, and no read of memory that is gone.
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cerrno>
#include <cstddef>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <search.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

extern "C" void change_stack(void **keep, void *go);
asm(".text\n.globl change_stack\n.type change_stack,@function\nchange_stack:\n.cfi_startproc\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
    ".cfi_endproc\n.size change_stack,.-change_stack\n");

enum { PLACES = 10, PLACE = 64 * 1024, PAGE = 4096, STEPS = 24 };
enum Order { GO_ON, THROW, JUMP, NEST };

struct Fiber {
    char *memory;
    size_t size;
    void *kept, *back_kept;
    ucontext_t context, back;
    sigjmp_buf base;
    Fiber *caller;
    Order order;
    int depth, left, rounds;
    bool lives, by_library;
};

// Where no kernel puts anything by itself: nobody else's memory comes to lie in a hole.
static char *const block = (char *)0x200000000000;
static Fiber fibers[PLACES];
static Fiber *current;
static uint64_t state, sum;
static size_t one = 1;
static sigjmp_buf out_of_handler;
static int handler_does;

static uint64_t draw(uint64_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 11) % below;
}
__attribute__((noinline)) static void mix(uint64_t value) {
    sum = (sum ^ value) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
}

__attribute__((noinline)) static void resume(Fiber *fiber, Order order) {
    fiber->caller = current, fiber->order = order, current = fiber;
    if (fiber->by_library) swapcontext(&fiber->back, &fiber->context);
    else change_stack(&fiber->back_kept, fiber->kept);
}
__attribute__((noinline)) static void leave(Fiber *fiber) {
    current = fiber->caller;
    if (fiber->by_library) swapcontext(&fiber->context, &fiber->back);
    else change_stack(&fiber->kept, fiber->back_kept);
}
static Fiber *any_alive() {
    Fiber *fiber = &fibers[draw(PLACES)];
    for (Fiber *up = current; up; up = up->caller)
        if (up == fiber) return nullptr;
    return fiber->lives ? fiber : nullptr;
}

// At the bottom of a fiber's frames: away, and back with an order.
__attribute__((noinline)) static void wait_for_order(Fiber *fiber) {
    leave(fiber);
    mix(fiber->order);
    if (fiber->order == THROW) throw int(fiber->depth);
    if (fiber->order == JUMP) siglongjmp(fiber->base, 1);
    if (fiber->order == NEST)
        if (Fiber *other = any_alive()) resume(other, Order(draw(3)));
}
static int step(const void *fiber, const void *);
// Every other frame is called by a library, which leaves no other way to see it return than its return address.
__attribute__((noinline)) static void dive(Fiber *fiber, int depth) {
    mix(depth);
    if (depth == 0) wait_for_order(fiber);
    else if (depth % 2) fiber->left = depth - 1, lfind(fiber, fiber, &one, 1, step);
    else dive(fiber, depth - 1);
    mix(depth + 100);
}
static int step(const void *key, const void *) {
    Fiber *fiber = (Fiber *)key;
    dive(fiber, fiber->left);
    return 0;
}
static void live() {
    Fiber *fiber = current;
    while (fiber->rounds-- > 0) {
        if (sigsetjmp(fiber->base, 0)) mix(7);
        else
            try {
                dive(fiber, fiber->depth);
            } catch (int depth) {
                mix(depth + 200);
            }
    }
    fiber->lives = false;
    leave(fiber);
    abort();
}

static void forget(char *place) {
    for (Fiber &fiber : fibers)
        if (fiber.lives && place <= fiber.memory && fiber.memory < place + PLACE) fiber.lives = false;
}
// A stack at the end of its place: what lies above is the next one's lowest page.
static void create(int which) {
    Fiber *fiber = &fibers[which];
    char *place = block + which * PLACE;
    forget(place);
    munmap(place, PLACE);
    fiber->size = PAGE * (10 + draw(PLACE / PAGE - 9));
    fiber->memory = place + PLACE - fiber->size;
    if (mmap(fiber->memory, fiber->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) exit(3);
    if (draw(3) == 0) mprotect(fiber->memory, PAGE, PROT_NONE);
    fiber->depth = draw(9), fiber->rounds = 1 + draw(3);
    fiber->lives = true, fiber->by_library = draw(3) == 0;
    if (fiber->by_library) {
        getcontext(&fiber->context);
        fiber->context.uc_stack.ss_sp = fiber->memory + PAGE;
        fiber->context.uc_stack.ss_size = fiber->size - PAGE;
        fiber->context.uc_link = nullptr;
        makecontext(&fiber->context, live, 0);
    } else {
        void **top = (void **)(fiber->memory + fiber->size);
        *--top = nullptr, *--top = (void *)live;
        for (int i = 0; i < 6; i++) *--top = nullptr;
        fiber->kept = top;
    }
    resume(fiber, GO_ON);
}
static void abandon(int which) {
    Fiber *fiber = &fibers[which];
    if (!fiber->memory) return;
    fiber->lives = false;
    switch (draw(4)) {
    case 0: munmap(fiber->memory, fiber->size); break;
    case 1: mprotect(fiber->memory, fiber->size, PROT_NONE); break;
    case 2: madvise(fiber->memory, fiber->size, MADV_DONTNEED); break;
    default: mmap(fiber->memory, PAGE * (1 + draw(fiber->size / PAGE)), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
}
// A suspended stack that nobody may read for a while.
static void hide(int which) {
    Fiber *fiber = &fibers[which];
    if (!fiber->lives) return;
    mprotect(fiber->memory, fiber->size, PROT_NONE);
    mix(which);
    if (draw(2)) try { throw 5; } catch (int five) { mix(five); }
    mprotect(fiber->memory + PAGE, fiber->size - PAGE, PROT_READ | PROT_WRITE);
}

__attribute__((noinline)) static void handle(int signal) {
    mix(signal);
    if (handler_does == 1) siglongjmp(out_of_handler, 1);
    if (handler_does == 2) throw 6;
}
static void send_signal() {
    handler_does = draw(3);
    if (sigsetjmp(out_of_handler, 1)) return mix(8);
    try {
        raise(SIGUSR1);
    } catch (int six) {
        sigset_t set;
        sigemptyset(&set), sigaddset(&set, SIGUSR1);
        pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
        mix(six);
    }
}
static void *in_thread(void *) {
    mix(9);
    if (Fiber *fiber = any_alive()) mix(fiber->depth);
    return nullptr;
}
// A thread on a stack between the others, whose memory goes when it has ended.
static void run_thread(int which) {
    char *place = block + which * PLACE;
    forget(place);
    if (mmap(place, PLACE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) exit(3);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, place, PLACE);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, in_thread, nullptr)) exit(3);
    pthread_join(thread, nullptr);
    fibers[which].memory = nullptr;
    munmap(place, PLACE);
}

static int some_step(const void *, const void *) {
    int which = draw(PLACES);
    switch (draw(12)) {
    case 0: case 1: case 2: create(which); break;
    case 3: abandon(which); break;
    case 4: hide(which); break;
    case 5: send_signal(); break;
    case 6: if (draw(4) == 0) run_thread(which); break;
    case 7: throw 10;
    default: if (Fiber *fiber = any_alive()) resume(fiber, Order(draw(4)));
    }
    return 0;
}
static void sequence() {
    for (int i = 0; i < STEPS; i++) try {
            if (draw(2)) some_step(nullptr, nullptr);
            else lfind(&sum, &sum, &one, 1, some_step);
        } catch (int number) {
            mix(number);
        }
    for (Fiber &fiber : fibers) fiber = Fiber();
    current = nullptr;
    munmap(block, PLACES * PLACE);
}

#define REFUSE(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (__u32)(number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
static void forbid(bool also_files) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(__NR_process_vm_readv), REFUSE(__NR_process_vm_writev), REFUSE(also_files ? __NR_openat : __NR_process_vm_readv),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) exit(77);
}

int main(int count, char **words) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    uint64_t seed = count > 1 ? strtoull(words[1], nullptr, 10) : 1;
    int sequences = count > 2 ? atoi(words[2]) : 100;
    if (count > 3) forbid(words[3][0] == '0');
    static char alternate[64 * 1024];
    stack_t stack = {};
    stack.ss_sp = alternate, stack.ss_size = sizeof alternate;
    sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_handler = handle, action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    for (int i = 1; i <= sequences; i++) {
        state = (seed * 1000003 + i) * 0x2545f4914f6cdd1du | 1;
        sequence();
        if (i % 50 == 0 || i == sequences) printf("%d: %016lx\n", i, (unsigned long)sum);
    }
    return 0;
}
