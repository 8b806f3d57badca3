! A proc is lost, and the others go on: the procedures of User-Level Failure Mitigation through mpi_f08.
! INTEGER may have 8 bytes.
program survive
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    function raise(number) bind(C) result(code)
      import
      integer(c_int), value :: number
      integer(c_int) :: code
    end function
  end interface
  type(MPI_Comm) :: work, left, again
  type(MPI_Group) :: gone
  type(MPI_Request) :: request
  integer :: rank, procs, n, code
  integer, volatile :: flag
  logical :: revoked
  integer(c_int) :: ignored
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, procs)
  call MPI_Comm_dup(MPI_COMM_WORLD, work)
  call MPI_Comm_set_errhandler(work, MPI_ERRORS_RETURN)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPIX_Comm_is_revoked(work, revoked)
  call check(.not. revoked, 'not revoked')
  call MPI_Barrier(work)
  if (rank == 1) ignored = raise(9_c_int)
  call MPI_Recv(n, 1, MPI_INTEGER, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code) ! others may revoke work
  call fails(MPIX_ERR_PROC_FAILED, 'a receive from the lost proc')
  call MPIX_Comm_revoke(work)
  call MPIX_Comm_is_revoked(work, revoked)
  call check(revoked, 'revoked')
  call MPI_Barrier(work, code)
  call fails(MPIX_ERR_REVOKED, 'a barrier of a revoked communicator')
  call MPIX_Comm_shrink(work, left)
  call MPI_Comm_size(left, n)
  call check(n == procs - 1, 'the size of those that are left')
  call MPIX_Comm_get_failed(work, gone)
  call MPI_Group_size(gone, n)
  call check(n == 1, 'the lost ones')
  call MPI_Group_free(gone)
  call MPIX_Comm_ack_failed(work, 1, n)
  call check(n == 1, 'the acknowledged ones')
  call MPIX_Comm_failure_ack(work)
  call MPIX_Comm_failure_get_acked(work, gone)
  call MPI_Group_size(gone, n)
  call check(n == 1, 'the group of the acknowledged ones')
  call MPI_Group_free(gone)
  flag = not(ishft(1, rank))
  call MPIX_Comm_agree(left, flag)
  call check(flag == not(1 + 4 + 8), 'what all agree on')
  flag = merge(6, 3, rank == 0)
  call MPIX_Comm_iagree(left, flag, request, code)
  if (storage_size(rank) == 64) then
    call fails(MPI_ERR_UNSUPPORTED_OPERATION, 'a number that is written later')
  else
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(flag == 2, 'what all agree on later')
  end if
  call PMPIX_Comm_ishrink(left, again, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Comm_size(again, n)
  call check(n == procs - 1, 'the size of those that are left later')
  call MPI_Barrier(again)
  call MPI_Comm_free(again)
  call MPI_Comm_free(left)
  call MPI_Finalize()
  if (rank == 0) print '(A)', 'OK survive'
contains
  subroutine check(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    if (good) return
    print '(A, I0, A, A)', 'rank ', rank, ' has not: ', what
    call MPI_Abort(MPI_COMM_WORLD, 3)
  end subroutine
  subroutine fails(class, what)
    integer, intent(in) :: class
    character(len=*), intent(in) :: what
    integer :: is
    call MPI_Error_class(code, is)
    call check(is == class, what)
  end subroutine
end program
