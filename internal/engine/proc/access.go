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

// State is what the rooms above keep in it.
func (c *Comm) State() *CommState { return &c.state }

// Process is the one that it is of.
func (c *Comm) Process() *Process { return c.p }

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
func (r *MemberTable) Clients() *comm.Clients { return r.clients }

// Hosts says on which host each rank is, host ranks taken for client ranks. It is nil if
// no site of the job has several hosts.
func (r *MemberTable) Hosts() *comm.Clients { return r.hosts }

// Common is the representation that all ranks read.
func (r *MemberTable) Common() datatype.Representation { return r.common }

// Data are the representations of user data, by rank.
func (r *MemberTable) Data() []datatype.Representation { return r.data }

// Directory says who the ranks are.
func (r *MemberTable) Directory() *message.Directory { return r.directory }

// Foreign tells of each site whether some of its ranks run another library.
func (r *MemberTable) Foreign() []bool { return r.foreign }

// Masters are the first ranks of the sites.
func (r *MemberTable) Masters() *comm.Masters { return r.masters }

// World is the group of all ranks.
func (r *MemberTable) World() *comm.Group { return r.world }

// Rep is the representation that the bytes are counted in.
func (s Status) Rep() datatype.Representation { return s.rep }
