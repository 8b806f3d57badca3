package mpi

import "github.com/openimpi/impi/internal/engine/window"

// Win is a window: memory of each member of a group that the others read and
// change by operations of their own. nil is MPI_WIN_NULL.
//
// A member's memory is accessed by the member itself, in whichever call of MPI it
// makes: as long as it computes and calls nothing, the others' operations wait,
// and so does a Flush or Unlock that completes them. Only loads and stores in a
// window of WinAllocateShared need nobody.
//
// The messages of a window are in a communicator of its own. Operations and
// synchronisations of one window by several goroutines at a time need an order of
// their own, as the epochs are those of the whole proc.
type Win window.Win

// Flavor is how a window was made, with the values of the MPI ABI.
type Flavor = window.Flavor

// The flavours of windows, and the model that all of them have: what others
// change is seen by loads, and stores by others, without more ado.
const (
	WinFlavorCreate   = window.WinFlavorCreate
	WinFlavorAllocate = window.WinFlavorAllocate
	WinFlavorDynamic  = window.WinFlavorDynamic
	WinFlavorShared   = window.WinFlavorShared
	WinUnified        = window.WinUnified
)
