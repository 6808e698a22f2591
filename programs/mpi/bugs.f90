! Mistakes in the use of MPI, in Fortran: `use mpi`, or, with -cpp -DOLD, mpif.h.
!
!   bugs heads   neighbours receive from each other before they send
!   bugs tag     rank 1 waits for another tag than rank 0 sends
!   bugs order   rank 2 calls MPI_BARRIER where others call MPI_ALLREDUCE
!
! A right trace of a run that was killed shows each rank in the call in which it waits.
module common_names
#ifndef OLD
  use mpi
#endif
  implicit none
#ifdef OLD
  include "mpif.h"
#endif
  integer :: rank, size, error, word
  integer :: status(MPI_STATUS_SIZE)
contains
  subroutine heads()
    integer :: other
    other = ieor(rank, 1)
    call MPI_RECV(word, 1, MPI_INTEGER, other, 3, MPI_COMM_WORLD, status, error)
    call MPI_SEND(rank, 1, MPI_INTEGER, other, 3, MPI_COMM_WORLD, error)
  end subroutine heads

  subroutine tag()
    if (rank == 0) call MPI_SEND(rank, 1, MPI_INTEGER, 1, 7, MPI_COMM_WORLD, error)
    if (rank == 1) call MPI_RECV(word, 1, MPI_INTEGER, 0, 8, MPI_COMM_WORLD, status, error)
  end subroutine tag

  subroutine order()
    integer :: total
    if (rank == 2) then
      call MPI_BARRIER(MPI_COMM_WORLD, error)
    else
      call MPI_ALLREDUCE(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    end if
  end subroutine order
end module common_names

program bugs
  use common_names
  implicit none
  character(len=16) :: name
  call get_command_argument(1, name)
  call MPI_INIT(error)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, error)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, size, error)
  select case (trim(name))
  case ('heads')
    call heads()
  case ('tag')
    call tag()
  case ('order')
    call order()
  end select
  call MPI_FINALIZE(error)
end program bugs
