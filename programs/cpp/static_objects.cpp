// Objects that live before and after main: constructors run from .init_array, destructors from exit.
// A right trace shows Logger's constructor before main, the function static's on first use only, and both
// destructors after main, in reverse order.
#include <cstdio>

struct Logger {
    const char *name;
    explicit Logger(const char *n) : name(n) { std::printf("%s begins\n", name); }
    ~Logger() { std::printf("%s ends\n", name); }
};
static Logger global("global");
__attribute__((noinline)) const char *local_name() {
    static Logger local("local");
    return local.name;
}

int main() {
    std::printf("main uses %s\n", local_name());
    std::printf("main uses %s again\n", local_name());
    return 0;
}
