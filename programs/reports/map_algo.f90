! After ESCOMP/CTSM issue 2533: a name list is read by the root, and one of its variables is not broadcast.
!
! `bug`: the name list asks for another mapping than the default. Only rank 0 knows and calls map_redistribute, which gathers
! all sizes; the others call map_nearest and wait in MPI_Sendrecv for their neighbours. Rank 0 is the one that went elsewhere.
program map_algo
  use mpi
  implicit none
  integer, parameter :: points = 50
  integer :: ierr, me, np, year
  character(16) :: arg, algorithm
  double precision :: field(points), total

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
  call get_command_argument(1, arg)
  field = me
  call read_name_list(arg == 'bug')
  call initialize()
  total = 0
  do year = 1850, 1859
    call advance(year)
  end do
  if (me == 0) print '(a, es12.5)', 'total', total
  call MPI_Finalize(ierr)

contains

  subroutine read_name_list(is_other)
    logical, intent(in) :: is_other
    integer :: first_year
    algorithm = 'nn'
    first_year = 0
    if (me == 0) then
      first_year = 1850
      if (is_other) algorithm = 'redist'
    end if
    ! The algorithm should be broadcast here, too.
    call MPI_Bcast(first_year, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr) ! HERE
    field = field + first_year
  end subroutine

  subroutine initialize()
    select case (algorithm)
    case ('nn')
      call map_nearest() ! HERE
    case default
      call map_redistribute() ! HERE
    end select
  end subroutine

  subroutine map_nearest()
    integer :: right, left, i
    double precision :: halo(points)
    right = modulo(me + 1, np)
    left = modulo(me - 1, np)
    do i = 1, 2
      call MPI_Sendrecv(field, points, MPI_DOUBLE_PRECISION, right, 4, halo, points, MPI_DOUBLE_PRECISION, left, 4, & ! HERE
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr) ! HERE
      field = 0.5d0 * (field + halo)
    end do
  end subroutine

  subroutine map_redistribute()
    integer :: sizes(0:63)
    call MPI_Allgather(points, 1, MPI_INTEGER, sizes, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr) ! HERE
    field = field / sum(sizes(0:np - 1))
  end subroutine

  subroutine advance(number)
    integer, intent(in) :: number
    double precision :: mine, all
    mine = sum(field) / number
    call MPI_Allreduce(mine, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    total = total + all
  end subroutine
end program
