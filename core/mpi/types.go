package mpi

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/p2p"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/engine/window"
)

// Root is what the root of an operation on an intercommunicator gives as root.
const Root = collective.Root

// Message is a message that Mprobe or Improbe has taken out of the queue: only
// Mrecv or Imrecv with it can receive it.
type Message p2p.Message

// Generalized are the functions of a generalized request: an operation of the
// program's own that is waited for like those of MPI. Each may be nil. They are
// called in the goroutine of the MPI call that needs them, and may call MPI.
type Generalized struct {
	// Query fills in the status of the operation, which is complete. It may be
	// called more than once.
	Query func(st *Status) error
	// Free is called once, last of all: when the operation is complete and
	// the request has been completed or freed.
	Free func() error
	// Cancel is asked to take the operation back, complete or not. If that works,
	// Query says so by SetCancelled; Complete is to be called in any case.
	Cancel func(complete bool) error
}

// Request is a send or receive under way. The zero value is the null request,
// which is complete. A completed request becomes null, one made by SendInit or
// RecvInit becomes inactive. Copies of a Request denote the same operation; once
// one of them was completed, using another is ErrRequest.
type Request proc.Request

// Replace and NoOp are operations of accumulates alone: one puts the operand in the
// place of what is there, the other leaves that as it is.
var (
	Replace = window.Replace
	NoOp    = window.NoOp
)

// Target is where an operation goes: Count items of Type, Disp units up in the
// window of a rank. Nothing is done at ProcNull.
type Target struct {
	Rank  int
	Disp  int64
	Count int
	Type  *Datatype
}

// Assert is what a program promises when it opens or closes an epoch; several are combined by or.
// They are checked. NoSucceed opens no epoch and NoCheck takes no lock; the others change nothing.
type Assert = rma.Assert

// The assertions, with the values of the MPI ABI: MPI_MODE_NOCHECK and so on.
const (
	NoCheck   = window.NoCheck
	NoPrecede = window.NoPrecede
	NoPut     = window.NoPut
	NoStore   = window.NoStore
	NoSucceed = window.NoSucceed
)

// LockType is how a lock admits others.
type LockType = rma.LockType

// The types of locks, with the values of the MPI ABI: MPI_LOCK_EXCLUSIVE and
// MPI_LOCK_SHARED.
const (
	LockExclusive = window.LockExclusive
	LockShared    = window.LockShared
)

// Status says what was received, or what can be: Source is the rank in the communicator, Tag the tag.
// Err is set by the calls that complete several requests, where this one failed.
type Status proc.Status

// StatusWords are what a Status has besides source, tag and error, as the private
// part of C's MPI_Status keeps it: the lower and the upper half of the size in
// bytes, whether the request was cancelled, what the bytes count, and 0.
type StatusWords [5]int32

// Op is a reduction operation. Ops are equal if they are the same one.
type Op = *datatype.Op

// The predefined operations; all are commutative. See package datatype for the
// types that each takes. MaxLoc and MinLoc reduce Pairs.
var (
	Sum    = collective.Sum
	Prod   = collective.Prod
	Max    = collective.Max
	Min    = collective.Min
	LAnd   = collective.LAnd
	LOr    = collective.LOr
	LXor   = collective.LXor
	BAnd   = collective.BAnd
	BOr    = collective.BOr
	BXor   = collective.BXor
	MaxLoc = collective.MaxLoc
	MinLoc = collective.MinLoc
)

// Library names this MPI library and its version.
const Library = proc.Library
