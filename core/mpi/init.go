package mpi

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/transports/socket"
)

// phase is how far a proc's life in MPI has got.
type phase int32

const (
	running    phase = iota
	finalizing       // in Finalize, before its barrier is passed
	parted           // in Finalize, behind it: that links end is in order
	finalized
)

// The faults of using MPI outside its life.
var (
	// ErrNotInitialized means that Init has not been called, or failed.
	ErrNotInitialized = errors.New("mpi.Init has not been called")
	// ErrFinalized means that Finalize has been called.
	ErrFinalized = errors.New("mpi.Finalize has been called")
	// ErrInitialized means that Init was called again.
	ErrInitialized = errors.New("mpi.Init has been called before")
	// ErrNode means that the node that started this proc does not fit it.
	ErrNode = errors.New("the node and this program do not fit together")
)

// the is the program's process, from Init on.
var (
	the     *process
	theLock sync.Mutex
)

// Init joins this proc to its job and blocks until all sites of it are there.
// It must be called once, before anything else of this package but Initialized,
// Finalized and Wtime. A program that no impi-node started is a job of its own,
// with one rank, unless another launcher has started several of it: ErrLauncher.
//
// Every function of this package may be called from several goroutines at a
// time (MPI_THREAD_MULTIPLE).
func Init() error { return failed("Init", initialize()) }

func initialize() error {
	theLock.Lock()
	defer theLock.Unlock()
	if the != nil {
		return ErrInitialized
	}
	control, ok, err := wireup.Inherited()
	if err != nil {
		return err
	}
	var p *process
	if !ok {
		if err := mayBeAlone(os.Getenv); err != nil {
			return err
		}
		p, err = newProcess(singleton(), nil, machine.Local{}, nil)
	} else {
		p, err = join(nodeConn{control})
	}
	if err != nil {
		return err
	}
	the = p
	return nil
}

// singleton is the job of a program that was started by itself.
func singleton() *wireup.Job {
	return &wireup.Job{
		Name:    "singleton",
		Procs:   []wireup.Proc{{Host: make([]byte, len(wire.HostID{})), PID: int64(os.Getpid()), Path: wireup.PathSelf}},
		DataLen: 64 << 10, TagUB: 1<<31 - 1, AckMark: 1, HiWater: 1, XSize: 1024, MaxLinear: 4,
	}
}

// join says hello to the node and waits for the job to be set up.
func join(control nodeConn) (*process, error) {
	hello := wireup.Message{Kind: wireup.KindHello, Version: wireup.Version, Library: Library, Board: wireup.BoardPossible}
	if err := control.Send(hello); err != nil {
		return nil, err
	}
	m, fds, err := control.Recv()
	switch {
	case err != nil:
		return nil, fmt.Errorf("waiting for the job to start: %w", err)
	case m.Kind == wireup.KindDown:
		wireup.CloseAll(fds)
		os.Exit(exitDown) // the node says why
	case m.Kind != wireup.KindWelcome || m.Version != wireup.Version || len(fds) < 2 || len(fds) > 2 != m.Board:
		wireup.CloseAll(fds)
		return nil, fmt.Errorf("it sent %q version %d with %d descriptors, want %q version %d with 2: %w",
			m.Kind, m.Version, len(fds), wireup.KindWelcome, wireup.Version, ErrNode)
	}
	p, err := welcomed(fds, control)
	if err != nil {
		return nil, err
	}
	if err := p.takeBoard(fds[2:]); err != nil {
		return nil, err
	}
	go p.listen(control)
	return p, p.findParents()
}

// welcomed makes the proc of the descriptors that came with a welcome, but for
// those of a board.
func welcomed(fds []int, control nodeConn) (*process, error) {
	job, err := wireup.OpenJob(fds[1])
	if err != nil {
		wireup.CloseAll(fds[:1])
		return nil, err
	}
	agent, err := socket.New(fds[0], nil)
	if err != nil {
		return nil, err
	}
	p, err := newProcess(job, agent, machine.Local{}, control)
	if err != nil {
		return nil, errors.Join(err, agent.Close())
	}
	return p, nil
}

// newProcess makes the proc of a job. agent and control are nil in a singleton.
func newProcess(job *wireup.Job, agent link.Link, m machine.Machine, control machine.Node) (*process, error) {
	r, err := NewRoster(job.Procs, nil)
	if err != nil {
		return nil, err
	}
	return r.newProcess(job, agent, m, control)
}

