package proc

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

// AgentLink is the link to this proc's agent; direct links come after it.
const AgentLink message.LinkID = 0

// Process is this proc: its protocol engine, its links and the lock around
// both. A program has one; tests have several.
//
// Whoever calls MPI makes the progress: the goroutine that waits reads and
// writes the links itself. When several wait, one of them drives and the others
// sleep on turns. Whoever gives the lock away, by unlock or to sleep, has told
// the sleepers what has happened; and where somebody sleeps on turns, somebody
// drives or was just roused to.
type Process struct {
	Mu      sync.Mutex
	turns   sync.Cond // on mu: something has happened, or somebody must drive
	Waiters int       // goroutines that sleep on turns
	Driving bool
	Asleep  bool   // the driver is in the poll set, without the lock
	told    uint64 // the engine's events that sleepers were roused for

	Job         *wireup.Job
	Roster      *Roster                   // its data, kinds, homogeneous and plain are here once more:
	data        []datatype.Representation // of user data, by world rank
	Kinds       []datatype.Representation // the different ones of data
	Homogeneous bool                      // all of data is Native
	plain       uint64                    // bit k: nobody's elements of kind k need conversion
	Eng         *message.Engine
	guarded     bool      // memory of messages may not be there
	streams     []*Stream // to be used again

	Links      *drive.Driver // Wanted: goroutines that wait for mu: a driver lets them in
	Ports      []*Port       // by message.LinkID; nil once closed
	resumables []*Port       // links that resume, closed ones too
	lent       int           // how many of them some output is lent to
	front      [][]byte      // for keepLent
	haste      uint32        // receives that looked at nothing else, or could have
	FastPath   *fastPath     // nil: no C code sends and receives by itself
	spin       poll.Spinner
	deferred   bool          // some port holds back output of an Isend
	Flusher    machine.Timer // sends what is held back if the program does not come back
	Armed      bool

	Boards    boards
	Machine   machine.Machine
	Control   machine.Node // nil in a program that no node started
	news      atomic.Bool  // inbox holds something
	asked     atomic.Bool  // the node wants to know of our links
	inboxLock sync.Mutex
	inbox     []Delivery

	Description *dynamic.Description // of this job, for others; nil: it meets nobody
	Worlds      atomic.Pointer[worlds]
	Guests      map[message.Peer]Temporary // at the other ends of calls
	Early       []Delivery                 // links from worlds that are not known yet
	meetings    int                        // that go on
	hearing     *hearing                   // nil: no world is known
	vacant      []message.LinkID           // of links to other worlds, to be used again
	Asking      map[uint64]*inquiry        // what the node has not answered yet
	Questions   uint64                     // asked so far
	Doors       map[string]dynamic.Token   // keys of open ports, by name
	Callers     uint32                     // guests so far
	Introduced  map[message.Peer]*Introduced

	groups sync.Map // by a communicator's first context: *comm.Group; empty unless the dialect is the draft's

	World, Self *Comm
	Parent      atomic.Pointer[Comm] // nil: nobody has spawned this world
	Contexts    comm.Contexts
	Background  []BackgroundOp
	Check       bool         // compare what members call
	State       atomic.Int32 // phase
	Failure     error        // why the job is over, once it is
	lost        error        // why there is no link to the agent, once there is none
	Grace       time.Duration
	breaks      []breach  // links that broke, of which the program does not know yet
	tracer      *tracer   // nil until something is to be traced
	Environment sync.Once // makes info
	Info        *Info     // MPI_INFO_ENV
}

// Delivery is a link, or the refusal of one, that the node gave us.
type Delivery struct {
	Msg wireup.Message
	L   link.Link // nil: use the agent
}

// Lock takes the process's lock. The goroutine that drives may hold it for
// long, but gives it away as soon as it sees that somebody wants it.
func (p *Process) Lock() {
	if !p.Mu.TryLock() {
		p.Links.Wanted.Add(1)
		p.Mu.Lock()
		p.Links.Wanted.Add(-1)
	}
	if p.FastPath != nil {
		p.FastPath.close(p)
	}
}

// Unlock gives the lock away. If the goroutine that drove is about to leave,
// another takes its place.
func (p *Process) Unlock() {
	if p.Eng.Events() != p.told {
		p.tell()
	}
	if p.Waiters > 0 && !p.Driving {
		p.Waiters--
		p.Links.Wanted.Add(1)
		p.turns.Signal()
	}
	if p.FastPath != nil {
		p.FastPath.open(p)
	}
	p.Mu.Unlock()
}

// tell rouses those that sleep if something has happened that they may wait for.
func (p *Process) tell() (news bool) {
	n := p.Eng.Events()
	if n == p.told {
		return false
	}
	p.told = n
	p.Rouse()
	return true
}

// own says that r was begun just now by the caller. If it is done already, and
// nothing else has happened, nobody needs to be told.
func (p *Process) own(r *message.Request) {
	if r.Done() && p.Eng.Events() == p.told+1 {
		p.told++
	}
}

// Rouse makes all that sleep look again whether they have what they wait for.
func (p *Process) Rouse() {
	if p.Waiters > 0 {
		p.Links.Wanted.Add(int32(p.Waiters))
		p.Waiters = 0
		p.turns.Broadcast()
	}
	if p.Asleep {
		p.Links.Wake()
	}
}

// giveWay lets those in that want the lock.
func (p *Process) giveWay() {
	p.Mu.Unlock()
	runtime.Gosched()
	p.Mu.Lock()
}

// Figures are what the library knows of itself, for tools. Those that count grow
// from Init on; the others are as things are now.
type Figures struct {
	Messages   uint64 // sent to procs of this job: the first packet has left, or waits to
	Completed  uint64 // sends and receives
	Sent       uint64 // bytes, by the links that count them
	Received   uint64
	Links      int // to other procs, without an agent between
	Unexpected int // messages that wait for a receive
	Posted     int // receives that wait for a message
	Buffered   int // bytes of BufferAttach that are taken

	PacketData int // most bytes of data in a packet to another site (C_DATALEN)
	AckMark    int // packets after which an acknowledgement is asked for
	HiWater    int // packets that may be without one
	Check      bool
}

func Measure() (Figures, error) {
	f, err := CurrentFigures()
	return f, Failed("Measure", err)
}

// CurrentFigures is Measure of which no handler hears.
func CurrentFigures() (Figures, error) {
	p, err := Current()
	if err != nil {
		return Figures{}, err
	}
	return p.Figures(), nil
}

// Figures are those of p as they are now.
func (p *Process) Figures() Figures {
	p.Lock()
	defer p.Unlock()
	f := Figures{
		Completed: p.Eng.Completed(), Buffered: p.Eng.Room().Used(), Check: p.Check,
		PacketData: int(p.Job.DataLen), AckMark: int(p.Job.AckMark), HiWater: int(p.Job.HiWater),
	}
	f.Unexpected, f.Posted = p.Eng.Waiting()
	for r := range p.Job.Procs {
		f.Messages += p.Eng.SentTo(message.Peer(r))
	}
	for _, q := range p.Ports {
		if q == nil {
			continue
		}
		if q.Peer != message.NoPeer {
			f.Links++
		}
		if c, ok := q.Link.(interface {
			Counts() (sent, received uint64)
		}); ok {
			sent, received := c.Counts()
			f.Sent, f.Received = f.Sent+sent, f.Received+received
		}
	}
	return f
}
