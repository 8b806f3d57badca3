! What a Fortran program sees of MPI through mpi_f08: sections of arrays, arguments left out,
! functions of its own, handles, statuses, large counts. It runs with four procs, and a folder for
! files as its argument; INTEGER may have 8 bytes.
module functions
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: copied = 0, deleted = 0, handled = 0, queried = 0, freed = 0, cancelled = 0
contains
  subroutine longest(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    if (datatype /= MPI_INTEGER) call MPI_Abort(MPI_COMM_WORLD, 3)
    where (abs(in) > abs(inout)) inout = in
  end subroutine longest
  subroutine longest_c(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(kind=MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    integer :: n
    n = int(len)
    call longest(invec, inoutvec, n, datatype)
  end subroutine longest_c
  subroutine copy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    copied = copied + 1
    attribute_val_out = attribute_val_in + extra_state
    flag = oldcomm == MPI_COMM_WORLD .and. comm_keyval > 0
    ierror = MPI_SUCCESS
  end subroutine copy
  subroutine delete(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (comm /= MPI_COMM_NULL .and. comm_keyval > 0 .and. extra_state == 1000) deleted = deleted + int(attribute_val)
    ierror = MPI_SUCCESS
  end subroutine delete
  subroutine refuse(oldtype, type_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Datatype) :: oldtype
    integer :: type_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    flag = .false.
    attribute_val_out = attribute_val_in + extra_state + type_keyval + oldtype%MPI_VAL
    ierror = MPI_ERR_OTHER
  end subroutine refuse
  subroutine handle(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code, class
    call MPI_Error_class(error_code, class)
    if (comm == MPI_COMM_SELF .and. class == MPI_ERR_RANK) handled = handled + 1
  end subroutine handle
  subroutine query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    queried = queried + 1
    status%MPI_SOURCE = int(extra_state)
    status%MPI_TAG = 77
    call MPI_Status_set_elements(status, MPI_INTEGER, 5)
    call MPI_Status_set_cancelled(status, .false.)
    ierror = MPI_SUCCESS
  end subroutine query
  subroutine let_go(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    freed = freed + int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine let_go
  subroutine cancel(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    if (.not. complete) cancelled = cancelled + int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine cancel
  subroutine extent(datatype, ext, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: ext, extra_state, lb
    integer :: ierror
    call MPI_Type_get_extent(datatype, lb, ext, ierror)
    if (extra_state /= 5) ierror = MPI_ERR_OTHER
  end subroutine extent
  ! flip has numbers in the file as their negatives.
  subroutine flip(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: user(:), file(:)
    call c_f_pointer(userbuf, user, [int(position) + count])
    call c_f_pointer(filebuf, file, [count])
    ierror = MPI_SUCCESS
    if (datatype /= MPI_INTEGER .or. extra_state /= 5) ierror = MPI_ERR_OTHER
    user(position + 1:) = -file
  end subroutine flip
  subroutine flop(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: user(:), file(:)
    call c_f_pointer(userbuf, user, [int(position) + count])
    call c_f_pointer(filebuf, file, [count])
    ierror = MPI_SUCCESS
    if (datatype /= MPI_INTEGER .or. extra_state /= 5) ierror = MPI_ERR_OTHER
    file = -user(position + 1:)
  end subroutine flop
end module functions

program f08
  use functions
  implicit none
  integer :: wrong = 0, rank, procs, right, left
  integer, parameter :: bytes = storage_size(0) / 8
  integer(kind=MPI_ADDRESS_KIND), parameter :: wide = bytes

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, procs)
  right = mod(rank + 1, procs)
  left = mod(rank + procs - 1, procs)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call basics
  call sections
  call collectives
  call later
  call requests
  call statuses
  call callbacks
  call counts
  call windows
  call files
  call strings
  call topologies
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (wrong /= 0) stop 1
  if (rank == 0) print '(A)', 'OK f08'

contains

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    print *, 'rank', rank, ': not so: ', what
    wrong = wrong + 1
  end subroutine check

  subroutine failed(ierror, with, what)
    integer, intent(in) :: ierror, with
    character(*), intent(in) :: what
    integer :: class
    call MPI_Error_class(ierror, class)
    call check(class == with, what)
  end subroutine failed

  subroutine basics
    integer :: ierror, size
    logical :: flag
    type(MPI_Comm) :: comm, copy
    real(kind=8) :: x(3)
    complex :: z
    character(len=4) :: word = 'abcd'
    call check(procs == 4, 'four procs')
    call MPI_Initialized(flag, ierror)
    call check(flag .and. ierror == MPI_SUCCESS, 'Initialized')
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    copy = comm
    call check(comm == copy .and. comm /= MPI_COMM_WORLD, 'handles compare')
    call MPI_Comm_free(comm, ierror)
    call check(comm == MPI_COMM_NULL .and. ierror == MPI_SUCCESS, 'Comm_free')
    call MPI_Sizeof(x, size, ierror)
    call check(size == 8, 'Sizeof a real of 8 bytes')
    call MPI_Sizeof(z, size)
    call check(size == 8, 'Sizeof a complex')
    call check(MPI_Wtime() > 0 .and. MPI_Wtick() > 0, 'the clock')
    call MPI_Bcast(word, 4, MPI_CHARACTER, 0, MPI_COMM_WORLD)
    call check(MPI_SUBARRAYS_SUPPORTED, 'subarrays')
  end subroutine basics

  ! Sections of arrays that do not lie in one piece, in calls that block.
  subroutine sections
    integer :: a(20), b(20), m(6, 5), n(6, 5), i, position, ierror
    integer :: packed(10)
    integer(kind=MPI_ADDRESS_KIND) :: outside
    type(MPI_Status) :: status
    type(MPI_Datatype) :: pair
    a = [(100 * rank + i, i = 1, 20)]
    b = -1
    call MPI_Sendrecv(a(1:20:2), 10, MPI_INTEGER, right, 1, b(2:20:2), 10, MPI_INTEGER, left, 1, MPI_COMM_WORLD, status)
    call check(all(b(2:20:2) == [(100 * left + i, i = 1, 20, 2)]), 'what a section gets')
    call check(all(b(1:19:2) == -1), 'what is between the section is left alone')
    b = -1
    call MPI_Sendrecv(a, 3, MPI_INTEGER, right, 1, b(20:2:-2), 10, MPI_INTEGER, left, 1, MPI_COMM_WORLD, status)
    call check(all(b(20:16:-2) == 100 * left + [1, 2, 3]) .and. all(b(1:15) == -1), 'a section that goes backwards, in part')
    m = reshape([(100 * rank + i, i = 1, 30)], [6, 5])
    n = -1
    if (rank == 0) then
      call MPI_Send(m(2:5:3, 2:4:2), 4, MPI_INTEGER, 1, 2, MPI_COMM_WORLD)
    else if (rank == 1) then
      call MPI_Recv(n(1:6:5, 1:5:4), 4, MPI_INTEGER, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call check(n(1, 1) == 8 .and. n(6, 1) == 11 .and. n(1, 5) == 20 .and. n(6, 5) == 23, 'sections of a matrix')
      call check(count(n == -1) == 26, 'the rest of the matrix')
    end if
    call MPI_Type_contiguous(2, MPI_INTEGER, pair)
    call MPI_Type_commit(pair)
    b = -1
    call MPI_Sendrecv(a(1:19:6), 2, pair, right, 1, b(1:20:5), 2, pair, left, 1, MPI_COMM_WORLD, status)
    call check(all(b(1:20:5) == 100 * left + [1, 7, 13, 19]), 'a datatype over elements')
    call MPI_Type_free(pair)
    position = 0
    call MPI_Pack(a(1:10:3), 4, MPI_INTEGER, packed, 10 * bytes, position, MPI_COMM_WORLD)
    call check(position == 4 * bytes .and. all(packed(1:4) == 100 * rank + [1, 4, 7, 10]), 'Pack')
    b = -1
    outside = 0
    call MPI_Pack_external('external32', a(1:4:3), 2, MPI_INTEGER, packed, 2 * wide, outside)
    outside = 0
    call MPI_Unpack_external('external32', packed, 2 * wide, outside, b(1:4:2), 2, MPI_INTEGER, ierror)
    call check(outside == 2 * bytes .and. all(b(1:4:2) == 100 * rank + [1, 4]), 'external32 and back')
    call check(ierror == MPI_SUCCESS, 'Unpack_external')
  end subroutine sections

  subroutine collectives
    integer :: a(8), all4(0:7), i, ierror, counts(4), displs(4)
    type(MPI_Datatype) :: types(4)
    a = rank
    all4 = -1
    call MPI_Gather(a(1:8:7), 1, MPI_INTEGER, all4(0:6:2), 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank == 0) call check(all(all4(0:6:2) == [0, 1, 2, 3]) .and. all(all4(1:7:2) == -1), 'Gather into a section')
    a = [(rank + i, i = 1, 8)]
    all4 = -1
    call MPI_Allreduce(a(1:8:2), all4(0:7:2), 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(all(all4(0:7:2) == [10, 18, 26, 34]) .and. all(all4(1:7:2) == -1), 'Allreduce of sections')
    call MPI_Allreduce(MPI_IN_PLACE, a(1:8:4), 2, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierror)
    call check(a(1) == 4 .and. a(5) == 8 .and. a(2) == rank + 2, 'a section in place')
    a = rank
    all4 = -1
    counts = 1
    displs = [0, 1, 2, 3]
    call MPI_Alltoallv(a(1:8:2), counts, displs, MPI_INTEGER, all4(7:0:-2), counts, displs, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(all4(7:0:-2) == [0, 1, 2, 3]), 'Alltoallv of sections')
    types = MPI_INTEGER
    displs = bytes * displs
    all4 = -1
    call MPI_Alltoallw(a, counts, displs, types, all4, counts, displs, types, MPI_COMM_WORLD)
    call check(all(all4(0:3) == [0, 1, 2, 3]), 'Alltoallw')
  end subroutine collectives

  ! Sections in calls that go on.
  subroutine later
    integer, asynchronous :: a(30), b(30), m(5, 4, 3), n(5, 4, 3)
    integer :: i, ierror
    type(MPI_Request) :: r(2)
    type(MPI_Datatype) :: odd
    a = [(1000 * rank + i, i = 1, 30)]
    b = -1
    call MPI_Irecv(b(3:30:3), 10, MPI_INTEGER, left, 3, MPI_COMM_WORLD, r(1))
    call MPI_Isend(a(1:30:3), 10, MPI_INTEGER, right, 3, MPI_COMM_WORLD, r(2), ierror)
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
    call check(all(b(3:30:3) == [(1000 * left + i, i = 1, 30, 3)]) .and. count(b == -1) == 20, 'Isend and Irecv of sections')
    call check(r(1) == MPI_REQUEST_NULL .and. r(2) == MPI_REQUEST_NULL, 'the requests are done')
    m = reshape([(1000 * rank + i, i = 1, 60)], [5, 4, 3])
    n = -1
    ! 5 of the 2 x 2 x 2 elements: one part of the section is used in part.
    call MPI_Irecv(n(1:5:4, 1:4:2, 1:3:2), 5, MPI_INTEGER, left, 4, MPI_COMM_WORLD, r(1))
    call MPI_Issend(m(2:4:2, 1:4:2, 2:3), 5, MPI_INTEGER, right, 4, MPI_COMM_WORLD, r(2))
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
    call check(all([n(1, 1, 1), n(5, 1, 1), n(1, 3, 1), n(5, 3, 1), n(1, 1, 3)] == 1000 * left + [22, 24, 32, 34, 42]), &
      'part of a section of three dimensions')
    call check(count(n == -1) == 55, 'the rest of three dimensions')
    b = -1
    call MPI_Recv_init(b(1:30:10), 3, MPI_INTEGER, left, 5, MPI_COMM_WORLD, r(1))
    call MPI_Send_init(a(2:30:10), 3, MPI_INTEGER, right, 5, MPI_COMM_WORLD, r(2))
    do i = 1, 2
      a(12) = i
      call MPI_Startall(2, r)
      call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
      call check(all(b(1:30:10) == [1000 * left + 2, i, 1000 * left + 22]), 'persistent requests of sections')
    end do
    call MPI_Request_free(r(1))
    call MPI_Request_free(r(2))
    b = -1
    call MPI_Iallgather(a(1:30:29), 1, MPI_INTEGER, b(1:7:2), 1, MPI_INTEGER, MPI_COMM_SELF, r(1), ierror)
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    call check(ierror == MPI_SUCCESS .and. b(1) == a(1), 'Iallgather of sections')
    call MPI_Ibcast(a(1:9:4), 3, MPI_INTEGER, 2, MPI_COMM_WORLD, r(1))
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    call check(all(a(1:9:4) == 2000 + [1, 5, 9]), 'Ibcast of a section')
    ! What cannot be told of a datatype is refused.
    call MPI_Iallreduce(a(1:30:3), b, 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r(1), ierror)
    call failed(ierror, MPI_ERR_BUFFER, 'an operation that goes on refuses a section')
    call MPI_Isend(a(1:30:3), 11, MPI_INTEGER, right, 3, MPI_COMM_WORLD, r(1), ierror)
    call failed(ierror, MPI_ERR_BUFFER, 'more than there is in a section')
    call MPI_Type_vector(2, 1, 2, MPI_INTEGER, odd)
    call MPI_Type_commit(odd)
    call MPI_Isend(a(1:30:3), 1, odd, right, 3, MPI_COMM_WORLD, r(1), ierror)
    call failed(ierror, MPI_ERR_TYPE, 'a datatype with gaps in a section')
    call MPI_Type_free(odd)
  end subroutine later

  subroutine requests
    integer, asynchronous :: a(4)
    integer :: indices(4), n, place, i
    logical :: flag
    type(MPI_Request) :: r(4)
    type(MPI_Status) :: s(4)
    type(MPI_Message) :: message
    do i = 1, 4
      call MPI_Irecv(a(i), 1, MPI_INTEGER, left, i, MPI_COMM_WORLD, r(i))
    end do
    call MPI_Testall(4, r, flag, s)
    call check(.not. flag, 'Testall')
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Send(3 + rank, 1, MPI_INTEGER, right, 3, MPI_COMM_WORLD)
    call MPI_Waitany(4, r, place, s(1))
    call check(place == 3 .and. r(3) == MPI_REQUEST_NULL .and. a(3) == 3 + left .and. s(1)%MPI_TAG == 3, 'Waitany counts from 1')
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Send(rank, 1, MPI_INTEGER, right, 2, MPI_COMM_WORLD)
    call MPI_Waitsome(4, r, n, indices, s)
    call check(n == 1 .and. indices(1) == 2 .and. s(1)%MPI_SOURCE == left, 'Waitsome counts from 1')
    call MPI_Cancel(r(1))
    call MPI_Wait(r(1), s(1))
    call MPI_Test_cancelled(s(1), flag)
    call check(flag, 'Cancel')
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Send(rank, 1, MPI_INTEGER, right, 4, MPI_COMM_WORLD)
    call MPI_Wait(r(4), MPI_STATUS_IGNORE)
    call MPI_Testany(4, r, place, flag, s(1))
    call check(flag .and. place == MPI_UNDEFINED, 'Testany without requests')
    call MPI_Send(rank, 1, MPI_INTEGER, right, 9, MPI_COMM_WORLD)
    call MPI_Mprobe(left, 9, MPI_COMM_WORLD, message, s(1))
    call MPI_Mrecv(a(1), 1, MPI_INTEGER, message, s(2))
    call check(message == MPI_MESSAGE_NULL .and. a(1) == left, 'Mprobe and Mrecv')
  end subroutine requests

  subroutine statuses
    type(MPI_Status) :: s, back
    integer :: old(MPI_STATUS_SIZE), n, ierror
    integer(kind=MPI_COUNT_KIND) :: large
    integer :: a(5)
    a = rank
    call MPI_Sendrecv(a, 3, MPI_INTEGER, right, 12, a, 5, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, s)
    call check(s%MPI_SOURCE == left .and. s%MPI_TAG == 12, 'source and tag')
    call MPI_Get_count(s, MPI_INTEGER, n)
    call MPI_Get_count(s, MPI_INTEGER, large)
    call check(n == 3 .and. large == 3, 'Get_count of both kinds')
    call MPI_Status_f082f(s, old, ierror)
    call check(old(MPI_SOURCE) == left .and. old(MPI_TAG) == 12 .and. ierror == MPI_SUCCESS, 'a status as INTEGERs')
    call MPI_Status_f2f08(old, back)
    call MPI_Get_elements(back, MPI_INTEGER, n)
    call check(n == 3 .and. back%MPI_TAG == 12, 'and back')
    call MPI_Status_set_tag(back, 5)
    call MPI_Status_get_tag(back, n)
    call check(n == 5, 'Status_set_tag')
  end subroutine statuses

  subroutine callbacks
    type(MPI_Op) :: op
    type(MPI_Errhandler) :: handler
    type(MPI_Comm) :: comm
    type(MPI_Datatype) :: other, twin
    type(MPI_Request) :: r
    type(MPI_Status) :: s
    integer(kind=MPI_ADDRESS_KIND) :: value
    integer :: key, v(3), result(3), n, ierror
    logical :: flag
    call MPI_Op_create(longest, .true., op)
    v = [rank, -5 * rank, 3]
    call MPI_Allreduce(v, result, 3, MPI_INTEGER, op, MPI_COMM_WORLD)
    call check(all(result == [3, -15, 3]), 'an operation of the program')
    call MPI_Op_commutative(op, flag)
    call check(flag, 'it commutes')
    call MPI_Op_free(op)
    call MPI_Op_create_c(longest_c, .false., op)
    call MPI_Allreduce(v, result, 3_MPI_COUNT_KIND, MPI_INTEGER, op, MPI_COMM_WORLD)
    call check(all(result == [3, -15, 3]), 'one for large counts')
    call MPI_Op_free(op)
    call check(op == MPI_OP_NULL, 'Op_free')

    call MPI_Comm_create_keyval(copy, delete, key, 1000_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 7_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_get_attr(comm, key, value, flag)
    call check(copied == 1 .and. flag .and. value == 1007, 'the copy of an attribute')
    call MPI_Comm_free(comm)
    call check(deleted == 1007, 'it is deleted')
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, key)
    call check(deleted == 1014, 'so is the other')
    call MPI_Comm_free_keyval(key)
    call check(key == MPI_KEYVAL_INVALID, 'Comm_free_keyval')
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 2_MPI_ADDRESS_KIND**40)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_get_attr(comm, key, value, flag)
    call check(flag .and. value == 2_MPI_ADDRESS_KIND**40, 'DUP_FN')
    call MPI_Comm_free(comm)
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, key)
    call MPI_Type_create_keyval(refuse, MPI_TYPE_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND)
    call MPI_Type_contiguous(2, MPI_INTEGER, other)
    call MPI_Type_set_attr(other, key, 1_MPI_ADDRESS_KIND)
    call MPI_Type_dup(other, twin, ierror)
    call failed(ierror, MPI_ERR_OTHER, 'a copy that fails')

    call MPI_Comm_create_errhandler(handle, handler)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, handler)
    call MPI_Send(v, 1, MPI_INTEGER, 5, 0, MPI_COMM_SELF, ierror)
    call failed(ierror, MPI_ERR_RANK, 'the error comes back')
    call MPI_Send(v, 1, MPI_INTEGER, 5, 0, MPI_COMM_SELF)
    call check(handled == 2, 'an error handler of the program')
    call MPI_Errhandler_free(handler)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)

    call MPI_Grequest_start(query, let_go, cancel, 9_MPI_ADDRESS_KIND, r)
    call MPI_Test(r, flag, s)
    call check(.not. flag, 'a request of the program is not done')
    call MPI_Cancel(r)
    call MPI_Grequest_complete(r)
    call MPI_Wait(r, s)
    call MPI_Get_count(s, MPI_INTEGER, n)
    call check(queried > 0 .and. freed == 9 .and. cancelled == 9 .and. s%MPI_TAG == 77 .and. s%MPI_SOURCE == 9 .and. n == 5, &
      'a request of the program')
  end subroutine callbacks

  subroutine counts
    integer(kind=MPI_COUNT_KIND) :: n, size, ints, addresses, larges, types, displs(2)
    integer :: small, combiner, a(4), b(4)
    type(MPI_Datatype) :: t
    n = 3
    call MPI_Type_contiguous(n, MPI_INTEGER, t)
    call MPI_Type_size(t, size)
    call MPI_Type_size(t, small)
    call check(size == 3 * bytes .and. small == 3 * bytes, 'Type_size of both kinds')
    if (bytes == 4) then ! else INTEGERs are large counts
      call MPI_Type_get_envelope(t, ints, addresses, larges, types, combiner)
      call check(larges == 1 .and. types == 1 .and. combiner == MPI_COMBINER_CONTIGUOUS, 'Type_get_envelope for large counts')
    end if
    call MPI_Type_free(t)
    displs = [0, 3 * bytes]
    call MPI_Type_create_hindexed_block(2_MPI_COUNT_KIND, 1_MPI_COUNT_KIND, displs, MPI_INTEGER, t)
    call MPI_Type_commit(t)
    a = rank + [1, 2, 3, 4]
    b = -1
    call MPI_Sendrecv(a, 1_MPI_COUNT_KIND, t, right, 0, b, 1_MPI_COUNT_KIND, t, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(b == [left + 1, -1, -1, left + 4]), 'counts of 8 bytes')
    call MPI_Type_free(t)
  end subroutine counts

  subroutine windows
    integer, asynchronous :: memory(10), a(10)
    integer, pointer :: shared(:)
    integer(kind=MPI_ADDRESS_KIND) :: value, where
    integer :: i
    logical :: flag
    type(c_ptr) :: base
    type(MPI_Win) :: win
    memory = -1
    a = [(10 * rank + i, i = 1, 10)]
    call MPI_Win_create(memory, 10 * wide, bytes, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag)
    call check(flag .and. value == 10 * wide, 'WIN_SIZE')
    call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag)
    call MPI_Get_address(memory, where)
    call check(flag .and. value == where, 'WIN_BASE')
    call MPI_Win_fence(0, win)
    call MPI_Put(a(1:10:3), 4, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, 4, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(memory(3:6) == 10 * left + [1, 4, 7, 10]), 'Put of a section')
    a = 0
    call MPI_Get(a(10:1:-3), 3, MPI_INTEGER, right, 3_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(a(10:4:-3) == 10 * rank + [4, 7, 10]) .and. count(a == 0) == 7, 'Get into a section')
    call MPI_Win_free(win)
    call check(win == MPI_WIN_NULL, 'Win_free')
    call MPI_Win_allocate(4 * wide, bytes, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
    call c_f_pointer(base, shared, [4])
    shared = rank
    call MPI_Win_free(win)
    call MPI_Alloc_mem(4 * wide, MPI_INFO_NULL, base)
    call c_f_pointer(base, shared, [4])
    shared = rank
    call MPI_Free_mem(shared)
  end subroutine windows

  subroutine files
    type(MPI_File) :: f
    integer, asynchronous :: a(9), b(9)
    integer :: i, ierror
    integer(kind=MPI_OFFSET_KIND) :: size
    character(len=400) :: folder, name
    type(MPI_Request) :: r
    call get_command_argument(1, folder)
    write (name, '(A,I0)') trim(folder)//'/f08.', rank
    a = [(i, i = 1, 9)]
    call MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, f, ierror)
    call check(ierror == MPI_SUCCESS, 'File_open')
    call MPI_File_write_at(f, 0_MPI_OFFSET_KIND, a(1:9:2), 5, MPI_INTEGER, MPI_STATUS_IGNORE)
    call MPI_File_get_size(f, size)
    call check(size == 5 * bytes, 'a section is written')
    b = -1
    call MPI_File_iread_at(f, int(bytes, MPI_OFFSET_KIND), b(9:1:-4), 3, MPI_INTEGER, r)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(all(b(9:1:-4) == [3, 5, 7]) .and. count(b == -1) == 6, 'it is read into another')
    b = -1
    call MPI_File_read_at_all_begin(f, 0_MPI_OFFSET_KIND, b(1:9:2), 5, MPI_INTEGER)
    call MPI_File_read_at_all_end(f, b(1:9:2), MPI_STATUS_IGNORE)
    call check(all(b(1:9:2) == [1, 3, 5, 7, 9]), 'in two steps')
    call MPI_Register_datarep('flipped', flip, flop, extent, 5_MPI_ADDRESS_KIND, ierror)
    call check(ierror == MPI_SUCCESS, 'Register_datarep')
    call MPI_File_set_view(f, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'flipped', MPI_INFO_NULL, ierror)
    call check(ierror == MPI_SUCCESS, 'File_set_view')
    call MPI_File_write_at(f, 0_MPI_OFFSET_KIND, a, 9, MPI_INTEGER, MPI_STATUS_IGNORE)
    b = 0
    call MPI_File_read_at(f, 0_MPI_OFFSET_KIND, b, 9, MPI_INTEGER, MPI_STATUS_IGNORE)
    call check(all(b == a), 'a representation of the program')
    call MPI_File_set_view(f, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL)
    call MPI_File_read_at(f, 0_MPI_OFFSET_KIND, b, 9, MPI_INTEGER, MPI_STATUS_IGNORE)
    call check(all(b == -a), 'what it wrote')
    call MPI_File_close(f)
    call check(f == MPI_FILE_NULL, 'File_close')
  end subroutine files

  subroutine strings
    type(MPI_Info) :: info
    character(len=MPI_MAX_INFO_VAL) :: value
    character(len=4) :: short
    character(len=MPI_MAX_OBJECT_NAME) :: name
    integer :: n
    logical :: flag
    call MPI_Info_create(info)
    call MPI_Info_set(info, '  key ', ' some value  ')
    call MPI_Info_get_valuelen(info, 'key', n, flag)
    call check(flag .and. n == 10, 'blanks around keys and values')
    call MPI_Info_get(info, 'key', MPI_MAX_INFO_VAL, value, flag)
    call check(flag .and. value == 'some value', 'Info_get')
    n = 4
    call MPI_Info_get_string(info, ' key', n, short, flag)
    call check(flag .and. n == 10 .and. short == 'some', 'Info_get_string')
    call MPI_Info_get(info, 'none', MPI_MAX_INFO_VAL, value, flag)
    call check(.not. flag .and. value == 'some value', 'a key that is not there')
    call MPI_Info_free(info)
    call MPI_Comm_set_name(MPI_COMM_SELF, ' mine ')
    call MPI_Comm_get_name(MPI_COMM_SELF, name, n)
    call check(n == 5 .and. name == ' mine', 'blanks before a name')
  end subroutine strings

  subroutine topologies
    type(MPI_Comm) :: ring, graph
    integer :: source, dest, coords(1), sources(1), weights(1), in, out
    logical :: periods(1), weighted
    periods = .true.
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [procs], periods, .false., ring)
    call MPI_Cart_shift(ring, 0, 1, source, dest)
    call check(source == left .and. dest == right, 'Cart_shift')
    call MPI_Cart_get(ring, 1, sources, periods, coords)
    call check(periods(1) .and. coords(1) == rank .and. sources(1) == procs, 'Cart_get')
    call MPI_Comm_free(ring)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [left], MPI_UNWEIGHTED, 1, [right], MPI_UNWEIGHTED, &
      MPI_INFO_NULL, .false., graph)
    call MPI_Dist_graph_neighbors_count(graph, in, out, weighted)
    call check(in == 1 .and. out == 1 .and. .not. weighted, 'a graph without weights')
    call MPI_Dist_graph_neighbors(graph, 1, sources, MPI_UNWEIGHTED, 1, coords, MPI_UNWEIGHTED)
    call check(sources(1) == left .and. coords(1) == right, 'its neighbors')
    call MPI_Comm_free(graph)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [left], [3], 1, [right], [4], MPI_INFO_NULL, .false., graph)
    call MPI_Dist_graph_neighbors(graph, 1, sources, weights, 1, coords, MPI_UNWEIGHTED)
    call check(weights(1) == 3, 'weights')
    call MPI_Comm_free(graph)
  end subroutine topologies
end program f08
