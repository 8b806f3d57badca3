package abi

import (
	"fmt"
	"strings"
)

// Text of the modules in addition to the text that follows from mpi.h.

// moduleTypes is the module of the types that both modules have. The comparisons are functions of
// special.c: modules with code of their own would have to be linked.
var moduleTypes = func() string {
	var b strings.Builder
	b.WriteString("module impi_types\n  implicit none\n")
	for _, k := range handleKinds {
		fmt.Fprintf(&b, "  type, bind(C) :: MPI_%s\n    integer :: MPI_VAL\n  end type\n", k)
	}
	b.WriteString("  type, bind(C) :: MPI_Status\n    integer :: MPI_SOURCE, MPI_TAG, MPI_ERROR\n    integer, private :: internal(5)\n  end type\n")
	for operator, name := range []string{"same", "other"} {
		fmt.Fprintf(&b, "  interface operator(%s)\n", []string{"==", "/="}[operator])
		for _, k := range handleKinds {
			fmt.Fprintf(&b, "    elemental function impi_%s_%s(a, b) result(answer)\n      import\n      type(MPI_%s), intent(in) :: a, b\n      logical :: answer\n    end function\n",
				name, strings.ToLower(k), k)
		}
		b.WriteString("  end interface\n")
	}
	b.WriteString("end module impi_types\n")
	return b.String()
}()

var handleKinds = []string{"Comm", "Group", "Datatype", "Op", "Request", "Info", "Errhandler", "Win", "File", "Session", "Message"}

// sizeofs are MPI_Sizeof for each type. Kinds that only gfortran surely has are for it alone.
var sizeofs = func() string {
	var b strings.Builder
	b.WriteString("  interface MPI_Sizeof\n")
	one := func(letter, fortranType string, kind int) {
		fmt.Fprintf(&b, "    subroutine impi_sizeof_%s%d(x, size, ierror)\n      %s(%d), dimension(..) :: x\n      integer, intent(out) :: size\n      integer, optional, intent(out) :: ierror\n    end subroutine\n",
			letter, kind, fortranType, kind)
	}
	for _, kind := range []int{1, 2, 4, 8} {
		one("i", "integer", kind)
		one("l", "logical", kind)
	}
	for _, kind := range []int{4, 8, 10, 16} {
		if kind == 10 {
			b.WriteString("#ifdef __GFORTRAN__\n")
		}
		one("r", "real", kind)
		one("z", "complex", kind)
	}
	one("i", "integer", 16)
	b.WriteString("#endif\n    subroutine impi_sizeof_c1(x, size, ierror)\n      character, dimension(..) :: x\n      integer, intent(out) :: size\n      integer, optional, intent(out) :: ierror\n    end subroutine\n  end interface\n")
	return b.String()
}()

const pcontrol = `    subroutine MPI_Pcontrol(level)
      integer, intent(in) :: level
    end subroutine
    subroutine PMPI_Pcontrol(level)
      integer, intent(in) :: level
    end subroutine
    subroutine MPI_F_sync_reg(buf)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
!DEC$ ATTRIBUTES NO_ARG_CHECK :: buf
!DIR$ IGNORE_TKR buf
      real, dimension(*) :: buf
    end subroutine
    subroutine MPI_Status_f2f08(f_status, f08_status, ierror)
      import
      integer, intent(in) :: f_status(MPI_STATUS_SIZE)
      type(MPI_Status), intent(out) :: f08_status
      integer, intent(out) :: ierror
    end subroutine
    subroutine MPI_Status_f082f(f08_status, f_status, ierror)
      import
      type(MPI_Status), intent(in) :: f08_status
      integer, intent(out) :: f_status(MPI_STATUS_SIZE)
      integer, intent(out) :: ierror
    end subroutine
`

const f08Start = `  integer, parameter :: MPI_ADDRESS_KIND = 8, MPI_COUNT_KIND = 8, MPI_OFFSET_KIND = 8
  integer, parameter :: MPI_INTEGER_KIND = kind(0)
  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .true.
  logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .false.
  integer(kind=MPI_OFFSET_KIND), parameter :: MPI_DISPLACEMENT_CURRENT = -1
  integer, parameter :: MPI_STATUS_SIZE = 8, MPI_SOURCE = 1, MPI_TAG = 2, MPI_ERROR = 3
  integer, bind(C, name="impi_bottom_") :: MPI_BOTTOM
  integer, bind(C, name="impi_in_place_") :: MPI_IN_PLACE
  integer, bind(C, name="impi_buffer_automatic_") :: MPI_BUFFER_AUTOMATIC
  integer, bind(C, name="impi_unweighted_") :: MPI_UNWEIGHTED(1)
  integer, bind(C, name="impi_weights_empty_") :: MPI_WEIGHTS_EMPTY(1)
  integer, bind(C, name="impi_errcodes_ignore_") :: MPI_ERRCODES_IGNORE(1)
  character(len=1), bind(C, name="impi_argv_null_") :: MPI_ARGV_NULL(1)
  character(len=1), bind(C, name="impi_argvs_null_") :: MPI_ARGVS_NULL(1,1)
  type(MPI_Status), bind(C, name="impi_status_ignore_") :: MPI_STATUS_IGNORE
  type(MPI_Status), bind(C, name="impi_statuses_ignore_") :: MPI_STATUSES_IGNORE(1)
`

