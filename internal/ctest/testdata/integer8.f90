! A program that is compiled with -fdefault-integer-8: INTEGER and LOGICAL have 8 bytes. It runs
! with four procs.
program integer8
  use mpi
  implicit none
  integer :: wrong = 0, rank, procs, right, left, ierr
  integer, parameter :: bytes = 8
  integer :: copies = 0, handled = 0

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, procs, ierr)
  right = mod(rank + 1, procs)
  left = mod(rank + procs - 1, procs)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
  call messages
  call collectives
  call types
  call groups
  call topologies
  call callbacks
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
  if (wrong /= 0) stop 1
  if (rank == 0) print '(A)', 'OK integer8'

contains

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    print *, 'rank', rank, ': not so: ', what
    wrong = wrong + 1
  end subroutine check

  subroutine messages
    integer :: a(6), b(6), i, n, status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 4), r(4), indices(4), class
    logical :: flag
    integer(kind=4) :: half
    call MPI_Type_size(MPI_INTEGER, n, ierr)
    call check(n == bytes, 'MPI_INTEGER is INTEGER')
    call MPI_Type_size(MPI_LOGICAL, n, ierr)
    call check(n == bytes, 'MPI_LOGICAL is LOGICAL')
    call check(MPI_2INTEGER == MPI_DATATYPE_NULL, 'there is no pair of INTEGERs of 8 bytes')
    call MPI_Sizeof(n, n, ierr)
    call check(n == bytes, 'MPI_Sizeof')
    a = [(rank * huge(0) / 8 + i, i = 1, 6)]
    b = -1
    call MPI_Sendrecv(a, 5, MPI_INTEGER, right, 11, b, 6, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
    call check(ierr == MPI_SUCCESS .and. status(MPI_SOURCE) == left .and. status(MPI_TAG) == 11, 'a status')
    call MPI_Get_count(status, MPI_INTEGER, n, ierr)
    call check(n == 5 .and. all(b(1:5) == [(left * huge(0) / 8 + i, i = 1, 5)]) .and. b(6) == -1, 'what came')
    do i = 1, 4
      call MPI_Irecv(b(i), 1, MPI_INTEGER, left, i, MPI_COMM_WORLD, r(i), ierr)
    end do
    call MPI_Testall(4, r, flag, statuses, ierr)
    call check(.not. flag, 'nothing came')
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Send(rank + 30, 1, MPI_INTEGER, right, 3, MPI_COMM_WORLD, ierr)
    call MPI_Waitany(4, r, n, status, ierr)
    call check(n == 3 .and. r(3) == MPI_REQUEST_NULL .and. status(MPI_TAG) == 3 .and. b(3) == left + 30, 'Waitany')
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Send(rank, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, ierr)
    call MPI_Waitsome(4, r, n, indices, statuses, ierr)
    call check(n == 1 .and. indices(1) == 1 .and. statuses(MPI_TAG, 1) == 1, 'Waitsome')
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    do i = 2, 4, 2
      call MPI_Send(rank, 1, MPI_INTEGER, right, i, MPI_COMM_WORLD, ierr)
    end do
    call MPI_Waitall(4, r, statuses, ierr)
    call check(statuses(MPI_TAG, 2) == 2 .and. statuses(MPI_TAG, 4) == 4 .and. all(r == MPI_REQUEST_NULL), 'Waitall')
    call MPI_Iprobe(left, 99, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, ierr)
    call check(.not. flag, 'Iprobe')
    half = 0
    call MPI_Send(half, 1, MPI_INTEGER4, 4 * (huge(half) + 1_8), 1, MPI_COMM_WORLD, ierr)
    call MPI_Error_class(ierr, class, n)
    call check(class == MPI_ERR_RANK, 'a rank that does not fit is not taken for another')
  end subroutine messages

  subroutine collectives
    integer :: a(8), all4(4), counts(4), displs(4), types(4), r
    logical :: yes, all_yes
    a = rank + 1
    call MPI_Allreduce(a, all4, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(all(all4 == 10), 'Allreduce')
    yes = rank /= 2
    call MPI_Allreduce(yes, all_yes, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
    call check(.not. all_yes, 'LAND')
    counts = 1
    displs = [3, 2, 1, 0]
    call MPI_Allgatherv(rank, 1, MPI_INTEGER, all4, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call check(all(all4 == [3, 2, 1, 0]), 'Allgatherv')
    types = MPI_INTEGER
    displs = [0, 1, 2, 3] * bytes
    call MPI_Ialltoallw(a, counts, displs, types, all4, counts, displs, types, MPI_COMM_WORLD, r, ierr)
    call MPI_Wait(r, MPI_STATUS_IGNORE, ierr)
    call check(all(all4 == [1, 2, 3, 4]), 'Ialltoallw')
  end subroutine collectives

  subroutine types
    integer :: t, n, a(4), b(4)
    call MPI_Type_indexed(2, [1, 2], [0, 2], MPI_INTEGER, t, ierr)
    call MPI_Type_commit(t, ierr)
    a = [1, 2, 3, 4]
    b = 0
    call MPI_Sendrecv(a, 1, t, rank, 1, b, 1, t, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call check(all(b == [1, 0, 3, 4]), 'Type_indexed')
    call MPI_Type_free(t, ierr)
    call MPI_Type_vector(2, 1, 3, MPI_REAL, t, ierr)
    call made_of(t, MPI_COMBINER_VECTOR, [2, 1, 3], [integer(kind=MPI_ADDRESS_KIND) ::], [MPI_REAL])
    call MPI_Type_create_hvector(2, 1, 64_MPI_ADDRESS_KIND, MPI_REAL, t, ierr)
    call made_of(t, MPI_COMBINER_HVECTOR, [2, 1], [64_MPI_ADDRESS_KIND], [MPI_REAL])
    call MPI_Type_create_struct(2, [1, 3], [0_MPI_ADDRESS_KIND, 8_MPI_ADDRESS_KIND], [MPI_REAL, MPI_INTEGER4], t, ierr)
    call made_of(t, MPI_COMBINER_STRUCT, [2, 1, 3], [0_MPI_ADDRESS_KIND, 8_MPI_ADDRESS_KIND], [MPI_REAL, MPI_INTEGER4])
    call MPI_Type_create_hindexed_block(2, 3, [0_MPI_ADDRESS_KIND, 80_MPI_ADDRESS_KIND], MPI_REAL, t, ierr)
    call made_of(t, MPI_COMBINER_HINDEXED_BLOCK, [2, 3], [0_MPI_ADDRESS_KIND, 80_MPI_ADDRESS_KIND], [MPI_REAL])
    call MPI_Type_create_resized(MPI_REAL, 0_MPI_ADDRESS_KIND, 24_MPI_ADDRESS_KIND, t, ierr)
    call made_of(t, MPI_COMBINER_RESIZED, [integer ::], [0_MPI_ADDRESS_KIND, 24_MPI_ADDRESS_KIND], [MPI_REAL])
    call MPI_Type_create_darray(4, 1, 1, [8], [MPI_DISTRIBUTE_BLOCK], [MPI_DISTRIBUTE_DFLT_DARG], [4], MPI_ORDER_FORTRAN, &
      MPI_REAL, t, ierr)
    call made_of(t, MPI_COMBINER_DARRAY, [4, 1, 1, 8, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_DFLT_DARG, 4, MPI_ORDER_FORTRAN], &
      [integer(kind=MPI_ADDRESS_KIND) ::], [MPI_REAL])
    call MPI_Type_create_subarray(2, [4, 4], [2, 2], [1, 1], MPI_ORDER_FORTRAN, MPI_INTEGER, t, ierr)
    call MPI_Type_size(t, n, ierr)
    call check(n == 4 * bytes, 'subarray')
    call made_of(t, MPI_COMBINER_SUBARRAY, [2, 4, 4, 2, 2, 1, 1, MPI_ORDER_FORTRAN], &
      [integer(kind=MPI_ADDRESS_KIND) ::], [MPI_INTEGER])
  end subroutine types

  ! made_of compares what a datatype is made of, and frees it.
  subroutine made_of(t, combiner, ints, addresses, datatypes)
    integer, intent(inout) :: t
    integer, intent(in) :: combiner, ints(:), datatypes(:)
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: addresses(:)
    integer :: numbers(3), how, got(20), types(5), n
    integer(kind=MPI_ADDRESS_KIND) :: where(5)
    call MPI_Type_get_envelope(t, numbers(1), numbers(2), numbers(3), how, ierr)
    call check(ierr == MPI_SUCCESS .and. how == combiner, 'how a datatype was made')
    call check(all(numbers == [size(ints), size(addresses), size(datatypes)]), 'the numbers of its parts')
    call MPI_Type_get_contents(t, 20, 5, 5, got, where, types, ierr)
    call check(ierr == MPI_SUCCESS .and. all(got(:size(ints)) == ints) .and. all(where(:size(addresses)) == addresses) .and. &
      all(types(:size(datatypes)) == datatypes), 'its parts')
    call MPI_Type_get_contents(t, numbers(1), numbers(2), numbers(3) - 1, got, where, types, ierr)
    call MPI_Error_class(ierr, n, how)
    call check(n == MPI_ERR_ARG, 'too little room for its parts')
    call MPI_Type_free(t, ierr)
  end subroutine made_of

  subroutine groups
    integer :: world, some, ranks(2), n
    call MPI_Comm_group(MPI_COMM_WORLD, world, ierr)
    call MPI_Group_range_incl(world, 1, reshape([3, 1, -2], [3, 1]), some, ierr)
    call MPI_Group_size(some, n, ierr)
    call check(n == 2, 'Group_range_incl')
    call MPI_Group_translate_ranks(some, 2, [0, 1], world, ranks, ierr)
    call check(all(ranks == [3, 1]), 'translated ranks')
    call MPI_Group_free(some, ierr)
    call MPI_Group_incl(world, 2, [2, 0], some, ierr)
    call MPI_Group_rank(some, n, ierr)
    call check(n == merge(1, merge(0, MPI_UNDEFINED, rank == 2), rank == 0), 'Group_incl')
    call MPI_Group_free(some, ierr)
    call MPI_Group_free(world, ierr)
  end subroutine groups

  subroutine topologies
    integer :: grid, row, dims(2), coords(2), n, got(2), sources(1), weights(1), dests(1), graph
    logical :: periods(2), weighted
    dims = 0
    call MPI_Dims_create(procs, 2, dims, ierr)
    call check(all(dims == 2), 'Dims_create')
    periods = [.true., .false.]
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., grid, ierr)
    call MPI_Cart_get(grid, 2, got, periods, coords, ierr)
    call check(all(got == 2) .and. periods(1) .and. .not. periods(2), 'Cart_get')
    call MPI_Cart_rank(grid, coords, n, ierr)
    call check(n == rank, 'Cart_rank')
    call MPI_Cart_sub(grid, [.true., .false.], row, ierr)
    call MPI_Comm_size(row, n, ierr)
    call check(n == 2, 'Cart_sub')
    call MPI_Comm_free(row, ierr)
    call MPI_Comm_free(grid, ierr)
    call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [rank], [1], [right], [5], MPI_INFO_NULL, .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, n, dims(1), weighted, ierr)
    call check(weighted, 'a graph with weights')
    call MPI_Dist_graph_neighbors(graph, 1, sources, weights, 1, dests, MPI_UNWEIGHTED, ierr)
    call check(sources(1) == left .and. weights(1) == 5 .and. dests(1) == right, 'its neighbors')
    call MPI_Comm_free(graph, ierr)
  end subroutine topologies

  subroutine callbacks
    integer :: op, key, comm, handler, v(2), most(2)
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Op_create(largest, .true., op, ierr)
    v = [rank, -rank]
    call MPI_Allreduce(v, most, 2, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
    call check(all(most == [3, 0]), 'an operation of the program')
    call MPI_Op_free(op, ierr)
    call MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, key, 3_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 2_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
    call MPI_Comm_get_attr(comm, key, value, flag, ierr)
    call check(flag .and. value == 5 .and. copies == 1, 'the copy of an attribute')
    call MPI_Comm_create_errhandler(handle, handler, ierr)
    call MPI_Comm_set_errhandler(comm, handler, ierr)
    call MPI_Barrier(comm, ierr)
    call MPI_Send(v, 1, MPI_INTEGER, 9, 1, comm, ierr)
    call check(ierr /= MPI_SUCCESS .and. handled == 1, 'an error handler of the program')
    call MPI_Errhandler_free(handler, ierr)
    call MPI_Comm_free(comm, ierr)
  end subroutine callbacks

  subroutine largest(in, inout, length, type)
    integer :: length, type, in(length), inout(length)
    if (type /= MPI_INTEGER) call MPI_Abort(MPI_COMM_WORLD, 3, ierr)
    inout = max(in, inout)
  end subroutine largest

  subroutine copy(old, keyval, extra, in, out, flag, ierror)
    integer :: old, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra, in, out
    logical :: flag
    copies = copies + 1
    out = in + extra
    flag = old == MPI_COMM_WORLD .and. keyval > 0
    ierror = MPI_SUCCESS
  end subroutine copy

  subroutine handle(comm, code)
    integer :: comm, code
    if (comm /= MPI_COMM_NULL .and. code /= MPI_SUCCESS) handled = handled + 1
  end subroutine handle
end program integer8
