package native

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/openimpi/impi/internal/native/shortbox"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// The short messages of rank: they overtake those of send, and the other way round, as two
// communicators do.

type shortLetter struct {
	from int
	link.CarriedMessage
	data []byte
	only bool // it only says what was taken

	apart bool
}

type rankCarrier struct{ *rank }

func (r *rank) beginShorts() carrier {
	if r.shortsOff {
		return nil
	}
	r.boxes = map[int]*shortbox.Boxes{}
	return rankCarrier{r}
}

func (r rankCarrier) attach(b *shortbox.Boxes) { r.boxes[int(b.Rank)] = b }

func (r rankCarrier) put(b *shortbox.Boxes, m *link.CarriedMessage, data []byte) error {
	l := &shortLetter{from: r.self, CarriedMessage: *m, data: bytes.Clone(data)}
	b.Said = m.Taken
	r.net.shorts[int(b.Rank)] = append(r.net.shorts[int(b.Rank)], l)
	return r.broken
}

func (r rankCarrier) took(b *shortbox.Boxes, taken uint64) {
	if uint32(taken)-b.Said >= link.FastBoxCount/2 {
		b.Said = uint32(taken)
		r.net.shorts[int(b.Rank)] = append(r.net.shorts[int(b.Rank)], &shortLetter{from: r.self, CarriedMessage: link.CarriedMessage{Taken: b.Said}, only: true})
	}
}

// lend sends a message whose data come apart, as C does.
func (r rankCarrier) lend(l *Link, m *link.CarriedMessage, data []byte) {
	m.Taken, m.At, m.Bytes = uint32(l.fast.Taken), uint32(l.out), uint32(len(data))
	to := int(l.boxes.Rank)
	l.boxes.Said = m.Taken
	r.net.shorts[to] = append(r.net.shorts[to], &shortLetter{from: r.self, CarriedMessage: *m, apart: true})
	r.net.longs[[2]int{r.self, to}] = append(r.net.longs[[2]int{r.self, to}], data)
	l.fast.Posted(len(data))
}

// next is the data that come next from a rank.
func (r rankCarrier) next(from int) []byte {
	way := [2]int{from, r.self}
	data := r.net.longs[way][0]
	r.net.longs[way] = r.net.longs[way][1:]
	return data
}

func (r rankCarrier) fetch(b *shortbox.Boxes, buf unsafe.Pointer, n int) (request, error) {
	data := r.next(int(b.Rank))
	if len(data) != n {
		return none, fmt.Errorf("%d bytes come for %d", len(data), n)
	}
	r.last++
	r.coming[r.last] = func() { copy(unsafe.Slice((*byte)(buf), n), data) }
	return r.last, r.refuses
}

func (r rankCarrier) drop(b *shortbox.Boxes, n int) error {
	if data := r.next(int(b.Rank)); len(data) != n {
		return fmt.Errorf("%d bytes are dropped for %d", len(data), n)
	}
	return nil
}

func (r rankCarrier) close(b *shortbox.Boxes, taken uint64) error {
	b.Closed = 1
	for ; taken < b.Come; taken++ {
		if m := &boxesOf(b)[taken%link.FastBoxCount].m; m.Apart(m.Len) {
			if err := r.drop(b, int(m.Len)); err != nil {
				return err
			}
		}
	}
	return nil
}

// testBox is a box as C sees it.
type testBox struct {
	mark atomic.Uint64
	m    link.EagerMessage
}

func boxesOf(b *shortbox.Boxes) *[link.FastBoxCount]testBox {
	return (*[link.FastBoxCount]testBox)(unsafe.Pointer(&b.In))
}

func (r rankCarrier) room() bool    { return r.net.rng.IntN(8) > 0 }
func (r rankCarrier) come() uint64  { return r.shortsCome }
func (r rankCarrier) sending() bool { return false }

