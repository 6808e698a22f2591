! After NOAA-EMC/WW3 pull request 1430: the root of a broadcast is the rank's own number instead of 0.
!
! `bug`: at the second output each rank gives its own rank as the root of the MPI_Bcast in save_points. Rank 0 is right;
! ranks 1 to 3 all send, and nobody receives.
program point_root
  use mpi
  implicit none
  integer, parameter :: nodes = 200000
  integer :: ierr, me, np, iaproc, step
  logical :: bug
  character(16) :: arg
  double precision, allocatable :: spectrum(:)
  double precision :: height

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
  call get_command_argument(1, arg)
  bug = arg == 'bug'
  iaproc = me + 1
  allocate(spectrum(nodes))
  spectrum = 0
  do step = 1, 12
    call propagate(step)
    call significant_height(height)
    if (modulo(step, 4) == 0) call save_points(step)
  end do
  if (me == 0) print '(a, f10.4)', 'height ', height
  call MPI_Finalize(ierr)

contains

  subroutine propagate(number)
    integer, intent(in) :: number
    integer :: i
    do i = iaproc, nodes, np
      spectrum(i) = 0.9d0 * spectrum(i) + 0.1d0 * cos(1d-3 * i * number)
    end do
  end subroutine

  subroutine significant_height(most)
    double precision, intent(out) :: most
    double precision :: mine
    mine = 4 * sqrt(abs(maxval(spectrum)))
    call MPI_Allreduce(mine, most, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
  end subroutine

  integer function point_server(number)
    integer, intent(in) :: number
    point_server = 0
    if (bug .and. number == 8) point_server = iaproc - 1
  end function

  ! The unstructured grid's points are collected by the first processor and told to all.
  subroutine save_points(number)
    integer, intent(in) :: number
    double precision, allocatable :: whole(:)
    allocate(whole(nodes))
    whole = 0
    call MPI_Reduce(spectrum, whole, nodes, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
    call MPI_Bcast(whole, nodes, MPI_DOUBLE_PRECISION, point_server(number), MPI_COMM_WORLD, ierr) ! HERE
    if (me == 0) print '(a, i0, a, f12.5)', 'points at step ', number, ': ', sum(whole)
  end subroutine
end program
