package trace_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/support/trace"
	"github.com/openimpi/impi/transports/tcp"
)

// pcapFile is a pcapng file, read by what the standard says and not by what we
// write.
type pcapFile struct {
	sections []map[uint16]string
	links    []pcapInterface // of all sections
	records  []pcapRecord
}

type pcapInterface struct {
	linkType uint16
	snap     uint32
	options  map[uint16]string
}

type pcapRecord struct {
	network   uint32
	at        time.Time
	direction uint32
	original  uint32
	blob      []byte // captured
}

func readPcap(t testing.TB, file []byte) (f pcapFile) {
	t.Helper()
	le := binary.LittleEndian
	base := 0 // interfaces of earlier sections
	for len(file) > 0 {
		typ, n := le.Uint32(file), le.Uint32(file[4:])
		if n%4 != 0 || n < 12 || int(n) > len(file) || le.Uint32(file[n-4:]) != n {
			t.Fatalf("block of type %x: length %d with %d bytes left", typ, n, len(file))
		}
		body := file[8 : n-4]
		file = file[n:]
		switch typ {
		case 0x0a0d0d0a:
			if le.Uint32(body) != 0x1a2b3c4d || le.Uint16(body[4:]) != 1 {
				t.Fatalf("section header % x", body[:16])
			}
			f.sections = append(f.sections, pcapOptions(t, body[16:]))
			base = len(f.links)
		case 1:
			f.links = append(f.links, pcapInterface{le.Uint16(body), le.Uint32(body[4:]), pcapOptions(t, body[8:])})
		case 6:
			captured := le.Uint32(body[12:])
			r := pcapRecord{
				network:  uint32(base) + le.Uint32(body),
				at:       time.Unix(0, int64(uint64(le.Uint32(body[4:]))<<32|uint64(le.Uint32(body[8:])))),
				original: le.Uint32(body[16:]),
				blob:     body[20 : 20+captured],
			}
			options := pcapOptions(t, body[20+(captured+3)/4*4:])
			r.direction = le.Uint32([]byte(options[2]))
			if int(r.network) >= len(f.links) || captured > f.links[r.network].snap {
				t.Fatalf("packet of %d bytes on interface %d of %d", captured, r.network, len(f.links))
			}
			f.records = append(f.records, r)
		default:
			t.Fatalf("block of type %x", typ)
		}
	}
	return f
}

func pcapOptions(t testing.TB, b []byte) map[uint16]string {
	t.Helper()
	m := map[uint16]string{}
	for {
		code, n := binary.LittleEndian.Uint16(b), int(binary.LittleEndian.Uint16(b[2:]))
		if code == 0 {
			if len(b) != 4 {
				t.Fatalf("%d bytes after the options", len(b)-4)
			}
			return m
		}
		m[code] = string(b[4 : 4+n])
		b = b[4+(n+3)/4*4:]
	}
}

// show returns a record as text: direction, ranks, offset, and what it holds.
func (r pcapRecord) show() string {
	be := binary.BigEndian
	head, rest := r.blob[:24], r.blob[24:]
	s := fmt.Sprintf("%d %c %d->%d @%d ", r.network, " <>"[r.direction], int32(be.Uint32(head[8:])), int32(be.Uint32(head[12:])), be.Uint64(head[16:]))
	switch head[5] {
	case 0:
		var p wire.Packet
		wire.Dialect(head[6]).Header(rest, &p)
		return s + fmt.Sprintf("%v +%d of %d", &p, len(rest)-wire.HeaderSize, int(r.original)-24-wire.HeaderSize)
	case 1:
		return s + fmt.Sprintf("greeting %x", rest)
	}
	return s + string(rest)
}

func ranks(p wire.Proc) (int, bool) {
	switch p.PID {
	case 11:
		return 0, true
	case 22:
		return 3, true
	}
	return 0, false
}

