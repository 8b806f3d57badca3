package resume

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

// pair is both ends of a Link and the underlying link that they use.
type pair struct {
	t        *testing.T
	a, b     *Link // dialler and acceptor
	capacity int
	cable    *linktest.End
}

// newPair makes a connected pair.
func newPair(t *testing.T, c Config) *pair {
	t.Helper()
	p := &pair{t: t, capacity: 1 << 16}
	c.Session = ResumableID{1, 2, 3}
	p.b = New(c)
	c.Dialler = true
	p.a = New(c)
	p.connect()
	return p
}

// connect replaces the underlying link.
func (p *pair) connect() {
	p.t.Helper()
	x, y := linktest.Pair(p.capacity)
	if err := p.a.Dial(x); err != nil {
		p.t.Fatal(err)
	}
	p.accept(y)
	p.pump()
	p.cable = x.(*linktest.End)
}

// accept reads the HELLO from y and hands it to b.
func (p *pair) accept(y link.Link) {
	p.t.Helper()
	var arrival Arrival
	h, ok, err := arrival.Read(y)
	if err != nil || !ok {
		p.t.Fatalf("no HELLO: %v, %v", ok, err)
	}
	if err := p.b.Accept(y, h); err != nil {
		p.t.Fatal(err)
	}
}

// pump moves everything that moves by itself.
func (p *pair) pump() {
	for p.a.Pump() || p.b.Pump() {
	}
}

// cut breaks the underlying link; what is under way is lost.
func (p *pair) cut() {
	p.cable.Break(errors.New("cut"))
	p.a.Pump()
	p.b.Pump()
}

func (p *pair) send(l *Link, text string, want int) {
	p.t.Helper()
	if n, err := l.Send([][]byte{[]byte(text)}); n != want || err != nil {
		p.t.Fatalf("Send of %q gives %d, %v; want %d", text, n, err, want)
	}
}

func (p *pair) recv(l *Link, room int, want string) {
	p.t.Helper()
	buf := make([]byte, room)
	if n, err := l.Recv([][]byte{buf}); err != nil || string(buf[:n]) != want {
		p.t.Fatalf("Recv gives %q, %v; want %q", buf[:n], err, want)
	}
}

// recvError wants an error, twice.
func (p *pair) recvError(l *Link, wants ...error) {
	p.t.Helper()
	_, first := l.Recv([][]byte{{0}})
	n, err := l.Recv([][]byte{{0}})
	if n != 0 || err != first {
		p.t.Fatalf("Recv gives %v, then %d and %v", first, n, err)
	}
	for _, want := range wants {
		if !errors.Is(err, want) {
			p.t.Fatalf("Recv gives %v; want %v", err, want)
		}
	}
}

func (p *pair) sendError(l *Link, wants ...error) {
	p.t.Helper()
	for range 2 {
		n, err := l.Send([][]byte{{0}})
		for _, want := range wants {
			if n != 0 || !errors.Is(err, want) {
				p.t.Fatalf("Send gives %d, %v; want %v", n, err, want)
			}
		}
	}
}

func (p *pair) state(l *Link, want State) Status {
	p.t.Helper()
	s := l.Status()
	if s.State != want {
		p.t.Fatalf("the link is %v (%v); want %v", s.State, s.Err, want)
	}
	return s
}

func TestBytesBeforeTheFirstUnderlyingLink(t *testing.T) {
	p := &pair{t: t, capacity: 1000}
	p.a, p.b = New(Config{Dialler: true, Window: 8}), New(Config{Window: 8})
	p.state(p.a, Detached)
	p.send(p.a, "0123456789", 8)
	p.recv(p.a, 5, "")
	p.connect()
	p.state(p.a, Up)
	p.recv(p.b, 100, "01234567")
}

func TestCutBytesAreReplayed(t *testing.T) {
	for _, checksum := range []bool{false, true} {
		p := newPair(t, Config{Checksum: checksum})
		p.send(p.a, "to b, lost", 10)
		p.send(p.b, "to a, lost", 10)
		p.cut()
		p.state(p.b, Detached)
		if s := p.state(p.a, Detached); s.Epoch != 1 || s.Err == nil {
			t.Fatalf("%+v", s)
		}
		p.send(p.a, "; sent meanwhile", 16)
		p.recv(p.b, 100, "")
		p.connect()
		p.recv(p.b, 100, "to b, lost; sent meanwhile")
		p.recv(p.a, 100, "to a, lost")
	}
}

