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

// CreateKeyval makes a key for attributes of communicators. A nil cp is
// NullCopy, a nil del NullDelete. extra is given to both.
func CreateKeyval(cp CopyFunc[*Comm], del DeleteFunc[*Comm], extra any) (Keyval, error) {
	return object.CreateKeyval(onComm(cp), onCommEnd(del), extra)
}

// FreeKeyval frees a key of communicators and makes the variable KeyvalInvalid.
// Attributes of it stay, and its functions are still called for them.
func FreeKeyval(key *Keyval) error { return object.FreeKeyval(key) }

// SetAttr attaches a value to c. One that is there is deleted first; where its
// DeleteFunc fails it stays.
func (c *Comm) SetAttr(key Keyval, value any) error { return object.SetAttr(c.in(), key, value) }

// Attr gives the value that c has for a key; ok is whether it has one. The
// predefined keys have ints.
func (c *Comm) Attr(key Keyval) (value any, ok bool, err error) { return object.Attr(c.in(), key) }

// DeleteAttr deletes the value that c has for a key. If there is none, nothing
// happens.
func (c *Comm) DeleteAttr(key Keyval) error { return object.DeleteAttr(c.in(), key) }

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

// World gives the communicator of all procs of all sites, or nil before Init.
// Ranks are ordered by site, then by host, then by proc.
func World() *Comm { return (*Comm)(proc.World()) }

// Self gives the communicator of this proc alone, or nil before Init.
func Self() *Comm { return (*Comm)(proc.Self()) }

// Check tells whether c can be used: it is ErrComm for nil and for what has been
// freed. The functions that give no error say of nil that it has size 0 and rank
// Undefined.
func (c *Comm) Check() error { return c.in().Check() }

// Size is the number of members; of an intercommunicator those of the local group.
func (c *Comm) Size() int { return c.in().Size() }

// Rank is the calling proc's rank; in an intercommunicator that in the local group.
func (c *Comm) Rank() int { return c.in().Rank() }

// Free ends the use of c by this proc, after its attributes have been deleted. If
// that fails c stays. What is under way on c still takes place. All members call
// it.
func (c *Comm) Free() error { return construct.Free(c.in()) }

// Disconnect waits until all sends and receives on c have taken place, on all
// members, and then is Free. Where members have died it fails, on all others; those
// can free c.
func (c *Comm) Disconnect() error { return construct.Disconnect(c.in()) }

// MaxObjectName is the most bytes of an object's name: MPI_MAX_OBJECT_NAME, less
// C's terminator.
const MaxObjectName = proc.MaxObjectName

// Name is the name that was last set; empty if none was. That of nil is
// MPI_COMM_NULL.
func (c *Comm) Name() string { return c.in().Name() }

// SetName names c, for people. MaxObjectName bytes are kept. Other members do not
// see it, and communicators made of c do not inherit it.
func (c *Comm) SetName(name string) error { return c.in().SetName(name) }
