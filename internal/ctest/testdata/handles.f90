! What a Fortran program sees of MPI through mpif.h: handles, statuses, wildcards, datatypes,
! addresses with a meaning, strings, errors, functions of its own. It runs with four procs.
program handles
  implicit none
  include 'mpif.h'
  integer :: wrong, rank, procs, ierr
  external :: worst

  wrong = 0
  call beginning
  call statuses
  call requests
  call datatypes
  call collectives
  call communicators
  call operations
  call errors
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
  if (wrong /= 0) stop 1
  if (rank == 0) print '(A)', 'OK handles'

contains

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    print *, 'rank', rank, ': not so: ', what
    wrong = wrong + 1
  end subroutine check

  subroutine beginning
    logical :: yes, found
    integer :: provided, version, minor, length
    integer(kind=MPI_ADDRESS_KIND) :: value
    character(len=MPI_MAX_PROCESSOR_NAME) :: name
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: text
    call MPI_Initialized(yes, ierr)
    call check(.not. yes, 'not yet initialized')
    call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, ierr)
    call check(ierr == MPI_SUCCESS .and. provided == MPI_THREAD_MULTIPLE, 'Init_thread')
    call MPI_Initialized(yes, ierr)
    call check(yes, 'initialized')
    call check(yes .eqv. .true., 'LOGICAL is of gfortran''s kind')
    call MPI_Finalized(yes, ierr)
    call check(.not. yes, 'not finalized')
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, procs, ierr)
    call check(procs == 4, 'four procs')
    call MPI_Get_version(version, minor, ierr)
    call check(version == MPI_VERSION .and. minor == MPI_SUBVERSION, 'version')
    name = repeat('x', len(name))
    call MPI_Get_processor_name(name, length, ierr)
    call check(length > 0 .and. len_trim(name) == length, 'processor name')
    call MPI_Get_library_version(text, length, ierr)
    call check(length > 0 .and. len_trim(text) == length, 'library version')
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, found, ierr)
    call check(found .and. value >= 32767 .and. value <= huge(1), 'TAG_UB')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  end subroutine beginning

  subroutine statuses
    integer :: status(MPI_STATUS_SIZE), got(4), mine(4), n, k, seen(3)
    logical :: flag
    mine = rank
    if (rank > 0) then
      call MPI_Send(mine, rank, MPI_INTEGER, 0, 10 + rank, MPI_COMM_WORLD, ierr)
    else
      seen = 0
      do k = 1, 3
        if (k == 1) then
          call MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
          call MPI_Recv(got, 4, MPI_INTEGER, status(MPI_SOURCE), status(MPI_TAG), MPI_COMM_WORLD, status, ierr)
        else
          call MPI_Recv(got, 4, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
        end if
        n = status(MPI_SOURCE)
        call check(status(MPI_TAG) == 10 + n .and. all(got(1:n) == n), 'what the status tells')
        seen(n) = seen(n) + 1
        call MPI_Get_count(status, MPI_INTEGER, n, ierr)
        call check(n == status(MPI_SOURCE), 'Get_count')
        call MPI_Test_cancelled(status, flag, ierr)
        call check(.not. flag, 'not cancelled')
      end do
      call check(all(seen == 1), 'one message of each')
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    n = -1
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, mod(rank + 1, procs), 1, n, 1, MPI_INTEGER, &
      mod(rank + procs - 1, procs), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call check(n == mod(rank + procs - 1, procs), 'Sendrecv')
    call MPI_Sendrecv_replace(n, 1, MPI_INTEGER, mod(rank + procs - 1, procs), 1, mod(rank + 1, procs), 1, &
      MPI_COMM_WORLD, status, ierr)
    call check(n == rank .and. status(MPI_SOURCE) == mod(rank + 1, procs), 'Sendrecv_replace')
    call MPI_Iprobe(MPI_ANY_SOURCE, 1099, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, ierr)
    call check(.not. flag, 'Iprobe')
    call MPI_Recv(n, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, status, ierr)
    call check(status(MPI_SOURCE) == MPI_PROC_NULL .and. status(MPI_TAG) == MPI_ANY_TAG, 'PROC_NULL')
  end subroutine statuses

  ! More requests than the calls keep on the stack, persistent ones, and places from 1.
  subroutine requests
    integer, parameter :: many = 100
    integer :: all(2 * many), values(many), status(MPI_STATUS_SIZE), stats(MPI_STATUS_SIZE, many)
    integer :: few(3), numbers(3), i, place, done, left, places(3), to, from
    logical :: flag
    to = mod(rank + 1, procs)
    from = mod(rank + procs - 1, procs)
    do i = 1, many
      call MPI_Irecv(values(i), 1, MPI_INTEGER, from, i, MPI_COMM_WORLD, all(i), ierr)
    end do
    call check(all(1) /= all(2), 'requests differ')
    do i = 1, many
      call MPI_Isend(i, 1, MPI_INTEGER, to, i, MPI_COMM_WORLD, all(many + i), ierr)
      call MPI_Wait(all(many + i), MPI_STATUS_IGNORE, ierr)
      call check(all(many + i) == MPI_REQUEST_NULL, 'a waited request is null')
    end do
    call MPI_Waitall(many, all, stats, ierr)
    call check(ierr == MPI_SUCCESS, 'Waitall')
    do i = 1, many
      call check(values(i) == i .and. stats(MPI_TAG, i) == i .and. stats(MPI_SOURCE, i) == from &
        .and. all(i) == MPI_REQUEST_NULL, 'each of many')
    end do

    do i = 1, 3
      call MPI_Recv_init(values(i), 1, MPI_INTEGER, from, i, MPI_COMM_WORLD, few(i), ierr)
    end do
    do left = 1, 2
      call MPI_Startall(3, few, ierr)
      do i = 1, 3
        numbers(i) = 100 * left + i
        call MPI_Send(numbers(i), 1, MPI_INTEGER, to, i, MPI_COMM_WORLD, ierr)
      end do
      call MPI_Waitall(3, few, MPI_STATUSES_IGNORE, ierr)
      call check(all_are(values(1:3), numbers), 'persistent')
    end do
    do i = 1, 3
      call check(few(i) /= MPI_REQUEST_NULL, 'a persistent request stays')
      call MPI_Request_free(few(i), ierr)
      call check(few(i) == MPI_REQUEST_NULL, 'Request_free')
    end do

    few(1) = MPI_REQUEST_NULL
    call MPI_Irecv(values(2), 1, MPI_INTEGER, from, 7, MPI_COMM_WORLD, few(2), ierr)
    few(3) = MPI_REQUEST_NULL
    call MPI_Send(rank, 1, MPI_INTEGER, to, 7, MPI_COMM_WORLD, ierr)
    call MPI_Waitany(3, few, place, status, ierr)
    call check(place == 2 .and. values(2) == from .and. status(MPI_TAG) == 7, 'Waitany counts from 1')
    call MPI_Waitany(3, few, place, status, ierr)
    call check(place == MPI_UNDEFINED, 'Waitany of nothing')
    call MPI_Testany(3, few, place, flag, status, ierr)
    call check(flag .and. place == MPI_UNDEFINED, 'Testany of nothing')
    call MPI_Irecv(values(3), 1, MPI_INTEGER, from, 8, MPI_COMM_WORLD, few(3), ierr)
    call MPI_Send(rank, 1, MPI_INTEGER, to, 8, MPI_COMM_WORLD, ierr)
    call MPI_Waitsome(3, few, done, places, stats, ierr)
    call check(done == 1 .and. places(1) == 3 .and. stats(MPI_SOURCE, 1) == from, 'Waitsome counts from 1')
    call MPI_Testsome(3, few, done, places, MPI_STATUSES_IGNORE, ierr)
    call check(done == MPI_UNDEFINED, 'Testsome of nothing')
    call MPI_Testall(3, few, flag, MPI_STATUSES_IGNORE, ierr)
    call check(flag, 'Testall')
    call MPI_Irecv(values(1), 1, MPI_INTEGER, MPI_ANY_SOURCE, 55, MPI_COMM_WORLD, few(1), ierr)
    call MPI_Cancel(few(1), ierr)
    call MPI_Wait(few(1), status, ierr)
    call MPI_Test_cancelled(status, flag, ierr)
    call check(flag, 'cancelled')
  end subroutine requests

  logical function all_are(a, b)
    integer, intent(in) :: a(:), b(:)
    all_are = all(a == b)
  end function all_are

  subroutine datatypes
    type :: particle
      sequence
      integer :: kind
      double precision :: place(2)
    end type particle
    type(particle) :: one, other
    integer :: types(2), lengths(2), made, fitted, size, i, m(4, 6), s(4, 6), status(MPI_STATUS_SIZE)
    integer, volatile :: hidden ! is written by a call that it is no argument of
    integer(kind=MPI_ADDRESS_KIND) :: places(2), start, lb, extent
    call MPI_Type_size(MPI_INTEGER, size, ierr)
    call check(size == storage_size(1) / 8, 'INTEGER')
    call MPI_Type_size(MPI_DOUBLE_PRECISION, size, ierr)
    call check(size == storage_size(1d0) / 8, 'DOUBLE PRECISION')
    call MPI_Type_size(MPI_LOGICAL, size, ierr)
    call check(size == storage_size(.true.) / 8, 'LOGICAL')
    call MPI_Type_size(MPI_COMPLEX, size, ierr)
    call check(size == storage_size((1.0, 1.0)) / 8, 'COMPLEX')

    call MPI_Get_address(one, start, ierr)
    call MPI_Get_address(one%kind, places(1), ierr)
    call MPI_Get_address(one%place, places(2), ierr)
    places = places - start
    lengths = (/ 1, 2 /)
    types = (/ MPI_INTEGER, MPI_DOUBLE_PRECISION /)
    call MPI_Type_create_struct(2, lengths, places, types, made, ierr)
    lb = 0
    extent = storage_size(one) / 8
    call MPI_Type_create_resized(made, lb, extent, fitted, ierr)
    call MPI_Type_commit(fitted, ierr)
    call MPI_Type_get_extent(fitted, lb, extent, ierr)
    call check(lb == 0 .and. extent == storage_size(one) / 8, 'extent')
    one = particle(rank, (/ dble(rank), -1d0 /))
    call MPI_Sendrecv(one, 1, fitted, mod(rank + procs - 1, procs), 2, other, 1, fitted, mod(rank + 1, procs), 2, &
      MPI_COMM_WORLD, status, ierr)
    call check(other%kind == mod(rank + 1, procs) .and. other%place(1) == other%kind .and. other%place(2) == -1, 'struct')
    call MPI_Type_free(made, ierr)
    call MPI_Type_free(fitted, ierr)
    call check(made == MPI_DATATYPE_NULL .and. fitted == MPI_DATATYPE_NULL, 'Type_free')

    ! Addresses with MPI_BOTTOM.
    call MPI_Get_address(hidden, places(1), ierr)
    lengths(1) = 1
    call MPI_Type_create_hindexed(1, lengths, places, MPI_INTEGER, made, ierr)
    call MPI_Type_commit(made, ierr)
    hidden = -1
    size = rank
    call MPI_Sendrecv(size, 1, MPI_INTEGER, rank, 3, MPI_BOTTOM, 1, made, rank, 3, MPI_COMM_WORLD, status, ierr)
    call check(hidden == rank, 'MPI_BOTTOM')
    call MPI_Type_free(made, ierr)

    m = reshape((/ (i, i = 1, 24) /), (/ 4, 6 /))
    s = 0
    call MPI_Type_create_subarray(2, (/ 4, 6 /), (/ 2, 3 /), (/ 1, 2 /), MPI_ORDER_FORTRAN, MPI_INTEGER, made, ierr)
    call MPI_Type_commit(made, ierr)
    call MPI_Sendrecv(m, 1, made, rank, 4, s, 1, made, rank, 4, MPI_COMM_WORLD, status, ierr)
    call check(all(s(2:3, 3:5) == m(2:3, 3:5)) .and. sum(s) == sum(m(2:3, 3:5)), 'subarray')
    call MPI_Get_count(status, made, size, ierr)
    call check(size == 1, 'count of a datatype')
    call MPI_Type_free(made, ierr)
  end subroutine datatypes

  subroutine collectives
    integer :: a(4), b(4), counts(4), displs(4), types(4), i, request, pair(2), best(2)
    integer, volatile :: later
    logical :: l
    a = -1
    a(rank + 1) = rank
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call check(all(a == (/ 0, 1, 2, 3 /)), 'Allgather in place')
    counts = 1
    displs = (/ 3, 2, 1, 0 /)
    call MPI_Gatherv(rank, 1, MPI_INTEGER, b, counts, displs, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
    if (rank == 0) call check(all(b == (/ 3, 2, 1, 0 /)), 'Gatherv')
    call MPI_Bcast(b, 4, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
    call check(all(b == (/ 3, 2, 1, 0 /)), 'Bcast')
    call MPI_Scatter(b, 1, MPI_INTEGER, i, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
    call check(i == 3 - rank, 'Scatter')
    a = 10 * rank + (/ 0, 1, 2, 3 /)
    call MPI_Alltoall(a, 1, MPI_INTEGER, b, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call check(all(b == (/ 0, 10, 20, 30 /) + rank), 'Alltoall')
    types = MPI_INTEGER
    displs = (/ 0, 4, 8, 12 /)
    b = -1
    call MPI_Alltoallw(a, counts, displs, types, b, counts, displs, types, MPI_COMM_WORLD, ierr)
    call check(all(b == (/ 0, 10, 20, 30 /) + rank), 'Alltoallw')
    if (rank == 0) then
      i = 1
      call MPI_Reduce(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
      call check(i == 10, 'Reduce in place')
    else
      call MPI_Reduce(rank + 1, i, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
    end if
    call MPI_Scan(1, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(i == rank + 1, 'Scan')
    call MPI_Reduce_scatter(a, i, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(i == 60 + 4 * rank, 'Reduce_scatter')
    call MPI_Allreduce(rank < 3, l, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
    call check(.not. l, 'LAND')
    call MPI_Allreduce(rank == 3, l, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
    call check(l, 'LOR')
    pair = (/ mod(rank + 1, 4), rank /)
    call MPI_Allreduce(pair, best, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
    call check(best(1) == 3 .and. best(2) == 2, 'MAXLOC')
    later = 0
    call MPI_Iallreduce(rank, later, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call check(later == 6, 'Iallreduce')
    call MPI_Ibarrier(MPI_COMM_WORLD, request, ierr)
    l = .false.
    do while (.not. l)
      call MPI_Test(request, l, MPI_STATUS_IGNORE, ierr)
    end do
    call check(request == MPI_REQUEST_NULL, 'Ibarrier')
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end subroutine collectives

  subroutine communicators
    integer :: half, group, sub, members(2), n, inter, merged, pairs, result, line, dims(2), ranges(3, 1), length
    logical :: flag, wrap(2), keep(2)
    character(len=20) :: name
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half, ierr)
    call MPI_Comm_rank(half, n, ierr)
    call check(n == 1 - rank / 2, 'Split')
    call MPI_Comm_set_name(half, ' half ', ierr)
    call MPI_Comm_get_name(half, name, length, ierr)
    call check(name == ' half' .and. length == 5, 'names')
    call MPI_Comm_dup(half, pairs, ierr)
    call MPI_Comm_compare(half, pairs, result, ierr)
    call check(result == MPI_CONGRUENT .and. half /= pairs, 'Dup')
    call MPI_Comm_free(pairs, ierr)
    call check(pairs == MPI_COMM_NULL, 'Comm_free')
    call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
    members = (/ 3, 0 /)
    call MPI_Group_incl(group, 2, members, sub, ierr)
    call MPI_Comm_create(MPI_COMM_WORLD, sub, pairs, ierr)
    call check((pairs /= MPI_COMM_NULL) .eqv. (rank == 3 .or. rank == 0), 'Comm_create')
    if (pairs /= MPI_COMM_NULL) call MPI_Comm_free(pairs, ierr)
    call MPI_Group_free(sub, ierr)
    call check(sub == MPI_GROUP_NULL, 'Group_free')
    ranges(:, 1) = (/ 0, 2, 2 /)
    call MPI_Group_range_incl(group, 1, ranges, sub, ierr)
    call MPI_Group_size(sub, n, ierr)
    call MPI_Group_translate_ranks(sub, 2, (/ 0, 1 /), group, members, ierr)
    call check(n == 2 .and. all(members == (/ 0, 2 /)), 'Group_range_incl')
    call MPI_Group_free(sub, ierr)
    call MPI_Group_free(group, ierr)
    call MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, merge(3, 2, mod(rank, 2) == 0), 5, inter, ierr)
    call MPI_Comm_test_inter(inter, flag, ierr)
    call MPI_Comm_remote_size(inter, n, ierr)
    call check(flag .and. n == 2, 'Intercomm_create')
    call MPI_Intercomm_merge(inter, mod(rank, 2) == 0, merged, ierr)
    call MPI_Comm_rank(merged, n, ierr)
    call check((n >= 2) .eqv. (mod(rank, 2) == 0), 'Intercomm_merge')
    call MPI_Comm_free(merged, ierr)
    call MPI_Comm_free(inter, ierr)
    call MPI_Comm_free(half, ierr)

    dims = 2
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, (/ .true., .false. /), .false., pairs, ierr)
    call MPI_Topo_test(pairs, result, ierr)
    call check(result == MPI_CART, 'Topo_test')
    call MPI_Cart_get(pairs, 2, dims, wrap, members, ierr)
    call check(wrap(1) .and. .not. wrap(2) .and. members(1) == rank / 2 .and. members(2) == mod(rank, 2), 'Cart_get')
    call MPI_Cart_rank(pairs, members, n, ierr)
    call check(n == rank, 'Cart_rank')
    keep = (/ .false., .true. /)
    call MPI_Cart_sub(pairs, keep, line, ierr)
    call MPI_Comm_size(line, n, ierr)
    call check(n == 2, 'Cart_sub')
    call MPI_Comm_free(line, ierr)
    call MPI_Comm_free(pairs, ierr)
  end subroutine communicators

  subroutine operations
    integer :: op, same, a(2), b(2), pairs
    logical :: commutes
    call MPI_Op_create(worst, .true., op, ierr)
    call MPI_Op_create(worst, .false., same, ierr)
    call check(op /= same, 'two operations of one function')
    call MPI_Op_commutative(same, commutes, ierr)
    call check(.not. commutes, 'Op_commutative')
    call MPI_Type_contiguous(2, MPI_INTEGER, pairs, ierr)
    call MPI_Type_commit(pairs, ierr)
    a = (/ -rank, rank /)
    call MPI_Allreduce(a, b, 2, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
    call check(b(1) == -3 .and. b(2) == 3, 'an operation of the program')
    call MPI_Allreduce(a, b, 1, pairs, same, MPI_COMM_WORLD, ierr)
    call check(b(1) == -3 .and. b(2) == 3, 'and of a datatype of the program')
    call MPI_Op_free(op, ierr)
    call MPI_Op_free(same, ierr)
    call check(op == MPI_OP_NULL .and. same == MPI_OP_NULL, 'Op_free')
    call MPI_Type_free(pairs, ierr)
  end subroutine operations

  subroutine errors
    integer :: class, length, handler, status(MPI_STATUS_SIZE), v(4)
    character(len=MPI_MAX_ERROR_STRING) :: text
    call MPI_Comm_get_errhandler(MPI_COMM_WORLD, handler, ierr)
    call check(handler == MPI_ERRORS_RETURN, 'Get_errhandler')
    call MPI_Send(rank, 1, MPI_INTEGER, procs, 1, MPI_COMM_WORLD, ierr)
    call MPI_Error_class(ierr, class, handler)
    call check(class == MPI_ERR_RANK, 'ERR_RANK')
    text = repeat('x', len(text))
    call MPI_Error_string(ierr, text, length, handler)
    call check(length > 0 .and. len_trim(text) == length, 'Error_string')
    call MPI_Send(rank, 1, MPI_DATATYPE_NULL, 0, 1, MPI_COMM_WORLD, ierr)
    call MPI_Error_class(ierr, class, handler)
    call check(class == MPI_ERR_TYPE, 'ERR_TYPE')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
    call MPI_Barrier(123456789, ierr)
    call MPI_Error_class(ierr, class, handler)
    call check(class == MPI_ERR_COMM, 'a number that is no communicator')
    v = rank
    call MPI_Sendrecv(v, 4, MPI_INTEGER, rank, 6, class, 1, MPI_INTEGER, rank, 6, MPI_COMM_WORLD, status, ierr)
    call MPI_Error_class(ierr, class, handler)
    call check(class == MPI_ERR_TRUNCATE, 'ERR_TRUNCATE')
  end subroutine errors
end program handles

! worst keeps what is farther from zero. It knows MPI_INTEGER, and pairs of them.
subroutine worst(in, inout, length, type)
  implicit none
  include 'mpif.h'
  integer :: length, type, in(*), inout(*), size, ierr, i
  call MPI_Type_size(type, size, ierr)
  if (length > 0 .and. size /= 4 .and. size /= 8) call MPI_Abort(MPI_COMM_WORLD, 3, ierr)
  if (size == 4 .and. type /= MPI_INTEGER) call MPI_Abort(MPI_COMM_WORLD, 4, ierr)
  do i = 1, length * size / 4
    if (abs(in(i)) > abs(inout(i))) inout(i) = in(i)
  end do
end subroutine worst
