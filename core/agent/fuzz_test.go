package agent

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/watchdog"
)

// fuzzJob has local procs 0 and 1, and procs 2 and 3 on the foreign host 1.
func fuzzJob(chunk int) Config {
	c := job(0, 2, 2)
	c.MaxData, c.AckMark, c.HiWater, c.ChunkSize = 300, 2, 6, chunk
	return c
}

// judge is the agent's rules once more, as plainly as possible: it says what each
// local proc gets of what the host sends, and whether the host goes too far.
func judge(c Config, b []byte) (out [2][]byte, bad bool, finis int) {
	sent := map[[2]int]int{}
	for len(b) >= wire.HeaderSize {
		var p wire.Packet
		wire.Published.Header(b, &p)
		n := wire.HeaderSize
		if p.Type.HasData() {
			n += int(p.Len)
		}
		src, dest := -1, -1
		for i, x := range c.Procs.All() {
			if x.ID == p.Src {
				src = int(i)
			}
			if x.ID == p.Dest {
				dest = int(i)
			}
		}
		switch {
		case p.Type.HasData() && p.Len > c.MaxData, p.Type > wire.PkFini:
			return out, true, finis
		case finis > 0 && p.Type != wire.PkProtoAck:
			return out, true, finis
		case p.Type == wire.PkFini:
			finis++
			b = b[n:]
			continue
		case src < 2 || dest < 0 || dest > 1:
			return out, true, finis
		}
		pass := true
		if p.Type == wire.PkProtoAck {
			back := [2]int{dest, src}
			if pass = sent[back]-int(c.AckMark) >= -int(c.HiWater); pass {
				sent[back] -= int(c.AckMark)
			}
		} else if sent[[2]int{src, dest}]++; sent[[2]int{src, dest}] > int(c.HiWater) {
			return out, true, finis
		}
		if n > len(b) {
			break
		}
		if pass {
			out[dest] = append(out[dest], b[:n]...)
		}
		b = b[n:]
	}
	return out, false, finis
}

// sorted returns the packets of b with PROTOACKs, which may pass others, apart.
func sorted(b []byte) (data, acks []byte, rest int) {
	packets, left := cut(b)
	for _, p := range packets {
		if p[3] == byte(wire.PkProtoAck) {
			acks = append(acks, p...)
		} else {
			data = append(data, p...)
		}
	}
	return data, acks, len(left)
}

// compare feeds b to an agent as host 1 and holds the outcome against judge.
func compare(t *testing.T, b []byte, chunk, step int) {
	t.Helper()
	c := fuzzJob(chunk)
	r := newRig(t, c).attachAll()
	want, bad, finis := judge(c, b)
	err := r.feed(hostLink(1), b, step)
	if bad != (err != nil) || err != nil && !errors.Is(err, ErrProtocol) {
		t.Fatalf("error %v, want one: %v", err, bad)
	}
	for i := range want {
		data, acks, rest := sorted(r.take(procLink(i), everything))
		wantData, wantAcks, _ := sorted(want[i])
		if !bytes.Equal(data, wantData) || len(acks) != len(wantAcks) || rest != 0 {
			t.Fatalf("proc %d got %d+%d bytes, want %d+%d; %d are no packet", i, len(data), len(acks), len(wantData), len(wantAcks), rest)
		}
	}
	if r.HasOutput(hostLink(1)) {
		t.Fatal("something went back to the host")
	}
	r.Closed(hostLink(1), io.EOF)
	events := r.events()
	if died := events[max(0, len(events)-1):]; (bad || finis == 0) != (len(died) == 1 && died[0].Kind == HostDied) {
		t.Fatalf("events %v", events)
	}
	if m := r.Counts().Memory; m != 0 {
		t.Fatalf("%d bytes are still held", m)
	}
}

// typical is a stream with some of everything.
func typical(t testing.TB) []byte {
	r := newRig(t, fuzzJob(0))
	var b []byte
	for i, k := range []wire.PacketType{0, 2, 1, 3, 4, 2, 5, 0, 6, 0, 7, 2} {
		b = append(b, r.packet(k, 2+i%2, i/2%2, i*27, uint64(i))...)
	}
	return b
}

// FuzzReceived holds the agent against the plain rules, whatever the peer sends
// and however it is cut.
func FuzzReceived(f *testing.F) {
	b := typical(f)
	f.Add(b, uint16(0), uint16(1))
	f.Add(b, uint16(700), uint16(99))
	f.Add(append(b[:128:128], b...), uint16(9000), uint16(60000))
	for _, at := range []int{3, 4, 7, 31, 40, 55} {
		x := bytes.Clone(b)
		x[at] ^= 0x40
		f.Add(x, uint16(44), uint16(500))
	}
	f.Fuzz(func(t *testing.T, b []byte, chunk, step uint16) {
		defer watchdog.Start()()
		compare(t, b, minChunkSize+int(chunk), 1+int(step))
	})
}

// TestBitFlips flips each bit of the headers of a stream.
func TestBitFlips(t *testing.T) {
	b := typical(t)
	at := 0
	packets, _ := cut(b)
	for _, p := range packets {
		for i := range wire.HeaderSize * 8 {
			x := bytes.Clone(b)
			x[at+i/8] ^= 1 << (i % 8)
			compare(t, x, 400, 333)
		}
		at += len(p)
	}
}

// TestPrefixes ends a stream at each place: the peer died, and if that was in the
// middle of a packet the event says so.
func TestPrefixes(t *testing.T) {
	b := typical(t)
	packets, _ := cut(b)
	borders := map[int]bool{0: true}
	at, fini := 0, 0
	for _, p := range packets {
		at += len(p)
		borders[at] = true
		if p[3] == byte(wire.PkFini) {
			fini = at
		}
	}
	for n := range fini {
		compare(t, b[:n], 256, 1000)
		r := newRig(t, fuzzJob(0)).attachAll()
		r.must(r.feed(hostLink(1), b[:n], everything))
		r.Closed(hostLink(1), nil)
		e := r.wantEvents("closed early", HostDied)[0]
		if errors.Is(e.Err, ErrTruncated) == borders[n] || errors.Is(e.Err, io.EOF) != borders[n] {
			t.Fatalf("after %d bytes: %v", n, e)
		}
	}
}
