package proc

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/polling"
)

// AgentLink is the link to this proc's agent; direct links come after it.
const AgentLink message.LinkID = 0

// Process is this proc: the lock, the progress that is made under it, and the engine of messages.
// Its lock guards all that its fields have. A program has one; tests have several.
//
// The goroutines that call MPI make the progress: one that waits reads and writes the links itself.
// If several wait, one of them drives and the others sleep on turns. Before a goroutine releases
// the lock, by Unlock or to sleep, it wakes the sleepers for which something may have happened. As
// long as goroutines sleep on turns, one drives or has just been woken to drive.
type Process struct {
	Mu       sync.Mutex
	turns    sync.Cond // on Mu: signalled after an event, or when a goroutine must drive
	Waiters  int       // goroutines that sleep on turns
	Driving  bool
	Asleep   bool // the driver sleeps in the poll set, without the lock
	rest     rest // of the driver
	Probing  Probing
	told     uint64 // the engine's Events at the last wake-up of sleepers
	streak   uint32 // receives in a row that polled only their own link, or could have
	vain     uint32 // calls of Test in a row without progress
	periodic periodic
	spin     polling.Spinner

	Job         *wireup.Job
	Members     *MemberTable
	Machine     machine.Machine
	Eng         *message.Engine
	Driver      *drive.Driver // its Wanted counts goroutines that wait for Mu: a driver releases Mu for them
	Check       bool          // compare the members' calls
	State       atomic.Int32  // phase
	Failure     error         // why the job is over; nil: it is not
	Failing     atomic.Bool   // Failure is not nil; may be read without the process's lock
	Environment sync.Once     // makes info
	Info        *Info         // MPI_INFO_ENV

	Data        conversion
	Endpoints   endpoints
	Node        nodeControl
	Worlds      worlds
	Disconnects disconnects
	Comms       communicators
	Background  background
	Boards      boards
	Account     account
	FastPath    *fastPath // nil: no C code sends and receives without calling Go
	Native      *Native   // nil: the site has no MPI of its own
	Trace       tracing
	Survival    *Survival   // nil: the job ends with its first lost proc
	lifeChecks  *lifeChecks // nil like Survival
}

// LinkMessage is a message of the node about a link: it contains the link, or the reason why there
// is none.
type LinkMessage struct {
	Msg wireup.Message
	L   link.Link // nil: there is none
}

// Lock takes the process's lock. The goroutine that drives may hold it for a long time, but
// releases it when another one waits for it.
func (p *Process) Lock() {
	if !p.Mu.TryLock() {
		p.Driver.Wanted.Add(1)
		p.Mu.Lock()
		p.Driver.Wanted.Add(-1)
	}
	if p.FastPath != nil {
		p.FastPath.close(p)
	}
}

// Unlock releases the lock. If no goroutine drives, it wakes a sleeping one to drive.
func (p *Process) Unlock() {
	if p.Eng.Events() != p.told {
		p.tell()
	}
	if p.Waiters > 0 && !p.Driving {
		p.Waiters--
		p.Driver.Wanted.Add(1)
		p.turns.Signal()
	}
	if p.FastPath != nil {
		p.FastPath.open(p)
	}
	p.Mu.Unlock()
}

// tell wakes the sleepers if something has happened that they may wait for, and reports whether it
// has.
func (p *Process) tell() (news bool) {
	n := p.Eng.Events()
	if n == p.told {
		return false
	}
	p.told = n
	p.WakeAll()
	return true
}

// own says that the calling goroutine has just started r, so that the sleepers need not be woken if
// r is done already and nothing else has happened.
func (p *Process) own(r *message.Request) {
	if r.Done() && p.Eng.Events() == p.told+1 {
		p.told++
	}
}

// WakeAll makes all sleepers check their conditions again.
func (p *Process) WakeAll() {
	if p.Waiters > 0 {
		p.Driver.Wanted.Add(int32(p.Waiters))
		p.Waiters = 0
		p.turns.Broadcast()
	}
	if p.Asleep {
		p.Driver.Wake()
	}
}

// giveWay releases the lock for a moment if goroutines wait for it.
func (p *Process) giveWay() {
	p.Mu.Unlock()
	runtime.Gosched()
	p.Mu.Lock()
}

// Figures are counts and values of the library, for tools. Counts grow from Init on; the other
// values are the current ones.
type Figures struct {
	Messages   uint64 // sent to procs of this job: the first packet has left, or waits to leave
	Completed  uint64 // sends and receives that are complete
	Data       uint64 // bytes of data in the messages
	Sent       uint64 // bytes, by the links that count them, including ended ones
	Received   uint64
	Links      int // direct links to other procs
	Unexpected int // unexpected messages that are kept
	Posted     int // receives that wait for a message
	Buffered   int // bytes of the attached buffer that are in use

	UnexpectedBytes int64  // bytes of unexpected messages that are kept
	Sleeps          uint64 // in calls of MPI
	Slept           int64  // nanoseconds, in all
	Retransmits     uint64 // packets that transports have sent again

	PacketData int // most bytes of data in a packet to another site (C_DATALEN)
	AckMark    int // counted packets that one PROTOACK acknowledges
	HiWater    int // most counted packets that may be unacknowledged
	Check      bool
}

// CurrentFigures returns the Figures of the program's process.
func CurrentFigures() (Figures, error) {
	p, err := Current()
	if err != nil {
		return Figures{}, err
	}
	f := p.Figures()
	for _, n := range p.Node.resent.Totals() {
		f.Retransmits += n
	}
	return f, nil
}

// CurrentAccount returns the counts that the program's process has of its calls, or nil if it
// counts none.
func CurrentAccount() *wireup.Account {
	p, err := Current()
	if err != nil {
		return nil
	}
	p.Lock()
	defer p.Unlock()
	return p.Account.counted()
}

// Figures takes the lock and returns the figures of p at this moment.
func (p *Process) Figures() Figures {
	p.Lock()
	defer p.Unlock()
	f := Figures{
		Completed: p.Eng.Completed(), Buffered: p.Eng.BufferSpace().Used(), Check: p.Check,
		PacketData: int(p.Job.DataLen), AckMark: int(p.Job.AckMark), HiWater: int(p.Job.HiWater),
	}
	f.Unexpected, f.Posted = p.Eng.Waiting()
	c := p.Node.counts()
	f.UnexpectedBytes, f.Sleeps, f.Slept = c.UnexpectedBytes, c.Sleeps, c.Slept
	f.Sent, f.Received = c.EndedSent, c.EndedReceived
	byC := p.FastPath.sent()
	for r := range p.Job.Size() {
		peer := message.Peer(r)
		f.Messages += p.Eng.SentTo(peer)
		f.Data += p.Eng.BytesTo(peer) + byC[peer]
	}
	for _, q := range p.Endpoints.List {
		if q == nil {
			continue
		}
		if q.Peer != message.NoPeer {
			f.Links++
		}
		if sent, received, ok := q.counted(); ok {
			f.Sent, f.Received = f.Sent+sent, f.Received+received
		}
	}
	return f
}
