package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/plugins/sdk/link"
)

var nasty = LinkSpec{Name: "ab", Delay: 50 * time.Microsecond, Jitter: 200 * time.Microsecond, Capacity: 700, Chop: 0.5}

func run(t *testing.T, k *Kernel) {
	t.Helper()
	if err := k.Run(1e6, time.Hour, func() bool { return false }); err != nil {
		t.Fatal(err)
	}
}

// pump moves data from one end to the other with two tasks and returns what arrived.
func pump(k *Kernel, l *Link, data []byte) (got *[]byte, end *error) {
	got, end = new([]byte), new(error)
	for i, e := range l.Ends {
		k.Go(fmt.Sprint("task ", i), func(t *Task) {
			s := t.NewSet()
			defer s.Close()
			want := []link.Interest{link.Writable, link.Readable}[i]
			if err := s.Add(e.Handle(), 7, want); err != nil {
				panic(err)
			}
			rest := data
			for *end == nil {
				events, _ := s.Wait(-1)
				for _, ev := range events {
					switch {
					case i == 0 && ev.Writable:
						n, err := e.Send([][]byte{rest[:len(rest)/2], rest[len(rest)/2:]})
						if rest = rest[n:]; err != nil || len(rest) == 0 {
							e.CloseSend()
							return
						}
					case i == 1 && ev.Readable:
						buf := make([]byte, 100)
						n, err := e.Recv([][]byte{buf[:30], buf[30:]})
						*got, *end = append(*got, buf[:n]...), err
					}
				}
			}
		}, nil)
	}
	return got, end
}

func data(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7 >> 3)
	}
	return b
}

func TestLinkDeliversAllInOrder(t *testing.T) {
	for seed := range uint64(50) {
		k := New(seed)
		want := data(20_000)
		got, end := pump(k, k.NewLink(nasty, nil), want)
		run(t, k)
		if !bytes.Equal(*got, want) || *end != io.EOF {
			t.Fatalf("seed %d: %d bytes of %d, %v", seed, len(*got), len(want), *end)
		}
	}
}

func TestSeedDecidesEverything(t *testing.T) {
	digests := make(map[uint64]bool)
	for _, seed := range []uint64{1, 2, 1, 2} {
		k := New(seed)
		pump(k, k.NewLink(nasty, nil), data(5000))
		run(t, k)
		digests[k.Digest()] = true
	}
	if len(digests) != 2 {
		t.Errorf("two seeds have %d digests", len(digests))
	}
}

func TestCutLosesATailAndBothEndsHearOfIt(t *testing.T) {
	for seed := range uint64(50) {
		k := New(seed)
		want := data(20_000)
		l := k.NewLink(nasty, nil)
		got, end := pump(k, l, want)
		k.After(k.Between(0, time.Millisecond), func() { l.Cut(errors.New("a digger")) })
		run(t, k)
		if !bytes.HasPrefix(want, *got) || len(*got) == len(want) || !errors.Is(*end, link.ErrBroken) {
			t.Fatalf("seed %d: %d bytes, %v", seed, len(*got), *end)
		}
		if _, err := l.Ends[0].Send([][]byte{{1}}); err == nil {
			t.Fatalf("seed %d: the sender knows nothing", seed)
		}
	}
}

func TestCapacityBoundsWhatIsUnderWay(t *testing.T) {
	k := New(1)
	l := k.NewLink(LinkSpec{Name: "x", Capacity: 10}, nil)
	if n, err := l.Ends[0].Send([][]byte{data(8), data(8)}); n != 10 || err != nil {
		t.Errorf("took %d, %v", n, err)
	}
	if n, err := l.Ends[0].Send([][]byte{data(8)}); n != 0 || err != nil {
		t.Errorf("took %d more, %v", n, err)
	}
	if n, _ := l.Ends[1].Recv([][]byte{make([]byte, 5)}); n != 0 {
		t.Errorf("%d bytes arrived in no time", n)
	}
	run(t, k)
	if n, err := l.Ends[1].Recv([][]byte{make([]byte, 5)}); n != 5 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if n, err := l.Ends[0].Send([][]byte{data(8)}); n != 5 || err != nil {
		t.Errorf("took %d, %v", n, err)
	}
}

