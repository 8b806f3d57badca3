package proc

// What the rooms above see of the types that programs have.

import (
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
)

// InPlace tells whether b stands for the other buffer (MPI_IN_PLACE).
func (x Buffer) InPlace() bool { return x.inPlace }

// Len is how many bytes of memory there are from Memory on; negative if only the caller knows.
func (x Buffer) Len() int64 { return x.len }

// Memory is where the first item has its origin.
func (x Buffer) Memory() unsafe.Pointer { return x.mem }

// Attrs are the attributes, which have a lock of their own.
func (x *Comm) Attrs() *comm.Attrs { return &x.attrs }

// Colls are the means of collective operations.
func (x *Comm) Colls() *collectives { return &x.colls }

// Constructors counts those that were begun; the process is locked.
func (x *Comm) Constructors() *uint32 { return &x.constructors }

// Fixed tells whether it is World or Self.
func (x *Comm) Fixed() bool { return x.fixed }

// Handler is where the error handler is kept.
func (x *Comm) Handler() *HandlerSlot { return &x.handler }

// Hints are those that the program gave, nil if none; the process is locked.
func (x *Comm) Hints() **Info { return &x.hints }

// Life is the stage of its life: usable, not yet born or freed.
func (x *Comm) Life() *atomic.Uint32 { return &x.life }

// Local is the private communicator of an intercommunicator's own group, else nil.
func (x *Comm) Local() *Comm { return x.local }

// NameSlot is where the name is kept.
func (x *Comm) NameSlot() *ObjectName { return &x.name }

// Process is the one that it is of.
func (x *Comm) Process() *Process { return x.p }

// Pairings counts partitioned operations; the process is locked.
func (x *Comm) Pairings() *map[Pairing]uint32 { return &x.pairings }

// Action is what becomes of an error.
func (x *Errhandler) Action() action { return x.action }

// Holds counts how often the program has it.
func (x *Errhandler) Holds() *atomic.Int64 { return &x.holds }

// Name is how people call it.
func (x *Errhandler) Name() string { return x.name }

// Other is the function for objects that are no communicators, nil if there is none.
func (x *Errhandler) Other() func(object any, err error) { return x.other }

// Members are the procs of the group.
func (x *Group) Members() *comm.Group { return x.g }

// Pairs are keys and values; the object is locked.
func (x *Info) Pairs() *[]InfoPair { return &x.pairs }

// Comm is whose handler hears of errors, nil of a request that was never made.
func (x *Request) Comm() *Comm { return x.c }

// Extra is what a request has that is no message of its own, nil mostly.
func (x *Request) Extra() **Extra { return &x.extra }

// Message is the request of the engine, if it is about one message.
func (x *Request) Message() *message.Request { return x.r }

// Clients says of which site each rank is.
func (x *Roster) Clients() *comm.Clients { return x.clients }

// Common is the representation that all ranks read.
func (x *Roster) Common() datatype.Representation { return x.common }

// Data are the representations of user data, by rank.
func (x *Roster) Data() []datatype.Representation { return x.data }

// Directory says who the ranks are.
func (x *Roster) Directory() *message.Directory { return x.directory }

// Foreign tells of each site whether some of its ranks run another library.
func (x *Roster) Foreign() []bool { return x.foreign }

// Masters are the first ranks of the sites.
func (x *Roster) Masters() *comm.Masters { return x.masters }

// World is the group of all ranks.
func (x *Roster) World() *comm.Group { return x.world }

// Rep is the representation that the bytes are counted in.
func (x Status) Rep() datatype.Representation { return x.rep }
