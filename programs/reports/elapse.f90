! After SALMON-TDDFT/SALMON2 pull request 1038: each rank decides by its own timer whether the time of the job is over.
!
! `bug`: rank 3 finds its time over after step 11, leaves the loop, and stands in write_restart, in MPI_Gather or in the
! MPI_Barrier behind it; its neighbours wait for it in the MPI_Sendrecv of exchange, in step 12.
program elapse
  use mpi
  implicit none
  integer, parameter :: n = 64
  integer :: ierr, me, np, step
  logical :: bug
  character(16) :: arg
  double precision :: density(0:n + 1), charge

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
  call get_command_argument(1, arg)
  bug = arg == 'bug'
  density = me + 1
  charge = 0
  do step = 1, 20
    call exchange()
    call propagate()
    if (modulo(step, 5) == 0) call integrate(charge)
    if (is_time_over(step)) exit ! HERE
  end do
  call write_restart()
  call MPI_Finalize(ierr)

contains

  double precision function elapsed(number)
    integer, intent(in) :: number
    elapsed = 10d0 * number
    if (bug .and. me == 3) elapsed = elapsed + 9d0 * number / 11
  end function

  logical function is_time_over(number)
    integer, intent(in) :: number
    is_time_over = elapsed(number) > 118d0
  end function

  subroutine exchange()
    integer :: above, below
    above = merge(me + 1, MPI_PROC_NULL, me + 1 < np)
    below = merge(me - 1, MPI_PROC_NULL, me > 0)
    call MPI_Sendrecv(density(n), 1, MPI_DOUBLE_PRECISION, above, 1, density(0), 1, MPI_DOUBLE_PRECISION, below, 1, & ! HERE
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr) ! HERE
    call MPI_Sendrecv(density(1), 1, MPI_DOUBLE_PRECISION, below, 2, density(n + 1), 1, MPI_DOUBLE_PRECISION, above, 2, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  end subroutine

  subroutine propagate()
    integer :: i
    do i = 1, n
      density(i) = density(i) + 0.1d0 * (density(i - 1) - 2 * density(i) + density(i + 1))
    end do
  end subroutine

  subroutine integrate(total)
    double precision, intent(out) :: total
    double precision :: mine
    mine = sum(density(1:n))
    call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  end subroutine

  subroutine write_restart()
    double precision, allocatable :: whole(:)
    allocate(whole(n * np))
    call MPI_Gather(density(1), n, MPI_DOUBLE_PRECISION, whole, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr) ! HERE
    if (me == 0) print '(a, 2es12.5)', 'restart ', charge, sum(whole)
    call MPI_Barrier(MPI_COMM_WORLD, ierr) ! HERE
  end subroutine
end program
