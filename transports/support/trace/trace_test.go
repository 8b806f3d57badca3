package trace_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/watchdog"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/support/trace"
	"github.com/openimpi/impi/transports/tcp"
)

func host(last byte) (h wire.HostID) {
	copy(h[10:], []byte{0xff, 0xff, 192, 0, 2, last})
	return h
}

// packet is a header as bytes, with data behind it.
func packet(p wire.Packet, data string) []byte {
	b := make([]byte, wire.HeaderSize)
	p.Src, p.Dest = wire.Proc{Host: host(1), PID: 11}, wire.Proc{Host: host(2), PID: 22}
	wire.Published.PutHeader(b, &p)
	return append(b, data...)
}

// conversation has a packet of each type. The header-only ones claim to have
// data, as those of peers in the field do.
func conversation() (stream []byte, lines []string) {
	who := " 192.0.2.1/11->192.0.2.2/22"
	for _, c := range []struct {
		p    wire.Packet
		data string
		line string
	}{
		{wire.Packet{Type: wire.PkData, Len: 5, MsgLen: 5, Tag: 42, LSRank: 3, Context: 9, SrcReq: 1}, "hello",
			"DATA" + who + " srqid=1 msglen=5 len=5 lsrank=3 tag=42 cid=9"},
		{wire.Packet{Type: wire.PkData}, "", "DATA" + who + " srqid=0 msglen=0 len=0 lsrank=0 tag=0 cid=0"},
		{wire.Packet{Type: wire.PkDataSync, Len: 300, MsgLen: 1000, Tag: -1, SrcReq: 9}, strings.Repeat("\xff", 300),
			"DATASYNC" + who + " srqid=9 msglen=1000 len=300 lsrank=0 tag=-1 cid=0"},
		{wire.Packet{Type: wire.PkSyncAck, Len: 128, SrcReq: 9, DestReq: 85}, "", "SYNCACK" + who + " srqid=9 drqid=85"},
		{wire.Packet{Type: wire.PkProtoAck, Len: 128}, "", "PROTOACK" + who},
		{wire.Packet{Type: wire.PkCancel, SrcReq: 7}, "", "CANCEL" + who + " srqid=7"},
		{wire.Packet{Type: wire.PkCancelYes, SrcReq: 7}, "", "CANCELYES" + who + " srqid=7"},
		{wire.Packet{Type: wire.PkCancelNo, SrcReq: 7}, "", "CANCELNO" + who + " srqid=7"},
		{wire.Packet{Type: wire.PkFini, Len: 128}, "", "FINI"},
	} {
		stream = append(stream, packet(c.p, c.data)...)
		lines = append(lines, c.line)
	}
	return stream, lines
}

