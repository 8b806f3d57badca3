package life

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/bootstrap"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/meet"
	"github.com/openimpi/impi/internal/engine/object"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/native"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// Init makes this proc one of its job, or of a job of its own if nobody has launched it (MPI-4.1,
// 11.2.1).
func Init() error {
	proc.ProcessMu.Lock()
	defer proc.ProcessMu.Unlock()
	if proc.ThisProcess != nil {
		return proc.ErrInitialized
	}
	begun := time.Now()
	control, ok, err := wireup.Inherited()
	if err != nil {
		return err
	}
	environment, native, err := native.ReadEnvironment(os.Getenv)
	if err != nil {
		return err
	}
	var p *proc.Process
	switch {
	case native:
		p, err = joinNative(environment)
	case ok:
		p, err = Join(proc.NodeConn{Conn: control}, machine.Local{})
	case bootstrap.Started() && os.Getenv(singletonVariable) != "1":
		p, err = joinManaged()
	default:
		if err := mayBeAlone(os.Getenv); err != nil {
			return err
		}
		p, err = alone()
	}
	if err != nil {
		return err
	}
	p.Lock()
	p.Account.Initialized(begun)
	p.Unlock()
	proc.ProgressPeriodically(p)
	proc.ThisProcess = p
	return nil
}

func alone() (*proc.Process, error) {
	return proc.NewProcess(singleton(), nil, machine.Local{}, nil)
}

// singleton returns the job of a program that nobody has launched (MPI-4.1, 11.10.2).
func singleton() *wireup.Job {
	return &wireup.Job{
		Name:    "singleton",
		Procs:   []wireup.Proc{{Host: make([]byte, len(wire.HostID{})), PID: int64(os.Getpid()), Path: wireup.PathSelf}},
		DataLen: 64 << 10, TagUB: 1<<31 - 1, AckMark: 1, HiWater: 1, XSize: 1024, MaxLinear: 4,
	}
}

// Join sends the hello to the node and waits for the job to be set up.
func Join(control proc.NodeConn, here machine.Machine) (*proc.Process, error) {
	hello := wireup.Message{Kind: wireup.KindHello, Version: wireup.Version, Library: proc.Library, Board: wireup.BoardPossible}
	if err := control.Send(hello); err != nil {
		return nil, err
	}
	m, fds, err := control.Recv()
	switch {
	case err != nil:
		return nil, fmt.Errorf("waiting for the job to start: %w", err)
	case m.Kind == wireup.KindDown:
		wireup.CloseAll(fds)
		here.Exit(cmp.Or(m.Code, proc.ExitDown), "") // the node reports the reason
	case m.Kind != wireup.KindWelcome || m.Version != wireup.Version || len(fds) < 3 || len(fds) > 3 != m.Board:
		wireup.CloseAll(fds)
		return nil, fmt.Errorf("it sent %q version %d with %d descriptors, want %q version %d with 3: %w",
			m.Kind, m.Version, len(fds), wireup.KindWelcome, wireup.Version, proc.ErrNode)
	}
	p, err := welcomed(fds, control, here)
	if err != nil {
		return nil, err
	}
	if err := p.Boards.TakeBoard(fds[3:]); err != nil {
		return nil, err
	}
	if _, ok := here.(managed); ok {
		p.Node.Last = make(chan struct{})
	}
	construct.Recover(p)
	go p.Node.Listen(control)
	return p, meet.FindParents(p)
}

// welcomed makes the proc of the descriptors that came with a welcome, except those of a board.
func welcomed(fds []int, control proc.NodeConn, here machine.Machine) (*proc.Process, error) {
	job, err := wireup.OpenJob(fds[1], fds[2])
	if err != nil {
		wireup.CloseAll(fds[:1])
		return nil, err
	}
	agent, err := socket.New(fds[0], nil)
	if err != nil {
		return nil, err
	}
	p, err := proc.NewProcess(job, agent, here, control)
	if err != nil {
		return nil, errors.Join(err, agent.Close())
	}
	return p, nil
}

// Finalize ends what Init has begun (MPI-4.1, 11.2.2). It returns when no other proc needs this
// one.
func Finalize() error {
	proc.ProcessMu.Lock()
	p := proc.ThisProcess
	proc.ProcessMu.Unlock()
	if p == nil {
		return proc.ErrNotInitialized
	}
	return FinalizeProc(p)
}

func FinalizeProc(p *proc.Process) error {
	if err := finalizeProc(p); err != nil {
		return err
	}
	if p.Native != nil {
		return p.Native.Finalize()
	}
	if m, ok := p.Machine.(managed); ok {
		return m.self.Finalize()
	}
	return nil
}

func finalizeProc(p *proc.Process) error {
	if proc.LifeState(p.State.Load()) == proc.Ended {
		return proc.ErrFinalized
	}
	begun := time.Now()
	// Before anything else, so that the functions which delete them can use MPI (MPI-4.1, 11.2.4).
	if err := object.DeleteAttrs(p.Comms.Self); err != nil {
		return err
	}
	// All messages must leave and be acknowledged now: a proc that is past the barrier sends no
	// acknowledgements any more.
	if err := p.ProgressUntil(p.Eng.Idle); err != nil {
		return err
	}
	p.State.Store(int32(proc.Finalizing))
	// IMPI ch.3, Finalization: a host may send FINI when all its procs have passed this barrier.
	if err := barrier(p); err != nil {
		return err
	}
	p.Endpoints.BarrierPassed()
	if err := p.ProgressUntil(p.Eng.Idle); err != nil {
		return err
	}
	p.Lock()
	p.Account.Finishing(begun) // the counts of messages are lost with the links
	p.Unlock()
	endDirect(p)
	if err := p.ProgressUntil(func() bool { return allEnded(p) }); err != nil {
		return err
	}
	p.Lock()
	defer p.Unlock()
	var err error
	if p.Node.Control != nil {
		err = p.Node.Control.Send(wireup.Message{Kind: wireup.KindFini})
	}
	p.State.Store(int32(proc.Ended))
	p.Endpoints.Close()
	return err
}

func barrier(p *proc.Process) error {
	if p.Survival != nil {
		return p.Survival.Barrier()
	}
	if err := collective.Collective(p.Comms.World, (*coll.Planner).Barrier); err != nil {
		return err
	}
	return nil
}

// endDirect ends our side of all direct links. The other sides do the same. Links are closed only
// when their ends have arrived, since closing earlier could destroy data on the way to them.
func endDirect(p *proc.Process) {
	p.Lock()
	defer p.Unlock()
	for _, q := range p.Endpoints.List {
		if q == nil || q.Peer == message.NoPeer {
			continue
		}
		q.CloseSend()
		switch leaves := p.Worlds.Foreign(q.Peer) && p.Endpoints.List[q.ID] == q && p.Disconnects.HasDisconnected(q); {
		case !leaves:
		case q.Resumable != nil: // what the peer has not received would be lost with the connection
			q.Resumable.Leave()
		default:
			q.Drop(io.EOF) // the peer may be computing for long
		}
	}
}

// allEnded reports whether the peers have ended all direct links, and the peers of resumable links
// know that this proc has.
func allEnded(p *proc.Process) bool {
	for _, q := range p.Endpoints.List {
		if q != nil && q.Peer != message.NoPeer {
			return false
		}
	}
	return p.Driver.ResumableCount() == 0
}