func TestHalfCloseLeavesTheOtherHalf(t *testing.T) {
	k := New(1)
	l := k.NewLink(LinkSpec{Name: "x", Capacity: 10}, nil)
	a, b := l.Ends[0], l.Ends[1]
	a.CloseSend()
	run(t, k)
	if _, err := b.Recv([][]byte{make([]byte, 1)}); err != io.EOF {
		t.Errorf("got %v", err)
	}
	if _, err := b.Send([][]byte{{42}}); err != nil {
		t.Error(err)
	}
	run(t, k)
	if n, err := a.Recv([][]byte{make([]byte, 1)}); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := a.Send([][]byte{{42}}); !errors.Is(err, link.ErrClosed) {
		t.Errorf("sent after CloseSend: %v", err)
	}
}

func TestStallHoldsBackOnlyItsLink(t *testing.T) {
	k := New(1)
	var at [2]time.Duration
	for i := range at {
		l := k.NewLink(LinkSpec{Name: "x", Delay: time.Millisecond, Capacity: 10}, nil)
		l.Ends[1].OnReady(func() {
			if n, _ := l.Ends[1].Recv([][]byte{make([]byte, 1)}); n > 0 {
				at[i] = k.Now()
			}
		})
		l.Ends[0].Send([][]byte{{1}})
		if i == 0 {
			l.Stall(time.Second)
		}
	}
	run(t, k)
	if at[0] != time.Second || at[1] != time.Millisecond {
		t.Errorf("arrived at %v", at)
	}
}

func TestKillUnwindsATask(t *testing.T) {
	k := New(1)
	unwound, ended := false, false
	x := k.Go("x", func(t *Task) {
		defer func() { unwound = true }()
		t.Park("doomsday")
	}, func() { ended = true })
	run(t, k)
	if x.Where() != "doomsday" {
		t.Errorf("waits for %q", x.Where())
	}
	x.Kill()
	x.Wake()
	run(t, k)
	if !unwound || ended || !x.Ended() {
		t.Errorf("unwound %v, ended called %v, has ended %v", unwound, ended, x.Ended())
	}
}

func TestTaskThatKillsItself(t *testing.T) {
	k := New(1)
	ended := false
	var x *Task
	x = k.Go("x", func(t *Task) { x.Kill(); panic("it went on") }, func() { ended = true })
	run(t, k)
	if !ended {
		t.Error("nobody was told")
	}
}

func TestWakeIsNotLost(t *testing.T) {
	k := New(1)
	var s *Set
	rounds := 0
	x := k.Go("x", func(t *Task) {
		s = t.NewSet()
		for rounds < 3 {
			if events, _ := s.Wait(-1); len(events) == 1 && events[0].Key == machine.WakeKey {
				rounds++
				s.Clear()
			}
		}
	}, nil)
	for i := range 3 {
		k.After(time.Duration(i+1)*time.Millisecond, func() { s.Wake() })
	}
	run(t, k)
	if !x.Ended() || rounds != 3 {
		t.Errorf("%d rounds", rounds)
	}
}

func TestSetWaitEndsInTime(t *testing.T) {
	k := New(1)
	k.Go("x", func(t *Task) {
		s := t.NewSet()
		for k.Now() < time.Second {
			s.Wait(time.Second - k.Now())
		}
	}, nil)
	run(t, k)
	if k.Now() < time.Second || k.Now() > time.Second+time.Millisecond {
		t.Errorf("it took %v", k.Now())
	}
}

func TestRunThatDoesNotEnd(t *testing.T) {
	k := New(1)
	var f func()
	f = func() { k.After(time.Second, f) }
	f()
	if err := k.Run(100, time.Hour*24, func() bool { return false }); !errors.Is(err, ErrEndless) {
		t.Error(err)
	}
	if err := k.Run(1e9, time.Hour, func() bool { return false }); !errors.Is(err, ErrEndless) {
		t.Error(err)
	}
}

func TestTraceKeepsTheLast(t *testing.T) {
	k := New(1)
	k.KeepTrace(2)
	for i := range 5 {
		k.Tracef("note %d", i)
	}
	if got := k.Trace(); got != "       0.000  note 3\n       0.000  note 4\n" {
		t.Errorf("%q", got)
	}
}

func TestPanicOfATask(t *testing.T) {
	k := New(1)
	other := k.Go("other", func(t *Task) { t.Park("ever") }, nil)
	k.Go("x", func(*Task) { panic("oh") }, nil)
	defer func() {
		p, ok := recover().(*Panic)
		if !ok || p.Task != "x" || p.Value != "oh" || !strings.Contains(p.String(), "TestPanicOfATask") {
			t.Errorf("%v", p)
		}
		if k.Close(); !other.Ended() {
			t.Error("the other task is left over")
		}
	}()
	run(t, k)
}

