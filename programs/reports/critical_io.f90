! After galacticusorg/galacticus pull request 659: a function that is called in a critical section enters a critical section
! of the same name itself, to show a message.
!
! `bug`: thread 1 needs the path of the data sets first and waits for ever at the inner critical section, in display_message,
! for the one that it is in itself, in open_data_set. The other threads wait at the end of the loop.
! build: -fopenmp
module paths
  implicit none
  logical :: is_told = .false., bug = .false.
contains

  subroutine display_message(text)
    character(*), intent(in) :: text
    !$omp critical (internal_io) ! HERE
    write (*, '(a)') text
    !$omp end critical (internal_io)
  end subroutine

  function input_path() result(path)
    character(32) :: path
    path = '/usr/share/datasets'
    if (.not. is_told) then
      is_told = .true.
      call display_message('data sets are in ' // trim(path)) ! HERE
    end if
  end function
end module

program critical_io
  use omp_lib
  use paths
  implicit none
  integer, parameter :: trees = 40
  integer :: tree
  double precision :: mass(trees)
  character(16) :: arg

  call get_command_argument(1, arg)
  bug = arg == 'bug'
  mass = 0
  !$omp parallel do num_threads(4) schedule(static, 1)
  do tree = 1, trees
    call grow(tree, mass(tree))
    if (modulo(tree, 20) == 10) call open_data_set(tree)
  end do
  !$omp end parallel do
  print '(a, es12.5)', 'mass ', sum(mass)

contains

  subroutine grow(number, total)
    integer, intent(in) :: number
    double precision, intent(inout) :: total
    integer :: step
    do step = 1, 20000
      total = total + 1d0 / (number + step)
    end do
  end subroutine

  subroutine open_data_set(number)
    integer, intent(in) :: number
    character(64) :: name
    character(32) :: path
    if (.not. bug) path = input_path()
    !$omp critical (internal_io)
    if (bug) path = input_path() ! HERE
    write (name, '(2a, i0)') trim(path), '/tree.', number
    !$omp end critical (internal_io)
    call display_message('open ' // trim(name))
  end subroutine
end program
