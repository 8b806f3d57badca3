package proc

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/rdma"
	"github.com/openimpi/impi/plugins/sdk/support/relay"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"

	"golang.org/x/sys/unix"
)

// NodeConn is a proc's connection to the node that has started it.
type NodeConn struct{ *wireup.Conn }

// Send sends a message without descriptors.
func (c NodeConn) Send(m wireup.Message) error { return c.Conn.Send(m) }

// nodeControl is the connection to the node, with messages from it that were not handled yet and
// requests that it has not answered.
type nodeControl struct {
	p         *Process
	Control   machine.Node             // nil in a program that was not started by a node
	news      atomic.Bool              // inbox is not empty
	fast      atomic.Pointer[fastPath] // to interrupt C; nil: there is none
	asked     atomic.Bool              // the node has asked for statistics of links
	inboxLock sync.Mutex
	inbox     []LinkMessage
	taken     uint64                   // counts what may end a wait: answers, and links of meetings; guarded by the process's lock
	Asking    map[uint64]*inquiry      // requests that the node has not answered
	Questions uint64                   // number of requests made
	PortKeys  map[string]dynamic.Token // keys of open ports, by name
	resent    socket.Retransmits       // packets that links have sent again, by transport

	// Last is closed when the node has reported that the job is over, or is gone. It is nil if
	// Abort need not wait for it.
	Last chan struct{}
}

// Listen reads the messages of the node after the welcome. It runs in a goroutine of its own.
func (nc *nodeControl) Listen(node NodeConn) {
	for {
		m, fds, err := node.Recv()
		if err != nil {
			nc.nodeGone(err)
			return
		}
		var l link.Link
		if brings(m.Kind) && len(fds) > 0 {
			if l, err = received(m, fds); err != nil {
				m.Reason = err.Error()
			}
			nc.resent.Count(l, m.Transport)
			fds = nil
		}
		wireup.CloseAll(fds)
		nc.HandleMessage(m, l)
	}
}

// brings reports whether a link may come with a message of that kind.
func brings(k wireup.Kind) bool {
	return k == wireup.KindLink || k == wireup.KindAccepted || k == wireup.KindConnected
}

// received is openLink. A connection of a resumable link that broke on its way here becomes a
// lostLink, so that the link asks for another connection.
func received(m wireup.Message, fds []int) (link.Link, error) {
	l, err := openLink(m, fds)
	switch {
	case err == nil:
		return l, nil
	case m.Resumable == nil || errors.Is(err, ErrNode):
		return nil, err
	}
	return lostLink{fmt.Errorf("%w: %w", link.ErrBroken, err)}, nil
}

// lostLink is a link that broke before it could be used.
type lostLink struct{ why error }

func (l lostLink) Send([][]byte) (int, error) { return 0, l.why }
func (l lostLink) Recv([][]byte) (int, error) { return 0, l.why }
func (lostLink) Handle() int                  { return link.NoHandle }
func (lostLink) Arm(link.Interest) bool       { return true }
func (lostLink) Limits() link.Limits          { return link.Limits{} }
func (l lostLink) CloseSend() error           { return l.why }
func (lostLink) Close() error                 { return nil }

// openLink makes a link of the descriptors that came with a message, and owns them.
func openLink(m wireup.Message, fds []int) (link.Link, error) {
	switch plane := transports.DataPlane(m.DataPlane); {
	case plane == transports.PlanePeerSHM && len(fds) == 2:
		return OpenRing(fds[0], fds[1], m.Side)
	case plane == transports.PlaneRing && len(fds) == 2:
		return relay.NewRing(fds[0], fds[1], m.Side, m.Transport)
	case plane == transports.PlaneRDMA && len(fds) == 3:
		regions := &lent
		if m.Resumable != nil {
			regions = nil // such links copy what they send, and do not recall what is read
		}
		return relay.NewRDMA(fds[0], fds[1], fds[2], m.Transport, regions)
	case (plane == transports.PlaneStream || plane == transports.PlaneGRPC) && len(fds) == 2:
		return relay.NewStream(fds[0], fds[1], plane, m.Transport)
	case (plane == transports.PlaneFD || plane == "") && len(fds) == 1:
		return socket.New(fds[0], nil)
	}
	wireup.CloseAll(fds)
	return nil, fmt.Errorf("%w: a link by data plane %q with %d descriptors", ErrNode, m.DataPlane, len(fds))
}

