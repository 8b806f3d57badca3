package mpi

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/life"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"golang.org/x/sys/unix"
)

// layout says how a test's job looks. The zero value is one proc.
type layout struct {
	procs            int
	dataLen          uint32                    // 0: 64 KiB
	ackMark, hiWater uint32                    // 0: 4 and 8
	tagUB            int32                     // 0: 2^31-1
	client           func(rank int) int        // nil: all of client 0
	data             func(from, to int) string // representation; nil: native
	foreign          bool                      // each client is another MPI to the others
	link             func() (a, b link.Link)   // nil: a pair of Unix sockets
	spin             string                    // "": auto
	maxLinear, xsize int32                     // 0: the defaults
	check            bool                      // compare what members call
	messages         bool                      // no board: all goes by messages
	dialect          wire.Dialect              // of all packets
	progress         time.Duration             // how often procs that compute look after messages
	_                struct{}                  // keyed literals only
}

// socketPair makes a link of two connected Unix sockets.
func socketPair() (a, b link.Link) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	ends := [2]link.Link{}
	for i, fd := range fds {
		if ends[i], err = socket.New(fd, nil); err != nil {
			panic(err)
		}
	}
	return ends[0], ends[1]
}

func (l layout) job(rank int) *wireup.Job {
	j := &wireup.Job{
		Name: "test", Rank: wire.WorldRank(rank),
		DataLen: 64 << 10, AckMark: 4, HiWater: 8, TagUB: 1<<31 - 1, XSize: 1024, MaxLinear: 4, Spin: l.spin,
		Check: l.check, Dialect: l.dialect, Progress: l.progress,
	}
	if l.dataLen != 0 {
		j.DataLen = l.dataLen
	}
	if l.hiWater != 0 {
		j.AckMark, j.HiWater = l.ackMark, l.hiWater
	}
	if l.tagUB != 0 {
		j.TagUB = l.tagUB
	}
	if l.maxLinear != 0 {
		j.MaxLinear = l.maxLinear
	}
	if l.xsize != 0 {
		j.XSize = l.xsize
	}
	for r := range l.procs {
		p := wireup.Proc{Host: make([]byte, 16), PID: int64(r + 1), Path: wireup.PathDirect}
		if l.client != nil {
			p.Client = wire.ClientRank(l.client(r))
		}
		if l.data != nil {
			p.Data = l.data(rank, r)
		}
		p.Foreign = l.foreign && l.client(r) != l.client(rank)
		j.Procs = append(j.Procs, p)
	}
	return j
}

// run runs body on every rank of a job, each in a goroutine of its own with an
// engine and links of its own, and then finalizes the job.
func (l layout) run(t *testing.T, body func(t *testing.T, world *Comm) error) {
	t.Helper()
	l.finish(t, l.start(t), body)
}

// runBoth runs body by the board and by messages.
func (l layout) runBoth(t *testing.T, body func(t *testing.T, world *Comm) error) {
	t.Helper()
	for name, messages := range map[string]bool{"board": false, "messages": true} {
		t.Run(name, func(t *testing.T) {
			l.messages = messages
			l.run(t, body)
		})
	}
}

// finish is run for procs that have been started.
func (l layout) finish(t *testing.T, procs []*proc.Process, body func(t *testing.T, world *Comm) error) {
	t.Helper()
	errs := make(chan error, len(procs))
	for r, p := range procs {
		go func() {
			err := body(t, (*Comm)(p.Comms.World))
			if err == nil {
				err = life.FinalizeProc(p)
			}
			if err != nil {
				err = fmt.Errorf("rank %d: %w", r, err)
				p.Lock()
				p.Endpoints.Close() // so that the others see it
				p.Unlock()
			}
			errs <- err
		}()
	}
	for range procs {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for r, p := range procs { // a driver that thinks it is wanted would never sleep
		w := p.Driver.Wanted.Load() // 0 once is enough: a timer may look at any time, on a busy machine long after
		for i := 0; i < 1_000_000 && w != 0; i++ {
			p.Lock()
			p.Eng.Events() // nothing is wanted but the lock
			p.Unlock()
			runtime.Gosched()
			w = p.Driver.Wanted.Load()
		}
		if w != 0 || p.Waiters != 0 || p.Driving || p.Asleep {
			t.Errorf("rank %d: %d want the lock, %d wait, driving %v, asleep %v", r, w, p.Waiters, p.Driving, p.Asleep)
		}
	}
}

// start makes the procs of a job and connects each with each.
func (l layout) start(t *testing.T) []*proc.Process {
	t.Helper()
	l.procs = max(l.procs, 1)
	if l.link == nil {
		l.link = socketPair
	}
	procs := make([]*proc.Process, l.procs)
	for r := range procs {
		p, err := proc.NewProcess(l.job(r), nil, machine.Local{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		procs[r] = p
	}
	for a := range procs {
		for b := range a {
			la, lb := l.link()
			connect(t, procs[a], b, la)
			connect(t, procs[b], a, lb)
		}
	}
	if !l.messages && !boardOff {
		putOnBoards(t, procs)
	}
	for _, p := range procs {
		proc.ProgressPeriodically(p)
	}
	return procs
}

func connect(t *testing.T, p *proc.Process, peer int, l link.Link) {
	t.Helper()
	q, err := p.Endpoints.Add(p.Trace.Traced(l, fmt.Sprintf("memory to %d", peer), message.Peer(peer)), message.Peer(peer))
	if err != nil {
		t.Fatal(err)
	}
	p.Eng.SetRoute(message.Peer(peer), q.ID)
}

// expect returns an error unless got and want are the same.
func expect[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

// pattern is n bytes that tell where they belong.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}

func first(errs ...error) error { return errors.Join(errs...) }
