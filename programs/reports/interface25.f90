! After OpenRadioss/OpenRadioss pull request 4243: segments are exchanged with every processor that shares nodes, also with
! one that has no interface of this type and sends nothing.
!
! `bug`: rank 2 does not look whether rank 1 has the interface, and waits in the MPI_Recv of exchange_segments for a message
! from rank 1, which is in MPI_Allreduce like the rest.
program interface25
  use mpi
  implicit none
  integer, parameter :: most = 200
  integer :: ierr, me, np, number
  logical :: bug
  logical, allocatable :: has_interface(:)
  double precision :: force(most), work
  character(16) :: arg

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
  call get_command_argument(1, arg)
  bug = arg == 'bug'
  force = me + 1d0
  call tell_interfaces()
  do number = 1, 10
    if (has_interface(me)) call exchange_segments(number)
    call forces(number)
    call energy(work)
  end do
  if (me == 0) print '(a, es12.5)', 'work', work
  call MPI_Finalize(ierr)

contains

  subroutine tell_interfaces()
    integer :: mine, all(0:63), other
    mine = 1
    if (me == 1) mine = 0
    call MPI_Allgather(mine, 1, MPI_INTEGER, all, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    allocate(has_interface(0:np - 1))
    do other = 0, np - 1
      has_interface(other) = all(other) == 1
    end do
  end subroutine

  ! Neighbours share nodes: the rank before and the rank behind.
  logical function sends(other)
    integer, intent(in) :: other
    sends = other >= 0 .and. other < np
    if (sends) sends = has_interface(other)
  end function

  logical function expects(other, number)
    integer, intent(in) :: other, number
    expects = sends(other)
    ! Who has the interface is not asked from cycle 6 on.
    if (bug .and. me == 2 .and. number >= 6) expects = other >= 0 .and. other < np
  end function

  subroutine exchange_segments(number)
    integer, intent(in) :: number
    integer :: other, requests(2), sent
    double precision :: segments(most)
    sent = 0
    do other = me - 1, me + 1, 2
      if (.not. sends(other)) cycle
      sent = sent + 1
      call MPI_Isend(force, most, MPI_DOUBLE_PRECISION, other, 25, MPI_COMM_WORLD, requests(sent), ierr)
    end do
    do other = me - 1, me + 1, 2
      if (.not. expects(other, number)) cycle
      call MPI_Recv(segments, most, MPI_DOUBLE_PRECISION, other, 25, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr) ! HERE
      force = force + 1d-3 * segments
    end do
    call MPI_Waitall(sent, requests, MPI_STATUSES_IGNORE, ierr)
  end subroutine

  subroutine forces(number)
    integer, intent(in) :: number
    integer :: i
    do i = 1, most
      force(i) = force(i) * (1d0 + 1d-4 * sin(dble(i + number)))
    end do
  end subroutine

  subroutine energy(total)
    double precision, intent(out) :: total
    double precision :: mine
    mine = sum(force)
    call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  end subroutine
end program
