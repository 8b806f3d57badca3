package wan

import (
	"math"
	"slices"
	"testing"
	"time"
)

// arrived is a packet that has come out of a line.
type arrived struct {
	packet int
	at     time.Duration
}

// drain takes out all packets, each at its time.
func drain(l *Line[int]) (list []arrived) {
	for {
		at, ok := l.Next()
		if !ok {
			return list
		}
		if p, early := l.Take(at - 1); early {
			list = append(list, arrived{p, -1})
			continue
		}
		p, _ := l.Take(at)
		list = append(list, arrived{p, at})
	}
}

// offer gives packets 0 to n-1 of the same size at the same distance.
func offer(l *Line[int], n, size int, every time.Duration) {
	for i := range n {
		l.Offer(time.Duration(i)*every, i, size)
	}
}

func TestSerialisationAndPropagation(t *testing.T) {
	// 1500 bytes take 12 µs at 1 Gb/s.
	l := NewLine[int](Shape{Rate: 1e9, Delay: 50 * time.Millisecond}, 1)
	l.Offer(0, 0, 1500)
	l.Offer(0, 1, 1500)                   // behind the first
	l.Offer(20*time.Microsecond, 2, 1000) // while the second is transmitted
	l.Offer(time.Second, 3, 1500)
	want := []arrived{
		{0, 50*time.Millisecond + 12*time.Microsecond},
		{1, 50*time.Millisecond + 24*time.Microsecond},
		{2, 50*time.Millisecond + 32*time.Microsecond},
		{3, time.Second + 50*time.Millisecond + 12*time.Microsecond},
	}
	if got := drain(l); !slices.Equal(got, want) {
		t.Errorf("arrived %v, want %v", got, want)
	}
}

func TestRateIsExact(t *testing.T) {
	// 100 bytes at 7 Mb/s are 114,285.714 ns: 70,000 packets take 8 seconds.
	l := NewLine[int](Shape{Rate: 7e6}, 1)
	offer(l, 70000, 100, 0)
	all := drain(l)
	if end := all[len(all)-1].at; len(all) != 70000 || end != 8*time.Second {
		t.Errorf("%d packets took %v, want 70000 in 8 s", len(all), end)
	}
}

func TestQueueDropsTheTail(t *testing.T) {
	// 1000 bytes take 1 ms. Of 10 at once, 4 fit; 2 ms later, 2 more.
	l := NewLine[int](Shape{Rate: 8e6, Queue: 4500}, 1)
	offer(l, 10, 1000, 0)
	for i := 10; i < 15; i++ {
		l.Offer(2*time.Millisecond, i, 1000)
	}
	want := []arrived{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {10, 5}, {11, 6}}
	for i := range want {
		want[i].at *= time.Millisecond
	}
	if got := drain(l); !slices.Equal(got, want) {
		t.Errorf("arrived %v, want %v", got, want)
	}
	if c := l.Counts(); c.Dropped != 9 || c.Offered != 15 || c.Bytes != 15000 || c.Lost != 0 {
		t.Errorf("counted %+v, want 9 of 15 dropped", c)
	}
	// What is left of a packet under transmission counts: after half of it, 500 bytes.
	l = NewLine[int](Shape{Rate: 8e6, Queue: 1500}, 1)
	l.Offer(0, 0, 1000)
	if l.Room(500*time.Microsecond-1, 1000) || !l.Room(500*time.Microsecond, 1000) {
		t.Error("the queue has room at another moment than when half of a packet was transmitted")
	}
}

// within wants a count of a binomial distribution within five deviations.
func within(t *testing.T, what string, n, of int, p float64) {
	t.Helper()
	mean, deviation := float64(of)*p, math.Sqrt(float64(of)*p*(1-p))
	if math.Abs(float64(n)-mean) > 5*deviation {
		t.Errorf("%s: %d of %d, want %.0f within %.0f", what, n, of, mean, 5*deviation)
	}
}

func TestLossDuplicatesAndOrder(t *testing.T) {
	const n = 200000
	shape := Shape{Rate: 1e9, Delay: 10 * time.Millisecond, Loss: 0.01, Duplicate: 0.02, Reorder: 0.03, ReorderDelay: time.Millisecond}
	l := NewLine[int](shape, 7)
	times := 0
	for i := range n {
		times += l.Offer(time.Duration(i)*20*time.Microsecond, i, 1000)
	}
	all := drain(l)
	c := l.Counts()
	within(t, "lost", int(c.Lost), n, 0.01)
	within(t, "duplicated", int(c.Duplicated), n-int(c.Lost), 0.02)
	within(t, "reordered", int(c.Reordered), n-int(c.Lost), 0.03)
	if want := n - int(c.Lost) + int(c.Duplicated); len(all) != want || times != want {
		t.Errorf("%d packets arrived, %d were announced, want %d", len(all), times, want)
	}
	seen := make([]int, n)
	late := 0
	for i, a := range all {
		if i > 0 && a.at < all[i-1].at {
			t.Fatalf("packet %d arrived at %v, after one of %v", a.packet, a.at, all[i-1].at)
		}
		seen[a.packet]++
		if i > 0 && a.packet < all[i-1].packet {
			late++
		}
	}
	if late < int(c.Reordered)*9/10 {
		t.Errorf("%d packets are out of order, where %d were reordered", late, c.Reordered)
	}
	if m := slices.Max(seen); m != 2 {
		t.Errorf("a packet arrived %d times", m)
	}
}

