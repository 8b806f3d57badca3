package job

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// bursts sends more than is received for a while, so that much is under way when links break.
func bursts(e Env) error {
	w := e.World()
	me, n := w.Rank(), w.Size()
	for round := range 4 {
		var reqs []mpi.Request
		for i := range 5 {
			r, err := mpi.Isend(w, []int32{int32(me), int32(round), int32(i), 0, 0, 0, 0, 0}, (me+1+i%2)%n, i)
			if err != nil {
				return err
			}
			reqs = append(reqs, r)
		}
		e.Pause(time.Duration(3+me) * time.Millisecond)
		for i := range 5 {
			got := make([]int32, 8)
			from := (me + n - 1 - i%2) % n
			if _, err := mpi.Recv(w, got, from, i); err != nil {
				return err
			}
			if want := []int32{int32(from), int32(round), int32(i)}; !slices.Equal(got[:3], want) {
				return fmt.Errorf("got %v, not %v", got, want)
			}
		}
		if err := mpi.Waitall(reqs, nil); err != nil {
			return err
		}
	}
	return nil
}

// resuming is a job with resumable links.
func resuming(seed uint64) Config {
	cfg := twoSites([]func(Env) error{ring, bursts}[seed%4/2])
	cfg.Direct = seed%2 == 0
	cfg.Resume = &Resume{Window: 200 + int(seed)*50}
	return cfg
}

func TestResumedLinksWithoutFaults(t *testing.T) {
	for seed := range seeds(60) {
		clean(t, seed, simulate(t, seed, resuming(seed)))
	}
}

// TestCutsAreHarmlessToResumedLinks cuts channels and direct links all the time:
// nothing is lost, and nothing comes twice.
func TestCutsAreHarmlessToResumedLinks(t *testing.T) {
	cuts := 0
	for seed := range seeds(100) {
		rng := rand.New(rand.NewPCG(seed, 5))
		cfg := resuming(seed)
		x := &streams{of: make(map[*kernel.Link]*stream)}
		cfg.Observer = x
		k, w := world(t, seed, cfg)
		for range 30 {
			k.After(time.Duration(rng.Int64N(int64(150*time.Millisecond))), func() { cuts += cutLasting(w, rng) })
		}
		r := w.Run(bounds)
		if r.Err != nil || r.FaultHit {
			t.Fatalf("seed %d: %v\n%s", seed, r.Err, k.Trace())
		}
		clean(t, seed, r)
		for l, s := range x.of {
			if s.cut || len(s.sent[0])+len(s.sent[1]) != 0 {
				t.Errorf("seed %d: %s: cut %v, %d and %d bytes have not been received", seed, l.Name(), s.cut, len(s.sent[0]), len(s.sent[1]))
			}
		}
	}
	if cuts < int(seeds(1000)) {
		t.Errorf("only %d cuts", cuts)
	}
}

// cutLasting breaks a lower link of a resumable link, if there is one.
func cutLasting(w *Simulation, rng *rand.Rand) int {
	all := w.openLinks
	w.openLinks = slices.DeleteFunc(slices.Clone(all), func(s *observedLink) bool { return !s.resumes || s.l.Over() })
	n := len(w.openLinks)
	w.harm(Fault{Kind: []FaultKind{CutLink, HalfClose}[rng.IntN(2)], Target: rng.IntN(64)})
	w.openLinks = all
	return min(n, 1)
}

// streams is an observer that checks that each link delivers what was sent.
type streams struct {
	of    map[*kernel.Link]*stream
	wrong error
}

type stream struct {
	all  *streams
	l    *kernel.Link
	sent [2][]byte // sent by each end, and not received
	ends [2]bool   // ends that have said that they send no more
	cut  bool
}

func (x *streams) Begin(*startup.Job) {}
func (x *streams) Crashed(Endpoint)   {}
func (x *streams) Fault() error       { return x.wrong }

func (x *streams) Link(l *kernel.Link, _ [2]Endpoint) kernel.Watcher {
	s := &stream{all: x, l: l}
	x.of[l] = s
	return s
}

func (x *streams) Cut(l *kernel.Link) { x.of[l].cut = true }

func (s *stream) side(e *kernel.End) int { return slices.Index(s.l.Ends[:], e) }

func (s *stream) Sent(from *kernel.End, data []byte) {
	i := s.side(from)
	s.sent[i] = append(s.sent[i], data...)
}

func (s *stream) Read(to *kernel.End, data []byte) {
	i := 1 - s.side(to)
	if s.all.wrong == nil && !bytes.HasPrefix(s.sent[i], data) {
		s.all.wrong = fmt.Errorf("%s delivers what was not sent", to.Name)
	}
	s.sent[i] = s.sent[i][min(len(data), len(s.sent[i])):]
}

func (s *stream) Received(to *kernel.End, n int) {
	i := 1 - s.side(to)
	s.sent[i] = s.sent[i][n:]
}

func (s *stream) Ended(from *kernel.End) {
	if i := s.side(from); s.ends[i] {
		s.all.wrong = fmt.Errorf("%s ends twice", from.Name)
	} else {
		s.ends[i] = true
	}
}

func (s *stream) SawEnd(by *kernel.End) {
	if i := 1 - s.side(by); !s.ends[i] || len(s.sent[i]) > 0 {
		s.all.wrong = fmt.Errorf("%s has seen an end that was not there, or with %d bytes before it", by.Name, len(s.sent[i]))
	}
}

// TestResumedLinksAreGivenUp: if a link cannot be resumed, the job fails instead of waiting for
// ever.
func TestResumedLinksAreGivenUp(t *testing.T) {
	for seed := range seeds(40) {
		cfg := resuming(seed)
		k, w := world(t, seed, cfg)
		k.After(16*time.Millisecond, func() {
			w.cfg.DialFail = 1
			for _, s := range w.openLinks {
				if s.resumes {
					s.l.Cut(errors.New("for good"))
				}
			}
		})
		r := w.Run(bounds)
		if r.Err != nil || r.Server() == nil {
			t.Fatalf("seed %d: %v\n%s", seed, r.Err, k.Trace())
		}
	}
}

// TestFaultsOfResumedJobs: deaths are still noticed.
func TestFaultsOfResumedJobs(t *testing.T) {
	for seed := range seeds(150) {
		cfg := resuming(seed)
		kind := []FaultKind{CrashProc, CrashNode, CrashServer, CutLink, HalfClose}[seed%5]
		at := somewhere(t, seed, kind, cfg)
		r := simulate(t, seed, cfg, at)
		if !r.FaultHit {
			clean(t, seed, r)
		}
	}
}
