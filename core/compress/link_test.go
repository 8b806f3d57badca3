package compress

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
)

// deflate is a codec of the standard library that counts what it was given.
type deflate struct {
	tries int
	bytes int
}

func (d *deflate) Compress(dst, src []byte) []byte {
	d.tries++
	d.bytes += len(src)
	b := bytes.NewBuffer(dst)
	w, _ := flate.NewWriter(b, flate.BestSpeed) // its level is right
	_, _ = w.Write(src)                         // memory takes all
	_ = w.Close()
	return b.Bytes()
}

var errLonger = errors.New("it gives more")

func (d *deflate) Decompress(dst, src []byte) error {
	r := flate.NewReader(bytes.NewReader(src))
	if _, err := io.ReadFull(r, dst); err != nil {
		return err
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return errLonger
	}
	return nil
}

// pair makes the ends of a compressed link over two ends.
func pair(x, y link.Link, least int) (a, b *Link, tries *deflate) {
	tries = new(deflate)
	return New(x, Config{tries, least}), New(y, Config{new(deflate), least}), tries
}

// even are bytes that become fewer, random ones that do not.
func even(n int) []byte { return bytes.Repeat([]byte("abcdefgh"), n/8+1)[:n] }

func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// carry sends all of data in batches from one end to the other, and returns what came.
func carry(t *testing.T, from, to *Link, data []byte, cut func(rest int) int) []byte {
	t.Helper()
	var got []byte
	in := make([]byte, 70_000)
	given := 0 // bytes of data that Send was shown
	for sent, idle := 0, 0; len(got) < len(data); idle++ {
		if sent < len(data) {
			given = max(given, min(len(data), sent+cut(len(data)-sent)))
			middle := (sent + given) / 2
			n, err := from.Send([][]byte{data[sent:middle], data[middle:given]})
			if err != nil {
				t.Fatalf("after %d bytes: %v", sent, err)
			}
			if sent += n; n > 0 {
				idle = 0
			}
		}
		n, err := to.Recv([][]byte{in[:100], nil, in[100:]})
		if err != nil {
			t.Fatalf("after %d bytes: %v", len(got), err)
		}
		if got = append(got, in[:n]...); n > 0 {
			idle = 0
		}
		if idle > 100_000 {
			t.Fatalf("%d bytes of %d have come, %d are taken", len(got), len(data), sent)
		}
	}
	return got
}

// TestStream: whatever is sent comes, in whatever pieces the link below moves it.
func TestStream(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		x, y := linktest.Pair(1 + r.IntN(300_000))
		if seed%2 == 1 {
			piece := func() int { return r.IntN(1 + 30_000>>r.IntN(15)) }
			x, y = linktest.Chop(x, piece), linktest.Chop(y, piece)
		}
		a, b, _ := pair(x, y, r.IntN(10_000))
		var data []byte
		for range 12 {
			n := 1 + r.IntN(400_000>>r.IntN(12))
			if r.IntN(3) > 0 {
				data = append(data, even(n)...)
			} else {
				data = append(data, random(r, n)...)
			}
		}
		got := carry(t, a, b, data, func(rest int) int { return 1 + r.IntN(1<<r.IntN(21)) })
		if !bytes.Equal(got, data) {
			t.Fatalf("seed %d: other bytes have come", seed)
		}
		sent, come := a.Counted(), b.Counted()
		if sent.Sent != uint64(len(data)) || come.Received != sent.Sent || come.WireReceived != sent.WireSent || sent.WireSent == 0 {
			t.Errorf("seed %d: %d bytes; counted %+v and %+v", seed, len(data), sent, come)
		}
		a.CloseSend()
		n, err := 0, error(nil)
		for i := 0; n == 0 && err == nil && i < 1000; i++ {
			n, err = b.Recv([][]byte{make([]byte, 1)})
		}
		if n != 0 || err != io.EOF {
			t.Errorf("seed %d: at the end %d, %v", seed, n, err)
		}
	}
}

// TestCompressed: bytes that become fewer are fewer on the way, and short ones are sent as they
// are.
func TestCompressed(t *testing.T) {
	x, y := linktest.Pair(1 << 20)
	a, b, tries := pair(x, y, 4096)
	carry(t, a, b, even(1<<20), func(rest int) int { return rest })
	if c := a.Counted(); c.WireSent > 1<<20/8 {
		t.Errorf("%d bytes travel for %d", c.WireSent, c.Sent)
	}
	before, wire := tries.tries, a.Counted().WireSent
	carry(t, a, b, even(4095), func(rest int) int { return rest })
	if c := a.Counted(); tries.tries != before || c.WireSent != wire+4095+headerSize {
		t.Errorf("%d bytes travel for a short message, which was tried %d times", c.WireSent-wire, tries.tries-before)
	}
}

