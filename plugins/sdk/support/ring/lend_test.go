package ring

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

var _ link.Lender = (*Link)(nil)

// lenders is a pair whose sides have found out that they can lend.
func lenders(t testing.TB, size int) (a, b *Link) {
	t.Helper()
	a, b = pair(t, size)
	for _, l := range []*Link{a, b} {
		if err := l.AllowLending(); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range []*Link{a, b} {
		if n, err := l.Recv([][]byte{make([]byte, 1)}); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	if a.out.b.takes.Load() == 0 || b.out.b.takes.Load() == 0 {
		t.Skip("NOT RUN: the kernel does not let a process read its own memory: allow process_vm_readv")
	}
	return a, b
}

// Lent, copied and peeked bytes are one stream, in whatever pieces they are
// offered and taken, and nothing is given back before it was taken.
func TestLentBytesKeepTheirOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	a, b := lenders(t, 4*minSize)
	data := make([]byte, 8<<20)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	var parts [][]byte // of data, short and long
	for rest := data; len(rest) > 0; {
		n := 1 + random.IntN(200)
		if random.IntN(3) == 0 {
			n = minLoan - 100 + random.IntN(4*minLoan)
		}
		n = min(n, len(rest))
		parts, rest = append(parts, rest[:n:n]), rest[n:]
	}
	back, got := 0, []byte{}
	for len(got) < len(data) {
		batch := append([][]byte(nil), parts[:min(len(parts), 1+random.IntN(40))]...)
		n, err := a.Lend(batch)
		if err != nil {
			t.Fatal(err)
		}
		if back += n; back > len(got)+4*minSize {
			t.Fatalf("%d bytes are back, %d were taken", back, len(got))
		}
		parts = link.Advance(parts, n)
		for range random.IntN(4) {
			if in := b.Peek(); len(in) > 0 && random.IntN(2) == 0 {
				n := 1 + random.IntN(len(in))
				got = append(got, in[:n]...)
				b.Discard(n)
				continue
			}
			buf := make([]byte, 1+random.IntN(2*minLoan))
			cut := random.IntN(len(buf))
			n, err := b.Recv([][]byte{buf[:cut], buf[cut:]})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, buf[:n]...)
		}
	}
	if !bytes.Equal(got, data) {
		t.Error("the bytes are not those that were sent")
	}
	if n, err := a.Lend(parts); err != nil || len(link.Advance(parts, n)) != 0 || a.out.given != a.out.back {
		t.Errorf("%d bytes are not back (%v)", link.Len(parts)-n, err)
	}
}

func TestLentMemoryIsBackOnceItIsTaken(t *testing.T) {
	a, b := lenders(t, minSize)
	batch := [][]byte{pattern(10), pattern(minLoan), pattern(20)}
	if n, err := a.Lend(batch); n != 10 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	batch = batch[1:]
	buf := make([]byte, 2*minLoan)
	b.Discard(len(b.Peek()))
	if n, _ := b.Recv([][]byte{buf[:minLoan-1]}); n != minLoan-1 {
		t.Fatalf("took %d bytes", n)
	}
	if n, _ := a.Lend(batch); n != 0 {
		t.Errorf("%d bytes are back, one is not taken", n)
	}
	if a.Reserve(1) != nil {
		t.Error("room in front of what is lent")
	}
	b.Recv([][]byte{buf[minLoan-1:]})
	if n, _ := a.Lend(batch); n != minLoan+20 {
		t.Errorf("%d bytes are back", n)
	}
	if !bytes.Equal(buf[:minLoan], pattern(minLoan)) || !bytes.Equal(b.Peek(), pattern(20)) {
		t.Error("other bytes")
	}
}

// A writer whose memory is lent sleeps until the reader has taken it, however much room
// there is.
func TestTakingWakesTheWriter(t *testing.T) {
	a, b := lenders(t, minSize)
	if b.Arm(link.Readable) {
		t.Fatal("there is nothing")
	}
	a.Lend([][]byte{pattern(minLoan)})
	if !ready(t, b, unix.POLLIN) {
		t.Error("nobody wakes the reader")
	}
	if a.Arm(link.Writable) || ready(t, a, unix.POLLOUT) {
		t.Error("the writer cannot sleep")
	}
	if !b.Arm(link.Readable) || !b.Ready() {
		t.Error("a loan is nothing to read")
	}
	b.Recv([][]byte{make([]byte, minLoan)})
	if !ready(t, a, unix.POLLOUT) {
		t.Error("nobody wakes the writer")
	}
	if !a.Arm(link.Writable) {
		t.Error("it goes to sleep again")
	}
}

