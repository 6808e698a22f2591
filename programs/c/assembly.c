// Functions that no compiler writes: of one to four bytes, with and without room behind; with several
// entries; with data between the instructions; a result in the flags; variables below the stack pointer;
// `rep ret`; a `ret` that takes its arguments off; a jump into the middle of another function; callees
// that keep every register.
// A right trace shows those that `info --refused` does not name, 1,000 times each.
#include <stdio.h>

#define FUNCTION(name, body) \
    ".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" body ".cfi_endproc\n.size " #name ",.-" #name "\n"
__asm__(
    ".text\n"
    // Back to back.
    ".balign 16\n"
    FUNCTION(one_byte, "ret\n")
    FUNCTION(two_bytes, "rep ret\n")
    FUNCTION(three_bytes, "xor %eax,%eax\nret\n")
    FUNCTION(four_bytes, "mov %rdi,%rax\nret\n")
    FUNCTION(one_byte_more, "ret\n")
    // With room behind.
    ".balign 16\n" FUNCTION(padded_one, "ret\n")
    ".balign 16\n" FUNCTION(padded_two, "rep ret\n")
    ".balign 16\n" FUNCTION(padded_three, "xor %eax,%eax\nret\n")
    ".balign 16\n" FUNCTION(padded_four, "mov %rdi,%rax\nret\n")
    ".balign 16\n"
    // Several entries: the second adds one less.
    FUNCTION(many_entries, "add $1,%rdi\nnop\nnop\n.globl second_entry\n.type second_entry,@function\nsecond_entry:\nadd $2,%rdi\nlea (%rdi,%rdi),%rax\nret\n.size second_entry,.-second_entry\n")
    ".balign 16\n"
    FUNCTION(with_data, "mov data_in_text(%rip),%rax\nadd %rdi,%rax\njmp 1f\ndata_in_text: .quad 0x0f0f0f0f0f\n1: ret\n")
    ".balign 16\n"
    FUNCTION(is_odd_in_flags, "test $1,%dil\nret\n")
    ".balign 16\n"
    FUNCTION(red_zone, "mov %rdi,-8(%rsp)\nmov %rsi,-128(%rsp)\nmov -8(%rsp),%rax\nadd -128(%rsp),%rax\nret\n")
    ".balign 16\n"
    FUNCTION(takes_off, "mov 8(%rsp),%rax\nadd 16(%rsp),%rax\nret $16\n")
    ".balign 16\n"
    FUNCTION(jumps_into_red_zone, "mov %rsi,-128(%rsp)\nadd $100,%rdi\nmov %rdi,-8(%rsp)\nmov -8(%rsp),%rax\njmp red_zone_middle\n")
    ".balign 16\n"
    FUNCTION(other_function, "mov $1,%eax\nadd %rdi,%rax\nred_zone_middle: add $7,%rax\nret\n")
    ".balign 16\n"
    // Changes nothing but rax, and its callers know.
    FUNCTION(keeps_all, "lea 1(%rdi),%rax\nret\n")
    ".balign 16\n"
    // Two ways out, of which one is conditional and leads into another function.
    FUNCTION(conditional_tail, "test $1,%dil\njne keeps_all\nlea 2(%rdi),%rax\nret\n")
    ".balign 16\n"
    // A loop whose head is the first byte, with loop and jrcxz.
    FUNCTION(counts, "lea (%rax,%rcx),%rax\nloop counts\njrcxz 1f\nud2\n1: ret\n")
    ".balign 16\n"
    FUNCTION(calls_first, "call four_bytes\nadd $3,%rax\nret\n"));

long one_byte(long), two_bytes(long), three_bytes(long), four_bytes(long), one_byte_more(long);
long padded_one(long), padded_two(long), padded_three(long), padded_four(long);
long many_entries(long), second_entry(long), with_data(long), red_zone(long, long), jumps_into_red_zone(long, long);
long other_function(long), conditional_tail(long), calls_first(long);

static long flags(long x) {
    char odd;
    __asm__ volatile("call is_odd_in_flags\nsetne %0" : "=r"(odd) : "D"(x) : "cc");
    return odd;
}
static long off(long x) {
    long sum;
    __asm__ volatile("sub $128,%%rsp\npush %1\npush %1\ncall takes_off\nadd $128,%%rsp" : "=a"(sum) : "r"(x) : "cc", "memory");
    return sum;
}
static long kept(long x) {
    long sum, c = x * 3, d = x * 5, s = x * 7, e = x * 11, f = x * 13, t = x * 17, u = x * 19;
    register long r8 __asm__("r8") = e, r9 __asm__("r9") = f, r10 __asm__("r10") = t, r11 __asm__("r11") = u;
    __asm__ volatile("sub $128,%%rsp\ncall keeps_all\nlea 128(%%rsp),%%rsp" : "=a"(sum), "+c"(c), "+d"(d), "+S"(s), "+r"(r8), "+r"(r9), "+r"(r10), "+r"(r11) : "D"(x));
    return sum + c + d + s + r8 + r9 + r10 + r11;
}
static long counted(long x) {
    long sum = 0, count = (x & 3) + 1;
    __asm__ volatile("sub $128,%%rsp\ncall counts\nadd $128,%%rsp" : "+a"(sum), "+c"(count) : : "cc");
    return sum + count;
}

int main(void) {
    long sum = 0;
    for (long i = 0; i < 1000; i++) {
        one_byte(i), two_bytes(i), one_byte_more(i), padded_one(i), padded_two(i);
        sum += three_bytes(i) + four_bytes(i) + padded_three(i) + padded_four(i);
        sum = sum * 31 + many_entries(i) + second_entry(i) + with_data(i) + red_zone(i, 2 * i) + jumps_into_red_zone(i, 3 * i);
        sum = sum * 31 + other_function(i) + conditional_tail(i) + calls_first(i) + flags(i) + kept(i) + counted(i);
        sum = sum * 31 + off(i);
    }
    printf("%ld\n", sum);
    return 0;
}
