! Second losses, as in survivetwice.c, through mpi_f08: a proc is lost, two are spawned in its place, and one of these, or
! one of the procs that have spawned them, is lost, too. Those that are left, of both worlds, revoke, agree and shrink. The
! argument says who is lost in the end, by its rank among all: 0 to 2 are of the job, 3 and 4 were spawned.
program survivetwice
  use mpi_f08
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: output_unit
  implicit none
  interface
    function raise(number) bind(C) result(code)
      import
      integer(c_int), value :: number
      integer(c_int) :: code
    end function
  end interface
  integer, parameter :: team = 5
  type(MPI_Comm) :: parent, inter, all, left
  type(MPI_Request) :: request
  character(len=256) :: self, args(2)
  integer :: rank, me = -1, lost, n, r, total, code, byte = 0
  integer, asynchronous, volatile :: flag
  integer(c_int) :: ignored
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call get_command_argument(0, self)
  args = ''
  call get_command_argument(1, args(1))
  read (args(1), *) lost
  call MPI_Comm_get_parent(parent)
  inter = parent
  if (parent == MPI_COMM_NULL) call replace
  call MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN)
  call MPI_Intercomm_merge(inter, parent /= MPI_COMM_NULL, all)
  call MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN)
  call MPI_Barrier(all)
  call MPI_Comm_rank(all, me)
  call MPI_Send(byte, 1, MPI_INTEGER, lost, 2, all) ! nobody is lost before all are here
  if (me == lost) then
    do r = 0, team - 1
      call MPI_Recv(byte, 1, MPI_INTEGER, r, 2, all, MPI_STATUS_IGNORE)
    end do
    ignored = raise(9_c_int)
  end if
  call MPI_Recv(byte, 1, MPI_INTEGER, lost, 0, all, MPI_STATUS_IGNORE, code)
  call check(class() == MPIX_ERR_PROC_FAILED .or. class() == MPIX_ERR_REVOKED, 'a receive from the lost proc')
  if (me == merge(1, 0, lost == 0)) call MPIX_Comm_revoke(all) ! the others hear of it
  call MPI_Recv(byte, 1, MPI_INTEGER, me, 1, all, MPI_STATUS_IGNORE, code) ! nobody sends it
  call check(class() == MPIX_ERR_REVOKED, 'a receive in what is revoked')
  call across
  call MPIX_Comm_shrink(all, left)
  flag = not(ishft(1, me))
  call MPIX_Comm_iagree(left, flag, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call check(flag == without([(r, r=0, team - 1)]), 'what all agree on')
  call MPI_Comm_size(left, n)
  call check(n == team - 1, 'the size of those that are left')
  call MPI_Allreduce(ishft(1, me), total, 1, MPI_INTEGER, MPI_SUM, left)
  call check(total == not(without([(r, r=0, team - 1)])), 'the sum of those that are left')
  print '(A, I0, A, I0)', 'rank ', me, ' goes on with ', total
  flush (output_unit)
  call MPI_Finalize()
contains
  ! replace has rank 3 of the job die, and spawns two procs for it.
  subroutine replace
    if (rank == 3) then
      do r = 0, 2 ! all are there
        call MPI_Recv(byte, 1, MPI_INTEGER, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      end do
      ignored = raise(9_c_int)
    end if
    call MPI_Send(byte, 1, MPI_INTEGER, 3, 0, MPI_COMM_WORLD)
    call MPI_Recv(byte, 1, MPI_INTEGER, 3, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    call check(class() == MPIX_ERR_PROC_FAILED, 'a receive from rank 3')
    call MPIX_Comm_shrink(MPI_COMM_WORLD, left)
    call MPI_Comm_spawn(self, args, 2, MPI_INFO_NULL, 0, left, inter, MPI_ERRCODES_IGNORE)
    call MPI_Comm_free(left)
  end subroutine

  ! across has both sides of the intercommunicator agree, each on the flags of the other one, and shrink.
  subroutine across
    integer :: far(merge(2, 3, me < 3))
    type(MPI_Group) :: gone
    far = [(r, r=merge(3, 0, me < 3), merge(4, 2, me < 3))]
    flag = not(ishft(1, me))
    call MPIX_Comm_agree(inter, flag, code)
    call check(class() == MPIX_ERR_PROC_FAILED, 'what nobody has acknowledged')
    call check(flag == without(far), 'the flags of the other side')
    do while (class() == MPIX_ERR_PROC_FAILED) ! until all have heard of it
      call MPIX_Comm_failure_ack(inter)
      flag = not(ishft(1, me))
      call MPIX_Comm_agree(inter, flag, code)
      call check(flag == without(far), 'the flags of the other side')
    end do
    call check(code == MPI_SUCCESS, 'an agreement of both sides')
    call MPIX_Comm_failure_get_acked(inter, gone)
    call MPI_Group_size(gone, n)
    call check(n == 1, 'the acknowledged one of either side')
    call MPI_Group_free(gone)
    call MPIX_Comm_shrink(inter, left)
    call MPI_Comm_remote_size(left, n)
    call check(n == count(far /= lost), 'the size of the other side')
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, left)
    call check(total == n, 'the sum of the other side')
  end subroutine

  ! without returns the flags of ranks combined by AND, but for the lost one: each clears its own.
  integer function without(ranks)
    integer, intent(in) :: ranks(:)
    integer :: i
    without = -1
    do i = 1, size(ranks)
      if (ranks(i) /= lost) without = ibclr(without, ranks(i))
    end do
  end function

  integer function class()
    call MPI_Error_class(code, class)
  end function

  subroutine check(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    if (good) return
    print '(A, I0, A, A)', 'rank ', me, ' has not: ', what
    call MPI_Abort(MPI_COMM_WORLD, 3)
  end subroutine
end program
