// Runs the program that its arguments name where no memory may become executable any more (Linux 6.3).
// A right recording: all of the program.
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SET_MDWE = 65, REFUSE_EXEC_GAIN = 1 };

int main(int count, char **arguments) {
    if (count < 2 || prctl(SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0)) return 77;
    execv(arguments[1], arguments + 1);
    return 1;
}
