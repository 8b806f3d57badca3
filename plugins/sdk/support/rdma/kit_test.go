package rdma

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

var small = Shape{Slots: 4, SlotSize: 1 << 10}

// sides makes both sides of a control region.
func sides(t *testing.T, regions *Regions) (*Link, *Port) {
	t.Helper()
	p, fds, err := NewPort(small)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	l, err := New(fds[0], fds[1], fds[2], regions)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, p
}

// next returns the next submission, which must be of a kind.
func next(t *testing.T, p *Port, k Kind) Entry {
	t.Helper()
	e, ok, err := p.Next()
	if err != nil || !ok || e.Kind != k {
		t.Fatalf("the next submission: %+v, %v, %v; want kind %d", e, ok, err, k)
	}
	return e
}

func complete(t *testing.T, p *Port, e Entry) {
	t.Helper()
	if err := p.Complete(e); err != nil {
		t.Fatal(err)
	}
}

func arrive(t *testing.T, p *Port, text string) {
	t.Helper()
	if err := p.Arrive(copy(p.ReceiveSlot(), text)); err != nil {
		t.Fatal(err)
	}
}

// receive calls Recv with room for n bytes, until there are some or an error.
func receive(l *Link, n int) (string, error) {
	b := make([]byte, n)
	for range 2 * lookEvery {
		if k, err := l.Recv([][]byte{b}); k > 0 || err != nil {
			return string(b[:k]), err
		}
	}
	return "", nil
}

