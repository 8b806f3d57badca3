! How the NAS benchmarks LU, MG and BT communicate, with mpi_f08: a sweep goes over a grid of procs as
! a wave, the faces of a box are exchanged as sections of its array, and blocks go round a ring while
! others are computed. It runs with four procs.
program wavefront
  use mpi_f08
  implicit none
  integer, parameter :: n = 12, planes = 6, side = 2
  integer :: wrong = 0, rank, procs, row, column
  integer :: north, south, west, east
  type(MPI_Comm) :: grid
  double precision, asynchronous :: u(0:n + 1, 0:n + 1, planes)

  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, procs)
  if (procs /= side * side) call MPI_Abort(MPI_COMM_WORLD, 2)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, [side, side], [.false., .false.], .false., grid)
  call MPI_Comm_rank(grid, rank)
  row = rank / side
  column = mod(rank, side)
  call MPI_Cart_shift(grid, 0, 1, north, south)
  call MPI_Cart_shift(grid, 1, 1, west, east)
  call sweep
  call faces
  call ring
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, grid)
  call MPI_Comm_free(grid)
  call MPI_Finalize()
  if (wrong /= 0) stop 1
  if (rank == 0) print '(A)', 'OK wavefront'

contains

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    print *, 'rank', rank, ': not so: ', what
    wrong = wrong + 1
  end subroutine check

  ! Each element is the sum of those above and to the left of it, and 1: a proc begins a plane when
  ! its neighbors have done it. Element (i, j) of plane k is then k times what it is of plane 1.
  subroutine sweep
    integer :: i, j, k
    double precision :: expected(0:side * n, 0:side * n)
    u = 0
    do k = 1, planes
      call MPI_Recv(u(0, 1:n, k), n, MPI_DOUBLE_PRECISION, north, k, grid, MPI_STATUS_IGNORE)
      call MPI_Recv(u(1:n, 0, k), n, MPI_DOUBLE_PRECISION, west, k, grid, MPI_STATUS_IGNORE)
      do j = 1, n
        do i = 1, n
          u(i, j, k) = (u(i - 1, j, k) + u(i, j - 1, k)) / 2 + k
        end do
      end do
      call MPI_Send(u(n, 1:n, k), n, MPI_DOUBLE_PRECISION, south, k, grid)
      call MPI_Send(u(1:n, n, k), n, MPI_DOUBLE_PRECISION, east, k, grid)
    end do
    expected = 0
    do j = 1, side * n
      do i = 1, side * n
        expected(i, j) = (expected(i - 1, j) + expected(i, j - 1)) / 2 + 1
      end do
    end do
    do k = 1, planes
      call check(all(abs(u(1:n, 1:n, k) - k * expected(row * n + 1:(row + 1) * n, column * n + 1:(column + 1) * n)) < 1d-9), &
        'the sweep')
    end do
  end subroutine sweep

  ! All planes of a face go at once, without copies by the program.
  subroutine faces
    type(MPI_Request) :: r(8)
    integer :: i, j, k
    u = -1
    do k = 1, planes
      do j = 1, n
        do i = 1, n
          u(i, j, k) = whole(row * n + i, column * n + j, k)
        end do
      end do
    end do
    call MPI_Irecv(u(0, 1:n, :), n * planes, MPI_DOUBLE_PRECISION, north, 1, grid, r(1))
    call MPI_Irecv(u(n + 1, 1:n, :), n * planes, MPI_DOUBLE_PRECISION, south, 1, grid, r(2))
    call MPI_Irecv(u(1:n, 0, :), n * planes, MPI_DOUBLE_PRECISION, west, 1, grid, r(3))
    call MPI_Irecv(u(1:n, n + 1, :), n * planes, MPI_DOUBLE_PRECISION, east, 1, grid, r(4))
    call MPI_Isend(u(1, 1:n, :), n * planes, MPI_DOUBLE_PRECISION, north, 1, grid, r(5))
    call MPI_Isend(u(n, 1:n, :), n * planes, MPI_DOUBLE_PRECISION, south, 1, grid, r(6))
    call MPI_Isend(u(1:n, 1, :), n * planes, MPI_DOUBLE_PRECISION, west, 1, grid, r(7))
    call MPI_Isend(u(1:n, n, :), n * planes, MPI_DOUBLE_PRECISION, east, 1, grid, r(8))
    call MPI_Waitall(8, r, MPI_STATUSES_IGNORE)
    do k = 1, planes
      do j = 1, n
        call check(u(0, j, k) == merge(-1d0, whole(row * n, column * n + j, k), row == 0), 'the face in the north')
        call check(u(n + 1, j, k) == merge(-1d0, whole(row * n + n + 1, column * n + j, k), row == side - 1), 'in the south')
        call check(u(j, 0, k) == merge(-1d0, whole(row * n + j, column * n, k), column == 0), 'in the west')
        call check(u(j, n + 1, k) == merge(-1d0, whole(row * n + j, column * n + n + 1, k), column == side - 1), 'in the east')
      end do
    end do
    call check(all(u([0, n + 1], [0, n + 1], :) == -1), 'corners are left alone')
  end subroutine faces

  double precision function whole(i, j, k)
    integer, intent(in) :: i, j, k
    whole = i + 100d0 * j + 10000d0 * k
  end function whole

  ! Requests that are made once send one block while the next comes.
  subroutine ring
    integer, parameter :: length = 500
    double precision, asynchronous :: blocks(length, 2)
    type(MPI_Request) :: r(2, 2)
    integer :: i, step, now, next
    double precision :: total
    next = mod(rank + 1, procs)
    do i = 1, 2
      call MPI_Send_init(blocks(:, i), length, MPI_DOUBLE_PRECISION, next, 5, grid, r(1, i))
      call MPI_Recv_init(blocks(:, 3 - i), length, MPI_DOUBLE_PRECISION, mod(rank + procs - 1, procs), 5, grid, r(2, i))
    end do
    blocks(:, 1) = rank
    total = 0
    now = 1
    do step = 1, procs
      call MPI_Startall(2, r(:, now))
      total = total + sum(blocks(:, now))
      call MPI_Waitall(2, r(:, now), MPI_STATUSES_IGNORE)
      now = 3 - now
    end do
    call check(total == length * 6d0, 'blocks of all procs')
    call check(all(blocks(:, now) == rank), 'the own one comes back')
    do i = 1, 2
      call MPI_Request_free(r(1, i))
      call MPI_Request_free(r(2, i))
    end do
  end subroutine ring
end program wavefront