// Bytes that have come are not sent again, even if they are not acknowledged,
// nor are those of a frame that was cut in the middle.
func TestReplayBeginsWhereReceivingEnded(t *testing.T) {
	p := newPair(t, Config{})
	p.capacity = headerSize + HelloSize
	p.connect()
	frame := bytes.Repeat([]byte("x"), 100)
	p.send(p.a, string(frame), 100) // 72 bytes fit into the cable
	p.b.Pump()
	p.cut()
	p.capacity = 1000
	p.connect()
	if p.b.in.have != 100 || p.a.out.reached != 100 {
		t.Fatalf("received %d, sent %d", p.b.in.have, p.a.out.reached)
	}
	p.recv(p.b, 1000, string(frame))
}

func TestWindowBoundsTheSender(t *testing.T) {
	p := newPair(t, Config{Window: 8})
	p.send(p.a, "0123456789", 8)
	p.pump()
	p.send(p.a, "8", 0) // received by the machine, not by the user
	p.recv(p.b, 1, "0")
	p.send(p.a, "8", 0)
	p.recv(p.b, 1, "1") // a quarter: acknowledged
	p.send(p.a, "89a", 2)
	p.recv(p.b, 100, "23456789")
}

func TestSmallerWindowCounts(t *testing.T) {
	p := &pair{t: t, capacity: 1000}
	p.a, p.b = New(Config{Dialler: true, Window: 100}), New(Config{Window: 4, Ack: 50})
	p.connect()
	p.send(p.a, "0123456789", 10)
	p.pump()
	if p.b.in.have != 4 {
		t.Fatalf("%d bytes came", p.b.in.have)
	}
	for _, want := range []string{"0123", "4567", "89", ""} {
		p.recv(p.b, 100, want)
		p.pump()
	}
}

// Only what the user has is acknowledged, and the end not before the bytes.
func TestAcknowledgedIsDelivered(t *testing.T) {
	p := newPair(t, Config{Ack: 1})
	p.send(p.a, "abcd", 4)
	p.a.CloseSend()
	for _, want := range []uint64{0, 2, 3, 5} {
		p.pump()
		if p.a.out.acked != want {
			t.Fatalf("%d is acknowledged, not %d", p.a.out.acked, want)
		}
		if text := map[uint64]string{0: "ab", 2: "c", 3: "d"}[want]; text != "" {
			p.recv(p.b, len(text), text)
		}
	}
}

// A side that only sends still gets acknowledgements, and a side that does not receive does
// not stop the other direction.
func TestDirectionsAreIndependent(t *testing.T) {
	p := newPair(t, Config{Window: 4})
	p.send(p.a, "abcd", 4)
	for range 100 {
		p.send(p.b, "1234", 4)
		p.recv(p.a, 4, "1234")
	}
	p.send(p.a, "e", 0)
	p.recv(p.b, 9, "abcd")
	p.send(p.a, "e", 1)
}

func TestHalfCloseIsReplayed(t *testing.T) {
	p := newPair(t, Config{})
	p.send(p.a, "last", 4)
	for range 2 {
		if err := p.a.CloseSend(); err != nil {
			t.Fatal(err)
		}
	}
	p.sendError(p.a, link.ErrClosed)
	p.cut()
	p.recv(p.b, 100, "")
	p.connect()
	p.recv(p.b, 100, "last")
	p.recvError(p.b, io.EOF)
	p.send(p.b, "answer", 6)
	p.recv(p.a, 100, "answer")
	p.state(p.a, Up)
}

// A cut after everything was acknowledged, both ends included, is a clean end.
func TestDoneNeedsNoUnderlyingLink(t *testing.T) {
	p := newPair(t, Config{})
	p.send(p.a, "x", 1)
	p.a.CloseSend()
	p.recv(p.b, 9, "x")
	p.b.CloseSend()
	p.pump()
	p.state(p.a, Done)
	p.state(p.b, Done)
	p.cut()
	p.a.Fail(errors.New("ignored"))
	p.state(p.a, Done)
	p.state(p.b, Done)
	p.recvError(p.a, io.EOF)
	p.recvError(p.b, io.EOF)
	p.sendError(p.a, link.ErrClosed)
}