func TestAtEvent(t *testing.T) {
	k := New(1)
	var at []string
	for _, n := range []uint64{5, 0, 5, 3, 100} {
		k.AtEvent(n, func() { at = append(at, fmt.Sprint(n, "@", k.Events())) })
	}
	for range 10 {
		k.After(time.Millisecond, func() {})
	}
	run(t, k)
	if got := fmt.Sprint(at); got != "[0@0 3@3 5@5 5@5]" {
		t.Error(got)
	}
}

func TestTimersFireInOrder(t *testing.T) {
	k := New(1)
	var timers []*Timer
	last, fired := time.Duration(0), 0
	for range 300 {
		timers = append(timers, k.After(k.Between(0, time.Second), func() {
			if k.Now() < last {
				t.Errorf("%v after %v", k.Now(), last)
			}
			last = k.Now()
			fired++
		}))
	}
	stopped := 0
	for i, x := range timers {
		switch i % 3 {
		case 0:
			if !x.Stop() || x.Stop() {
				t.Error("it was to come, and then not")
			}
			stopped++
		case 1:
			if !x.Reset(k.Between(0, time.Second)) {
				t.Error("it was to come")
			}
		}
	}
	run(t, k)
	if fired != len(timers)-stopped {
		t.Errorf("%d have fired", fired)
	}
}

// TestSendToAClosedEnd: what was sent back can still be received, and only then it shows that the
// other end is closed, unless the link destroys it.
func TestSendToAClosedEnd(t *testing.T) {
	for _, reset := range []float64{0, 1} {
		k := New(1)
		l := k.NewLink(LinkSpec{Name: "x", Capacity: 10, Delay: time.Millisecond, Reset: reset}, nil)
		a, b := l.Ends[0], l.Ends[1]
		if n, err := b.Send([][]byte{{1, 2, 3}}); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		_ = b.Close()
		if _, err := a.Send([][]byte{{1}}); errors.Is(err, link.ErrBroken) != (reset > 0) {
			t.Errorf("reset %v: sent: %v", reset, err)
		}
		run(t, k)
		if _, err := a.Send([][]byte{{1}}); !errors.Is(err, link.ErrBroken) {
			t.Errorf("reset %v: sent later: %v", reset, err)
		}
		n, err := a.Recv([][]byte{make([]byte, 5)})
		if reset == 0 && (n != 3 || err != nil) || reset == 1 && !errors.Is(err, link.ErrBroken) {
			t.Errorf("reset %v: got %d, %v", reset, n, err)
		}
	}
}

func TestSendAllocatesNothing(t *testing.T) {
	k := New(1)
	l := k.NewLink(LinkSpec{Name: "x", Capacity: 1000}, nil)
	batch, room := [][]byte{data(300), data(300)}, [][]byte{make([]byte, 1000)}
	n := testing.AllocsPerRun(100, func() {
		_, _ = l.Ends[0].Send(batch)
		_ = k.Run(10, time.Hour, func() bool { return false })
		if n, err := l.Ends[1].Recv(room); n != 600 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	})
	if n > 0.1 {
		t.Errorf("%v allocations", n)
	}
}

func TestMarkThatStopsTheLastTimer(t *testing.T) {
	k := New(1)
	last := k.After(time.Second, func() { t.Error("it was stopped") })
	k.AtEvent(0, func() { last.Stop() })
	run(t, k)
	if k.Events() != 0 || k.Now() != 0 {
		t.Errorf("%d events, %v", k.Events(), k.Now())
	}
}

// A Bell wakes who waits for it, until it is cleared.
func TestBell(t *testing.T) {
	k := New(1)
	b := k.NewBell()
	woken := time.Duration(0)
	task := k.Go("sleeper", func(t *Task) {
		s := t.NewSet()
		if err := s.Add(b.FD(), 7, link.Readable); err != nil {
			panic(err)
		}
		for events, _ := s.Wait(-1); len(events) == 0; events, _ = s.Wait(-1) {
		}
		woken = k.Now()
		b.Clear()
		if s.look() {
			panic("it rings after Clear")
		}
	}, nil)
	k.After(time.Second, b.Wake)
	if err := k.Run(1000, time.Minute, task.Ended); err != nil || woken < time.Second {
		t.Errorf("%v, woken after %v", err, woken)
	}
}
