module work
contains
  recursive integer function fib(n) result(f)
    integer, intent(in) :: n
    if (n < 2) then
      f = n
    else
      f = fib(n - 1) + fib(n - 2)
    end if
  end function
  subroutine step(a, n)
    integer, intent(in) :: n
    real, intent(inout) :: a(n)
    integer :: i
    do i = 1, n
      a(i) = a(i) * 2.0 + real(i)
    end do
  end subroutine
end module
program main
  use work
  real :: a(10)
  a = 1.0
  call step(a, 10)
  print *, fib(10), sum(a)
end program