// The last acknowledgement may be lost: the end that is done answers all the
// same, whichever it is.
func TestDoneAnswersWhoIsNot(t *testing.T) {
	for _, dialler := range []bool{false, true} {
		p := newPair(t, Config{})
		first, last := p.a, p.b
		if dialler {
			first, last = p.b, p.a
		}
		first.CloseSend()
		last.CloseSend()
		last.Pump()  // acknowledges
		first.Pump() // so it is done, and acknowledges too, but that is lost
		p.state(first, Done)
		p.cut()
		p.state(first, Done)
		p.state(last, Detached)
		p.connect()
		p.state(last, Done)
		p.recvError(last, io.EOF)
	}
}

func TestCloseLetsThePeerReadTheRest(t *testing.T) {
	p := newPair(t, Config{})
	p.send(p.a, "rest", 4)
	p.send(p.b, "lost", 4)
	for range 2 {
		if err := p.a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	p.state(p.a, Closed)
	p.recvError(p.a, link.ErrClosed)
	p.sendError(p.a, link.ErrClosed)
	if err := p.a.CloseSend(); !errors.Is(err, link.ErrClosed) {
		t.Errorf("CloseSend after Close: %v", err)
	}
	if err := p.a.Dial(nil); !errors.Is(err, link.ErrClosed) {
		t.Errorf("Dial after Close: %v", err)
	}
	p.recv(p.b, 100, "rest")
	p.recvError(p.b, io.EOF)
	p.sendError(p.b, link.ErrBroken, ErrGone)
	p.state(p.b, Failed)
}

// What a closing end could not send before is lost, and that is no end of stream.
func TestCloseWithUnsentBytes(t *testing.T) {
	p := &pair{t: t, capacity: 1000}
	p.a, p.b = New(Config{Dialler: true, Window: 8}), New(Config{Window: 4})
	p.connect()
	p.send(p.a, "01234567", 8)
	p.a.Close()
	p.recv(p.b, 100, "0123")
	p.recvError(p.b, link.ErrBroken, ErrGone)
}

func TestFail(t *testing.T) {
	cause := errors.New("three attempts")
	p := newPair(t, Config{})
	p.send(p.a, "came", 4)
	p.b.Pump()
	p.cut()
	p.b.Fail(cause)
	p.b.Fail(errors.New("too late"))
	p.sendError(p.b, link.ErrBroken, cause)
	if err := p.b.CloseSend(); !errors.Is(err, cause) {
		t.Errorf("CloseSend: %v", err)
	}
	p.recv(p.b, 100, "came")
	p.recvError(p.b, link.ErrBroken, cause)
	if s := p.state(p.b, Failed); !errors.Is(s.Err, cause) {
		t.Error(s.Err)
	}
	if err := p.b.Accept(nil, Hello{}); !errors.Is(err, cause) {
		t.Errorf("Accept: %v", err)
	}
	p.b.Close()
	p.recvError(p.b, link.ErrClosed)
}

// Fail is announced to the peer if there is an underlying link.
func TestFailReachesThePeer(t *testing.T) {
	p := newPair(t, Config{})
	p.send(p.a, "bye", 3)
	p.a.Fail(errors.New("enough"))
	p.recv(p.b, 100, "bye")
	p.recvError(p.b, link.ErrBroken, ErrGone)
}

func TestUnknownSessionIsRefused(t *testing.T) {
	p := newPair(t, Config{})
	p.send(p.a, "lost", 4)
	p.cut()
	x, y := linktest.Pair(1000)
	p.a.Dial(x)
	p.state(p.a, Joining)
	if n, err := y.Send([][]byte{appendRefusal(nil)}); n != headerSize || err != nil {
		t.Fatal(n, err)
	}
	p.a.Pump()
	p.state(p.a, Failed)
	p.sendError(p.a, link.ErrBroken, ErrGone)
}

// What the peer has sent last is received although it accepts no more bytes.
func TestLastWordsOfAPeerThatHasClosed(t *testing.T) {
	p := newPair(t, Config{})
	p.send(p.b, "last words", 10)
	p.b.Close()
	p.send(p.a, "too late", 8)
	p.state(p.a, Failed)
	p.recv(p.a, 100, "last words")
	p.recvError(p.a, io.EOF)
	p.sendError(p.a, link.ErrBroken, ErrGone)
}

func TestArm(t *testing.T) {
	const r, w = link.Readable, link.Writable
	arm := func(l *Link, want link.Interest, holds bool) {
		t.Helper()
		if l.Arm(want) != holds {
			t.Errorf("Arm(%d) is %t", want, !holds)
		}
	}
	p := newPair(t, Config{Window: 2})
	arm(p.a, r, false)
	arm(p.a, w, true)
	p.send(p.a, "ab", 2)
	arm(p.a, w, false)
	arm(p.b, r, true)
	p.recv(p.b, 1, "a")
	arm(p.b, r, true)
	arm(p.a, w, true)
	p.recv(p.b, 1, "b")
	arm(p.b, r, false)
	p.pump()
	p.cut()
	arm(p.b, r, false)
	p.send(p.a, "cd", 2)
	arm(p.a, r|w, false)
	p.a.CloseSend()
	arm(p.a, w, true)
	p.b.Fail(nil)
	arm(p.b, r, true)
	arm(p.b, w, true)
}

func TestWants(t *testing.T) {
	p := &pair{t: t}
	p.a, p.b = New(Config{Dialler: true}), New(Config{})
	if w := p.a.Interest(); w != 0 {
		t.Errorf("without an underlying link: %d", w)
	}
	x, y := linktest.Pair(HelloSize - 1)
	p.a.Dial(x)
	if w := p.a.Interest(); w != link.Readable|link.Writable {
		t.Errorf("with half a HELLO: %d", w)
	}
	var arrival Arrival
	if _, ok, err := arrival.Read(y); ok || err != nil {
		t.Error(ok, err)
	}
	p.a.Pump()
	if w := p.a.Interest(); w != link.Readable {
		t.Errorf("with nothing to send: %d", w)
	}
	if h, ok, err := arrival.Read(y); !ok || err != nil || h.Epoch != 1 {
		t.Error(h, ok, err)
	}
}

func TestHandleAndLimits(t *testing.T) {
	l := New(Config{Window: 77})
	if l.Handle() != link.NoHandle || l.Limits() != (link.Limits{Stream: 77}) {
		t.Error(l.Handle(), l.Limits())
	}
	if l := New(Config{Handle: 5}); l.Handle() != 5 || l.Limits().Stream != DefaultWindow {
		t.Error(l.Handle(), l.Limits())
	}
}

func TestImpossibleConfigsPanic(t *testing.T) {
	for _, c := range []Config{{Window: -1}, {Window: MaxWindow + 1}, {Ack: -1}, {Frame: -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is possible", c)
				}
			}()
			New(c)
		}()
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, checksum := range []bool{false, true} {
		p := newPair(t, Config{Window: 1000, Checksum: checksum})
		batch := [][]byte{make([]byte, 128), make([]byte, 300)}
		round := func() {
			p.a.Send(batch)
			p.b.Recv(batch)
			p.b.Send(batch[:1])
			p.a.Pump()
			p.a.Recv(batch)
		}
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("checksum %t: %v allocations per message", checksum, n)
		}
		if p.a.out.end < 100*428 || p.b.in.delivered != p.a.out.end {
			t.Errorf("%d sent, %d delivered", p.a.out.end, p.b.in.delivered)
		}
	}
}

