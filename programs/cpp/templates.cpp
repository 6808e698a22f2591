// Templates and lambdas: sorting, a map with a comparator of its own, std::function.
// build: -std=c++17
// A right trace shows Descending's comparisons under std::sort's own (instantiated) functions, and the
// lambda under apply, three times.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

struct Descending {
    __attribute__((noinline)) bool operator()(int a, int b) const { return a > b; }
};
__attribute__((noinline)) int apply(const std::function<int(int)> &f, int x) { return f(x); }

int main() {
    std::vector<int> numbers;
    for (int i = 0; i < 40; i++) numbers.push_back(i * 37 % 41);
    std::sort(numbers.begin(), numbers.end(), Descending{});
    std::map<std::string, int> names;
    for (const char *name : {"one", "two", "three", "two"}) names[name]++;
    int total = 0;
    for (int i = 0; i < 3; i++) total += apply([&](int x) { return x + numbers[0]; }, i);
    for (const auto &[name, count] : names) std::printf("%s %d\n", name.c_str(), count);
    std::printf("%d %d %d\n", numbers.front(), numbers.back(), total);
    return 0;
}
