package resumable

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

var start = time.Unix(1000, 0)

// rig is both ends, and what connects them.
type rig struct {
	t     testing.TB
	ends  [2]*Link // the first dials
	cable [2]link.Link
	room  int
	gone  [2]int // calls of Released
	full  [2]int // calls of Blocked
}

func newRig(t testing.TB, window int) *rig {
	r := &rig{t: t, room: 1 << 20}
	for i := range r.ends {
		r.ends[i] = New(Config{
			Session: resume.ResumableID{7}, Dialler: i == 0, Window: window,
			Released: func(int) { r.gone[i]++ }, Blocked: func() { r.full[i]++ },
		})
	}
	return r
}

// connect gives both ends a link below.
func (r *rig) connect() {
	x, y := linktest.Pair(r.room)
	r.cable = [2]link.Link{x, y}
	r.ends[0].Start(x, start)
	r.ends[1].Start(y, start)
}

func (r *rig) cut() { r.cable[0].(*linktest.End).Break(errors.New("cut")) }

// settle lets both ends send what is pending.
func (r *rig) settle() {
	for range 10 {
		for _, e := range r.ends {
			e.ReadHellos(start)
			e.Pump()
		}
	}
}

func (r *rig) state(i int, want resume.State) {
	r.t.Helper()
	if s := r.ends[i].Status(start); s.State != want {
		r.t.Fatalf("end %d is %v (%v), want %v", i, s.State, s.Err, want)
	}
}

func recv(t testing.TB, l *Link, room int) string {
	t.Helper()
	b := make([]byte, room)
	n, err := l.Recv([][]byte{b})
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// TestEndBehindBytes: an end that has come together with the last bytes is reported,
// although the link below, which a poll set watches, has nothing more.
func TestEndBehindBytes(t *testing.T) {
	r := newRig(t, 1<<10)
	r.connect()
	r.settle()
	if n, err := r.ends[0].Send([][]byte{[]byte("last")}); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	if err := r.ends[0].CloseSend(); err != nil {
		t.Fatal(err)
	}
	r.ends[0].Pump()
	if got := recv(t, r.ends[1], 64); got != "last" {
		t.Fatalf("%q", got)
	}
	if !r.ends[1].Buffered() {
		t.Error("it says that there is nothing more")
	}
	if _, err := r.ends[1].Recv([][]byte{make([]byte, 1)}); err != io.EOF {
		t.Errorf("%v", err)
	}
}

// TestPushSendsTheEnd: Push sends what a full link below has not taken, although the user
// has ended its side.
func TestPushSendsTheEnd(t *testing.T) {
	r := newRig(t, 1<<10)
	r.room = 100
	r.connect()
	r.settle()
	sent := bytes.Repeat([]byte("x"), 500)
	if n, err := r.ends[0].Send([][]byte{sent}); n != len(sent) || err != nil {
		t.Fatal(n, err)
	}
	if err := r.ends[0].CloseSend(); err != nil {
		t.Fatal(err)
	}
	got := 0
	for range 100 {
		r.ends[0].SendPending()
		b := make([]byte, 1<<10)
		n, err := r.ends[1].Recv([][]byte{b})
		if got += n; err == io.EOF {
			break
		}
		r.ends[1].SendPending()
	}
	if got != len(sent) || r.ends[0].Interest() != link.Readable {
		t.Errorf("%d bytes of %d have come, the link below is to be waited for as %v", got, len(sent), r.ends[0].Interest())
	}
}

// TestStreams: wherever links below are cut, all bytes come once and in order. The reader
// is woken by a poll set: it reads when the link below has something or the Link says that
// it has.
func TestStreams(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, 100+rng.IntN(30_000))
		r.room = 50 + rng.IntN(100_000)
		r.connect()
		var sent, got [2]int
		const size = 200_000
		byteAt := func(side, i int) byte { return byte(i*7 + i/251 + side) }
		for step := 0; got[0] < size || got[1] < size; step++ {
			if step > 100_000 {
				t.Fatalf("seed %d: %v received of %v sent", seed, got, sent)
			}
			if rng.IntN(60) == 0 {
				r.cut()
			}
			for i, e := range r.ends {
				if s := e.Status(start); s.State == resume.Detached && rng.IntN(3) == 0 && i == 0 {
					r.connect()
				}
				e.ReadHellos(start)
				out := make([]byte, rng.IntN(20_000))
				for k := range out {
					out[k] = byteAt(i, sent[i]+k)
				}
				n, err := e.Send([][]byte{out[:len(out)/3], out[len(out)/3:]})
				if err != nil {
					t.Fatal(err)
				}
				sent[i] += n
				if e.Interest()&link.Writable != 0 {
					e.SendPending()
				}
				if !e.Buffered() && !readable(e) {
					continue
				}
				in := make([]byte, 1+rng.IntN(10_000))
				if n, err = e.Recv([][]byte{in}); err != nil {
					t.Fatal(err)
				}
				for k, c := range in[:n] {
					if c != byteAt(1-i, got[i]+k) {
						t.Fatalf("seed %d: end %d, byte %d is %#x", seed, i, got[i]+k, c)
					}
				}
				got[i] += n
			}
		}
	}
}

