# Two ranks that receive from each other, and nobody sends. MPI and Python have threads of their own here, of which none
# will ever send anything either.
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
for step in range(20):
    comm.allreduce(step)
if "--bug" in sys.argv:
    comm.recv(source=1 - comm.rank, tag=3)
print("well", flush=True)