// A user who receives in time gets the bytes in the memory that it names; the
// ring for those who do not is not even there.
func TestReceivedBytesAreNotCopied(t *testing.T) {
	p := newPair(t, Config{})
	p.send(p.a, "straight", 8)
	p.recv(p.b, 100, "straight")
	if p.b.in.buf != nil {
		t.Error("the bytes were copied")
	}
	p.send(p.a, "detour", 6)
	p.b.Pump()
	p.recv(p.b, 100, "detour")
	if p.b.in.buf == nil {
		t.Error("where were they?")
	}
}

func TestBatchIsNotChanged(t *testing.T) {
	p := newPair(t, Config{})
	batch := [][]byte{make([]byte, 3), {}, make([]byte, 5)}
	p.send(p.a, "abcdef", 6)
	if n, err := p.b.Recv(batch); n != 6 || err != nil {
		t.Fatal(n, err)
	}
	if string(bytes.Join(batch, nil)) != "abcdef\x00\x00" {
		t.Errorf("%q", batch)
	}
}

// deaf accepts no bytes, and does not report that to its reader.
type deaf struct{ link.Link }

func (deaf) Send([][]byte) (int, error) { return 0, link.ErrBroken }

func TestLinkThatOnlyFailsToSend(t *testing.T) {
	l := New(Config{Dialler: true})
	x, _ := linktest.Pair(100)
	if err := l.Dial(deaf{x}); err != nil {
		t.Fatal(err)
	}
	l.Pump()
	p := &pair{t: t}
	if s := p.state(l, Detached); !errors.Is(s.Err, link.ErrBroken) {
		t.Error(s.Err)
	}
}
