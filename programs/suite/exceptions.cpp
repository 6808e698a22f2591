// C++ with exceptions: parsing of random expressions, a few of which are wrong and are thrown out from
// deep inside.
// usage: exceptions [EXPRESSIONS]
//
// A right trace has irregular recursion, destructors, and frames that end without a return.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

static std::uint64_t state = 88172645463325252u;

static unsigned draw() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<unsigned>(state >> 33);
}

struct Guard {
    explicit Guard(int &depth) : depth(depth) { enter(); }
    ~Guard() { leave(); }
    [[gnu::noinline]] void enter() { depth++; }
    [[gnu::noinline]] void leave() { depth--; }
    int &depth;
};

class Parser {
  public:
    explicit Parser(const std::string &text) : text(text) {}
    [[gnu::noinline]] long sum() {
        Guard guard(depth);
        long value = product();
        while (peek() == '+') next(), value += product();
        return value;
    }

  private:
    [[gnu::noinline]] long product() {
        long value = atom();
        while (peek() == '*') next(), value = value * atom() % 1000003;
        return value;
    }
    [[gnu::noinline]] long atom() {
        if (peek() == '(') {
            next();
            long value = sum();
            if (next() != ')') throw std::runtime_error("no end");
            return value;
        }
        char digit = next();
        if (digit < '0' || digit > '9') throw std::runtime_error("no digit");
        return digit - '0';
    }
    [[gnu::noinline]] char peek() const { return at < text.size() ? text[at] : '\0'; }
    [[gnu::noinline]] char next() { return at < text.size() ? text[at++] : '\0'; }

    const std::string &text;
    std::size_t at = 0;
    int depth = 0;
};

static void make(std::string &text, int depth) {
    unsigned choice = draw() % (depth > 6 ? 4 : 12);
    if (choice < 4) {
        text.push_back(draw() % 200 ? static_cast<char>('0' + draw() % 10) : '?');
    } else if (choice < 8) {
        make(text, depth + 1), text.push_back(choice & 1 ? '+' : '*'), make(text, depth + 1);
    } else {
        text.push_back('('), make(text, depth + 1), text.push_back(')');
    }
}

int main(int argc, char **argv) {
    int expressions = argc > 1 ? std::atoi(argv[1]) : 8000;
    long check = 0;
    int wrong = 0;
    for (int i = 0; i < expressions; i++) {
        std::string text;
        make(text, 0);
        try {
            check += Parser(text).sum();
        } catch (const std::runtime_error &) {
            wrong++;
        }
    }
    std::printf("%ld %d\n", check, wrong);
    return 0;
}