// OpenRing makes a link from memory that is shared with the proc at the other end.
func OpenRing(region, sock, side int) (link.Link, error) {
	l, err := ring.New(region, sock, side)
	if err != nil {
		return nil, err
	}
	if err := l.AllowLending(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// HandleMessage handles a message of the node. It never takes the process's lock: links go to the
// inbox, for the goroutine that makes progress.
func (nc *nodeControl) HandleMessage(m wireup.Message, l link.Link) {
	switch m.Kind {
	case wireup.KindLink, wireup.KindAccepted, wireup.KindConnected, wireup.KindPort, wireup.KindNamed, wireup.KindSpawned, wireup.KindFailed:
		nc.inboxLock.Lock()
		nc.inbox = append(nc.inbox, LinkMessage{m, l})
		nc.inboxLock.Unlock()
		nc.news.Store(true)
		nc.fast.Load().interrupt()
		nc.p.Driver.Wake()
	case wireup.KindDown:
		// MPI_Abort ends every proc of the job. The node reports why.
		nc.exit(cmp.Or(m.Code, ExitDown), "")
	case wireup.KindStats:
		if nc.asked.CompareAndSwap(false, true) {
			go nc.describe(m.Calls) // it takes the lock
		}
	default: // newer nodes may send others, which this proc does not need
	}
}

// interrupt makes C leave its next call to Go, which takes what the node has sent. It needs no lock.
// x may be nil.
func (x *fastPath) interrupt() {
	if x != nil {
		x.Busy.Store(1)
	}
}

// ExitDown is the exit status of a proc that ends because the job does, if the node sends none.
const ExitDown = 1

func (nc *nodeControl) exit(code int, why string) {
	if nc.Last != nil {
		close(nc.Last)
	}
	nc.p.Machine.Exit(code, why)
}

// nodeGone ends a proc whose node has died, since nobody else would end it.
func (nc *nodeControl) nodeGone(err error) {
	if LifeState(nc.p.State.Load()) >= Finalizing {
		return
	}
	nc.exit(ExitDown, fmt.Sprintf("rank %d: the node of this rank is gone (%v); ending", nc.p.Job.Rank, err))
}

func (nc *nodeControl) takeDeliveries() (progress bool) {
	nc.inboxLock.Lock()
	inbox := nc.inbox
	nc.inbox = nil
	nc.news.Store(false)
	nc.inboxLock.Unlock()
	for _, d := range inbox {
		nc.Take(d)
	}
	nc.p.Survival.catchUp()
	return len(inbox) > 0
}

// Take handles a message of the inbox. The process is locked.
func (nc *nodeControl) Take(d LinkMessage) {
	switch {
	case d.Msg.Kind == wireup.KindFailed:
		nc.taken++
		nc.p.Survival.lose(d.Msg.Peer, d.Msg.Last, d.Msg.Reason)
		return
	case d.Msg.Kind != wireup.KindLink:
		nc.taken++
		nc.answered(d)
		return
	case d.Msg.Meeting != nil && len(d.Msg.Meeting.World) > 0:
		nc.taken++
		nc.p.Worlds.takeForeign(d)
		return
	}
	peer := message.Peer(d.Msg.Peer)
	if int(peer) < 0 || int(peer) >= nc.p.Job.Size() {
		if d.L != nil {
			_ = d.L.Close()
		}
		return
	}
	if d.Msg.Resumable != nil && d.Msg.Resumable.Again {
		nc.p.Endpoints.again(&d)
		return
	}
	route := AgentLink
	if d.L != nil {
		q, err := nc.p.Endpoints.linkTo(&d, peer)
		if err != nil {
			_ = d.L.Close()
		} else {
			route = q.ID
		}
	}
	if _, ok := nc.p.Eng.Route(peer); !ok {
		nc.p.Endpoints.route(peer, route)
	}
}

func (es *endpoints) linkTo(d *LinkMessage, peer message.Peer) (*Endpoint, error) {
	if d.Msg.Resumable != nil {
		return es.addResumable(d, peer, nil)
	}
	q := &Endpoint{Peer: peer}
	l, err := q.packed(d.L, d.Msg.Compress)
	if err != nil {
		return nil, err
	}
	q.Link = es.p.Trace.Traced(l, fmt.Sprintf("%s to %d", d.Msg.Transport, peer), peer)
	return q, es.add(q)
}

// openDirect asks the node for a direct link to peer. It returns false if packets go by the agent.
func (es *endpoints) openDirect(peer message.Peer) bool {
	if es.p.Node.Control == nil || es.p.Job.Proc(wire.WorldRank(peer)).Path != wireup.PathDirect {
		return false
	}
	err := es.p.Node.Control.Send(wireup.Message{Kind: wireup.KindOpen, Peer: rank(peer)})
	return err == nil
}

// SetFailed ends the job for this proc: every wait returns err from now on.
func (p *Process) SetFailed(err error) {
	if p.Failure == nil {
		p.Failure = fmt.Errorf("%w: %w", ErrJobOver, err)
		p.Failing.Store(true)
		p.WakeAll()
	}
}

// inquiry is a request to the node that it has to answer. The process's lock guards it.
type inquiry struct {
	Answer *LinkMessage
	Port   dynamic.WorldID // the port that it is about, if it is an accept
}

// Ask sends a request to the node and waits for the answer, which may be a refusal. The process is
// locked.
func (nc *nodeControl) Ask(m wireup.Message, port dynamic.WorldID) (LinkMessage, error) {
	nc.Questions++
	number := nc.Questions
	m.Meeting.Request = number
	q := &inquiry{Port: port}
	if nc.Asking == nil {
		nc.Asking = make(map[uint64]*inquiry)
	}
	nc.Asking[number] = q
	defer delete(nc.Asking, number)
	if err := nc.Control.Send(m); err != nil {
		return LinkMessage{}, err
	}
	for q.Answer == nil && nc.p.Failure == nil {
		nc.p.AwaitProgress()
	}
	if q.Answer == nil {
		return LinkMessage{}, nc.p.Failure
	}
	return *q.Answer, refusal(&q.Answer.Msg)
}

// answered completes the inquiry that d answers. An answer to no inquiry is dropped.
func (nc *nodeControl) answered(d LinkMessage) {
	var q *inquiry
	if d.Msg.Meeting != nil {
		q = nc.Asking[d.Msg.Meeting.Request]
	}
	if q == nil || q.Answer != nil {
		d.close()
		return
	}
	q.Answer = &d
	nc.p.WakeAll()
}

func refusal(m *wireup.Message) error {
	switch {
	case m.Meeting.Class == 0: // an answer with a link; its reason explains the data plane
		return nil
	case mpierr.Class(m.Meeting.Class) == mpierr.Port:
		return fmt.Errorf("%w: %s", ErrCall, m.Reason)
	case mpierr.Class(m.Meeting.Class) == mpierr.Spawn:
		return fmt.Errorf("%w: %s", ErrSpawn, m.Reason)
	}
	return fmt.Errorf("%w: %s", ErrUnreachable, m.Reason)
}

// leastLent is the least number of bytes that AllocMem allocates so that they can be lent. Less is
// copied faster than it is registered.
const leastLent = 32 << 10

// lent is the memory of this process that its links may lend to plugins. It outlives the
// Process, since a program may free memory after MPI_Finalize.
var lent rdma.Regions

// AllocMem returns memory for MPI_Alloc_mem (MPI-4.1, 9.2), or for a window, that links can lend, or nil if it has
// to come from elsewhere: because no link of the job lends, it is too little, or there is none.
func AllocMem(size int) []byte {
	p, err := Current()
	if err != nil || size < leastLent || !p.Job.Lend {
		return nil
	}
	b, err := lent.Allocate(size)
	if err != nil {
		return nil // such as too many regions: other memory will do
	}
	return b
}

// leastPages is from how many bytes on NewMemory takes memory from the kernel, which says so if there
// is none. Go's allocator would end the process.
const leastPages = 1 << 20

// pages are the blocks that NewMemory has from the kernel: []byte, by the address of the first byte.
var pages sync.Map

// NewMemory returns memory that links can lend, if any link of the job does.
func NewMemory(size int) ([]byte, error) {
	if size < 0 {
		return nil, fmt.Errorf("%w: %d bytes", ErrArg, size)
	}
	if b := AllocMem(size); b != nil {
		return b, nil
	}
	if size < leastPages {
		return make([]byte, size), nil
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("%w: %d bytes: %w", ErrMemory, size, err)
	}
	pages.Store(uintptr(unsafe.Pointer(unsafe.SliceData(b))), b)
	return b, nil
}

// FreeNewMemory frees memory of NewMemory. What is Go's is collected once nothing refers to it.
func FreeNewMemory(b []byte) {
	if cap(b) == 0 {
		return
	}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if whole, ok := pages.LoadAndDelete(base); ok {
		_ = unix.Munmap(whole.([]byte)) // it was mapped with this length
		return
	}
	FreeMem(base)
}

// LendMemory has links lend all of a file in memory, which is mapped as mem and gets no shorter. It
// returns false if no link of the job lends, or the memory cannot be lent. The caller keeps the
// descriptor. FreeMem unmaps the memory.
func LendMemory(fd int, mem []byte) bool {
	p, err := Current()
	if err != nil || len(mem) < leastLent || !p.Job.Lend {
		return false
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
		return false
	}
	return lent.Adopt(fd, mem) == nil
}

// FreeMem frees memory of AllocMem or LendMemory, by the address of its first byte. It returns false
// if that is not such memory.
func FreeMem(base uintptr) bool { return lent.Free(base) == nil }
