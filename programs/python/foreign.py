# Python that calls C and is called back (ctypes), starts threads, children, and catches exceptions.
# A right recording: the same output.
import ctypes
import subprocess
import sys
import threading

libc = ctypes.CDLL(None)
Compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
numbers = (ctypes.c_int * 50)(*[(i * 37) % 50 for i in range(50)])
libc.qsort(numbers, len(numbers), ctypes.sizeof(ctypes.c_int), Compare(lambda a, b: a[0] - b[0]))
print(list(numbers) == sorted(numbers))

total = []
threads = [threading.Thread(target=lambda n=n: total.append(sum(range(n)))) for n in range(50)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sum(total))


def deep(n):
    return 0 if n == 0 else 1 + deep(n - 1)


try:
    deep(10_000)
except RecursionError:
    print("too deep")
print(subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout.strip())
sys.exit(3)
