package ring

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

var _ link.FastBoxLink = (*Link)(nil)

// boxPair is a pair of which both sides take fast-box messages.
func boxPair(t testing.TB, size int) (a, b *Link) {
	t.Helper()
	a, b = pair(t, size)
	takeFastBoxes(t, a, b)
	return a, b
}

func takeFastBoxes(t testing.TB, links ...*Link) {
	t.Helper()
	for _, l := range links {
		if !l.TakeFastBoxes() {
			t.Fatal("there are no fast-box messages")
		}
	}
}

// post sends a fast-box message, and reports whether there was room for it.
func post(l *Link, text string) bool {
	if l.FastBoxRoom(len(text)) == nil {
		return false
	}
	l.PostFastBox([]byte(text))
	return true
}

// take takes the fast-box message that comes next, if there is one.
func take(l *Link) (text string, ok bool) {
	n := l.NextFastBox()
	if n == nil {
		return "", false
	}
	text = string(l.FastBoxData(n, n.Len))
	l.FastBoxTaken(n.Len)
	return text, true
}

// mixed is what one direction of a link carries, as its sender or its receiver counts it:
// bytes (copied, in place and lent) with fast-box messages between them. A byte's value
// follows from its place; each fast-box message says how many bytes and how many fast-box
// messages came before it.
type mixed struct {
	random       *rand.Rand
	bytes, boxes uint64
	pieces       [][]byte // offered, and not yet the writer's again
}

func mixedByte(i uint64) byte { return byte(i*7 ^ i>>8*31 ^ i>>16) }

func (s *mixed) piece(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = mixedByte(s.bytes + uint64(i))
	}
	s.bytes += uint64(n)
	return b
}

// inBox is the data of the next fast-box message.
func (s *mixed) inBox() []byte {
	n := s.boxes % link.InFastBox
	if s.boxes%5 == 0 {
		n = s.boxes * 7 % (minSize / areaShare / link.FastBoxShare)
	}
	return bytes.Repeat([]byte{byte(s.boxes)}, int(n))
}

// send sends some more, and reports whether the link took anything.
func (s *mixed) send(l *Link, lend bool) (progress bool, err error) {
	if len(s.pieces) > 0 {
		return s.offer(l, lend)
	}
	kind := s.random.IntN(10)
	data := s.inBox()
	switch n := l.FastBoxRoom(len(data)); {
	case kind < 5 && n != nil:
		n.Context, n.Tag = s.bytes, int32(s.boxes)
		l.PostFastBox(data)
		s.boxes++
		return true, nil
	case kind < 8:
		n := 1 + s.random.IntN(300)
		room := l.Reserve(n)
		if room == nil {
			s.pieces = append(s.pieces, s.piece(n))
			return s.offer(l, lend)
		}
		copy(room, s.piece(n))
		if l.FastBoxRoom(0) != nil {
			return false, errors.New("room for a fast-box message before what is reserved")
		}
		l.Commit()
		return true, nil
	case kind < 9 && lend:
		s.pieces = append(s.pieces, s.piece(s.random.IntN(100)+1), s.piece(minLoan+s.random.IntN(minLoan)), s.piece(s.random.IntN(100)+1))
	default:
		s.pieces = append(s.pieces, s.piece(1+s.random.IntN(2*minSize)))
	}
	return s.offer(l, lend)
}

// offer offers the link what it did not take before.
func (s *mixed) offer(l *Link, lend bool) (bool, error) {
	send := l.Send
	if lend {
		send = l.Lend
	}
	n, err := send(s.pieces)
	s.pieces = link.Advance(s.pieces, n)
	return n > 0, err
}

// receive takes what comes next, in one of the ways that there are.
func (s *mixed) receive(l *Link) (progress bool, err error) {
	if n := l.NextFastBox(); n != nil {
		size := n.Len
		if n.Context != s.bytes || n.Tag != int32(s.boxes) || !bytes.Equal(l.FastBoxData(n, size), s.inBox()) {
			return false, fmt.Errorf("fast-box message %d behind %d bytes, want %d behind %d", n.Tag, n.Context, s.boxes, s.bytes)
		}
		if len(l.Peek()) > 0 {
			return false, errors.New("bytes and a fast-box message come next")
		}
		l.FastBoxTaken(size)
		s.boxes++
		return true, nil
	}
	if in := l.Peek(); len(in) > 0 && s.random.IntN(2) == 0 {
		in = in[:1+s.random.IntN(len(in))]
		err := s.check(in)
		l.Discard(len(in))
		return true, err
	}
	buf := make([]byte, 1+s.random.IntN(2*minLoan))
	cut := s.random.IntN(len(buf))
	n, err := l.Recv([][]byte{buf[:cut], buf[cut:]})
	if err != nil {
		return false, err
	}
	return n > 0, s.check(buf[:n])
}

