// A daemon's habits: closes every descriptor, opens its own under any number, changes its directory and
// its umask, and drops its environment.
// A right trace shows main with all its calls to the end; nothing but the program's own words lies in
// its file.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((noinline)) int check(int descriptor, const char *text) {
    char back[64] = "";
    lseek(descriptor, 0, SEEK_SET);
    ssize_t length = read(descriptor, back, sizeof back - 1);
    return length == (ssize_t)strlen(text) && !strcmp(back, text);
}

int main(void) {
    const char *text = "only this\n";
    char name[] = "/tmp/closes-XXXXXX";
    int keep = dup(1);
    for (int descriptor = 3; descriptor < 1024; descriptor++)
        if (descriptor != keep) close(descriptor);
    umask(0777);
    clearenv();
    int file = mkostemp(name, 0);
    unlink(name);
    if (chdir("/")) return 1;
    for (int descriptor = 1000; descriptor < 1023; descriptor++) dup2(file, descriptor);
    for (volatile int i = 0; i < 20000; i++) getppid();
    if (write(file, text, strlen(text)) < 0) return 1;
    dprintf(keep, "%s\n", check(file, text) ? "untouched" : "touched");
    return 0;
}