func (r *Roster) newProcess(job *wireup.Job, agent link.Link, m machine.Machine, control machine.Node) (*process, error) {
	p := &process{job: job, machine: m, control: control, grace: grace}
	p.roster, p.data, p.kinds, p.homogeneous, p.plain = r, r.data, r.kinds, r.homogeneous, r.plain
	p.turns.L = &p.mu
	if err := p.describeOwn(); err != nil {
		return nil, err
	}
	if p.check = job.Check || os.Getenv(checkVariable) == "1"; p.check {
		p.plain = 0 // messages say what their elements are: see sign
	}
	var err error
	p.eng, err = message.New(message.Config{
		Self: message.Peer(job.Rank), Directory: r.directory,
		MaxData: job.DataLen, AckMark: job.AckMark, HiWater: job.HiWater,
		Dialect: job.Dialect, RankOf: p.rankIn,
		Unexpected: job.Procs[job.Rank].Unexpected,
		UnexpectedOf: func(peer message.Peer) int64 {
			if job.Procs[peer].Allows {
				return message.Least
			}
			return job.Procs[peer].Unexpected
		},
	})
	if err != nil {
		return nil, err
	}
	if p.spin, err = poll.NewSpinner(job.Spin); err != nil {
		return nil, err
	}
	if p.links, err = drive.New(m, p); err != nil {
		return nil, err
	}
	p.flusher = m.AfterFunc(time.Hour, p.flushLate)
	p.flusher.Stop()
	if agent != nil {
		if _, err := p.addPort(p.traced(agent, "agent", message.NoPeer), message.NoPeer); err != nil {
			return nil, err
		}
	}
	return p, p.makeWorld()
}

// Initialized tells whether Init has returned without error.
func Initialized() bool {
	theLock.Lock()
	defer theLock.Unlock()
	return the != nil
}

// Finalized tells whether Finalize has begun.
func Finalized() bool {
	theLock.Lock()
	defer theLock.Unlock()
	return the != nil && phase(the.state.Load()) == finalized
}

// Finalize leaves the job. It is collective over World: it waits until every
// proc of every site has called it. Messages that were sent before are delivered.
// Before anything else it deletes the attributes of Self, the last one first; where
// that fails MPI goes on.
func Finalize() error {
	theLock.Lock()
	p := the
	theLock.Unlock()
	if p == nil {
		return failed("Finalize", ErrNotInitialized)
	}
	return p.failed("Finalize", p.finalize())
}

func (p *process) finalize() error {
	if phase(p.state.Load()) == finalized {
		return ErrFinalized
	}
	if err := p.self.deleteAttrs(); err != nil {
		return err
	}
	// Everything that was sent leaves: a proc that is past the barrier
	// acknowledges nothing any more.
	if err := p.settle(p.eng.Idle); err != nil {
		return err
	}
	p.state.Store(int32(finalizing))
	// LAM/MPI says that IMPI mandates this barrier.
	if err := p.world.collective((*coll.Planner).Barrier); err != nil {
		return err
	}
	p.passBarrier()
	if err := p.settle(p.eng.Idle); err != nil {
		return err
	}
	p.endDirect()
	if err := p.settle(p.allEnded); err != nil {
		return err
	}
	p.lock()
	defer p.unlock()
	var err error
	if p.control != nil {
		err = p.control.Send(wireup.Message{Kind: wireup.KindFini})
	}
	p.state.Store(int32(finalized))
	p.close()
	return err
}

// settle makes progress until done says that it is enough.
func (p *process) settle(done func() bool) error {
	p.lock()
	defer p.unlock()
	for p.failure == nil {
		if p.output(); done() {
			return nil
		}
		p.turn()
	}
	return p.failure
}

// endDirect ends our side of all direct links. The other sides do the same;
// closing before theirs has arrived could destroy what is under way to them.
func (p *process) endDirect() {
	p.lock()
	defer p.unlock()
	for _, q := range p.ports {
		if q == nil || q.peer == message.NoPeer {
			continue
		}
		p.endPort(q)
		if p.stranger(q.peer) && p.ports[q.id] == q && p.left(q) {
			q.Drop(io.EOF) // who is there may be computing
		}
	}
}

// allEnded tells whether the peers have ended all direct links, and know of our
// ends where that is not a matter of course.
func (p *process) allEnded() bool {
	for _, q := range p.ports {
		if q != nil && q.peer != message.NoPeer {
			return false
		}
	}
	return p.links.Kept() == 0
}

func (p *process) close() {
	for _, q := range p.ports {
		if q != nil {
			p.ports[q.id] = nil
			_ = q.Link.CloseSend()
			_ = q.Link.Close()
		}
	}
	_ = p.links.Close()
	p.flusher.Stop()
}

// Abort ends the whole job, on all sites, and does not return. code becomes the
// exit status of the job; why is printed with this rank's number.
func Abort(code int, why string) {
	theLock.Lock()
	p := the
	theLock.Unlock()
	if p != nil && p.control != nil {
		p.abort(code, why)
	} else if why != "" {
		fmt.Fprintln(os.Stderr, "impi: abort:", why)
	}
	os.Exit(code)
}

// abort asks the node to end the job, and ends this proc.
func (p *process) abort(code int, why string) {
	_ = p.control.Send(wireup.Message{Kind: wireup.KindAbort, Code: code, Reason: why}) // the node may be gone
	p.machine.Exit(code)
}

// Library names this MPI library and its version.
const Library = "impi 0.1.0"

var epoch = time.Now()

// Wtime gives the seconds since some moment before Init, by a clock that never
// goes back. Ranks' clocks are not synchronised.
func Wtime() float64 { return time.Since(epoch).Seconds() }

// Wtick gives the resolution of Wtime in seconds.
func Wtick() float64 { return 1e-9 }

// ProcessorName gives the name of the machine that this rank runs on.
func ProcessorName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
