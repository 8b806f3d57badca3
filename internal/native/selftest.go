package native

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/polling"
)

// Figures are what is measured between ranks 0 and 1, each the median of several rounds.
type Figures struct {
	HalfRoundTrip time.Duration `json:"half_trip_ns"`     // of 8 bytes, in C if any thread may call the library
	Stream        float64       `json:"rate_bytes_per_s"` // of messages of 1 MiB
}

// Found is what Selftest has found out.
type Found struct {
	Library   string `json:"library,omitempty"` // its own description
	Processes int    `json:"processes,omitempty"`
	OneThread bool   `json:"one_thread,omitempty"` // only one thread may call the library
	Fabric    string `json:"fabric,omitempty"`     // what carries its messages; empty: not reported
	Figures
}

// FoundPrefix comes before a Found as JSON, in a line that rank 0 of Selftest or the program of
// BuildMeasurement writes. Launchers may have put something before it.
const FoundPrefix = "impi-native "

// initialize is for tests, which want fewer threads.
var initialize = (*Library).Init

const (
	selftestRounds = 7
	selftestTurns  = 2000 // round trips in a round
	selftestLong   = 1 << 20
	selftestLongs  = 64 // long messages in a round

	tripSize = 8
)

// Selftest is run by each process that the site's launcher has started: it loads the shim,
// exchanges messages with all others and checks the received data, and measures between ranks 0 and
// 1. Rank 0 writes a Found to out. The result is an exit status.
func Selftest(shim string, out, complaints io.Writer) int {
	l, err := Load(shim)
	if err == nil {
		err = initialize(l)
	}
	if err == nil {
		err = selftest(l, out)
	}
	if err != nil {
		fmt.Fprintln(complaints, "impi-node:", err)
		return 1
	}
	return 0
}

func selftest(l *Library, out io.Writer) error {
	if l.Size < 2 {
		return errors.New("the launcher has started one process; the test takes two: give it -n 2")
	}
	t := &tester{links: NewLinks(l), rank: l.Rank}
	t.links.BeginShortMessages()
	for shift := 1; shift < l.Size; shift++ {
		if err := t.exchange((l.Rank+shift)%l.Size, (l.Rank+l.Size-shift)%l.Size); err != nil {
			return err
		}
	}
	var f Figures
	var err error
	if l.Rank < 2 {
		if f, err = t.measure(1 - l.Rank); err != nil {
			return err
		}
	}
	if l.Rank == 0 {
		line, err := json.Marshal(Found{Library: l.Text, Processes: l.Size, OneThread: l.onlyHome(), Figures: f})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s%s\n", FoundPrefix, line)
	}
	if err := t.end(l.Size); err != nil {
		return err
	}
	if err := t.phases(l); err != nil {
		return err
	}
	return l.Finalize()
}

// selftestPolls is how often a rank polls without result before it yields the core between polls.
// The launcher may have started more ranks than there are cores: those that only wait for ranks 0
// and 1 would take half of their time, and a turn would take one slice of the scheduler.
const selftestPolls = 1000

type tester struct {
	links *Links
	rank  int
	vain  int // looks since the last one that found something
}

// moved is told how many bytes were moved at each look, and yields the core after many looks
// without any.
func (t *tester) moved(n int) {
	if t.vain++; n > 0 {
		t.vain = 0
	} else if t.vain > selftestPolls {
		polling.Yield()
	}
}

// link returns the link to a rank; from then on this side takes short messages from it.
func (t *tester) link(to int) *Link {
	l, _ := t.links.Link(to)
	if l.fast == nil {
		l.TakeFastBoxes()
	}
	return l
}

func (t *tester) send(to int, b []byte) error {
	l := t.link(to)
	batch := [][]byte{b}
	for len(batch) > 0 {
		n, err := l.Lend(batch)
		if err != nil {
			return err
		}
		if batch = link.Advance(batch, n); len(batch) > 0 {
			t.moved(n)
			t.links.Poll()
		}
	}
	return nil
}