// Without the peer's promise, or without the key that proves it, bytes are copied.
func TestNothingIsLentOnTrust(t *testing.T) {
	for name, set := range map[string]func(a, b *Link){
		"nobody has allowed it":  func(a, b *Link) {},
		"only one has allowed":   func(a, b *Link) { a.AllowLending() },
		"only the other":         func(a, b *Link) { b.AllowLending() },
		"another process's key":  func(a, b *Link) { a.AllowLending(); b.AllowLending(); a.out.b.offer.key[0]++ },
		"no such process":        func(a, b *Link) { a.AllowLending(); b.AllowLending(); a.out.b.offer.pid = 1 << 30 },
		"no memory where it is":  func(a, b *Link) { a.AllowLending(); b.AllowLending(); a.out.b.offer.addr = 1 },
		"a negative process":     func(a, b *Link) { a.AllowLending(); b.AllowLending(); a.out.b.offer.pid = -1 },
		"an address past memory": func(a, b *Link) { a.AllowLending(); b.AllowLending(); a.out.b.offer.addr = 1<<64 - 8 },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, 4*minLoan)
			set(a, b)
			drain(t, b)
			data := pattern(2 * minLoan)
			if n, err := a.Lend([][]byte{data}); n != len(data) || err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
			clear(data)
			if got, err := drain(t, b); !bytes.Equal(got, pattern(2*minLoan)) || err != nil {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

func TestCloseEndsTheLoan(t *testing.T) {
	a, b := lenders(t, minSize)
	data := pattern(minLoan)
	a.Lend([][]byte{pattern(5), data})
	a.Close()
	clear(data)
	got, err := drain(t, b)
	if len(got) != 5 || !errors.Is(err, link.ErrBroken) || !errors.Is(err, errRecalled) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestHostileLoans(t *testing.T) {
	for name, lie := range map[string]func(a, b *Link){
		"too many":         func(a, b *Link) { b.in.b.lent.Store(loans + 2) },
		"fewer":            func(a, b *Link) { b.in.b.lent.Store(0) },
		"of nothing":       func(a, b *Link) { *b.in.table = [loans]loan{}; b.in.b.lent.Store(2) },
		"too large":        func(a, b *Link) { b.in.table[1].size = maxLoan + 1; b.in.b.lent.Store(2) },
		"before this":      func(a, b *Link) { b.in.table[1] = loan{at: b.in.tail - 1, addr: 1, size: 1}; b.in.b.lent.Store(2) },
		"far ahead":        func(a, b *Link) { b.in.table[1] = loan{at: b.in.tail + minSize + 1, size: 1}; b.in.b.lent.Store(2) },
		"of no memory":     func(a, b *Link) { b.in.table[1] = loan{at: b.in.tail, addr: 1, size: 1}; b.in.b.lent.Store(2) },
		"with another key": func(a, b *Link) { a.key[0]++; a.Lend([][]byte{pattern(minLoan)}) },
		"taken ahead":      func(a, b *Link) { a.out.b.taken.Store(2) },
		"taken before":     func(a, b *Link) { a.out.b.taken.Store(0) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := lenders(t, minSize)
			batch := [][]byte{pattern(minLoan)}
			a.Lend(batch)
			drain(t, b)
			if n, err := a.Lend(batch); n != minLoan || err != nil {
				t.Fatal(n, err)
			}
			lie(a, b)
			_, recvErr := b.Recv([][]byte{make([]byte, 10)})
			_, sendErr := a.Lend([][]byte{make([]byte, 10)})
			if err := errors.Join(recvErr, sendErr); !errors.Is(err, link.ErrBroken) {
				t.Errorf("%v", err)
			}
			if b.Peek() != nil {
				t.Error("there is something to see")
			}
		})
	}
}

func TestLendingAllocatesNothing(t *testing.T) {
	a, b := lenders(t, minSize)
	batch, in := [][]byte{pattern(128), pattern(minLoan)}, [][]byte{make([]byte, 2*minLoan)}
	if n := testing.AllocsPerRun(100, func() {
		a.Lend(batch)
		b.Recv(in)
		b.Recv(in)
		a.Lend(batch[1:])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
