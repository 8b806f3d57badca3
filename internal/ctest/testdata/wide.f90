! Numbers of 128 bits, which gfortran has: messages, reductions, files in external32 and one-sided
! operations of REAL(16), COMPLEX(16), INTEGER(16) and LOGICAL(16). It runs with four procs.
program wide
  use mpi
  implicit none
  integer, parameter :: quad = selected_real_kind(33), big = selected_int_kind(38), truth = 16
  integer, parameter :: long = selected_real_kind(18)
  integer :: wrong = 0, rank, procs, ierr

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, procs, ierr)
  call types
  call messages
  call reductions
  call packed
  call windows
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
  if (wrong /= 0) stop 1
  if (rank == 0) print '(A)', 'OK wide'

contains

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    print *, 'rank', rank, ': not so: ', what
    wrong = wrong + 1
  end subroutine check

  subroutine types
    integer :: size, found, i, named(6)
    real(long) :: sent(2), got(2)
    named = [MPI_REAL2, MPI_COMPLEX4, MPI_REAL16, MPI_INTEGER16, MPI_LOGICAL16, MPI_COMPLEX32]
    do i = 1, 6
      call MPI_Type_size(named(i), size, ierr)
      call check(size == merge(2 * i, merge(32, 16, i == 6), i < 3), 'sizes of predefined types')
    end do
    call MPI_Type_match_size(MPI_TYPECLASS_REAL, 16, found, ierr)
    call check(found == MPI_REAL16, 'a real of 16 bytes')
    call MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 16, found, ierr)
    call check(found == MPI_INTEGER16, 'an integer of 16 bytes')
    ! The type for as many digits as kind 10 has is that of kind 10, which is no IEEE quad.
    call MPI_Type_create_f90_real(18, MPI_UNDEFINED, found, ierr)
    sent = [1.25_long, -3.5_long]
    got = sent
    if (rank == 0) got = 0
    call MPI_Allreduce(sent, got, 2, found, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(all(got == procs * sent), 'sum of reals with 18 digits')
  end subroutine types

  subroutine messages
    real(quad) :: sent(3), got(3)
    integer(big) :: n(2), m(2)
    integer :: to, from, kind, status(MPI_STATUS_SIZE), count
    to = mod(rank + 1, procs)
    from = mod(rank + procs - 1, procs)
    sent = [1.0_quad / 3, -huge(1.0_quad), tiny(1.0_quad)] / (rank + 1)
    call MPI_Type_create_f90_real(33, 4931, kind, ierr)
    call MPI_Sendrecv(sent, 3, kind, to, 1, got, 3, MPI_REAL16, from, 1, MPI_COMM_WORLD, status, ierr)
    call MPI_Get_count(status, MPI_REAL16, count, ierr)
    call check(count == 3 .and. all(got == [1.0_quad / 3, -huge(1.0_quad), tiny(1.0_quad)] / (from + 1)), 'reals')
    n = [huge(1_big), -huge(1_big)] - [rank, -rank]
    call MPI_Sendrecv(n, 2, MPI_INTEGER16, to, 2, m, 2, MPI_INTEGER16, from, 2, MPI_COMM_WORLD, status, ierr)
    call check(all(m == [huge(1_big), -huge(1_big)] - [from, -from]), 'integers')
  end subroutine messages

  subroutine reductions
    real(quad) :: x(2), total(2)
    complex(quad) :: z, product
    integer(big) :: n(2), most(2)
    logical(truth) :: here, all_of, any_of
    x = [1.0_quad, 2.0_quad**(-100)] * (rank + 1)
    call MPI_Allreduce(x, total, 2, MPI_REAL16, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(all(total == [1.0_quad, 2.0_quad**(-100)] * (procs * (procs + 1) / 2)), 'sum of reals')
    call MPI_Allreduce(1 + x(2), total(1), 1, MPI_REAL16, MPI_MAX, MPI_COMM_WORLD, ierr)
    call check(total(1) == 1 + procs * 2.0_quad**(-100), 'largest real, with 113 digits')
    z = cmplx(rank + 1, 1, quad)
    call MPI_Allreduce(z, product, 1, MPI_COMPLEX32, MPI_PROD, MPI_COMM_WORLD, ierr)
    z = (1.0_quad, 1.0_quad) * (2.0_quad, 1.0_quad) * (3.0_quad, 1.0_quad) * (4.0_quad, 1.0_quad)
    call check(product == z, 'product')
    n = [10_big**30 * (rank + 1), -10_big**30 * rank]
    call MPI_Allreduce(n, most, 2, MPI_INTEGER16, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(all(most == 10_big**30 * [10, -6]), 'sum of integers')
    call MPI_Allreduce(n, most, 2, MPI_INTEGER16, MPI_MIN, MPI_COMM_WORLD, ierr)
    call check(all(most == 10_big**30 * [1, -3]), 'least integer')
    here = rank == 2
    call MPI_Allreduce(here, all_of, 1, MPI_LOGICAL16, MPI_LAND, MPI_COMM_WORLD, ierr)
    call MPI_Allreduce(here, any_of, 1, MPI_LOGICAL16, MPI_LOR, MPI_COMM_WORLD, ierr)
    call check(logical(.not. all_of .and. any_of), 'logicals')
  end subroutine reductions

  ! In external32 the byte with the sign comes first.
  subroutine packed
    character :: bytes(48)
    integer(MPI_ADDRESS_KIND) :: position
    real(quad) :: x(1)
    integer(big) :: n(1)
    position = 0
    call MPI_Pack_external('external32', [-2.0_quad], 1, MPI_REAL16, bytes, 48_MPI_ADDRESS_KIND, position, ierr)
    call MPI_Pack_external('external32', [258_big], 1, MPI_INTEGER16, bytes, 48_MPI_ADDRESS_KIND, position, ierr)
    call check(position == 32, 'bytes of external32')
    call check(all(ichar(bytes([1, 16, 31, 32])) == [192, 0, 1, 2]), 'external32')
    position = 0
    call MPI_Unpack_external('external32', bytes, 48_MPI_ADDRESS_KIND, position, x, 1, MPI_REAL16, ierr)
    call MPI_Unpack_external('external32', bytes, 48_MPI_ADDRESS_KIND, position, n, 1, MPI_INTEGER16, ierr)
    call check(x(1) == -2 .and. n(1) == 258, 'external32 unpacked')
  end subroutine packed

  subroutine windows
    integer(big), volatile :: memory(2)
    integer(big) :: before, one
    real(quad) :: x
    integer :: win, i
    integer(MPI_ADDRESS_KIND), parameter :: first = 0, second = 1
    memory = [2_big**70, 0_big]
    call MPI_Win_create(memory, 32_MPI_ADDRESS_KIND, 16, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    one = 2_big**64
    do i = 0, procs - 1
      call MPI_Win_lock(MPI_LOCK_SHARED, i, 0, win, ierr)
      call MPI_Fetch_and_op(one, before, MPI_INTEGER16, i, first, MPI_SUM, win, ierr)
      call MPI_Win_unlock(i, win, ierr)
      call check(before >= 2_big**70 .and. before < 2_big**70 + procs * one, 'fetch and op')
    end do
    call MPI_Win_fence(0, win, ierr)
    call check(memory(1) == 2_big**70 + procs * one, 'sum in the window')
    call MPI_Win_fence(0, win, ierr)
    if (rank == 1) then ! the word with the lower bytes is the same in both
      call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win, ierr)
      call MPI_Compare_and_swap(7_big, 0_big, before, MPI_INTEGER16, 0, first, win, ierr)
      call MPI_Win_flush(0, win, ierr)
      call check(before == 2_big**70 + procs * one, 'compare and swap of another value')
      call MPI_Compare_and_swap(7_big, 2_big**70 + procs * one, before, MPI_INTEGER16, 0, first, win, ierr)
      call MPI_Win_unlock(0, win, ierr)
    end if
    call MPI_Win_fence(0, win, ierr)
    if (rank == 0) call check(memory(1) == 7, 'compare and swap')
    x = 1.0_quad + 2.0_quad**(-110)
    memory(2) = 0
    call MPI_Win_fence(0, win, ierr)
    call MPI_Accumulate(x, 1, MPI_REAL16, 0, second, 1, MPI_REAL16, MPI_SUM, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    if (rank == 0) call check(transfer(memory(2), x) == procs * x, 'accumulated reals')
    call MPI_Win_free(win, ierr)
  end subroutine windows
end program wide