// TestPauses: what does not become smaller is tried less and less, costs only headers, and once it
// becomes smaller that is found.
func TestPauses(t *testing.T) {
	x, y := linktest.Pair(2 << 20)
	a, b, tries := pair(x, y, 4096)
	r := rand.New(rand.NewPCG(1, 1))
	noise := random(r, 1<<20)
	const rounds = 64
	for range rounds {
		carry(t, a, b, noise, func(rest int) int { return rest })
	}
	// 256 KiB, 512 KiB, ... 16 MiB are passed after tries of at most 192 KiB.
	if c := a.Counted(); tries.tries > 10 || tries.bytes > rounds<<20/32 || c.WireSent > c.Sent+c.Sent/1000 {
		t.Errorf("%d tries of %d bytes in all, %d bytes travel for %d", tries.tries, tries.bytes, c.WireSent, c.Sent)
	}
	before := a.Counted()
	for range 32 {
		carry(t, a, b, even(1<<20), func(rest int) int { return rest })
	}
	if c := a.Counted(); c.WireSent-before.WireSent > 20<<20 {
		t.Errorf("%d bytes travel for 32 MiB that can be compressed", c.WireSent-before.WireSent)
	}
}

// TestHeldByte: a link below that is full in the midst of a compressed frame has the user call
// again, and the last byte of the block counts only then.
func TestHeldByte(t *testing.T) {
	x, y := linktest.Pair(100)
	a, b, _ := pair(x, y, 16)
	data := even(100_000)
	n, err := a.Send([][]byte{data})
	if n != len(data)-1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	more := append(data[n:len(data):len(data)], "xyz"...) // the byte that is left, and others
	got, in := []byte{}, make([]byte, 1<<17)
	for len(got) < len(data)+3 {
		if len(more) > 0 {
			n, err := a.Send([][]byte{more})
			if err != nil {
				t.Fatal(err)
			}
			more = more[n:]
		}
		n, err := b.Recv([][]byte{in})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, in[:n]...)
	}
	if string(got) != string(data)+"xyz" {
		t.Error("other bytes have come")
	}
}

// TestUrgent: users may put slices before those of which nothing is taken, as agents do with
// acknowledgements.
func TestUrgent(t *testing.T) {
	for seed := range uint64(soak.Size(20, 60)) {
		r := rand.New(rand.NewPCG(seed, 2))
		x, y := linktest.Pair(1 + r.IntN(500))
		a, b, _ := pair(x, y, 1+r.IntN(40))
		var queue [][]byte
		var want, got []byte
		in, mid := make([]byte, 1000), false
		for i := 0; i < 1_000_000 && (i < 1000 || len(queue) > 0 || len(got) < len(want)); i++ {
			if i < 1000 {
				piece := even(1 + r.IntN(300>>r.IntN(9)))
				at := len(queue)
				if r.IntN(4) == 0 {
					at = min(1, at)
					if !mid {
						at = 0
					}
					piece = bytes.ToUpper(piece)
				}
				queue = slices.Insert(queue, at, piece)
			}
			n, err := a.Send(queue)
			if err != nil {
				t.Fatal(err)
			}
			for n > 0 {
				k := min(n, len(queue[0]))
				want, n, mid = append(want, queue[0][:k]...), n-k, true
				if queue[0] = queue[0][k:]; len(queue[0]) == 0 {
					queue, mid = queue[1:], false
				}
			}
			for n = 1; n > 0; {
				if n, err = b.Recv([][]byte{in}); err != nil {
					t.Fatal(err)
				}
				got = append(got, in[:n]...)
			}
		}
		if len(queue) > 0 || !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %d bytes have come, %d were taken, %d slices are left", seed, len(got), len(want), len(queue))
		}
	}
}

// TestBuffered: what a poll set does not see is said, and can be had without the link below.
func TestBuffered(t *testing.T) {
	x, y := linktest.Pair(1 << 20)
	a, b, _ := pair(x, y, 16)
	a.Send([][]byte{even(10_000)})
	a.Send([][]byte{[]byte("abc")})
	in := make([]byte, 6000)
	if n, err := b.Recv([][]byte{in}); n != 6000 || err != nil || !b.Buffered() || !b.Arm(link.Readable) {
		t.Fatalf("%d, %v, buffered: %t", n, err, b.Buffered())
	}
	a.Send([][]byte{[]byte("later")})
	b.ReadBufferedOnly()
	if n, err := b.Recv([][]byte{in}); n != 4003 || err != nil || b.Buffered() {
		t.Fatalf("%d, %v, buffered: %t", n, err, b.Buffered())
	}
	if n, err := b.Recv([][]byte{in}); n != 5 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
}

