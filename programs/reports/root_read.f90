! After NOAA-GFDL/FMS issue 1617: a read that all ranks have to make stands inside of a branch for the I/O root.
!
! `bug`: the second variable is read with the collective MPI_File_read_at_all by rank 0 alone, in read_domain; the others
! wait in MPI_Scatter for their part. Rank 0 should read independently there.
program root_read
  use mpi
  implicit none
  integer, parameter :: cells = 100, variables = 3
  integer :: ierr, me, np, file, variable
  integer(MPI_OFFSET_KIND) :: at
  logical :: bug
  character(16) :: arg
  double precision :: mine(cells), norm
  double precision, allocatable :: whole(:)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
  call get_command_argument(1, arg)
  bug = arg == 'bug'
  allocate(whole(cells * np))
  call make_file()
  do variable = 1, variables
    call read_domain(variable)
    call check(norm)
    if (me == 0) print '(a, i0, a, es10.3)', 'variable ', variable, ': ', norm
  end do
  call MPI_File_close(file, ierr)
  call MPI_Finalize(ierr)

contains

  subroutine make_file()
    character(256) :: name, directory
    integer :: status, i, mode, now
    call get_environment_variable('SCRATCH', directory, status=status)
    if (status /= 0) directory = '/tmp'
    call system_clock(now)
    if (me == 0) write (name, '(2a, i0)') trim(directory), '/root_read.', now
    call MPI_Bcast(name, len(name), MPI_CHARACTER, 0, MPI_COMM_WORLD, ierr)
    mode = ior(ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_MODE_DELETE_ON_CLOSE)
    call MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, file, ierr)
    whole = [(dble(i), i = 1, cells * np)]
    if (me == 0) then
      do i = 0, variables - 1
        at = i * cells * np * 8
        call MPI_File_write_at(file, at, whole, cells * np, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, ierr)
      end do
    end if
    call MPI_File_sync(file, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end subroutine

  ! The root reads for the others.
  subroutine read_domain(number)
    integer, intent(in) :: number
    at = (number - 1) * cells * np * 8
    if (me == 0) then
      if (bug .and. number == 2) then
        call MPI_File_read_at_all(file, at, whole, cells * np, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, ierr) ! HERE
      else
        call MPI_File_read_at(file, at, whole, cells * np, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, ierr)
      end if
    end if
    call MPI_Scatter(whole, cells, MPI_DOUBLE_PRECISION, mine, cells, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr) ! HERE
  end subroutine

  subroutine check(total)
    double precision, intent(out) :: total
    double precision :: part
    part = sum(mine)
    call MPI_Allreduce(part, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  end subroutine
end program
