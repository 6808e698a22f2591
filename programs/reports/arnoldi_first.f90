! After opencollab/arpack-ng issue 46: a saved variable says whether the precision of the machine is known; finding it out is
! collective over the communicator of the call.
!
! `bug`: ranks 0 and 1 solve alone first. In the solve of all ranks they skip the MPI_Allreduce of machine_precision: rank 0
! waits in the MPI_Sendrecv of orthogonalize, rank 1 comes to the MPI_Allreduce of arnoldi. Ranks 2 to 5 are in
! machine_precision.
program arnoldi_first
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: ierr, me, np, pair
  logical :: bug
  character(16) :: arg
  double precision :: ritz

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
  call get_command_argument(1, arg)
  bug = arg == 'bug'
  call MPI_Comm_split(MPI_COMM_WORLD, merge(0, MPI_UNDEFINED, me < 2), me, pair, ierr)
  if (bug .and. pair /= MPI_COMM_NULL) then
    call arnoldi(pair, 3, ritz)
    if (me == 0) print '(a, f10.6)', 'two ranks: ', ritz
  end if
  call arnoldi(MPI_COMM_WORLD, 8, ritz)
  if (me == 0) print '(a, f10.6)', 'all ranks: ', ritz
  if (pair /= MPI_COMM_NULL) call MPI_Comm_free(pair, ierr)
  call MPI_Finalize(ierr)

contains

  double precision function machine_precision(comm)
    integer, intent(in) :: comm
    double precision :: mine
    mine = epsilon(mine)
    call MPI_Allreduce(mine, machine_precision, 1, MPI_DOUBLE_PRECISION, MPI_MAX, comm, ierr) ! HERE
  end function

  subroutine shifts(comm, epsilon23)
    integer, intent(in) :: comm
    double precision, intent(out) :: epsilon23
    logical, save :: first = .true.
    double precision, save :: known
    if (first) then ! HERE
      known = machine_precision(comm)**(2d0 / 3d0) ! HERE
      first = .false.
    end if
    epsilon23 = known
  end subroutine

  subroutine orthogonalize(comm, v)
    integer, intent(in) :: comm
    double precision, intent(inout) :: v(n)
    double precision :: other(n)
    integer :: rank, size, right, left
    call MPI_Comm_rank(comm, rank, ierr)
    call MPI_Comm_size(comm, size, ierr)
    right = modulo(rank + 1, size)
    left = modulo(rank - 1, size)
    call MPI_Sendrecv(v, n, MPI_DOUBLE_PRECISION, right, 9, other, n, MPI_DOUBLE_PRECISION, left, 9, comm, & ! HERE
                      MPI_STATUS_IGNORE, ierr) ! HERE
    v = v - 0.1d0 * dot_product(v, other) / (1 + dot_product(other, other)) * other
  end subroutine

  subroutine arnoldi(comm, iterations, value)
    integer, intent(in) :: comm, iterations
    double precision, intent(out) :: value
    double precision :: v(n), epsilon23, mine
    integer :: i
    v = [(1d0 / (i + me), i = 1, n)]
    call shifts(comm, epsilon23)
    do i = 1, iterations
      call orthogonalize(comm, v)
      mine = dot_product(v, v) + epsilon23
      call MPI_Allreduce(mine, value, 1, MPI_DOUBLE_PRECISION, MPI_SUM, comm, ierr) ! HERE
    end do
  end subroutine
end program