// f08Functions are the interfaces of functions of the program, and those that MPI has.
var f08Functions = func() string {
	var b strings.Builder
	b.WriteString("  abstract interface\n")
	for _, c := range []string{"", "_c"} {
		count := map[string]string{"": "integer", "_c": "integer(kind=MPI_COUNT_KIND)"}[c]
		fmt.Fprintf(&b, `    subroutine MPI_User_function%[1]s(invec, inoutvec, len, datatype)
      import
      type(c_ptr), value :: invec, inoutvec
      %[2]s :: len
      type(MPI_Datatype) :: datatype
    end subroutine
    subroutine MPI_Datarep_conversion_function%[1]s(userbuf, datatype, count, &
      filebuf, position, extra_state, ierror)
      import
      type(c_ptr), value :: userbuf, filebuf
      type(MPI_Datatype) :: datatype
      %[2]s :: count
      integer(kind=MPI_OFFSET_KIND) :: position
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      integer :: ierror
    end subroutine
`, c, count)
	}
	for _, k := range []string{"Comm", "Datatype", "Win"} {
		fmt.Fprintf(&b, `    subroutine MPI_%[1]s_copy_attr_function(old, keyval, extra_state, &
      attribute_val_in, attribute_val_out, flag, ierror)
      import
      type(MPI_%[2]s) :: old
      integer :: keyval, ierror
      integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
      logical :: flag
    end subroutine
    subroutine MPI_%[1]s_delete_attr_function(object, keyval, attribute_val, extra_state, ierror)
      import
      type(MPI_%[2]s) :: object
      integer :: keyval, ierror
      integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    end subroutine
`, conversion(k), k)
	}
	for _, k := range []string{"Comm", "Win", "File", "Session"} {
		fmt.Fprintf(&b, `    subroutine MPI_%[1]s_errhandler_function(object, error_code)
      import
      type(MPI_%[1]s) :: object
      integer :: error_code
    end subroutine
`, k)
	}
	b.WriteString(f08More)
	for _, k := range []string{"Comm", "Type", "Win"} {
		fmt.Fprintf(&b, "  procedure(MPI_%[1]s_copy_attr_function) :: MPI_%[2]s_NULL_COPY_FN, MPI_%[2]s_DUP_FN\n  procedure(MPI_%[1]s_delete_attr_function) :: MPI_%[2]s_NULL_DELETE_FN\n",
			k, strings.ToUpper(k))
	}
	return b.String()
}()

const f08More = `    subroutine MPI_Grequest_query_function(extra_state, status, ierror)
      import
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      type(MPI_Status) :: status
      integer :: ierror
    end subroutine
    subroutine MPI_Grequest_free_function(extra_state, ierror)
      import
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      integer :: ierror
    end subroutine
    subroutine MPI_Grequest_cancel_function(extra_state, complete, ierror)
      import
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      logical :: complete
      integer :: ierror
    end subroutine
    subroutine MPI_Datarep_extent_function(datatype, extent, extra_state, ierror)
      import
      type(MPI_Datatype) :: datatype
      integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state
      integer :: ierror
    end subroutine
  end interface
  procedure(MPI_Datarep_conversion_function) :: MPI_CONVERSION_FN_NULL
  procedure(MPI_Datarep_conversion_function_c) :: MPI_CONVERSION_FN_NULL_C
`

// f08Last has the interfaces of functions without an error argument, for names with MPI_ and PMPI_,
// and those of functions that only Fortran has.
const f08Last = `  interface
    function PREFIX_MPI_Wtime() result(seconds)
      double precision :: seconds
    end function
    function PREFIX_MPI_Wtick() result(seconds)
      double precision :: seconds
    end function
    function PREFIX_MPI_Aint_add(base, disp) result(address)
      import
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: base, disp
      integer(kind=MPI_ADDRESS_KIND) :: address
    end function
    function PREFIX_MPI_Aint_diff(addr1, addr2) result(disp)
      import
      integer(kind=MPI_ADDRESS_KIND), intent(in) :: addr1, addr2
      integer(kind=MPI_ADDRESS_KIND) :: disp
    end function
    subroutine PREFIX_MPI_Pcontrol(level)
      integer, intent(in) :: level
    end subroutine
  end interface
  interface PREFIX_MPI_F_sync_reg
    subroutine PREFIX_MPI_F_sync_reg_f08ts(buf) bind(C, name="mpi_f_sync_reg_f08ts_")
      type(*), dimension(..), asynchronous :: buf
    end subroutine
  end interface
  interface PREFIX_MPI_Status_f2f08
    subroutine PREFIX_MPI_Status_f2f08_f08(f_status, f08_status, ierror)
      import
      integer, intent(in) :: f_status(MPI_STATUS_SIZE)
      type(MPI_Status), intent(out) :: f08_status
      integer, optional, intent(out) :: ierror
    end subroutine
  end interface
  interface PREFIX_MPI_Status_f082f
    subroutine PREFIX_MPI_Status_f082f_f08(f08_status, f_status, ierror)
      import
      type(MPI_Status), intent(in) :: f08_status
      integer, intent(out) :: f_status(MPI_STATUS_SIZE)
      integer, optional, intent(out) :: ierror
    end subroutine
  end interface
`