func (t *tester) receive(from int, b []byte) error {
	l := t.link(from)
	for len(b) > 0 {
		t.links.Poll()
		n, err := l.Recv([][]byte{b})
		if err != nil {
			return err
		}
		b = b[n:]
		t.moved(n)
	}
	return nil
}

// inPart is a part of something that has Go pointers, as buffers of programs may.
type inPart struct {
	other *inPart
	bytes [3 << 20]byte
}

func newInPart(n int) []byte {
	x := &inPart{other: new(inPart)}
	return x.bytes[:n]
}

func (t *tester) exchange(to, from int) error {
	for _, n := range []int{1, 8, 100, 8 << 10, 100_000, 3 << 20} {
		mine, theirs, want := newInPart(n), newInPart(n), make([]byte, n)
		pattern(mine, t.rank)
		pattern(want, from)
		l, in := t.link(to), t.link(from)
		out, rest := [][]byte{mine}, theirs
		for len(out) > 0 || len(rest) > 0 {
			k, err := l.Lend(out)
			if err != nil {
				return err
			}
			out = link.Advance(out, k)
			t.links.Poll()
			got := 0
			if len(rest) > 0 {
				if got, err = in.Recv([][]byte{rest}); err != nil {
					return err
				}
				rest = rest[got:]
			}
			t.moved(k + got)
		}
		if !bytes.Equal(theirs, want) {
			return fmt.Errorf("%w: %d bytes of rank %d are not those that it has sent", ErrFailed, n, from)
		}
	}
	return nil
}

func pattern(b []byte, rank int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + rank*31)
	}
}

func (t *tester) measure(other int) (f Figures, err error) {
	var trips []time.Duration
	var streams []float64
	small, long := make([]byte, tripSize), make([]byte, selftestLong)
	first := t.rank == 0
	for range selftestRounds {
		begin := time.Now()
		if err := t.trips(other, small); err != nil {
			return f, err
		}
		trips = append(trips, time.Since(begin)/(2*selftestTurns))
		begin = time.Now()
		for range selftestLongs {
			if first {
				err = t.send(other, long)
			} else {
				err = t.receive(other, long)
			}
			if err != nil {
				return f, err
			}
		}
		if first {
			err = t.receive(other, small)
		} else {
			err = t.send(other, small)
		}
		if err != nil {
			return f, err
		}
		streams = append(streams, selftestLongs*selftestLong/time.Since(begin).Seconds())
	}
	slices.Sort(trips)
	slices.Sort(streams)
	return Figures{trips[len(trips)/2], streams[len(streams)/2]}, nil
}

type tripper interface {
	trips(l *Link, first bool, turns int) error
}

func (t *tester) trips(other int, small []byte) (err error) {
	first := t.rank == 0
	if l := t.link(other); l.opens() {
		if c, ok := t.links.shorts.(tripper); ok {
			return c.trips(l, first, selftestTurns)
		}
	}
	for range selftestTurns {
		if first {
			err = errors.Join(t.send(other, small), t.receive(other, small))
		} else {
			err = errors.Join(t.receive(other, small), t.send(other, small))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// end waits until all others are done, since Finalize makes no progress for links.
func (t *tester) end(size int) error {
	var word [8]byte
	binary.NativeEndian.PutUint64(word[:], uint64(t.rank))
	for r := range size {
		if r != t.rank {
			if err := t.send(r, word[:]); err != nil {
				return err
			}
		}
	}
	for r := range size {
		if r == t.rank {
			continue
		}
		if err := t.receive(r, word[:]); err != nil {
			return err
		}
		if got := binary.NativeEndian.Uint64(word[:]); got != uint64(r) {
			return fmt.Errorf("%w: rank %d says that it is %d", ErrFailed, r, got)
		}
	}
	for !t.links.Idle() {
		t.moved(0)
	}
	return nil
}
