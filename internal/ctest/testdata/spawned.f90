! A program that starts others of itself, with arguments in strings of Fortran, also by a service name. It
! runs with one proc.
program spawned
  use mpi_f08
  implicit none
  type(MPI_Comm) :: parent, children
  character(len=256) :: self, word
  character(len=12) :: args(3), commands(2)*256, several(2, 3)
  integer :: wrong = 0, codes(3), n, rank, app
  integer(kind=MPI_ADDRESS_KIND) :: value
  logical :: flag

  call MPI_Init()
  call MPI_Comm_get_parent(parent)
  if (parent == MPI_COMM_NULL) then
    call get_command_argument(0, self)
    args = [character(len=12) :: 'one word', ' two', '']
    codes = -1
    call MPI_Comm_spawn('  '//self, args, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, children, codes)
    call check(all(codes(1:2) == MPI_SUCCESS) .and. codes(3) == -1, 'codes')
    call MPI_Comm_remote_size(children, n)
    call check(n == 2, 'two children')
    call finish
    commands = self
    several(1, :) = [character(len=12) :: 'one word', ' two', '']
    several(2, :) = [character(len=12) :: 'other', '', 'none']
    call MPI_Comm_spawn_multiple(2, commands, several, [1, 2], [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_SELF, children, codes)
    call check(all(codes == MPI_SUCCESS), 'codes of several')
    call MPI_Comm_remote_size(children, n)
    call check(n == 3, 'three children')
    call finish
    call MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, children, MPI_ERRCODES_IGNORE)
    call finish
    if (wrong == 0) print '(A)', 'OK spawned'
  else
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, value, flag)
    app = int(merge(value, 0_MPI_ADDRESS_KIND, flag))
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    n = command_argument_count()
    select case (n)
    case (2)
      call get_command_argument(1, word)
      call check(word == 'one word' .and. app == 0, 'the first argument')
      call get_command_argument(2, word)
      call check(word == ' two', 'the second one')
    case (1)
      call get_command_argument(1, word)
      call check(word == 'other' .and. app == 1 .and. rank > 0, 'the argument of the second command')
    case default
      call check(n == 0, 'no argument')
    end select
    call MPI_Send(wrong, 1, MPI_INTEGER, 0, 0, parent)
    call MPI_Comm_disconnect(parent)
  end if
  call MPI_Finalize()
  if (wrong /= 0) stop 1

contains

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    print *, 'not so: ', what
    wrong = wrong + 1
  end subroutine check

  ! finish counts what was wrong with the children.
  subroutine finish
    integer :: i, size, theirs
    call MPI_Comm_remote_size(children, size)
    do i = 0, size - 1
      call MPI_Recv(theirs, 1, MPI_INTEGER, i, 0, children, MPI_STATUS_IGNORE)
      wrong = wrong + theirs
    end do
    call MPI_Comm_disconnect(children)
  end subroutine finish
end program spawned
