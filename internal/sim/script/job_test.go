package script

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// realJob runs the ranks of a job as goroutines, with a socket between each two that exchange
// messages.
type realJob struct {
	mu    sync.Mutex
	procs []*mpi.Proc
	pairs map[[2]int]bool
}

// realNode plays one rank's node.
type realNode struct {
	j  *realJob
	me int
}

// Send gives both ends of a new link to the rank that asks for it and to the peer.
func (n realNode) Send(m wireup.Message) error {
	if m.Kind != wireup.KindOpen {
		return nil
	}
	peer := int(m.Peer)
	n.j.mu.Lock()
	defer n.j.mu.Unlock()
	pair := [2]int{min(n.me, peer), max(n.me, peer)}
	if n.j.pairs[pair] {
		return nil
	}
	n.j.pairs[pair] = true
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for i, fd := range fds {
		l, err := socket.New(fd, nil)
		if err != nil {
			return err
		}
		n.j.procs[pair[i]].Hear(wireup.Message{Kind: wireup.KindLink, Peer: wire.WorldRank(pair[1-i])}, l)
	}
	return nil
}

// realEnv skips the time that programs spend.
type realEnv struct{ *mpi.Proc }

func (realEnv) Pause(time.Duration) { runtime.Gosched() }
func (realEnv) Log(string, ...any)  {}

// realRanks makes the ranks of a job. Every third belongs to another client, which counts as
// another MPI.
func realRanks(t *testing.T, procs, dataLen int) []*mpi.Proc {
	t.Helper()
	j := &realJob{pairs: map[[2]int]bool{}}
	client := func(r int) wire.ClientRank { return wire.ClientRank(r % 3 / 2) }
	for r := range procs {
		job := &wireup.Job{
			Name: "test", Rank: wire.WorldRank(r), DataLen: uint32(dataLen), AckMark: 2, HiWater: 5,
			TagUB: 1<<31 - 1, XSize: 200, MaxLinear: 4,
		}
		for q := range procs {
			proc := wireup.Proc{Host: make([]byte, 16), PID: int64(q + 1), Client: client(q), Path: wireup.PathDirect}
			if client(q) != client(r) {
				proc.Data, proc.Foreign = "external32", true
			}
			job.Procs = append(job.Procs, proc)
		}
		x, err := mpi.Join(job, nil, machine.Local{}, realNode{j, r})
		if err != nil {
			t.Fatal(err)
		}
		j.procs = append(j.procs, x)
	}
	return j.procs
}

// realRun runs a program and returns the records, and the error of each rank.
func realRun(t *testing.T, p *Program, dataLen int) ([]*Record, error) {
	t.Helper()
	records, errs := make([]*Record, p.Procs), make([]error, p.Procs)
	var wg sync.WaitGroup
	for r, x := range realRanks(t, p.Procs, dataLen) {
		records[r] = &Record{}
		wg.Go(func() {
			if errs[r] = Run(p, realEnv{x}, records[r]); errs[r] == nil {
				errs[r] = x.Finalize()
			}
			if errs[r] != nil {
				t.Errorf("%v", errs[r]) // others may wait for this rank for ever
			}
		})
	}
	wg.Wait()
	return records, errors.Join(errs...)
}

// runDifferent runs another program on each rank.
func runDifferent(t *testing.T, programs ...*Program) error {
	t.Helper()
	errs := make([]error, len(programs))
	var wg sync.WaitGroup
	for r, x := range realRanks(t, len(programs), 64) {
		wg.Go(func() { errs[r] = Run(programs[r], realEnv{x}, &Record{}) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func TestRunAndVerify(t *testing.T) {
	programs(t, 60, func(t *testing.T, seed uint64, p *Program) {
		records, err := realRun(t, p, sizes[seed%uint64(len(sizes))].dataLen)
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify(p, records); err != nil {
			t.Error(err)
		}
	})
}
