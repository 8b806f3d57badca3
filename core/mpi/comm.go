package mpi

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/object"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Keyval names an attribute: a value that a program attaches to a communicator,
// a datatype or a window.
type Keyval = comm.Keyval

// KeyvalInvalid is no key.
const KeyvalInvalid = object.KeyvalInvalid

// CopyFunc is called when an object that has the attribute is duplicated. The
// duplicate gets copied, unless keep is false. After an error there is no
// duplicate. It may call MPI.
type CopyFunc[O any] func(old O, key Keyval, extra, value any) (copied any, keep bool, err error)

// DeleteFunc is called when an object loses the attribute: by its deletion, by
// another value or by the end of the object. After an error it keeps it. It may
// call MPI.
type DeleteFunc[O any] func(object O, key Keyval, value, extra any) error

// NullCopy is the CopyFunc of attributes that duplicates do not get.
func NullCopy[O any](old O, key Keyval, extra, value any) (copied any, keep bool, err error) {
	return object.NullCopy(old, key, extra, value)
}

// DupCopy is the CopyFunc of attributes whose value duplicates get.
func DupCopy[O any](old O, key Keyval, extra, value any) (copied any, keep bool, err error) {
	return object.DupCopy(old, key, extra, value)
}

// NullDelete is the DeleteFunc of attributes that may just go.
func NullDelete[O any](o O, key Keyval, value, extra any) error {
	return object.NullDelete(o, key, value, extra)
}

// IMPI's attributes, which every communicator has, all ints. The colours are meant for
// Split: members with the same one are of the same client (a site), or of the same host
// (a machine's node). Those of an intercommunicator are about the group of the calling
// proc. A program that no impi-node started has sizes of 1 and colours of 0.
//
// IMPI ch.2, User Attributes. The standard gives names and no values.
const (
	ClientSize  = object.ClientSize  // IMPI_CLIENT_SIZE: how many clients the members are of
	ClientColor = object.ClientColor // IMPI_CLIENT_COLOR: 0 to ClientSize-1, in the order of the lowest ranks
	HostSize    = object.HostSize    // IMPI_HOST_SIZE: how many hosts the members are of
	HostColor   = object.HostColor   // IMPI_HOST_COLOR: 0 to HostSize-1, over all clients, in the order of the lowest ranks
)

// The attributes that every communicator has, all ints, and windows, with the
// values of the MPI ABI. They cannot be set, deleted or freed.
const (
	TagUB           = object.TagUB         // the largest tag
	IO              = object.IO            // rank that can do input and output: AnySource, which is all
	Host            = object.Host          // rank of a host process: ProcNull, which is none
	WtimeIsGlobal   = object.WtimeIsGlobal // 1 if the ranks' clocks are synchronised
	AppNum          = object.AppNum        // place of the proc's program in the job file
	LastUsedCode    = object.LastUsedCode  // the largest error code in use
	UniverseSize    = object.UniverseSize  // how many procs the job can have
	WinBase         = object.WinBase
	WinDispUnit     = object.WinDispUnit
	WinSize         = object.WinSize
	WinCreateFlavor = object.WinCreateFlavor
	WinModel        = object.WinModel
)

// Special ranks and tags, with the values of the MPI ABI.
const (
	AnySource = proc.AnySource // receive from any rank
	AnyTag    = proc.AnyTag    // receive any tag
	ProcNull  = proc.ProcNull  // a partner that does not exist: sends vanish, receives complete empty
	Undefined = proc.Undefined
)

// Comm is a communicator: a group of procs and a space of messages of its own.
// It may be used by several goroutines.
type Comm proc.Comm

// MaxObjectName is the most bytes of an object's name: MPI_MAX_OBJECT_NAME, less
// C's terminator.
const MaxObjectName = proc.MaxObjectName

// The types of SplitType, with the values of the MPI ABI.
const (
	CommTypeShared         = construct.CommTypeShared         // procs that can share memory: those of one machine
	CommTypeHWUnguided     = construct.CommTypeHWUnguided     // smaller parts of machines, of which this package knows none
	CommTypeHWGuided       = construct.CommTypeHWGuided       // parts of machines that info names
	CommTypeResourceGuided = construct.CommTypeResourceGuided // resources that info names
)

// What TopoTest tells, with the values of the MPI ABI; Undefined is no topology.
const (
	Cart      = construct.Cart      // CartCreate, CartSub
	Graph     = construct.Graph     // GraphCreate
	DistGraph = construct.DistGraph // DistGraphCreate, DistGraphCreateAdjacent
)

// Weights of edges of distributed graphs. All members give weights or none does.
var (
	// Unweighted stands for weights where edges have none.
	Unweighted = construct.Unweighted
	// WeightsEmpty are those of no edges in a graph whose edges have weights.
	WeightsEmpty = construct.WeightsEmpty
)
