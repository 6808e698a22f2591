! Calls with arguments of every kind, in Fortran, each of which says what it was given and what it
! gave back.
!
! A right trace has these calls with these arguments in this order: the lines that rank R prints are
! compared with what `lockstep events --arguments` says of trace R.0. Needs at least 2 ranks.
program arguments
  use mpi
  implicit none
  integer :: rank, ranks, error, next, before, half, own
  integer :: sent(3), got(3), requests(2), status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 2), total
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  sent = rank
  print '(I0,A,I0,A)', rank, ' MPI_Irecv(count=3, datatype=MPI_INTEGER, source=', before, &
    ', tag=7, comm=MPI_COMM_WORLD)'
  call MPI_Irecv(got, 3, MPI_INTEGER, before, 7, MPI_COMM_WORLD, requests(1), error)
  print '(I0,A,I0,A)', rank, ' MPI_Isend(count=3, datatype=MPI_INTEGER, dest=', next, &
    ', tag=7, comm=MPI_COMM_WORLD)'
  call MPI_Isend(sent, 3, MPI_INTEGER, next, 7, MPI_COMM_WORLD, requests(2), error)
  print '(I0,A)', rank, ' MPI_Waitall(count=2)'
  call MPI_Waitall(2, requests, statuses, error)
  print '(I0,A,I0,A)', rank, ' return(source=', statuses(MPI_SOURCE, 1), ', tag=7)'
  print '(I0,A)', rank, ' MPI_Isend(count=1, datatype=MPI_DOUBLE_PRECISION)'
  call MPI_Isend(sent, 1, MPI_DOUBLE_PRECISION, next, 5, MPI_COMM_WORLD, requests(1), error)
  print '(I0,A)', rank, ' MPI_Recv(count=3, datatype=MPI_INTEGER, source=MPI_ANY_SOURCE, tag=MPI_ANY_TAG)'
  call MPI_Recv(got, 3, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, error)
  print '(I0,A,I0,A)', rank, ' return(source=', status(MPI_SOURCE), ', tag=5, bytes=8)'
  print '(I0,A)', rank, ' MPI_Wait()'
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  print '(I0,A)', rank, ' MPI_Allreduce(count=1, datatype=MPI_INTEGER, op=MPI_MAX, comm=MPI_COMM_WORLD)'
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, error)
  print '(I0,A,I0,A)', rank, ' MPI_Comm_split(comm=MPI_COMM_WORLD, color=0, key=', -rank, ')'
  call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, half, error)
  print '(I0,A)', rank, ' MPI_Comm_rank()'
  call MPI_Comm_rank(half, own, error)
  print '(I0,A,I0,A)', rank, ' return(rank=', own, ')'
  print '(I0,A)', rank, ' MPI_Barrier(comm=MPI_COMM_WORLD)'
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call MPI_Finalize(error)
end program
