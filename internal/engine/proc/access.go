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
func (b Buffer) InPlace() bool { return b.inPlace }

// Len is how many bytes of memory there are from Memory on; negative if only the caller knows.
func (b Buffer) Len() int64 { return b.len }

// Memory is where the first item has its origin.
func (b Buffer) Memory() unsafe.Pointer { return b.mem }

// Attrs are the attributes, which have a lock of their own.
func (c *Comm) Attrs() *comm.Attrs { return &c.attrs }

// Colls are the means of collective operations.
func (c *Comm) Colls() *collectives { return &c.colls }

// Constructors counts those that were begun; the process is locked.
func (c *Comm) Constructors() *uint32 { return &c.constructors }

// Fixed tells whether it is World or Self.
func (c *Comm) Fixed() bool { return c.fixed }

// Handler is where the error handler is kept.
func (c *Comm) Handler() *HandlerSlot { return &c.handler }

// Hints are those that the program gave, nil if none; the process is locked.
func (c *Comm) Hints() **Info { return &c.hints }

// Life is the stage of its life: usable, not yet born or freed.
func (c *Comm) Life() *atomic.Uint32 { return &c.life }

// Local is the private communicator of an intercommunicator's own group, else nil.
func (c *Comm) Local() *Comm { return c.local }

// NameSlot is where the name is kept.
func (c *Comm) NameSlot() *ObjectName { return &c.name }

// Process is the one that it is of.
func (c *Comm) Process() *Process { return c.p }

// Pairings counts partitioned operations; the process is locked.
func (c *Comm) Pairings() *map[Pairing]uint32 { return &c.pairings }

// Action is what becomes of an error.
func (h *Errhandler) Action() action { return h.action }

// Holds counts how often the program has it.
func (h *Errhandler) Holds() *atomic.Int64 { return &h.holds }

// Name is how people call it.
func (h *Errhandler) Name() string { return h.name }

// Other is the function for objects that are no communicators, nil if there is none.
func (h *Errhandler) Other() func(object any, err error) { return h.other }

// Members are the procs of the group.
func (g *Group) Members() *comm.Group { return g.g }

// Pairs are keys and values; the object is locked.
func (i *Info) Pairs() *[]InfoPair { return &i.pairs }

// Comm is whose handler hears of errors, nil of a request that was never made.
func (q *Request) Comm() *Comm { return q.c }

// Extra is what a request has that is no message of its own, nil mostly.
func (q *Request) Extra() **Extra { return &q.extra }

// Message is the request of the engine, if it is about one message.
func (q *Request) Message() *message.Request { return q.r }

// Clients says of which site each rank is.
func (r *Roster) Clients() *comm.Clients { return r.clients }

// Common is the representation that all ranks read.
func (r *Roster) Common() datatype.Representation { return r.common }

// Data are the representations of user data, by rank.
func (r *Roster) Data() []datatype.Representation { return r.data }

// Directory says who the ranks are.
func (r *Roster) Directory() *message.Directory { return r.directory }

// Foreign tells of each site whether some of its ranks run another library.
func (r *Roster) Foreign() []bool { return r.foreign }

// Masters are the first ranks of the sites.
func (r *Roster) Masters() *comm.Masters { return r.masters }

// World is the group of all ranks.
func (r *Roster) World() *comm.Group { return r.world }

// Rep is the representation that the bytes are counted in.
func (s Status) Rep() datatype.Representation { return s.rep }