func TestCaptureHasEveryPacket(t *testing.T) {
	stream, lines := conversation()
	all := append([]byte{0, 0, 0, 1}, stream...)
	for name, size := range map[string]int{"whole": 1 << 20, "single bytes": 1, "some": 77} {
		var file bytes.Buffer
		c := trace.NewCapture(&file, "rank 0")
		before := time.Now()
		between := []trace.Option{trace.Ranks(ranks), trace.Between(0, 3), trace.Greeting(4, 0)}
		got := through(t, all, func() int { return size }, func(a, b link.Link) (link.Link, link.Link) {
			return c.Link(a, "the way there", between...), b
		})
		if !bytes.Equal(got, all) {
			t.Errorf("%s: the capture has changed the bytes", name)
		}
		f := readPcap(t, file.Bytes())
		if len(f.sections) != 1 || f.sections[0][1] != "rank 0" || len(f.links) != 1 ||
			f.links[0].options[2] != "the way there" || f.links[0].linkType != 147 || f.links[0].options[9] != "\x09" {
			t.Fatalf("%s: sections %v, interfaces %+v", name, f.sections, f.links)
		}
		want := []string{"0 > 0->3 @0 greeting 00000001"}
		at := 4
		for _, l := range lines {
			n := dataOf(l)
			who := "0->3"
			want = append(want, fmt.Sprintf("0 > %s @%d %s +%d of %d", who, at, l, n, n))
			at += wire.HeaderSize + n
		}
		want = append(want, fmt.Sprintf("0 > 0->3 @%d end of stream", at))
		var shown []string
		for _, r := range f.records {
			shown = append(shown, r.show())
			if r.at.Before(before) || r.at.After(time.Now()) {
				t.Errorf("%s: a packet of %v", name, r.at)
			}
			before = r.at
		}
		expect(t, name, shown, want)
	}
}

// dataOf is the len in a line that has one, or 0.
func dataOf(line string) (n int) {
	if _, rest, ok := strings.Cut(line, " len="); ok {
		fmt.Sscan(rest, &n)
	}
	return n
}