// readable is what a poll set would say of the link below: bytes, or its end.
func readable(l *Link) bool {
	return l.below != nil && l.below.Link.Arm(link.Readable)
}

// Bytes that came in one read with a packet are kept, and need no further system call.
func TestReadAhead(t *testing.T) {
	r := newRig(t, 0)
	r.connect()
	r.settle()
	a, b := r.ends[0], r.ends[1]
	for _, text := range []string{"one", "two", "three"} {
		if _, err := a.Send([][]byte{[]byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := recv(t, b, 3); got != "one" || !b.Buffered() {
		t.Fatalf("%q, buffered %t", got, b.Buffered())
	}
	if readable(b) {
		t.Error("the link below was not read to its end")
	}
	if !b.Arm(link.Readable) {
		t.Error("it would sleep on what it has")
	}
	if got := recv(t, b, 100); got != "twothree" || b.Buffered() || b.Arm(link.Readable) {
		t.Errorf("%q, buffered %t", got, b.Buffered())
	}
}

// A handle leaves the poll set before its number can be reused.
func TestReleasedBeforeClose(t *testing.T) {
	var order []string
	l := New(Config{Session: resume.ResumableID{1}, Dialler: true, Released: func(h int) {
		if h != 42 {
			t.Errorf("handle %d", h)
		}
		order = append(order, "released")
	}})
	if l.Handle() != link.NoHandle {
		t.Errorf("handle %d of nothing", l.Handle())
	}
	x, y := linktest.Pair(100)
	l.Start(&told{x, func() { order = append(order, "closed") }}, start)
	if l.Handle() != 42 {
		t.Errorf("handle %d", l.Handle())
	}
	_ = y.Close()
	l.Pump()
	if len(order) != 2 || order[0] != "released" || l.Handle() != link.NoHandle {
		t.Errorf("%v, handle %d", order, l.Handle())
	}
}

// told is a link that tells of its end.
type told struct {
	link.Link
	closed func()
}

func (l *told) Handle() int { return 42 }
func (l *told) Close() error {
	l.closed()
	return l.Link.Close()
}

func TestBlockedAndPush(t *testing.T) {
	r := newRig(t, 0)
	r.room = 100
	r.connect()
	r.settle()
	a, b := r.ends[0], r.ends[1]
	long := bytes.Repeat([]byte("x"), 1000)
	if n, err := a.Send([][]byte{long}); n != 1000 || err != nil {
		t.Fatal(n, err)
	}
	if r.full[0] == 0 || a.Interest()&link.Writable == 0 {
		t.Fatalf("nobody was told: %d, %v", r.full[0], a.Interest())
	}
	got := ""
	for len(got) < 1000 {
		got += recv(t, b, 1000)
		a.SendPending()
	}
	if a.Interest()&link.Writable != 0 {
		t.Error("it still waits for room")
	}
}

func TestArrivals(t *testing.T) {
	r := newRig(t, 0)
	b := r.ends[1]
	var silent []link.Link
	for range maxArrivals + 1 {
		x, y := linktest.Pair(1000)
		silent = append(silent, x)
		b.Start(y, start)
	}
	if _, err := silent[0].Recv([][]byte{{0}}); err != io.EOF && !errors.Is(err, link.ErrBroken) {
		t.Errorf("the first of too many: %v", err)
	}
	if !b.AwaitsHello() {
		t.Error("nothing is expected")
	}
	r.connect() // pushes out another one
	r.settle()
	r.state(1, resume.Up)
	b.ReadHellos(start.Add(JoinLimit + 1))
	if b.AwaitsHello() {
		t.Error("those who say nothing are still waited for")
	}
	for i, x := range silent {
		if _, err := x.Recv([][]byte{{0}}); err == nil {
			t.Errorf("arrival %d is open", i)
		}
	}
	r.state(1, resume.Up)
}

// A dialled link below that is never answered is given up.
func TestDialledInVain(t *testing.T) {
	r := newRig(t, 0)
	x, _ := linktest.Pair(1000)
	a := r.ends[0]
	a.Start(x, start)
	if s := a.Status(start.Add(JoinLimit)); s.State != resume.Joining {
		t.Fatal(s)
	}
	if s := a.Status(start.Add(JoinLimit + 1)); s.State != resume.Detached || !errors.Is(s.Err, errSlow) || r.gone[0] != 1 {
		t.Fatalf("%+v, released %d times", s, r.gone[0])
	}
	r.connect()
	r.settle()
	r.state(0, resume.Up)
	r.state(1, resume.Up)
}

// The first links below may take as long as Config.FirstLimit says until both ends have said HELLO,
// and later ones may not.
func TestFirstMayTakeLonger(t *testing.T) {
	const first = time.Minute
	r := newRig(t, 0)
	for i := range r.ends {
		r.ends[i] = New(Config{Session: resume.ResumableID{7}, Dialler: i == 0, FirstLimit: first, Released: func(int) { r.gone[i]++ }, Blocked: func() {}})
	}
	a, b := r.ends[0], r.ends[1]
	x, y := linktest.Pair(1000)
	b.Start(y, start) // before a says anything
	a.Start(x, start.Add(first-1))
	if s := a.Status(start.Add(2*first - 1)); s.State != resume.Joining {
		t.Fatal(s)
	}
	b.ReadHellos(start.Add(first))
	r.settle()
	r.state(0, resume.Up)
	r.state(1, resume.Up)
	x, _ = linktest.Pair(1000)
	a.Start(x, start)
	if s := a.Status(start.Add(JoinLimit + 1)); s.State != resume.Detached {
		t.Errorf("a further link below: %v", s.State)
	}
}

// A link below for a Link that was given up, or with another session, is closed.
func TestUnwelcome(t *testing.T) {
	r := newRig(t, 0)
	r.connect()
	r.settle()
	other := New(Config{Session: resume.ResumableID{9}, Dialler: true})
	x, y := linktest.Pair(1000)
	other.Start(x, start)
	r.ends[1].Start(y, start)
	r.settle()
	other.Pump()
	if s := other.Status(start); s.State != resume.Detached {
		t.Errorf("another session: %+v", s)
	}
	r.state(1, resume.Up)
	if r.ends[1].below == nil {
		t.Error("the link in use is forgotten")
	}
	if _, err := r.ends[0].Send([][]byte{[]byte("hello")}); err != nil || recv(t, r.ends[1], 10) != "hello" {
		t.Errorf("the link in use is gone: %v", err)
	}
	r.ends[0].Fail(errors.New("enough"))
	x, _ = linktest.Pair(1000)
	r.ends[0].Start(x, start)
	if _, err := x.Send([][]byte{{1}}); !errors.Is(err, link.ErrClosed) {
		t.Errorf("a link for nobody: %v", err)
	}
}

func TestResumesAndCounts(t *testing.T) {
	r := newRig(t, 0)
	for range 3 {
		r.connect()
		r.settle()
		r.state(0, resume.Up)
		if _, err := r.ends[0].Send([][]byte{[]byte("hello")}); err != nil {
			t.Fatal(err)
		}
		if got := recv(t, r.ends[1], 10); got != "hello" {
			t.Fatal(got)
		}
	}
	sent, _ := r.ends[0].Counts()
	_, received := r.ends[1].Counts()
	if r.ends[0].Resumes() != 2 || sent != 15 || received != 15 {
		t.Errorf("%d resumes, %d sent, %d received", r.ends[0].Resumes(), sent, received)
	}
}

// After links below that moved nothing the pauses become longer.
func TestPause(t *testing.T) {
	r := newRig(t, 0)
	a := r.ends[0]
	var got []time.Duration
	for range 9 {
		r.connect()
		r.settle()
		r.cut()
		r.settle()
		got = append(got, a.Pause())
	}
	want := []time.Duration{0, 0, 10, 20, 40, 80, 160, 250, 250}
	for i := range want {
		if got[i] != want[i]*time.Millisecond {
			t.Fatalf("pauses %v", got)
		}
	}
	r.connect()
	r.settle()
	if _, err := a.Send([][]byte{[]byte("hello")}); err != nil || a.Pause() != 0 {
		t.Errorf("%v, pause %v although bytes were moved", err, a.Pause())
	}
}

// A long send over links below that each carry a part of it has no pauses.
func TestNoPauseInLongSend(t *testing.T) {
	r := newRig(t, 0)
	a := r.ends[0]
	r.room = 5000 // of a cable
	data := bytes.Repeat([]byte("x"), 100_000)
	r.connect()
	r.settle()
	if n, err := a.Send([][]byte{data}); err != nil || n != len(data) {
		t.Fatal(n, err)
	}
	got, cuts := 0, 0
	for buf := make([]byte, 1000); got < len(data); {
		n, err := r.ends[1].Recv([][]byte{buf})
		if err != nil {
			t.Fatal(err)
		}
		if got += n; got/4000 > cuts {
			r.cut()
			r.settle()
			if cuts++; a.Pause() != 0 {
				t.Fatalf("pause %v after %d cuts and %d bytes", a.Pause(), cuts, got)
			}
			r.connect()
		}
		r.settle()
	}
	if cuts < 20 {
		t.Errorf("%d cuts", cuts)
	}
}

// lender lends bytes, and wipes what is its own again.
type lender struct {
	t    testing.TB
	buf  []byte
	made int // bytes ever put into buf
	want func(i int) byte
}

func (s *lender) more(n int) {
	for range n {
		s.buf = append(s.buf, s.want(s.made))
		s.made++
	}
}

func (s *lender) give(send func([][]byte) (int, error), upTo int) {
	b := s.buf[:min(len(s.buf), upTo)]
	n, err := send([][]byte{b[:len(b)/3], b[len(b)/3 : len(b)/2], b[len(b)/2:]})
	if err != nil {
		s.t.Fatal(err)
	}
	clear(s.buf[:n])
	s.buf = append([]byte(nil), s.buf[n:]...) // it may lie elsewhere the next time
}

// TestLent: lent bytes come once and in order, wherever links below are cut, although they
// are wiped as soon as they are the sender's again.
func TestLent(t *testing.T) {
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 2))
		r := newRig(t, 100+rng.IntN(60_000))
		r.room = 50 + rng.IntN(200_000)
		const size = 300_000
		var from [2]*lender
		var got [2]int
		for i := range r.ends {
			from[i] = &lender{t: t, want: func(k int) byte { return byte(k*7 + k/251 + i + 1) }}
		}
		r.connect()
		for step := 0; got[0] < size || got[1] < size; step++ {
			if step > 100_000 {
				t.Fatalf("seed %d: %v received", seed, got)
			}
			if rng.IntN(40) == 0 {
				r.cut()
			}
			if r.ends[0].Status(start).State == resume.Detached && rng.IntN(3) == 0 {
				r.connect()
			}
			for i, e := range r.ends {
				s := from[i]
				e.ReadHellos(start)
				if s.made < size {
					s.more(rng.IntN(20_000))
				}
				switch rng.IntN(8) {
				case 0:
					s.give(e.Send, 1+rng.IntN(30_000))
				case 1:
					e.SendPending()
				case 2:
					e.Pump()
				default:
					s.give(e.Lend, len(s.buf))
				}
				if !e.Buffered() && !readable(e) && rng.IntN(3) > 0 {
					continue
				}
				in := make([]byte, 1+rng.IntN(10_000))
				n, err := e.Recv([][]byte{in[:len(in)/2], in[len(in)/2:]})
				if err != nil {
					t.Fatal(err)
				}
				for k, c := range in[:n] {
					if c != from[1-i].want(got[i]+k) {
						t.Fatalf("seed %d: end %d, byte %d is %#x", seed, i, got[i]+k, c)
					}
				}
				got[i] += n
			}
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	r := newRig(t, 0)
	r.connect()
	r.settle()
	out, in := [][]byte{make([]byte, 128), make([]byte, 8)}, [][]byte{make([]byte, 4096)}
	long := [][]byte{make([]byte, 20_000), make([]byte, 20_000)}
	if n := testing.AllocsPerRun(200, func() {
		for i := range r.ends {
			if k, err := r.ends[i].Send(out); k != 136 || err != nil {
				t.Fatal(k, err)
			}
			if k, err := r.ends[1-i].Recv(in); k != 136 || err != nil {
				t.Fatal(k, err)
			}
			_, _ = r.ends[1-i].Recv(in)
			if k, err := r.ends[i].Lend(long); k != 0 || err != nil {
				t.Fatal(k, err)
			}
			for k := 0; k < 2*len(long[0]); {
				n, err := r.ends[1-i].Recv(in)
				if err != nil {
					t.Fatal(err)
				}
				k += n
			}
			r.ends[1-i].machine.Acknowledge(1)
			if k, err := r.ends[i].Recv(in); k != 0 || err != nil || !r.ends[i].CanReturn() {
				t.Fatal(k, err)
			}
			if k, err := r.ends[i].Lend(long); k != 2*len(long[0]) || err != nil || r.ends[i].Lending() {
				t.Fatal(k, err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations per message", n)
	}
}
