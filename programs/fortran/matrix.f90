! Matrix product with procedures in a module, an internal procedure, and an optional argument.
! A right trace shows fill twice, multiply, entry 9 times inside it, and trace_of.
module matrices
  implicit none
contains
  subroutine fill(matrix, factor)
    real(8), intent(out) :: matrix(:, :)
    real(8), intent(in), optional :: factor
    integer :: i, j
    do j = 1, size(matrix, 2)
      do i = 1, size(matrix, 1)
        matrix(i, j) = i + 2 * j
      end do
    end do
    if (present(factor)) matrix = matrix * factor
  end subroutine

  function multiply(a, b) result(c)
    real(8), intent(in) :: a(:, :), b(:, :)
    real(8) :: c(size(a, 1), size(b, 2))
    integer :: i, j
    do j = 1, size(b, 2)
      do i = 1, size(a, 1)
        c(i, j) = entry(i, j)
      end do
    end do
  contains
    real(8) function entry(i, j)
      integer, intent(in) :: i, j
      entry = dot_product(a(i, :), b(:, j))
    end function
  end function

  real(8) function trace_of(a)
    real(8), intent(in) :: a(:, :)
    integer :: i
    trace_of = 0
    do i = 1, size(a, 1)
      trace_of = trace_of + a(i, i)
    end do
  end function
end module

program matrix
  use matrices
  implicit none
  real(8) :: a(3, 3), b(3, 3)
  call fill(a)
  call fill(b, 0.5d0)
  print '(F8.1)', trace_of(multiply(a, b))
end program