func TestJitterKeepsOrder(t *testing.T) {
	for _, every := range []time.Duration{100 * time.Microsecond, 20 * time.Millisecond} { // closer than jitter, and farther
		l := NewLine[int](Shape{Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond}, 3)
		offer(l, 10000, 100, every)
		all := drain(l)
		least, most := time.Hour, time.Duration(0)
		for i, a := range all {
			if a.packet != i {
				t.Fatalf("packet %d arrived as number %d", a.packet, i)
			}
			if i > 0 && a.at < all[i-1].at {
				t.Fatalf("packet %d arrived at %v, before the one before it", i, a.at)
			}
			took := a.at - time.Duration(i)*every
			least, most = min(least, took), max(most, took)
		}
		if len(all) != 10000 || least < 10*time.Millisecond || most > 15*time.Millisecond || most < 14*time.Millisecond {
			t.Errorf("%d packets took %v to %v, want 10 to 15 ms", len(all), least, most)
		}
		if every > time.Millisecond && least > 11*time.Millisecond {
			t.Errorf("packets that are far from each other took at least %v, want 10 ms", least)
		}
	}
}

func TestOutages(t *testing.T) {
	const n = 1000000 // 1,000 s, of which each 10.1 s have an outage of 0.1 s
	l := NewLine[int](Shape{OutageInterval: 10 * time.Second, OutageLength: 100 * time.Millisecond}, 5)
	lost, gaps, before := 0, 0, true
	for i := range n {
		passed := l.Offer(time.Duration(i)*time.Millisecond, i, 100) == 1
		if !passed {
			lost++
			if before {
				gaps++
			}
		}
		before = passed
	}
	if c := l.Counts(); int(c.LostInOutage) != lost || gaps < 60 || gaps > 140 || lost < gaps*99 || lost > gaps*101 {
		t.Errorf("%d packets lost in %d outages, counted %d; want about 99 outages of 100 packets", lost, gaps, c.LostInOutage)
	}
}

func TestReshape(t *testing.T) {
	l := NewLine[int](Shape{Rate: 8e6, Delay: 10 * time.Millisecond}, 1)
	l.Offer(0, 0, 1000)
	if err := l.Reshape(time.Millisecond, Shape{Rate: 8e9, Delay: 2 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	l.Offer(time.Millisecond, 1, 1000) // in order: it does not overtake
	l.Offer(20*time.Millisecond, 2, 1000)
	want := []arrived{{0, 11 * time.Millisecond}, {1, 11 * time.Millisecond}, {2, 22*time.Millisecond + time.Microsecond}}
	if got := drain(l); !slices.Equal(got, want) {
		t.Errorf("arrived %v, want %v", got, want)
	}
	if l.Reshape(0, Shape{Loss: 2}) == nil || l.Shape().Loss != 0 {
		t.Error("a wrong shape is accepted")
	}
}

func TestSameSeedSameLine(t *testing.T) {
	shape := Shape{Rate: 1e8, Delay: time.Millisecond, Jitter: time.Millisecond, Queue: 20000, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, ReorderDelay: time.Millisecond}
	run := func(seed uint64) []arrived {
		l := NewLine[int](shape, seed)
		offer(l, 1000, 1500, 100*time.Microsecond)
		return drain(l)
	}
	if !slices.Equal(run(1), run(1)) {
		t.Error("a seed gives two different lines")
	}
	if slices.Equal(run(1), run(2)) {
		t.Error("two seeds give the same line")
	}
}

func TestBusyLineAllocatesNothing(t *testing.T) {
	l := NewLine[int](Shape{Rate: 1e9, Delay: time.Millisecond, Loss: 0.01}, 1)
	now := time.Duration(0)
	step := func() {
		now += 12 * time.Microsecond
		l.Offer(now, 1, 1500)
		for ok := true; ok; {
			_, ok = l.Take(now)
		}
	}
	for range 1000 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("a packet takes %v allocations", n)
	}
}

func TestShapeCheck(t *testing.T) {
	good := Shape{Rate: 1e9, Delay: 50 * time.Millisecond, Loss: 0.01, Queue: 1 << 20, OutageInterval: time.Minute, OutageLength: time.Second}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	if n := good.BandwidthDelay(); n != 12500000 {
		t.Errorf("bandwidth times delay is %d bytes, want 12500000", n)
	}
	for _, bad := range []Shape{
		{Loss: 1.1}, {Loss: math.NaN()}, {Duplicate: -1}, {Reorder: 2}, {Delay: -1}, {Delay: 2 * time.Hour}, {Jitter: -1},
		{ReorderDelay: -1}, {Rate: -1}, {Rate: 2e12}, {Queue: -1}, {OutageInterval: time.Second}, {OutageLength: -1},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func BenchmarkLine(b *testing.B) {
	l := NewLine[int](Shape{Rate: 1e9, Delay: 50 * time.Millisecond, Loss: 0.001}, 1)
	now := time.Duration(0)
	for b.Loop() {
		now += 12 * time.Microsecond
		l.Offer(now, 1, 1500)
		for ok := true; ok; {
			_, ok = l.Take(now)
		}
	}
}
