! Calls on communicators that the program made itself, and what MPI says of them, in Fortran.
!
! A right trace says the same: the lines that rank R prints stand in this order in
! `lockstep events --arguments` of trace R.0, where a communicator has a number besides. Needs 6 ranks.
program communicators
  use mpi
  implicit none
  integer :: rank, ranks, error, half, copy, own, size, next, got, request, everybody
  integer :: status(MPI_STATUS_SIZE)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call MPI_Comm_group(MPI_COMM_WORLD, everybody, error)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half, error)
  call MPI_Comm_dup(half, copy, error)
  call MPI_Comm_free(half, error)
  call MPI_Comm_split(copy, 0, rank, half, error)
  call MPI_Comm_rank(copy, own, error)
  call MPI_Comm_size(copy, size, error)
  next = mod(own + 1, size)
  call MPI_Irecv(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, 5, copy, request, error)
  print '(I0,A,I0,A,I0,A)', rank, ' MPI_Send(dest=', next, ' (world ', world(copy, next), '), tag=5)'
  call MPI_Send(rank, 1, MPI_INTEGER, next, 5, copy, error)
  call MPI_Wait(request, status, error)
  print '(I0,A,I0,A,I0,A)', rank, ' return(source=', status(MPI_SOURCE), ' (world ', &
    world(copy, status(MPI_SOURCE)), '), tag=5)'
  print '(I0,A,I0,A)', rank, ' MPI_Bcast(root=1 (world ', world(half, 1), '))'
  call MPI_Bcast(got, 1, MPI_INTEGER, 1, half, error)
  call MPI_Finalize(error)
contains
  integer function world(comm, of)
    integer, intent(in) :: comm, of
    integer :: group, found(1), error
    call MPI_Comm_group(comm, group, error)
    call MPI_Group_translate_ranks(group, 1, [of], everybody, found, error)
    call MPI_Group_free(group, error)
    world = found(1)
  end function
end program