func (s *mixed) check(b []byte) error {
	for i, c := range b {
		if c != mixedByte(s.bytes+uint64(i)) {
			return fmt.Errorf("byte %d is another", s.bytes+uint64(i))
		}
	}
	s.bytes += uint64(len(b))
	return nil
}

func newMixed(seed uint64) *mixed { return &mixed{random: rand.New(rand.NewPCG(seed, 7))} }

// mixedLinks is a pair for such streams. The counters of the rings are about to pass 2^32,
// where the positions in the marks of fast-box messages wrap.
func mixedLinks(t *testing.T, seed uint64, lend bool) (a, b *Link) {
	t.Helper()
	size := minSize << (seed % 3)
	if lend {
		a, b = lenders(t, size)
	} else {
		a, b = pair(t, size)
	}
	takeFastBoxes(t, a, b)
	for _, l := range []*Link{a, b} {
		const from = 1<<32 - 3*minSize
		l.out.head, l.out.tail, l.in.tail, l.in.stored, l.in.head = from, from, from, from, from
		l.out.b.head.Store(from)
		l.out.b.tail.Store(from)
	}
	return a, b
}

// Fast-box messages, bytes and loans of both sides come in the order in which they were sent.
func TestFastBoxesBytesAndLoansKeepTheirOrder(t *testing.T) {
	for seed := range uint64(12) {
		lend := seed%2 == 0
		a, b := mixedLinks(t, seed, lend)
		there, back := newMixed(seed), newMixed(seed+100)
		atB, atA := newMixed(seed+200), newMixed(seed+300)
		turns := rand.New(rand.NewPCG(seed, 8))
		progress := false
		act := func(some bool, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			progress = progress || some
		}
		for range 4000 {
			switch turns.IntN(4) {
			case 0:
				act(there.send(a, lend))
			case 1:
				act(back.send(b, lend))
			case 2:
				act(atB.receive(b))
			default:
				act(atA.receive(a))
			}
		}
		for progress = true; progress; { // what is left
			progress = false
			act(there.offer(a, lend))
			act(back.offer(b, lend))
			act(atB.receive(b))
			act(atA.receive(a))
		}
		for _, x := range [][2]*mixed{{there, atB}, {back, atA}} {
			if x[0].bytes != x[1].bytes || x[0].boxes != x[1].boxes || x[0].boxes < 200 {
				t.Errorf("seed %d: %d bytes and %d fast-box messages of %d and %d", seed, x[1].bytes, x[1].boxes, x[0].bytes, x[0].boxes)
			}
		}
	}
}

// await sleeps until a link may be of use, for two minutes at most.
func await(l *Link, want link.Interest, events int16) error {
	if l.Arm(want) {
		return nil
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(l.Handle()), Events: events}}, 120_000)
		if n == 1 {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("nothing happens: %w", err)
		}
	}
}

// sendAll sends much, sleeps where the link is full, and ends.
func (s *mixed) sendAll(l *Link, lend bool) error {
	for i := 0; i < 6000 || len(s.pieces) > 0; i++ {
		ask := s.offer
		if i < 6000 {
			ask = s.send
		}
		switch progress, err := ask(l, lend); {
		case err != nil:
			return err
		case progress:
		case len(s.pieces) > 0:
			if err := await(l, link.Writable, unix.POLLOUT); err != nil {
				return err
			}
		}
	}
	return l.CloseSend()
}

// receiveAll receives everything, and sleeps where nothing is there.
func (s *mixed) receiveAll(l *Link) error {
	for {
		switch progress, err := s.receive(l); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !progress:
			if err := await(l, link.Readable, unix.POLLIN); err != nil {
				return err
			}
		}
	}
}