// lentMemory allocates n bytes in a region of their own.
func lentMemory(t *testing.T, r *Regions, n int) []byte {
	t.Helper()
	b, err := r.AllocateApart(n)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// mapped maps a region that the port was lent.
func mapped(t *testing.T, p *Port) (Lent, []byte) {
	t.Helper()
	got, ok, err := p.NextRegion()
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	defer unix.Close(got.FD)
	mem, err := unix.Mmap(got.FD, 0, int(got.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	return got, mem
}

func base(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

func TestBounce(t *testing.T) {
	l, p := sides(t, nil)
	if n, err := l.Send([][]byte{[]byte("one"), []byte("two")}); n != 6 || err != nil {
		t.Fatal(n, err)
	}
	e := next(t, p, SendSlot)
	if got := p.SendSlot(&e); string(got) != "onetwo" {
		t.Fatalf("%q", got)
	}
	big := make([]byte, 10*small.SlotSize)
	if n, err := l.Send([][]byte{big}); n != 3*small.SlotSize || err != nil {
		t.Fatalf("%d bytes were taken with three slots, %v", n, err)
	}
	if l.Arm(link.Readable | link.Writable) {
		t.Fatal("it can send and receive nothing")
	}
	complete(t, p, Entry{Kind: SlotSent, Slot: 0})
	if n, err := l.Send([][]byte{big}); n != small.SlotSize || err != nil {
		t.Fatalf("%d bytes were taken with one slot, %v", n, err)
	}
	arrive(t, p, "hello")
	if got, err := receive(l, 3); got != "hel" || err != nil {
		t.Fatal(got, err)
	}
	if got, err := receive(l, 3); got != "lo" || err != nil {
		t.Fatal(got, err)
	}
	for range 3 {
		next(t, p, SendSlot)
	}
	next(t, p, SendSlot)
	if e := next(t, p, Free); e.Slot != 0 {
		t.Fatalf("%+v", e)
	}
}

func TestLoanAndRead(t *testing.T) {
	var r Regions
	l, p := sides(t, &r)
	from := lentMemory(t, &r, 100_000)
	batch := [][]byte{[]byte("head"), from[1000:90_000]}
	if n, err := l.Lend(batch); n != 4 || err != nil {
		t.Fatalf("%d bytes are the caller's, %v", n, err)
	}
	next(t, p, SendSlot)
	e := next(t, p, SendLoan)
	got, mem := mapped(t, p)
	if e.Region != got.Number || e.Generation != got.Generation || !bytes.Equal(mem[e.Offset:][:e.Length], from[1000:90_000]) {
		t.Fatalf("%+v of region %+v", e, got)
	}
	if n, err := l.Lend(batch[1:]); n != 0 || err != nil {
		t.Fatalf("%d bytes are the caller's before the loan was sent, %v", n, err)
	}
	complete(t, p, Entry{Kind: LoanSent, Number: e.Number})
	if n, err := l.Lend(batch[1:]); n != 89_000 || err != nil {
		t.Fatal(n, err)
	}

	complete(t, p, Entry{Kind: Offered, Message: 1, Length: 50_000})
	to := from[:60_000]
	if n, err := l.Recv([][]byte{to}); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	e = next(t, p, Read)
	if e.Region != got.Number || e.Offset != 0 || e.Length != 50_000 || e.Message != 1 {
		t.Fatalf("%+v", e)
	}
	mem[49_999] = 99
	complete(t, p, Entry{Kind: WasRead, Number: e.Number})
	if n, err := l.Recv([][]byte{to}); n != 50_000 || err != nil || to[49_999] != 99 {
		t.Fatal(n, err)
	}
	if e := next(t, p, Done); e.Message != 1 {
		t.Fatalf("%+v", e)
	}
}

// A proc all of whose bytes are lent sleeps until a loan ends; one that needs a slot too, until there
// is one.
func TestSleepWithLoans(t *testing.T) {
	var r Regions
	l, p := sides(t, &r)
	lent := lentMemory(t, &r, 64<<10)
	armed := func(batch [][]byte) bool {
		t.Helper()
		if n, err := l.Lend(batch); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		return l.Arm(link.Writable)
	}
	if armed([][]byte{lent}) {
		t.Fatal("it does not sleep although all is lent")
	}
	batch := [][]byte{lent, make([]byte, 5*small.SlotSize)}
	if armed(batch) {
		t.Fatal("it does not sleep although there is no slot")
	}
	complete(t, p, Entry{Kind: SlotSent})
	if l.poll(); !l.Arm(link.Writable) {
		t.Fatal("it sleeps although there is a slot")
	}
	if armed(batch) {
		t.Fatal("it does not sleep although the slot is in use")
	}
	complete(t, p, Entry{Kind: LoanSent, Number: 1})
	if l.poll(); !l.Arm(link.Writable) {
		t.Fatal("it sleeps although the loan is over")
	}
}

// A receiver that wants a message elsewhere than it has asked for gets it there.
func TestReadAgain(t *testing.T) {
	var r Regions
	l, p := sides(t, &r)
	lent := lentMemory(t, &r, 64<<10)
	complete(t, p, Entry{Kind: Offered, Message: 1, Length: 1500})
	if n, err := l.Recv([][]byte{lent[:8000]}); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	e := next(t, p, Read)
	mapped(t, p)
	if got, err := receive(l, 2000); got != "" || err != nil {
		t.Fatalf("%d bytes, %v before the first read was complete", len(got), err)
	}
	complete(t, p, Entry{Kind: WasRead, Number: e.Number})
	if got, err := receive(l, 2000); got != "" || err != nil {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for i, want := range []uint64{1024, 476} {
		e := next(t, p, Read)
		if e.Region != 0 || e.Length != want || e.At != uint64(i*1024) {
			t.Fatalf("%+v", e)
		}
		at, ok := p.StageAt(&e)
		if !ok {
			t.Fatalf("%+v is not in a slot", e)
		}
		for j := range e.Length {
			p.region.mem[at+j] = byte('a' + i)
		}
		complete(t, p, Entry{Kind: WasRead, Number: e.Number})
	}
	got, err := receive(l, 2000)
	if want := string(bytes.Repeat([]byte("a"), 1024)) + string(bytes.Repeat([]byte("b"), 476)); got != want || err != nil {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	next(t, p, Done)
}

func TestFreedRegionsAreForgotten(t *testing.T) {
	var r Regions
	l, p := sides(t, &r)
	first := lentMemory(t, &r, 64<<10)
	if _, err := l.Lend([][]byte{first}); err != nil {
		t.Fatal(err)
	}
	a := next(t, p, SendLoan)
	mapped(t, p)
	complete(t, p, Entry{Kind: LoanSent, Number: a.Number})
	if n, err := l.Lend([][]byte{first}); n != len(first) || err != nil {
		t.Fatal(n, err)
	}
	if err := r.Free(base(first)); err != nil {
		t.Fatal(err)
	}
	if err := r.Free(base(make([]byte, 1))); !errors.Is(err, ErrNotLent) {
		t.Fatal(err)
	}
	second := lentMemory(t, &r, 64<<10)
	if _, err := l.Lend([][]byte{second}); err != nil {
		t.Fatal(err)
	}
	if e := next(t, p, Forget); e.Region != a.Region || e.Generation != a.Generation {
		t.Fatalf("%+v", e)
	}
	if b := next(t, p, SendLoan); b.Region != a.Region || b.Generation != a.Generation+1 {
		t.Fatalf("%+v after %+v", b, a)
	}
}

// However many regions are freed, there is room for all other submissions; what the plugin was not
// told of at once it is told of later, also by a proc that only receives.
func TestManyFreedRegions(t *testing.T) {
	var r Regions
	l, p := sides(t, &r)
	const regions = 100
	var memory [regions][]byte
	for i := range memory {
		memory[i] = lentMemory(t, &r, 32<<10)
		if n, err := l.Lend(memory[i : i+1]); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		e := next(t, p, SendLoan)
		mapped(t, p)
		complete(t, p, Entry{Kind: LoanSent, Number: e.Number})
		if n, err := l.Lend(memory[i : i+1]); n != 32<<10 || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, b := range memory {
		if err := r.Free(base(b)); err != nil {
			t.Fatal(err)
		}
	}
	forgotten := 0
	for range regions {
		if _, err := l.Recv([][]byte{make([]byte, 1)}); err != nil {
			t.Fatal(err)
		}
		if n, err := l.out.vacant(); n < 5*small.Slots+2 || err != nil {
			t.Fatalf("room for %d submissions, %v", n, err)
		}
		for {
			e, ok, err := p.Next()
			if err != nil || ok && e.Kind != Forget {
				t.Fatalf("%+v, %v", e, err)
			}
			if !ok {
				break
			}
			forgotten++
		}
	}
	if forgotten != regions || len(l.lent) > 0 {
		t.Fatalf("the plugin was told of %d of %d regions", forgotten, regions)
	}
}
