package rma

import "errors"

// The errors of windows and of operations on them; core/mpierr has the error class of each
// (MPI-4.1, 12.6.2).
var (
	// ErrWin means no window, or one that has been freed.
	ErrWin = errors.New("invalid window")
	// ErrSync means an operation outside the epoch that it needs, or a
	// synchronisation that does not fit the epochs that are open.
	ErrSync = errors.New("wrong synchronisation of a window")
	// ErrConflict means an access to memory that another proc has locked.
	ErrConflict = errors.New("conflicting access to a window")
	// ErrRange means memory outside the window, or not attached to it.
	ErrRange = errors.New("outside the memory of the window")
	// ErrAttach means memory that cannot be attached or detached.
	ErrAttach = errors.New("memory cannot be attached")
	// ErrShared means that members cannot share memory.
	ErrShared = errors.New("memory cannot be shared")
	// ErrFlavor means a window of a kind that the call does not support.
	ErrFlavor = errors.New("wrong flavour of window")
	// ErrBase means that memory is missing where it is required.
	ErrBase = errors.New("invalid base of a window")
	// ErrSize means a size below 0, or too large.
	ErrSize = errors.New("invalid size of a window")
	// ErrDisp means a displacement below 0, or an invalid unit of them.
	ErrDisp = errors.New("invalid displacement")
	// ErrAssert means an assertion that the function does not accept.
	ErrAssert = errors.New("invalid assertion")
	// ErrLockType means a lock that is neither shared nor exclusive.
	ErrLockType = errors.New("invalid type of lock")
	// ErrHeader means a message that no correct member sends.
	ErrHeader = errors.New("not a message of a window")
)