// The same with all four at work at the same time, asleep where there is nothing to do.
func TestFastBoxesBytesAndLoansAtTheSameTime(t *testing.T) {
	for seed := range uint64(6) {
		lend := seed%2 == 0
		a, b := mixedLinks(t, seed, lend)
		var all sync.WaitGroup
		errs := [4]error{}
		there, back, atB, atA := newMixed(seed), newMixed(seed+100), newMixed(seed+200), newMixed(seed+300)
		all.Go(func() { errs[0] = there.sendAll(a, lend) })
		all.Go(func() { errs[1] = back.sendAll(b, lend) })
		all.Go(func() { errs[2] = atB.receiveAll(b) })
		all.Go(func() { errs[3] = atA.receiveAll(a) })
		all.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, x := range [][2]*mixed{{there, atB}, {back, atA}} {
			if x[0].bytes != x[1].bytes || x[0].boxes != x[1].boxes || x[0].boxes < 200 {
				t.Errorf("seed %d: %d bytes and %d fast-box messages of %d and %d", seed, x[1].bytes, x[1].boxes, x[0].bytes, x[0].boxes)
			}
		}
	}
}

// A side that has not called TakeFastBoxes gets none.
func TestFastBoxesAreForWhoTakesThem(t *testing.T) {
	a, b := pair(t, minSize)
	if post(a, "x") || post(b, "x") {
		t.Fatal("nobody takes fast-box messages")
	}
	takeFastBoxes(t, a)
	if post(a, "x") || post(b, "x") {
		t.Error("one side alone")
	}
	takeFastBoxes(t, b)
	if !post(a, "to b") || !post(b, "to a") {
		t.Error("both take fast-box messages, and nobody writes any")
	}
	if text, _ := take(b); text != "to b" {
		t.Errorf("got %q", text)
	}
	if text, _ := take(a); text != "to a" {
		t.Errorf("got %q", text)
	}
}

