! Recursion and a procedure argument.
! A right trace shows hanoi as a tree of 31 calls, then apply > square and apply > cube.
module procedures
  implicit none
contains
  recursive integer function hanoi(disks) result(moves)
    integer, intent(in) :: disks
    moves = 0
    if (disks > 0) moves = hanoi(disks - 1) + 1 + hanoi(disks - 1)
  end function

  integer function apply(f, x)
    interface
      integer function f(x)
        integer, intent(in) :: x
      end function
    end interface
    integer, intent(in) :: x
    apply = f(x)
  end function

  integer function square(x)
    integer, intent(in) :: x
    square = x * x
  end function

  integer function cube(x)
    integer, intent(in) :: x
    cube = x * x * x
  end function
end module

program recursive
  use procedures
  implicit none
  print '(I0)', hanoi(4)
  print '(I0,1X,I0)', apply(square, 3), apply(cube, 3)
end program
