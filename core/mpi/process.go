package mpi

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/machine"
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
// sleep on turns. Whoever gives the lock away, by unlock or to sleep, has told
// the sleepers what has happened; and where somebody sleeps on turns, somebody
// drives or was just roused to.
type process struct {
	mu      sync.Mutex
	turns   sync.Cond // on mu: something has happened, or somebody must drive
	waiters int       // goroutines that sleep on turns
	driving bool
	asleep  bool   // the driver is in the poll set, without the lock
	told    uint64 // the engine's events that sleepers were roused for

	job         *wireup.Job
	roster      *Roster                   // its data, kinds, homogeneous and plain are here once more:
	data        []datatype.Representation // of user data, by world rank
	kinds       []datatype.Representation // the different ones of data
	homogeneous bool                      // all of data is Native
	plain       uint64                    // bit k: nobody's elements of kind k need conversion
	eng         *message.Engine
	guarded     bool      // memory of messages may not be there
	streams     []*stream // to be used again

	links      *drive.Driver // Wanted: goroutines that wait for mu: a driver lets them in
	ports      []*port       // by message.LinkID; nil once closed
	resumables []*port       // links that resume, closed ones too
	lent       int           // how many of them some output is lent to
	front      [][]byte      // for keepLent
	haste      uint32        // receives that looked at nothing else, or could have
	express    *expressed    // nil: no C code sends and receives by itself
	spin       poll.Spinner
	deferred   bool          // some port holds back output of an Isend
	flusher    machine.Timer // sends what is held back if the program does not come back
	armed      bool

	boards    boards
	machine   machine.Machine
	control   machine.Node // nil in a program that no node started
	news      atomic.Bool  // inbox holds something
	asked     atomic.Bool  // the node wants to know of our links
	inboxLock sync.Mutex
	inbox     []delivery

	description *dynamic.Description // of this job, for others; nil: it meets nobody
	worlds      atomic.Pointer[worlds]
	guests      map[message.Peer]temporary // at the other ends of calls
	early       []delivery                 // links from worlds that are not known yet
	meetings    int                        // that go on
	hearing     *hearing                   // nil: no world is known
	vacant      []message.LinkID           // of links to other worlds, to be used again
	asking      map[uint64]*inquiry        // what the node has not answered yet
	questions   uint64                     // asked so far
	doors       map[string]dynamic.Token   // keys of open ports, by name
	callers     uint32                     // guests so far
	introduced  map[message.Peer]*introduced

	groups sync.Map // by a communicator's first context: *comm.Group; empty unless the dialect is the draft's

	world, self *Comm
	parent      atomic.Pointer[Comm] // nil: nobody has spawned this world
	contexts    comm.Contexts
	background  []backgroundOp
	check       bool         // compare what members call
	state       atomic.Int32 // phase
	failure     error        // why the job is over, once it is
	lost        error        // why there is no link to the agent, once there is none
	grace       time.Duration
	breaks      []breach  // links that broke, of which the program does not know yet
	tracer      *tracer   // nil until something is to be traced
	environment sync.Once // makes info
	info        *Info     // MPI_INFO_ENV
}

// delivery is a link, or the refusal of one, that the node gave us.
type delivery struct {
	msg wireup.Message
	l   link.Link // nil: use the agent
}

// lock takes the process's lock. The goroutine that drives may hold it for
// long, but gives it away as soon as it sees that somebody wants it.
func (p *process) lock() {
	if !p.mu.TryLock() {
		p.links.Wanted.Add(1)
		p.mu.Lock()
		p.links.Wanted.Add(-1)
	}
	if p.express != nil {
		p.express.close(p)
	}
}

// unlock gives the lock away. If the goroutine that drove is about to leave,
// another takes its place.
func (p *process) unlock() {
	if p.eng.Events() != p.told {
		p.tell()
	}
	if p.waiters > 0 && !p.driving {
		p.waiters--
		p.links.Wanted.Add(1)
		p.turns.Signal()
	}
	if p.express != nil {
		p.express.open(p)
	}
	p.mu.Unlock()
}

// tell rouses those that sleep if something has happened that they may wait for.
func (p *process) tell() (news bool) {
	n := p.eng.Events()
	if n == p.told {
		return false
	}
	p.told = n
	p.rouse()
	return true
}

// own says that r was begun just now by the caller. If it is done already, and
// nothing else has happened, nobody needs to be told.
func (p *process) own(r *message.Request) {
	if r.Done() && p.eng.Events() == p.told+1 {
		p.told++
	}
}

// rouse makes all that sleep look again whether they have what they wait for.
func (p *process) rouse() {
	if p.waiters > 0 {
		p.links.Wanted.Add(int32(p.waiters))
		p.waiters = 0
		p.turns.Broadcast()
	}
	if p.asleep {
		p.links.Wake()
	}
}

// giveWay lets those in that want the lock.
func (p *process) giveWay() {
	p.mu.Unlock()
	runtime.Gosched()
	p.mu.Lock()
}
