/* Hand-written code without a frame description, which nobody looks at: it calls one library function through its slot, and
   one through the stub that others use as well. */
#include <stdlib.h>

__asm__(".text\n.p2align 4\n.type hidden_code,@function\nhidden_code:\n"
        "sub $8, %rsp\n"
        "mov $-3, %edi\ncall *labs@GOTPCREL(%rip)\n"
        "mov %eax, %edi\ncall abs@PLT\n"
        "add $8, %rsp\nret\n.size hidden_code, . - hidden_code\n");
extern int hidden_code(void);

int main(int count, char **arguments) {
    (void)arguments;
    return hidden_code() - 3 + abs(1 - count);
}
