! Heat flows through a plate. Each proc has a block of it, in a grid of procs, and swaps
! its borders with the neighbours; each one also computes the whole plate, which has to be
! the same to the last bit. The module mpi is used.
program heat
  use mpi
  implicit none
  integer, parameter :: n = 24, steps = 50
  double precision :: whole(0:n+1, 0:n+1), other(0:n+1, 0:n+1)
  double precision, allocatable :: u(:,:), v(:,:)
  double precision :: change, most, difference, started
  integer :: ierr, rank, procs, grid, row, k, i, j, h, w, i0, j0
  integer :: dims(2), place(2), north, south, west, east, was
  integer :: requests(8), statuses(MPI_STATUS_SIZE, 8)
  logical :: periods(2)

  call MPI_Init(ierr)
  started = MPI_Wtime()
  call MPI_Comm_size(MPI_COMM_WORLD, procs, ierr)
  dims = 0
  call MPI_Dims_create(procs, 2, dims, ierr)
  if (mod(n, dims(1)) /= 0 .or. mod(n, dims(2)) /= 0) stop 'the plate cannot be divided'
  periods = .false.
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .true., grid, ierr)
  call MPI_Comm_rank(grid, rank, ierr)
  call MPI_Cart_coords(grid, rank, 2, place, ierr)
  call MPI_Cart_shift(grid, 0, 1, north, south, ierr)
  call MPI_Cart_shift(grid, 1, 1, west, east, ierr)
  h = n / dims(1)
  w = n / dims(2)
  i0 = place(1) * h
  j0 = place(2) * w

  do j = 0, n + 1
    do i = 0, n + 1
      whole(i, j) = mod(7 * i + 13 * j, 29)
    end do
  end do
  other = whole
  allocate (u(0:h+1, 0:w+1), v(0:h+1, 0:w+1))
  u = whole(i0:i0+h+1, j0:j0+w+1)
  v = u

  ! A row is no continuous memory in Fortran.
  call MPI_Type_vector(w, 1, h + 2, MPI_DOUBLE_PRECISION, row, ierr)
  call MPI_Type_commit(row, ierr)
  do k = 1, steps
    call MPI_Irecv(u(0, 1), 1, row, north, 1, grid, requests(1), ierr)
    call MPI_Irecv(u(h+1, 1), 1, row, south, 2, grid, requests(2), ierr)
    call MPI_Irecv(u(1, 0), h, MPI_DOUBLE_PRECISION, west, 3, grid, requests(3), ierr)
    call MPI_Irecv(u(1, w+1), h, MPI_DOUBLE_PRECISION, east, 4, grid, requests(4), ierr)
    call MPI_Isend(u(h, 1), 1, row, south, 1, grid, requests(5), ierr)
    call MPI_Isend(u(1, 1), 1, row, north, 2, grid, requests(6), ierr)
    call MPI_Isend(u(1, w), h, MPI_DOUBLE_PRECISION, east, 3, grid, requests(7), ierr)
    call MPI_Isend(u(1, 1), h, MPI_DOUBLE_PRECISION, west, 4, grid, requests(8), ierr)
    call MPI_Waitall(8, requests, statuses, ierr)
    if (any(requests /= MPI_REQUEST_NULL)) stop 'a request is left'
    call flow(u, v, h, w)
    change = maxval(abs(v(1:h, 1:w) - u(1:h, 1:w)))
    call MPI_Allreduce(change, most, 1, MPI_DOUBLE_PRECISION, MPI_MAX, grid, ierr)
    u(1:h, 1:w) = v(1:h, 1:w)
    call flow(whole, other, n, n)
    change = maxval(abs(other(1:n, 1:n) - whole(1:n, 1:n)))
    whole(1:n, 1:n) = other(1:n, 1:n)
  end do
  difference = maxval(abs(u(1:h, 1:w) - whole(i0+1:i0+h, j0+1:j0+w)))
  call MPI_Allreduce(MPI_IN_PLACE, difference, 1, MPI_DOUBLE_PRECISION, MPI_MAX, grid, ierr)
  call MPI_Type_free(row, ierr)
  was = grid
  call MPI_Comm_free(grid, ierr)
  if (grid /= MPI_COMM_NULL .or. was == MPI_COMM_NULL) difference = 1
  if (MPI_Wtime() < started .or. MPI_Wtick() <= 0) difference = 1
  call MPI_Finalize(ierr)
  if (difference /= 0 .or. most /= change .or. most == 0) then
    print *, 'rank', rank, ': difference', difference, 'change', most, 'want', change
    stop 1
  end if
  if (rank == 0) print '(A)', 'OK heat'

contains

  subroutine flow(from, to, h, w)
    integer, intent(in) :: h, w
    double precision, intent(in) :: from(0:h+1, 0:w+1)
    double precision, intent(inout) :: to(0:h+1, 0:w+1)
    integer :: i, j
    do j = 1, w
      do i = 1, h
        to(i, j) = from(i, j) + 0.125d0 * ((from(i-1, j) + from(i+1, j)) + (from(i, j-1) + from(i, j+1)) - 4 * from(i, j))
      end do
    end do
  end subroutine flow
end program heat