// pump is impi_shorts_pump.
func (r *rank) pump() {
	for _, l := range r.net.shorts[r.self] {
		b := r.boxes[l.from]
		b.Read.Store(uint64(l.Taken)) // tests send less than 4 Gi
		if l.only {
			continue
		}
		i := b.Come % link.FastBoxCount
		to := &boxesOf(b)[i]
		to.m = link.EagerMessage{Context: l.Context, Rank: l.Rank, Tag: l.Tag, Len: l.Bytes, Kind: l.Kind}
		if l.Bytes <= link.InFastBox {
			copy(to.m.Data[:], l.data)
		} else if l.apart {
			binary.NativeEndian.PutUint32(to.m.Data[:], link.FastBoxNowhere)
			binary.NativeEndian.PutUint32(to.m.Data[4:], l.Bytes)
		} else {
			at := i * shortbox.Place
			copy(b.Data[at:], l.data)
			binary.NativeEndian.PutUint32(to.m.Data[:], uint32(at))
		}
		b.Come++
		r.shortsCome++
		to.mark.Store(b.Come<<32 | uint64(l.At))
	}
	r.net.shorts[r.self] = nil
}

// mixed is one direction of a link by which bytes of the stream and short messages go.
type mixed struct {
	from, to    *Link
	rng         *rand.Rand
	total       int
	sent, taken int    // bytes of the stream
	at          []int  // of each short message, the bytes before it
	got         int    // short messages
	lent        []byte // that the link has not given back
	eof         bool
	byC         int

	apart, there, cut int // of the message whose data come apart: its length, how much of them has come, and the memory for the next
	aparts            int // such messages
}

func byteAt(i int) byte { return byte(i ^ i>>8*7 ^ i>>16*11) }

// send sends a short message or a part of the stream. As the engine does, it sends no short one
// while something before it has not left.
func (m *mixed) send(t *testing.T) {
	if len(m.lent) == 0 && m.rng.IntN(4) == 0 {
		if n := []int{shortMost + 1, 70_000, 1 << 20}[m.rng.IntN(3)]; m.from.opens() && m.from.fast.Admits(0) {
			c := m.from.set.shorts.(rankCarrier)
			c.lend(m.from, &link.CarriedMessage{Context: 7, Rank: 3, Tag: int32(len(m.at)), Kind: 2}, bytes.Repeat([]byte{byte(len(m.at))}, n))
			m.at = append(m.at, m.sent)
		}
		return
	}
	if len(m.lent) == 0 && m.rng.IntN(2) == 0 {
		n := []int{0, 1, 8, 96, 97, shortbox.MinPiece, shortMost}[m.rng.IntN(7)]
		box := m.from.FastBoxRoom(n)
		if box == nil {
			return
		}
		box.Context, box.Rank, box.Tag, box.Kind = 7, 3, int32(len(m.at)), 2
		m.from.PostFastBox(bytes.Repeat([]byte{byte(len(m.at))}, n))
		m.at = append(m.at, m.sent)
		return
	}
	if len(m.lent) == 0 {
		n := min(m.total-m.sent, []int{1, 50, 5000, longSize, 100_000, 1 << 20}[m.rng.IntN(6)])
		for i := range n {
			m.lent = append(m.lent, byteAt(m.sent+i))
		}
	}
	if len(m.lent) == 0 {
		return
	}
	n, err := m.from.Lend([][]byte{m.lent})
	if err != nil {
		t.Fatal(err)
	}
	m.lent = m.lent[n:]
	m.sent += n
}