// regionOf makes a file of a region with the header h, and that many bytes behind the
// rings.
func regionOf(t *testing.T, h []byte, behind int) (file, other int) {
	t.Helper()
	file, err := unix.MemfdCreate("x", unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(file, int64(headerSize+2*minSize+behind)); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Pwrite(file, h, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	if other, err = unix.Dup(file); err != nil {
		t.Fatal(err)
	}
	return file, other
}

func TestRegionWithoutFastBoxes(t *testing.T) {
	h := header(minSize, 0)
	clear(h[atFastBoxes:])
	file, other := regionOf(t, h, 0)
	socks, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, err1 := New(file, socks[0], 0)
	b, err2 := New(other, socks[1], 1)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	if a.TakeFastBoxes() || b.TakeFastBoxes() || post(a, "x") {
		t.Error("there are fast-box messages")
	}
	a.Send([][]byte{[]byte("abc")})
	if got, err := drain(t, b); string(got) != "abc" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFastBoxesThatAreNowhere(t *testing.T) {
	const end, all = uint64(headerSize + 2*minSize), uint64(2 * link.FastBoxPageSize)
	for name, c := range map[string]struct {
		at, behind uint64
		ok         bool
	}{
		"behind the rings":     {end, all, true},
		"further behind":       {end + line, all + line, true},
		"in the header":        {line, all, false},
		"in the rings":         {end - line, all, false},
		"at no line":           {end + 8, all + line, false},
		"cut":                  {end, all - 1, false},
		"only of ring 0":       {end, all / 2, false},
		"behind the file":      {end + all, all, false},
		"far behind the file":  {1 << 40, all, false},
		"at the end of memory": {1<<64 - line, all, false},
	} {
		h := header(minSize, 0)
		binary.NativeEndian.PutUint64(h[atFastBoxes:], c.at)
		file, other := regionOf(t, h, int(c.behind))
		unix.Close(other)
		socks, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(socks[1])
		l, err := New(file, socks[0], 0)
		switch {
		case c.ok && err != nil, !c.ok && !errors.Is(err, ErrRegion):
			t.Errorf("%s: %v", name, err)
		case c.ok && !l.TakeFastBoxes():
			t.Errorf("%s: there are none", name)
		}
		if err == nil {
			l.Close()
		}
	}
}

func TestDataOfFastBoxesThatAreNowhere(t *testing.T) {
	const end, size = uint64(headerSize + 2*minSize + 2*link.FastBoxPageSize), uint64(1024)
	for name, c := range map[string]struct {
		at, size, behind uint64
		ok               bool
	}{
		"behind the boxes":     {end, size, 2 * size, true},
		"further behind":       {end + line, size, 2*size + line, true},
		"in the boxes":         {end - line, size, 2 * size, false},
		"at no line":           {end + 8, size, 2*size + line, false},
		"cut":                  {end, size, 2*size - 1, false},
		"only of ring 0":       {end, size, size, false},
		"far behind the file":  {1 << 40, size, 2 * size, false},
		"at the end of memory": {1<<64 - line, size, 2 * size, false},
		"no power of two":      {end, 1000, 2 * size, false},
		"too little":           {end, 64, 2 * size, false},
		"no size":              {end, 0, 2 * size, false},
		"too much":             {end, 2 * link.MaxFastBoxArea, 4 * link.MaxFastBoxArea, false},
		"far too much":         {end, 1 << 63, 2 * size, false},
	} {
		h := header(minSize, 0)
		binary.NativeEndian.PutUint64(h[atAreas:], c.at)
		binary.NativeEndian.PutUint64(h[atAreaSize:], c.size)
		file, other := regionOf(t, h, 2*link.FastBoxPageSize+int(c.behind))
		socks, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		a, err := New(file, socks[0], 0)
		if !c.ok {
			unix.Close(other)
			unix.Close(socks[1])
			if !errors.Is(err, ErrRegion) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		b, err2 := New(other, socks[1], 1)
		if err := errors.Join(err, err2); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		takeFastBoxes(t, a, b)
		text := strings.Repeat("x", int(size/link.FastBoxShare))
		if post(a, text+"x") {
			t.Errorf("%s: room for too much", name)
		}
		if !post(a, text) {
			t.Errorf("%s: no room for the longest message", name)
		}
		if got, _ := take(b); got != text {
			t.Errorf("%s: got %q", name, got)
		}
		a.Close()
		b.Close()
	}
}

// A side of an older release takes no data behind the boxes, and says so by another number.
func TestFastBoxesWithoutDataBehindThem(t *testing.T) {
	a, b := boxPair(t, minSize)
	b.in.b.takesFastBoxes.Store(takesInBoxes)
	if post(a, strings.Repeat("x", link.InFastBox+1)) {
		t.Error("data behind the boxes")
	}
	if text := strings.Repeat("x", link.InFastBox); !post(a, text) {
		t.Error("no room in a box")
	}
}

func TestFastBoxWakesTheReader(t *testing.T) {
	a, b := boxPair(t, minSize)
	if b.Arm(link.Readable) {
		t.Fatal("there is something to read")
	}
	for range 3 {
		post(a, "x")
	}
	if !ready(t, b, unix.POLLIN) {
		t.Fatal("it sleeps on")
	}
	var rung [8]byte
	if n, _ := unix.Read(b.sock, rung[:]); n != 1 {
		t.Errorf("%d bytes for one sleep", n)
	}
	for range 3 {
		if !b.Ready() || !b.Arm(link.Readable) {
			t.Error("there is a fast-box message, and it may sleep")
		}
		take(b)
	}
	if b.Ready() || b.Arm(link.Readable) {
		t.Error("there is nothing, and it may not sleep")
	}
}

// A fast-box message with an invalid place in the stream ends the link, which would
// otherwise wait for ever.
func TestHostileFastBoxes(t *testing.T) {
	for name, place := range map[string]func(l *Link) uint64{
		"far ahead":             func(l *Link) uint64 { return l.in.tail + minSize + 1 },
		"behind":                func(l *Link) uint64 { return l.in.tail - 1 },
		"at the other end":      func(l *Link) uint64 { return l.in.tail + 1<<31 },
		"in front of the bytes": func(l *Link) uint64 { return l.in.tail - 10 },
	} {
		for _, some := range []int{0, 10} {
			t.Run(fmt.Sprintf("%s, %d bytes", name, some), func(t *testing.T) {
				a, b := boxPair(t, minSize)
				a.Send([][]byte{pattern(20)})
				drain(t, b)
				a.Send([][]byte{pattern(some)})
				a.FastBoxRoom(0)
				a.boxes.fastBoxes.Post(nil, place(b))
				if !b.Ready() || !b.Arm(link.Readable) {
					t.Error("nobody looks")
				}
				if b.NextFastBox() != nil || b.Peek() != nil {
					t.Error("there is something to see")
				}
				for range 2 {
					if n, err := b.Recv([][]byte{make([]byte, 10)}); n != 0 || !errors.Is(err, ErrRegion) || !errors.Is(err, link.ErrBroken) {
						t.Errorf("%d bytes, %v", n, err)
					}
				}
				a.boxes.fastBoxes.Sent = 0 // a valid one now, but too late
				a.boxes.fastBoxes.Post(nil, b.in.tail)
				if b.NextFastBox() != nil {
					t.Error("a fast-box message of a link that is broken")
				}
			})
		}
	}
}

// A fast-box message whose place is further on than the bytes that have come is delivered
// once they have.
func TestFastBoxAheadOfTheBytes(t *testing.T) {
	a, b := boxPair(t, minSize)
	a.FastBoxRoom(4)
	a.boxes.fastBoxes.Post([]byte("note"), 3)
	if b.Ready() || b.NextFastBox() != nil || b.Arm(link.Readable) {
		t.Error("it is there")
	}
	a.Send([][]byte{[]byte("abcde")})
	if in := b.Peek(); string(in) != "abc" {
		t.Errorf("got %q before it", in)
	}
	got, err := drain(t, b)
	text, _ := take(b)
	rest, _ := drain(t, b)
	if string(got) != "abc" || text != "note" || string(rest) != "de" || err != nil {
		t.Errorf("got %q, %q, %q, %v", got, text, rest, err)
	}
}

func TestEndComesAfterTheFastBoxes(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(a *Link)
		want error
	}{
		"end":   {func(a *Link) { a.CloseSend() }, io.EOF},
		"close": {func(a *Link) { a.Close() }, io.EOF},
		"break": {func(a *Link) { a.Break() }, link.ErrBroken},
		"death": {func(a *Link) { unix.Shutdown(a.sock, unix.SHUT_RDWR) }, link.ErrBroken},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := boxPair(t, minSize)
			for range 3 {
				post(a, "x")
			}
			c.end(a)
			for i := range 3 {
				if !b.Arm(link.Readable) {
					t.Fatal("it may sleep")
				}
				for range 3 * lookEvery {
					if n, err := b.Recv([][]byte{make([]byte, 1)}); n != 0 || err != nil {
						t.Fatalf("%d, %v, and %d fast-box messages are left", n, err, 3-i)
					}
				}
				if text, ok := take(b); text != "x" || !ok {
					t.Fatalf("got %q, %v", text, ok)
				}
			}
			err := error(nil)
			for i := 0; i < 3*lookEvery && err == nil; i++ {
				_, err = b.Recv([][]byte{make([]byte, 1)})
			}
			if !errors.Is(err, c.want) {
				t.Errorf("the end is %v", err)
			}
			if post(a, "x") && name != "death" {
				t.Error("a fast-box message after the end")
			}
		})
	}
}

// Without room for fast-box messages, bytes go on, and fast-box messages that were sent
// before come before them.
func TestFullOfFastBoxes(t *testing.T) {
	a, b := boxPair(t, minSize)
	sent := 0
	for ; post(a, fmt.Sprint(sent)); sent++ {
	}
	if sent != link.FastBoxCount {
		t.Errorf("room for %d", sent)
	}
	if n, err := a.Send([][]byte{[]byte("bytes")}); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	for i := range sent {
		if got, err := drain(t, b); len(got) > 0 || err != nil {
			t.Fatalf("%q before fast-box message %d, %v", got, i, err)
		}
		if text, _ := take(b); text != fmt.Sprint(i) {
			t.Fatalf("got %q, want fast-box message %d", text, i)
		}
	}
	if !post(a, "after") {
		t.Error("no room again")
	}
	if got, err := drain(t, b); string(got) != "bytes" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if text, _ := take(b); text != "after" {
		t.Errorf("got %q", text)
	}
}

// A loan at the same place in the stream as a fast-box message comes after it.
func TestLoanBehindAFastBox(t *testing.T) {
	a, b := lenders(t, minSize)
	takeFastBoxes(t, a, b)
	post(a, "note")
	a.Lend([][]byte{pattern(minLoan)})
	buf := make([]byte, minLoan)
	if n, err := b.Recv([][]byte{buf}); n != 0 || err != nil {
		t.Errorf("%d bytes before the fast-box message, %v", n, err)
	}
	if text, _ := take(b); text != "note" {
		t.Errorf("got %q", text)
	}
	if n, err := b.Recv([][]byte{buf}); n != minLoan || err != nil || !bytes.Equal(buf, pattern(minLoan)) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestNoRoomForFastBoxes(t *testing.T) {
	a, b := lenders(t, minSize)
	takeFastBoxes(t, a, b)
	a.Reserve(3)
	if a.FastBoxRoom(0) != nil {
		t.Error("before what is reserved")
	}
	a.Commit()
	b.Discard(3)
	loan := [][]byte{pattern(minLoan)}
	a.Lend(loan)
	if a.FastBoxRoom(0) != nil {
		t.Error("while something is lent")
	}
	b.Recv([][]byte{make([]byte, minLoan)})
	if a.FastBoxRoom(0) != nil {
		t.Error("before the loan is back")
	}
	a.Lend(loan)
	if a.FastBoxRoom(0) == nil {
		t.Error("none after it")
	}
	a.CloseSend()
	if a.FastBoxRoom(0) != nil {
		t.Error("after the end")
	}
	post(b, "x")
	a.Close()
	if a.NextFastBox() != nil || a.FastBoxRoom(0) != nil || a.TakeFastBoxes() {
		t.Error("after Close")
	}
	b.out.b.tail.Store(b.out.head + 1)
	if _, err := b.Send([][]byte{pattern(minSize)}); !errors.Is(err, link.ErrBroken) {
		t.Fatal(err)
	}
	if b.FastBoxRoom(0) != nil {
		t.Error("by a link that is broken")
	}
}

func TestLinkWithFastBoxesIsNotHandedOn(t *testing.T) {
	file, err := Create(minSize)
	if err != nil {
		t.Fatal(err)
	}
	socks, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(socks[1])
	l, err := NewDetachable(file, socks[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	takeFastBoxes(t, l)
	if _, _, _, err := l.Detach(); !errors.Is(err, ErrRegion) {
		t.Errorf("%v", err)
	}
	if n, err := l.Send([][]byte{{1}}); n != 1 || err != nil {
		t.Errorf("then %d, %v", n, err)
	}
}

func TestFastBoxesInTheRegion(t *testing.T) {
	a, b := boxPair(t, minSize)
	a.Send([][]byte{[]byte("abc")})
	n := a.FastBoxRoom(4)
	n.Context, n.Rank, n.Tag, n.Kind = 1<<40+1, 2, 3, 4
	a.PostFastBox([]byte("data"))
	mem := a.region.mem
	at := binary.NativeEndian.Uint64(mem[40:])
	behind, area := int(binary.NativeEndian.Uint64(mem[48:])), int(binary.NativeEndian.Uint64(mem[56:]))
	if at != headerSize+2*minSize || behind != int(at)+2*8192 || area != 1024 || len(mem) != behind+2*area {
		t.Fatalf("fast-box messages from %d on, %d bytes of data from %d on, of %d", at, area, behind, len(mem))
	}
	place := []byte{3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 'd', 'a', 't', 'a', 0}
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 && !bytes.Equal(mem[at:][:len(place)], place) {
		t.Errorf("the first place is % x", mem[at:][:len(place)])
	}
	post(b, "back")
	if got := string(mem[at+8192+32:][:4]); got != "back" {
		t.Errorf("the first place of ring 1 has %q", got)
	}
	drain(t, b)
	for i := range 16 {
		if i > 0 {
			post(a, "x")
		}
		take(b)
	}
	post(a, strings.Repeat("a", 100))
	post(a, strings.Repeat("b", 100))
	post(b, strings.Repeat("c", 100))
	if mem[behind] != 'a' || mem[behind+128] != 'b' || mem[behind+1024] != 'c' || mem[at+17*128+24] != 100 || mem[at+17*128+32] != 128 {
		t.Errorf("data begin with %q", mem[behind:][:1100])
	}
	word := func(at int) uint32 { return binary.NativeEndian.Uint32(mem[at:]) }
	if word(1024+908) != 2 || word(1024+912) != 16 || word(2048+908) != 2 || word(2048+912) != 0 {
		t.Errorf("ring 0: takes %d, taken %d; ring 1: %d, %d", word(1024+908), word(1024+912), word(2048+908), word(2048+912))
	}
}

func TestFastBoxesOfTheRingAllocateNothing(t *testing.T) {
	a, b := boxPair(t, minSize)
	both := [2][]byte{make([]byte, 8), make([]byte, 200)}
	if n := testing.AllocsPerRun(1000, func() {
		for _, data := range both {
			if a.FastBoxRoom(len(data)) == nil {
				t.Fatal("no room")
			}
			a.PostFastBox(data)
			n := b.NextFastBox()
			if n == nil || len(b.FastBoxData(n, n.Len)) != len(data) {
				t.Fatal("no fast-box message")
			}
			b.FastBoxTaken(n.Len)
		}
	}); n != 0 {
		t.Errorf("%v allocations per fast-box message", n)
	}
}