// through sends stream through a chopped link whose ends wrap has wrapped.
func through(t *testing.T, stream []byte, size func() int, wrap func(a, b link.Link) (link.Link, link.Link)) (got []byte) {
	t.Helper()
	a, b := linktest.Pair(1000)
	from, to := wrap(linktest.Chop(a, size), linktest.Chop(b, size))
	for {
		if len(stream) > 0 {
			n, err := from.Send([][]byte{stream})
			if err != nil {
				t.Fatal(err)
			}
			stream = stream[n:]
		} else if err := from.CloseSend(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 400)
		n, err := to.Recv([][]byte{buf})
		got = append(got, buf[:n]...)
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestCaptureKeepsOnlySnap(t *testing.T) {
	var file bytes.Buffer
	c := trace.NewCapture(&file, "")
	stream := packet(wire.Packet{Type: wire.PkData, Len: 300, MsgLen: 300}, strings.Repeat("d", 300))
	through(t, stream, func() int { return 90 }, func(a, b link.Link) (link.Link, link.Link) {
		return a, c.Link(b, "b", trace.Snap(100))
	})
	f := readPcap(t, file.Bytes())
	if len(f.records) != 2 || len(f.records[0].blob) != 24+128+100 || f.records[0].original != 24+128+300 || f.records[0].direction != 1 {
		t.Errorf("records %+v", f.records)
	}
}

// A proc that dies in the middle of a packet leaves a file that is whole, with
// all that had passed.
func TestCaptureOfPacketThatNeverEnds(t *testing.T) {
	var file bytes.Buffer
	c := trace.NewCapture(&file, "")
	a, b := linktest.Pair(1000)
	to := c.Link(b, "b")
	stream := packet(wire.Packet{Type: wire.PkProtoAck}, "")
	stream = append(stream, packet(wire.Packet{Type: wire.PkData, Len: 300, MsgLen: 300}, "only this")...)
	a.Send([][]byte{stream})
	to.Recv([][]byte{make([]byte, 1000)})
	if f := readPcap(t, file.Bytes()); len(f.records) != 1 {
		t.Fatalf("while the packet passes: %d records", len(f.records))
	}
	a.(*linktest.End).Break(io.ErrUnexpectedEOF)
	to.Recv([][]byte{make([]byte, 1000)})
	f := readPcap(t, file.Bytes())
	if len(f.records) != 3 || !strings.HasSuffix(f.records[1].show(), "+9 of 300") ||
		!strings.HasSuffix(f.records[2].show(), "unexpected EOF, 291 bytes of data missing") {
		for _, r := range f.records {
			t.Error(r.show())
		}
	}
}

// shortWriter fails from some byte on, as a full disk does.
type shortWriter struct {
	bytes.Buffer
	room int
}

func (w *shortWriter) Write(p []byte) (int, error) {
	if len(p) > w.room {
		return 0, io.ErrShortWrite
	}
	w.room -= len(p)
	return w.Buffer.Write(p)
}

func TestFullDiskEndsTheCaptureAndNothingElse(t *testing.T) {
	w := &shortWriter{room: 1000}
	c := trace.NewCapture(w, "")
	stream, _ := conversation()
	got := through(t, stream, func() int { return 1 << 20 }, func(a, b link.Link) (link.Link, link.Link) { return c.Link(a, "a"), b })
	if !bytes.Equal(got, stream) {
		t.Error("the bytes did not arrive")
	}
	w.room = 1 << 20
	c.Link(&linktest.End{}, "later") // the file must not go on with a gap
	if f := readPcap(t, w.Bytes()); len(f.links) != 1 || len(f.records) == 0 {
		t.Errorf("%d interfaces, %d records", len(f.links), len(f.records))
	}
}

func TestSectionsFollowEachOther(t *testing.T) {
	var file bytes.Buffer
	for _, run := range []string{"first", "second"} {
		c := trace.NewCapture(&file, run)
		for _, name := range []string{"x", "y"} {
			a, _ := linktest.Pair(1000)
			c.Link(a, run+" "+name).Send([][]byte{packet(wire.Packet{Type: wire.PkProtoAck}, "")})
		}
	}
	f := readPcap(t, file.Bytes())
	var shown []string
	for _, r := range f.records {
		shown = append(shown, f.links[r.network].options[2])
	}
	expect(t, "interfaces of the packets", shown, []string{"first x", "first y", "second x", "second y"})
}

func TestCapturedTransport(t *testing.T) {
	var file bytes.Buffer
	c := trace.NewCapture(&file, "")
	tr := c.Wrap(tcp.New(), trace.Greeting(4, 2), trace.Between(7, 8))
	ln, err := tr.Listen(t.Context(), transports.ListenSpec{Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err := tr.Dial(t.Context(), transports.DialSpec{Address: ln.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := ln.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	a.Send([][]byte{{0, 0, 0, 1}})
	b.Send([][]byte{{7, 7}})
	f := readPcap(t, file.Bytes())
	var shown []string
	for _, r := range f.records {
		shown = append(shown, f.links[r.network].options[2]+" "+r.show())
	}
	expect(t, "records", shown, []string{
		"tcp#1 to " + ln.Address() + " 0 > 7->8 @0 greeting 00000001",
		"tcp#2 at " + ln.Address() + " 1 > 8->7 @0 greeting 0707",
	})
}

// Any bytes in any pieces leave a file that can be read.
func FuzzCapture(f *testing.F) {
	stream, _ := conversation()
	f.Add(stream, 7, 100)
	f.Add([]byte("AUTH"), 1, 0)
	f.Add(append(stream[:200:200], "rubbish"...), 128, 3)
	f.Fuzz(func(t *testing.T, stream []byte, piece, snap int) {
		if piece < 1 || len(stream) > 20000 {
			return
		}
		var file bytes.Buffer
		c := trace.NewCapture(&file, "fuzz")
		got := through(t, stream, func() int { return piece }, func(a, b link.Link) (link.Link, link.Link) {
			return c.Link(a, "a", trace.Snap(min(snap, 1<<20))), c.Link(b, "b", trace.Dialect(wire.Draft))
		})
		if !bytes.Equal(got, stream) {
			t.Fatal("the capture has changed the bytes")
		}
		readPcap(t, file.Bytes())
	})
}
