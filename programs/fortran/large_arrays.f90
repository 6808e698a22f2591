! Large saved arrays, as old programs have them, and a contained procedure that gets one of them by descriptor.
program large
  implicit none
  real(8), save :: field(160000000)
  field(1) = 1
  field(160000000) = 4
  call relax(field, 3)
contains
  subroutine relax(values, rounds)
    real(8), intent(inout) :: values(:)
    integer, intent(in) :: rounds
    integer :: round
    do round = 1, rounds
      values(round + 1) = values(round) + 1
    end do
    print '(f8.2)', sum(values(1:4)) + values(size(values))
  end subroutine
end program
