package mpi

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/transports/socket"
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
