package proc

// Accessors for the rooms above.

import (
	"unsafe"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
)

// InPlace reports whether b is MPI_IN_PLACE.
func (b Buffer) InPlace() bool { return b.inPlace }

// Len is the number of bytes of memory from Memory on; Unknown if only the program knows.
func (b Buffer) Len() int64 { return b.len }

// Memory is the origin of the first item.
func (b Buffer) Memory() unsafe.Pointer { return b.mem }

// State is what the rooms above keep in the communicator.
func (c *Comm) State() *CommState { return &c.state }

// Process is the process that the communicator belongs to.
func (c *Comm) Process() *Process { return c.p }

// Action is what the handler does with an error.
func (h *Errhandler) Action() action { return h.action }

// Name is for messages to people.
func (h *Errhandler) Name() string { return h.name }

// Other is the function for objects that are no communicators, nil if there is none.
func (h *Errhandler) Other() func(object any, err error) { return h.other }

// Members are the procs of the group.
func (g *Group) Members() *comm.Group { return g.g }

// Pairs are keys and values; the object is locked.
func (i *Info) Pairs() *[]InfoPair { return &i.pairs }

// Comm is the communicator whose handler is told of errors; nil for a request that was never made.
func (q *Request) Comm() *Comm { return q.c }

// Extra is nil for most requests: see Extra.
func (q *Request) Extra() **Extra { return &q.extra }

// Message is the request of core/message, if the request is for one message.
func (q *Request) Message() *message.Request { return q.r }

// Clients gives the site of each rank.
func (r *MemberTable) Clients() *comm.Clients { return r.clients }

// Hosts gives the host of each rank, with host ranks in place of client ranks. It is nil if no site of
// the job has several hosts.
func (r *MemberTable) Hosts() *comm.Clients { return r.hosts }

// Common is the representation that all ranks can read.
func (r *MemberTable) Common() datatype.Representation { return r.common }

// DataOf is the representation of a rank's user data.
func (r *MemberTable) DataOf(rank int) datatype.Representation { return r.data.At(rank) }

// Directory identifies the ranks.
func (r *MemberTable) Directory() *message.Directory { return r.directory }

// Foreign reports by site whether some of its ranks run another library.
func (r *MemberTable) Foreign() []bool { return r.foreign }

// Masters are the first ranks of the sites.
func (r *MemberTable) Masters() *comm.Masters { return r.masters }

// World is the group of all ranks.
func (r *MemberTable) World() *comm.Group { return r.world }
