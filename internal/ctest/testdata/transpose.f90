! How the NAS benchmarks FT, CG and IS communicate, with the module mpi: a matrix is transposed by
! blocks, a product of a matrix and a vector is summed along rows of a grid of procs and exchanged
! across it, keys are counted and sent to the proc that sorts them. It runs with four procs.
program transpose
  use mpi
  implicit none
  integer, parameter :: n = 64, side = 2, keys = 1000, buckets = 4
  integer :: wrong = 0, rank, procs, ierr

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, procs, ierr)
  if (procs /= side * side) call MPI_Abort(MPI_COMM_WORLD, 2, ierr)
  call blocks
  call columns
  call grid
  call sort
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
  if (wrong /= 0) stop 1
  if (rank == 0) print '(A)', 'OK transpose'

contains

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    print *, 'rank', rank, ': not so: ', what
    wrong = wrong + 1
  end subroutine check

  ! value is what the matrix has in row i and column j.
  elemental complex(kind(1d0)) function value(i, j)
    integer, intent(in) :: i, j
    value = cmplx(i, j, kind(1d0))
  end function value

  ! Blocks of the columns that each proc has are packed, exchanged and transposed, as FT does.
  subroutine blocks
    integer :: width, i, j, p
    complex(kind(1d0)) :: mine(n, n / 4), out(n / 4, n / 4, 0:3), in(n / 4, n / 4, 0:3), turned(n, n / 4)
    width = n / procs
    do j = 1, width
      mine(:, j) = value([(i, i = 1, n)], rank * width + j)
    end do
    do p = 0, procs - 1
      out(:, :, p) = mine(p * width + 1:(p + 1) * width, :)
    end do
    call MPI_Alltoall(out, width * width, MPI_DOUBLE_COMPLEX, in, width * width, MPI_DOUBLE_COMPLEX, MPI_COMM_WORLD, ierr)
    do p = 0, procs - 1
      turned(p * width + 1:(p + 1) * width, :) = transposed(in(:, :, p))
    end do
    do j = 1, width
      call check(all(turned(:, j) == value(rank * width + j, [(i, i = 1, n)])), 'a matrix that is transposed')
    end do
  end subroutine blocks

  function transposed(a) result(b)
    complex(kind(1d0)), intent(in) :: a(:, :)
    complex(kind(1d0)) :: b(size(a, 2), size(a, 1))
    b = reshape(a, shape(b), order=[2, 1])
  end function transposed

  ! The same without copies: datatypes say where rows lie.
  subroutine columns
    integer :: width, i, j, row, rows, block, blocks
    integer(kind=MPI_ADDRESS_KIND) :: stride
    complex(kind(1d0)) :: mine(n, n / 4), turned(n, n / 4)
    width = n / procs
    do j = 1, width
      mine(:, j) = value([(i, i = 1, n)], rank * width + j)
    end do
    stride = 16
    call MPI_Type_vector(width, 1, n, MPI_DOUBLE_COMPLEX, row, ierr)
    call MPI_Type_create_hvector(width, 1, stride, row, rows, ierr)
    call MPI_Type_create_resized(rows, 0_MPI_ADDRESS_KIND, stride * width, block, ierr)
    call MPI_Type_commit(block, ierr)
    call MPI_Type_vector(width, width, n, MPI_DOUBLE_COMPLEX, row, ierr)
    call MPI_Type_create_resized(row, 0_MPI_ADDRESS_KIND, stride * width, blocks, ierr)
    call MPI_Type_commit(blocks, ierr)
    call MPI_Alltoall(mine, 1, block, turned, 1, blocks, MPI_COMM_WORLD, ierr)
    do j = 1, width
      call check(all(turned(:, j) == value(rank * width + j, [(i, i = 1, n)])), 'one by datatypes')
    end do
    call MPI_Type_free(block, ierr)
    call MPI_Type_free(blocks, ierr)
  end subroutine columns

  ! Rows of a grid of procs sum what they have by exchanges of halves of the procs, and the proc
  ! across gets the part of the vector that it needs next, as CG does.
  subroutine grid
    integer, parameter :: part = n / side
    integer :: row, column, i, partner, request
    integer :: status(MPI_STATUS_SIZE)
    double precision :: a(part, part), x(part), w(part), other(part), dot, total
    row = rank / side
    column = mod(rank, side)
    do i = 1, part
      a(:, i) = row * part + [(dble(request), request = 1, part)] + column * part + i
    end do
    x = [(dble(column * part + i), i = 1, part)]
    w = matmul(a, x)
    partner = row * side + mod(column + 1, side)
    call MPI_Irecv(other, part, MPI_DOUBLE_PRECISION, partner, 1, MPI_COMM_WORLD, request, ierr)
    call MPI_Send(w, part, MPI_DOUBLE_PRECISION, partner, 1, MPI_COMM_WORLD, ierr)
    call MPI_Wait(request, status, ierr)
    w = w + other
    call check(all(abs(w - [(product_of(row * part + i), i = 1, part)]) < 1d-6), 'the product of a matrix and a vector')
    partner = column * side + row
    call MPI_Irecv(x, part, MPI_DOUBLE_PRECISION, partner, 2, MPI_COMM_WORLD, request, ierr)
    call MPI_Send(w, part, MPI_DOUBLE_PRECISION, partner, 2, MPI_COMM_WORLD, ierr)
    call MPI_Wait(request, status, ierr)
    call check(all(abs(x - [(product_of(column * part + i), i = 1, part)]) < 1d-6), 'the part from the proc across')
    dot = sum(x * x)
    call MPI_Allreduce(dot, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(abs(total / (side * sum([(product_of(i)**2, i = 1, n)])) - 1) < 1d-12, 'the sum of all squares')
  end subroutine grid

  ! product_of is element i of the matrix with i+j times the vector of 1 to n.
  double precision function product_of(i)
    integer, intent(in) :: i
    integer :: j
    product_of = sum([(dble(i + j) * j, j = 1, n)])
  end function product_of

  ! Keys go to the proc whose they are, as in IS.
  subroutine sort
    integer :: mine(keys), out(keys), in(keys * buckets), counts(0:3), incounts(0:3), displs(0:3), indispls(0:3), all_counts(0:3)
    integer :: i, p, next, total
    do i = 1, keys
      mine(i) = mod(i * 7919 + rank * 104729, 4096)
    end do
    next = 0
    do p = 0, 3
      displs(p) = next
      do i = 1, keys
        if (mine(i) / 1024 /= p) cycle
        next = next + 1
        out(next) = mine(i)
      end do
      counts(p) = next - displs(p)
    end do
    call MPI_Allreduce(counts, all_counts, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call MPI_Alltoall(counts, 1, MPI_INTEGER, incounts, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    indispls(0) = 0
    do p = 1, 3
      indispls(p) = indispls(p - 1) + incounts(p - 1)
    end do
    total = sum(incounts)
    call MPI_Alltoallv(out, counts, displs, MPI_INTEGER, in, incounts, indispls, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call check(total == all_counts(rank), 'how many keys came')
    call check(all(in(1:total) / 1024 == rank), 'they are those of this proc')
  end subroutine sort
end program transpose