// Any goroutine may call Close while the one that receives is about to sleep. The race detector
// sees what the two share; neither end needs memory for what it does here.
func TestCloseWhileArming(t *testing.T) {
	x, y := linktest.Pair(1 << 20)
	a, b, _ := pair(x, y, 0)
	if _, err := a.Send([][]byte{[]byte("a frame")}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Recv([][]byte{make([]byte, 1)}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.Close()
	}()
	for range 100 {
		if !b.Arm(link.Readable) {
			t.Fatal("Arm says that nothing can be received, and either data or the end can be")
		}
	}
	<-done
	if !b.Buffered() {
		t.Error("Recv would return ErrClosed, and nothing is buffered")
	}
}

// TestMalformed: what is no frame ends the link, with an error that says what and where, which
// stays.
func TestMalformed(t *testing.T) {
	packed := new(deflate).Compress(nil, even(1000))
	whole := func(f frame, body []byte) []byte {
		b := make([]byte, headerSize)
		f.put(b)
		return append(b, body...)
	}
	bent := bytes.Clone(packed)
	bent[len(bent)/2] ^= 0x55
	for name, c := range map[string]struct {
		bytes []byte
		end   bool
		want  string
	}{
		"a header":           {[]byte{9, 9, 9, 9, 9, 9, 9, 9}, false, "frame at byte 0: version 9, not 1"},
		"after a frame":      {append(whole(frame{false, 3, 3}, []byte("abc")), 1, 7, 0, 0, 0, 0, 0, 0), false, "frame at byte 11: kind 7"},
		"gives less":         {whole(frame{true, 1001, len(packed)}, packed), false, "frame at byte 0: 1001 bytes compressed to"},
		"gives more":         {whole(frame{true, 999, len(packed)}, packed), false, errLonger.Error()},
		"bent":               {whole(frame{true, 1000, len(bent)}, bent), false, "frame at byte 0: 1000 bytes compressed to"},
		"ends in a header":   {append(whole(frame{false, 3, 3}, []byte("abc")), 1, 1), true, "frame at byte 11: the link has ended within it"},
		"ends in a body":     {whole(frame{true, 1000, len(packed)}, packed[:4]), true, "frame at byte 0: the link has ended within it"},
		"ends in plain ones": {whole(frame{false, 4, 4}, []byte("abc")), true, "frame at byte 0: the link has ended within it"},
	} {
		x, y := linktest.Pair(1 << 20)
		b := New(y, Config{new(deflate), 1})
		x.Send([][]byte{c.bytes})
		if c.end {
			x.CloseSend()
		}
		var err error
		for range 5 {
			if _, err = b.Recv([][]byte{make([]byte, 5000)}); err != nil {
				break
			}
		}
		if !errors.Is(err, ErrFrame) || !errors.Is(err, link.ErrBroken) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if _, again := b.Recv([][]byte{make([]byte, 1)}); fmt.Sprint(again) != fmt.Sprint(err) {
			t.Errorf("%s: then %v", name, again)
		}
	}
}

// TestErrorsOfTheLinkBelow are those of the link, after what has come before.
func TestErrorsOfTheLinkBelow(t *testing.T) {
	x, y := linktest.Pair(1 << 20)
	a, b, _ := pair(x, y, 16)
	a.Send([][]byte{even(5000)})
	in := make([]byte, 1000)
	if n, err := b.Recv([][]byte{in}); n != 1000 || err != nil {
		t.Fatal(n, err)
	}
	why := errors.New("a cable")
	x.(*linktest.End).Break(why)
	if n, err := b.Recv([][]byte{make([]byte, 9000)}); n != 4000 || err != nil {
		t.Errorf("%d, %v; what has come before is to be delivered", n, err)
	}
	for range 2 {
		if n, err := b.Recv([][]byte{in}); n != 0 || !errors.Is(err, why) {
			t.Errorf("%d, %v", n, err)
		}
	}
	if n, err := a.Send([][]byte{even(5000)}); n != 4999 || err != nil { // compressed, before the link below is seen
		t.Errorf("%d, %v", n, err)
	}
	for range 2 {
		if n, err := a.Send([][]byte{even(5000)}); n != 0 || !errors.Is(err, why) {
			t.Errorf("%d, %v", n, err)
		}
	}
	b.Close()
	if _, err := b.Recv([][]byte{in}); !errors.Is(err, link.ErrClosed) {
		t.Error(err)
	}
}

// nothing is a codec that allocates nothing.
type nothing struct{}

func (nothing) Compress(dst, src []byte) []byte { return append(dst, src[0], src[len(src)-1]) }

func (nothing) Decompress(dst, src []byte) error {
	for i := range dst {
		dst[i] = src[0]
	}
	return nil
}

// TestNoAllocations: once the memory of a link is there it takes no more.
func TestNoAllocations(t *testing.T) {
	x, y := linktest.Pair(1 << 20)
	a, b := New(x, Config{nothing{}, 1000}), New(y, Config{nothing{}, 1000})
	long, short, in := make([]byte, 100_000), make([]byte, 100), make([]byte, 200_000)
	batch, room := [][]byte{nil, nil}, [][]byte{nil}
	round := func() {
		batch[0], batch[1] = short, long
		a.Send(batch)
		batch[0], batch[1] = short[:50], short
		a.Send(batch)
		for got := 0; got < 100_250; {
			room[0] = in
			n, err := b.Recv(room)
			if err != nil || n == 0 {
				t.Fatal(n, err)
			}
			got += n
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
