! A token goes round the ranks three times, in Fortran.
!
! A right trace shows the MPI calls under their C names (mpi_send_ is MPI_Send): MPI_Init
! MPI_Comm_rank MPI_Comm_size, then three times [MPI_Send MPI_Recv] in rank 0 and [MPI_Recv MPI_Send]
! in every other rank, each from the program's own `pass` and `take`, then MPI_Finalize.
program ring
  use mpi
  implicit none
  integer :: rank, ranks, error, round, token
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  token = 1
  do round = 1, 3
    if (rank == 0) then
      call pass(token, mod(rank + 1, ranks))
      call take(token, ranks - 1)
    else
      call take(token, rank - 1)
      token = token + rank
      call pass(token, mod(rank + 1, ranks))
    end if
  end do
  if (rank == 0) print '(A,I0)', 'token ', token
  call MPI_Finalize(error)
contains
  subroutine pass(token, to)
    integer, intent(in) :: token, to
    integer :: error
    call MPI_Send(token, 1, MPI_INTEGER, to, 0, MPI_COMM_WORLD, error)
  end subroutine
  subroutine take(token, from)
    integer, intent(out) :: token
    integer, intent(in) :: from
    integer :: error
    call MPI_Recv(token, 1, MPI_INTEGER, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  end subroutine
end program