// pass sends stream through a chopped, traced link and returns what came out,
// with the lines of both directions: an end traced as "s" sends, "r" receives.
func pass(t *testing.T, stream []byte, size func() int, opts ...trace.Option) (got []byte, lines []string) {
	t.Helper()
	var w bytes.Buffer
	a, b := linktest.Pair(1000)
	from := trace.Link(linktest.Chop(a, size), "s", &w, opts...)
	to := trace.Link(linktest.Chop(b, size), "r", &w, opts...)
	for {
		if len(stream) > 0 {
			n, err := from.Send([][]byte{stream[:len(stream)/2], stream[len(stream)/2:]})
			if err != nil {
				t.Fatal(err)
			}
			stream = stream[n:]
		} else if err := from.CloseSend(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 400)
		n, err := to.Recv([][]byte{buf[:100], buf[100:]})
		got = append(got, buf[:n]...)
		if err == io.EOF {
			return got, strings.Split(strings.TrimSuffix(w.String(), "\n"), "\n")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// only are the lines that begin with prefix, without it.
func only(lines []string, prefix string) (some []string) {
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, prefix); ok {
			some = append(some, rest)
		}
	}
	return some
}

func expect(t *testing.T, what string, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPacketsWhateverTheCuts(t *testing.T) {
	stream, want := conversation()
	want = append(want, "end of stream")
	rng := rand.New(rand.NewPCG(1, 2))
	for name, size := range map[string]func() int{
		"whole":        func() int { return 1 << 20 },
		"single bytes": func() int { return 1 },
		"headers":      func() int { return wire.HeaderSize },
		"random":       func() int { return rng.IntN(300) },
	} {
		got, lines := pass(t, stream, size)
		if !bytes.Equal(got, stream) {
			t.Errorf("%s: the trace has changed the bytes", name)
		}
		expect(t, name+", sent", only(lines, "s -> "), want)
		expect(t, name+", received", only(lines, "r <- "), want)
		if len(lines) != 2*len(want) {
			t.Errorf("%s: %d lines", name, len(lines))
		}
	}
}

func TestForeignStreamIsReportedOnce(t *testing.T) {
	stream, want := conversation()
	all := append(append([]byte(nil), stream...), "AUTH and 200 bytes more of what is not IMPI"...)
	all = append(all, make([]byte, 200)...)
	got, lines := pass(t, all, func() int { return 50 })
	if !bytes.Equal(got, all) {
		t.Error("the trace has changed the bytes")
	}
	n := len(stream)
	want = append(want, "not IMPI at byte "+strconv.Itoa(n)+": 41 55 54 48; nothing more of this direction is shown", "end of stream")
	expect(t, "sent", only(lines, "s -> "), want)
	expect(t, "received", only(lines, "r <- "), want)
}

func TestTruncatedStream(t *testing.T) {
	data := packet(wire.Packet{Type: wire.PkData, Len: 5}, "hello")
	for cut, want := range map[int]string{
		1:                   "end of stream, inside a header: 1 of 128 bytes",
		100:                 "end of stream, inside a header: 100 of 128 bytes",
		wire.HeaderSize + 2: "end of stream, 3 bytes of data missing",
		len(data):           "end of stream",
	} {
		_, lines := pass(t, data[:cut], func() int { return 1000 })
		if received := only(lines, "r <- "); received[len(received)-1] != want {
			t.Errorf("cut at %d: %q, want %q", cut, received[len(received)-1], want)
		}
	}
}

func TestGreetingIsSkipped(t *testing.T) {
	stream, want := conversation()
	all := append([]byte{0, 0, 0, 1}, stream...)
	_, lines := pass(t, all, func() int { return 3 }, trace.Greeting(4, 0))
	expect(t, "sent", only(lines, "s -> "), append(append([]string{"greeting 00000001"}, want...), "end of stream"))
}

// A tag of the draft fills the eight bytes in which others have pk_lsrank too.
func TestDraftHeaders(t *testing.T) {
	b := make([]byte, wire.HeaderSize)
	wire.Draft.PutHeader(b, &wire.Packet{Type: wire.PkData, Tag: -3, SrcReq: 1})
	for dialect, want := range map[wire.Dialect]string{
		wire.Draft:     "lsrank=0 tag=-3 cid=0",
		wire.Published: "lsrank=-1 tag=-3 cid=0",
	} {
		_, lines := pass(t, b, func() int { return 1000 }, trace.Dialect(dialect))
		if !strings.HasSuffix(lines[0], want) {
			t.Errorf("dialect %d: %q, want %q", dialect, lines[0], want)
		}
	}
}

func TestErrorIsShownOnce(t *testing.T) {
	var w bytes.Buffer
	a, _ := linktest.Pair(10)
	l := trace.Link(a, "x", &w)
	a.(*linktest.End).Break(io.ErrUnexpectedEOF)
	for range 3 {
		l.Send([][]byte{{1}})
		l.Recv([][]byte{{1}})
	}
	want := "x -> link is broken: unexpected EOF\nx <- link is broken: unexpected EOF\n"
	if w.String() != want {
		t.Errorf("trace:\n%swant:\n%s", &w, want)
	}
}

type badWriter struct{}

func (badWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestBrokenSinkDisturbsNothing(t *testing.T) {
	a, b := linktest.Pair(1000)
	stream := packet(wire.Packet{Type: wire.PkProtoAck}, "")
	if n, err := trace.Link(a, "x", badWriter{}).Send([][]byte{stream}); n != len(stream) || err != nil {
		t.Errorf("Send gives %d, %v", n, err)
	}
	if n, err := b.Recv([][]byte{make([]byte, 1000)}); n != len(stream) || err != nil {
		t.Errorf("Recv gives %d, %v", n, err)
	}
}

type filling struct{ link.Link }

func (filling) Recall() {}

// A link that fills memory by itself is one with a trace, too.
func TestRecaller(t *testing.T) {
	var plain link.Link
	for _, l := range []link.Link{plain, filling{}} {
		_, want := l.(link.Recaller)
		if _, is := trace.Link(l, "x", io.Discard).(link.Recaller); is != want {
			t.Errorf("%T can recall memory: %v", l, is)
		}
	}
}

func TestWrappedTransport(t *testing.T) {
	var w bytes.Buffer
	tr := trace.Wrap(tcp.New(), &w, trace.Greeting(4, 2))
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
	b, err := ln.Accept(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, ok := a.(transports.Socket); ok {
		t.Error("the link offers its descriptor, on which nothing would be traced")
	}
	ack := packet(wire.Packet{Type: wire.PkProtoAck}, "")
	a.Send([][]byte{{0, 0, 0, 1}, ack})
	b.Send([][]byte{{7, 7}, ack})
	shown := "PROTOACK 192.0.2.1/11->192.0.2.2/22"
	want := []string{
		"tcp#1 to " + ln.Address() + " -> greeting 00000001",
		"tcp#1 to " + ln.Address() + " -> " + shown,
		"tcp#2 at " + ln.Address() + " -> greeting 0707",
		"tcp#2 at " + ln.Address() + " -> " + shown,
	}
	expect(t, "trace", strings.Split(strings.TrimSpace(w.String()), "\n"), want)
	if c := tr.Capabilities(); len(c.DataPlanes) != 1 || c.DataPlanes[0] != transports.PlaneStream || !c.Has(transports.FeatureIPChannelIfAsked) {
		t.Errorf("capabilities %+v", c)
	}
}

// Any bytes in any pieces: nothing fails, and the pieces make no difference.
func FuzzTrace(f *testing.F) {
	stream, _ := conversation()
	f.Add(stream, 7)
	f.Add([]byte("AUTH"), 1)
	f.Add(append(stream[:200:200], "rubbish"...), 128)
	f.Fuzz(func(t *testing.T, stream []byte, piece int) {
		defer watchdog.Start()()
		if piece < 1 || len(stream) > 100000 {
			return
		}
		got, whole := pass(t, stream, func() int { return 1 << 20 })
		if !bytes.Equal(got, stream) {
			t.Fatal("the trace has changed the bytes")
		}
		_, cut := pass(t, stream, func() int { return piece })
		for _, side := range []string{"s -> ", "r <- "} {
			expect(t, side, only(cut, side), only(whole, side))
		}
	})
}
