package mpi

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/internal/wireup"
)

// agentLink is the link to this proc's agent; direct links come after it.
const agentLink message.LinkID = 0

// process is this proc: its protocol engine, its links and the lock around
// both. A program has one; tests have several.
//
// Whoever calls MPI makes the progress: the goroutine that waits reads and
// writes the links itself. When several wait, one of them drives and the others
// sleep on turns until it has something for them or leaves.
type process struct {
	mu      sync.Mutex
	wanted  atomic.Int32 // goroutines that wait for mu: a driver lets them in
	turns   sync.Cond    // on mu: something completed, or the driver left
	waiters int          // goroutines that sleep on turns
	driving bool
	asleep  bool // the driver is in the poll set, without the lock

	job         *wireup.Job
	data        []datatype.Representation // of user data, by world rank
	kinds       []datatype.Representation // the different ones of data
	homogeneous bool                      // all of data is Native
	eng         *message.Engine

	ports    []*port  // by message.LinkID; nil once closed
	hot      [2]*port // the last that brought something
	polls    uint     // made so far
	set      *poll.Set
	waker    *poll.Waker
	spin     poll.Spinner
	deferred bool        // some port holds back output of an Isend
	flusher  *time.Timer // sends what is held back if the program does not come back
	armed    bool

	control   *wireup.Conn // nil in a program that no node started
	news      atomic.Bool  // inbox holds something
	inboxLock sync.Mutex
	inbox     []delivery

	world, self *Comm
	contexts    comm.Contexts
	state       atomic.Int32 // phase
	failure     error        // why the job is over, once it is
	grace       time.Duration
}

// delivery is a link, or the refusal of one, that the node gave us.
type delivery struct {
	msg wireup.Message
	l   link.Link // nil: use the agent
}

// lock takes the process's lock. The goroutine that drives may hold it for
// long, but gives it away as soon as it sees that somebody wants it.
func (p *process) lock() {
	if p.mu.TryLock() {
		return
	}
	p.wanted.Add(1)
	p.mu.Lock()
	p.wanted.Add(-1)
}

func (p *process) unlock() { p.mu.Unlock() }