// take receives as the engine does; sometimes C has taken the short messages before.
func (m *mixed) take(t *testing.T, into []byte, byC bool) {
	for box := m.to.NextFastBox(); box != nil; box = m.to.NextFastBox() {
		n := box.Len
		if m.to.FastBoxApart(box) {
			if byC {
				return
			}
			m.takeApart(t, box)
			break
		}
		if byC {
			m.byC++
		}
		data := m.to.FastBoxData(box, n)
		if int(box.Tag) != m.got || box.Context != 7 || box.Rank != 3 || box.Kind != 2 || !bytes.Equal(data, bytes.Repeat([]byte{byte(m.got)}, int(n))) {
			t.Fatalf("short message %d is %+v", m.got, box)
		}
		if m.got < len(m.at) && m.at[m.got] != m.taken {
			t.Fatalf("short message %d comes behind %d bytes of the stream, and was sent behind %d", m.got, m.taken, m.at[m.got])
		}
		m.got++
		m.to.FastBoxTaken(n)
	}
	if byC {
		return
	}
	if m.apart > 0 {
		m.receiveApart(t, into)
		return
	}
	n, err := m.to.Recv([][]byte{into})
	if err == io.EOF {
		m.eof = true
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range into[:n] {
		if b != byteAt(m.taken+i) {
			t.Fatalf("byte %d is wrong", m.taken+i)
		}
	}
	m.taken += n
	if m.got < len(m.at) && m.taken > m.at[m.got] {
		t.Fatalf("%d bytes of the stream have come, and not the short message that was sent behind %d", m.taken, m.at[m.got])
	}
}

// takeApart takes the box of a message whose data come apart.
func (m *mixed) takeApart(t *testing.T, box *link.EagerMessage) {
	if n := box.Len; m.to.FastBoxData(box, n) != nil || int(box.Tag) != m.got || box.Context != 7 || m.at[m.got] != m.taken {
		t.Fatalf("message %d is %+v behind %d bytes", m.got, box, m.taken)
	}
	m.apart, m.there = int(box.Len), 0
	m.to.FastBoxTaken(box.Len)
	if m.to.NextFastBox() != nil {
		t.Fatal("there is another message before the data of this one")
	}
}

// receiveApart receives its data, at once or in parts.
func (m *mixed) receiveApart(t *testing.T, into []byte) {
	if m.cut == 0 {
		m.cut = m.apart - m.there
		if m.rng.IntN(2) == 0 {
			m.cut = 1 + m.rng.IntN(m.cut)
		}
	}
	n, err := m.to.Recv([][]byte{into[:m.cut]})
	if err != nil || !bytes.Equal(into[:n], bytes.Repeat([]byte{byte(m.got)}, n)) {
		t.Fatalf("%d bytes of message %d: %v, %x", n, m.got, err, into[:min(n, 8)])
	}
	if n > 0 {
		m.cut = 0
	}
	if m.there += n; m.there == m.apart {
		m.apart = 0
		m.got++
		m.aparts++
	}
}

// TestShorts: short messages and the stream keep the order in which they were sent, whichever the
// library delivers first and whoever takes the short ones; none is lost, and there is a box for
// each.
func TestShorts(t *testing.T) {
	boxed, byC, aparts := 0, 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 2))
		net := &network{rng: rng, boxes: map[int][]*letter{}, shorts: map[int][]*shortLetter{}, longs: map[[2]int][][]byte{}}
		ra, rb := net.rank(0), net.rank(1)
		a, b := newLinks(ra, 2), newLinks(rb, 2)
		a.BeginShortMessages()
		b.BeginShortMessages()
		ab, _ := a.Link(1)
		ba, _ := b.Link(0)
		for _, l := range []*Link{ab, ba} {
			if !l.TakeFastBoxes() {
				t.Fatal("there are no short messages")
			}
			if l.FastBoxRoom(8) != nil {
				t.Fatal("there is room for a message that the other side does not know")
			}
		}
		dirs := []*mixed{{from: ab, to: ba, rng: rng, total: 3 << 20}, {from: ba, to: ab, rng: rng, total: 1 << 20}}
		into := make([]byte, 2<<20)
		for step := 0; !dirs[0].eof || !dirs[1].eof; step++ {
			if step > 1_000_000 {
				t.Fatalf("seed %d: nothing moves: %+v %+v", seed, dirs[0], dirs[1])
			}
			h, r := a, ra
			if rng.IntN(2) == 0 {
				h, r = b, rb
			}
			if rng.IntN(3) == 0 {
				r.pump() // by C
				for _, d := range dirs {
					if d.to.set == h && rng.IntN(2) == 0 {
						d.take(t, nil, true)
					}
				}
			}
			ready, _ := h.Poll()
			for i := len(ready) - 1; i >= 0; i-- {
				for _, d := range dirs {
					if d.to == ready[i] && !d.eof {
						d.take(t, into, false)
						break
					}
				}
			}
			for _, d := range dirs {
				if d.from.set == h && d.sent < d.total {
					d.send(t)
					if d.sent == d.total && len(d.lent) == 0 {
						if err := d.from.CloseSend(); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
		for _, d := range dirs {
			if d.got != len(d.at) || d.taken != d.total {
				t.Errorf("seed %d: %d of %d short messages and %d of %d bytes came", seed, d.got, len(d.at), d.taken, d.total)
			}
			boxed, byC, aparts = boxed+d.got, byC+d.byC, aparts+d.aparts
		}
	}
	if boxed < 1000 || byC < 100 || aparts < 200 {
		t.Errorf("only %d short messages were sent, %d of them taken as C does, and of %d the data came apart", boxed, byC, aparts)
	}
}

// TestShortsRefused: where only one thread may call the library no link takes short messages, and
// the other side sends none.
func TestShortsRefused(t *testing.T) {
	net := &network{rng: rand.New(rand.NewPCG(1, 1)), boxes: map[int][]*letter{}, shorts: map[int][]*shortLetter{}}
	off := net.rank(1)
	off.shortsOff = true
	a, b := newLinks(net.rank(0), 2), newLinks(off, 2)
	a.BeginShortMessages()
	b.BeginShortMessages()
	ab, _ := a.Link(1)
	ba, _ := b.Link(0)
	if !ab.TakeFastBoxes() || ba.TakeFastBoxes() {
		t.Fatal("it is not as the library says")
	}
	if n, err := ba.Send([][]byte{[]byte("hello")}); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	for range 100 {
		a.Poll()
	}
	if n, err := ab.Recv([][]byte{make([]byte, 10)}); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	if ab.FastBoxesAgreed() || ab.FastBoxRoom(1) != nil {
		t.Error("there is room for a message that the other side does not take")
	}
}

// TestCloseDropsDataThatComeApart: whatever has become of a message when the link is closed, its
// data are received once, so that its sender goes on, and in their order.
func TestCloseDropsDataThatComeApart(t *testing.T) {
	for at, name := range []string{"in its box", "taken", "begun", "there"} {
		net := &network{rng: rand.New(rand.NewPCG(1, 1)), boxes: map[int][]*letter{}, shorts: map[int][]*shortLetter{}, longs: map[[2]int][][]byte{}}
		ra, rb := net.rank(0), net.rank(1)
		a, b := newLinks(ra, 2), newLinks(rb, 2)
		a.BeginShortMessages()
		b.BeginShortMessages()
		ab, _ := a.Link(1)
		ba, _ := b.Link(0)
		if !ab.TakeFastBoxes() || !ba.TakeFastBoxes() {
			t.Fatal("there are no short messages")
		}
		for !ab.opens() {
			a.Poll()
		}
		for i, n := range []int{70_000, shortMost + 1} {
			rankCarrier{ra}.lend(ab, &link.CarriedMessage{Tag: int32(i)}, make([]byte, n))
		}
		rb.pump()
		rb.stalled = at == 2
		into := make([]byte, 10)
		if at > 0 {
			ba.FastBoxTaken(ba.NextFastBox().Len)
		}
		for i := 0; at > 1 && i < 100; i++ {
			if n, err := ba.Recv([][]byte{into}); n > 0 || err != nil {
				break
			}
		}
		if err := ba.Close(); err != nil {
			t.Error(name, err)
		}
		rb.stalled = false
		for range 100 {
			b.Poll()
		}
		if left := len(net.longs[[2]int{0, 1}]); left != 0 || len(b.orphans) != 0 || b.err != nil || !b.Idle() {
			t.Errorf("%s: data of %d messages were not received, %d are waited for, %v", name, left, len(b.orphans), b.err)
		}
	}
}

// TestTransfers: what C has begun is waited for, and fails with the library.
func TestTransfers(t *testing.T) {
	net := &network{rng: rand.New(rand.NewPCG(1, 1)), boxes: map[int][]*letter{}}
	r := net.rank(0)
	h := newLinks(r, 2)
	r.coming[5] = func() {}
	one := h.AwaitTransfer(5, 0)
	if done, err := one.Done(); done || err != nil {
		t.Error(done, err)
	}
	if h.lib.(*rank).stalled = true; h.Idle() {
		t.Error("it is not waited for")
	}
	r.stalled = false
	for news := false; !news; {
		_, news = h.Poll()
	}
	if done, err := one.Done(); !done || err != nil || !h.Idle() {
		t.Error(done, err)
	}
	if done, err := h.AwaitTransfer(none, 15).Done(); !done || !errors.Is(err, ErrFailed) {
		t.Error(done, err)
	}
	r.coming[6] = func() {}
	two := h.AwaitTransfer(6, 0)
	r.stalled, r.broken = true, errors.New("the fabric is down")
	h.Poll()
	if done, err := two.Done(); !done || !errors.Is(err, r.broken) {
		t.Error(done, err)
	}
}
