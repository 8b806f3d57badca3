package rma

import "fmt"

// Assert is what a program promises when it opens or closes an epoch, with the values of the MPI
// ABI; several are combined by or (MPI-4.1, 12.5.5). They are checked. NoSucceed opens no epoch and
// NoCheck takes no lock; the others change nothing.
type Assert int

// The assertions.
const (
	NoCheck   Assert = 1024  // no lock conflicts; in Start: all targets have called Post
	NoPrecede Assert = 2048  // this proc has begun no operations before the fence
	NoPut     Assert = 4096  // no proc will change this window
	NoStore   Assert = 8192  // this proc has not changed the window by local stores
	NoSucceed Assert = 16384 // no operations will begin after the fence
)

// The assertions that each synchronisation accepts.
const (
	FenceAsserts = NoStore | NoPut | NoPrecede | NoSucceed
	PostAsserts  = NoCheck | NoStore | NoPut
	StartAsserts = NoCheck
	LockAsserts  = NoCheck
)

// Check returns ErrAssert if a contains an assertion that is not in allowed.
func (a Assert) Check(allowed Assert) error {
	if a&^allowed != 0 {
		return fmt.Errorf("%w: %d, of which the function takes %d", ErrAssert, int(a), int(allowed))
	}
	return nil
}
