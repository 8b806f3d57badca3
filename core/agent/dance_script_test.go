package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/watchdog"
)

// TestDanceScripts plays the dialogues of testdata/dance. The hosts have the
// addresses 10.0.0.<rank>:5000.
//
//	hosts self=1 n=3 [skip=(0,2)] [proves=(0,2)] [deadline=seconds] [by=seconds, of all hosts] [also=host rank:prefix]
//	dials
//	dialed conn=7 host=0 | failed host=0 | silent host=0 | connected host=0
//	accepted conn=7 [from=host rank] [mapped]
//	input conn=7 00 00 00 02 ...
//	admits conn=7 host=2 | proven conn=7 host=2 | brought conn=7 host=2
//	closed conn=7
//	tick seconds
//	missing
func TestDanceScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/dance", func(t *testing.T, path string) {
		s := &danceScript{}
		datadriven.RunTest(t, path, s.run)
	})
}

type danceScript struct{ *Dance }

func danceHosts(n int) (all []DanceHost) {
	for h := range n {
		all = append(all, DanceHost{Address: wire.HostID{12: 10, 15: byte(h)}, Port: 5000})
	}
	return all
}

func instant(seconds int) time.Time { return time.Unix(1000+int64(seconds), 0) }

func (s *danceScript) run(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	if err := s.command(t, d, &out); err != nil {
		fmt.Fprintf(&out, "error: %v\n", err)
		return out.String()
	}
	for x, ok := s.Next(); ok; x, ok = s.Next() {
		switch x.Kind {
		case Joined:
			fmt.Fprintf(&out, "joined: conn %d is host %d\n", x.Conn, x.Host)
		case Refuse:
			fmt.Fprintf(&out, "refuse: conn %d: %v\n", x.Conn, x.Err)
		case Prove:
			fmt.Fprintf(&out, "prove: conn %d\n", x.Conn)
		case Complete:
			fmt.Fprintln(&out, x.Kind)
		case TimedOut, Unreachable:
			fmt.Fprintf(&out, "%v: %v\n", x.Kind, x.Err)
		}
	}
	if out.Len() == 0 {
		return "ok\n"
	}
	return out.String()
}

func (s *danceScript) command(t *testing.T, d *datadriven.TestData, out *strings.Builder) (err error) {
	arg := func(key string) int { return append(ints(d, key), 0)[0] }
	switch d.Cmd {
	case "hosts":
		return s.hosts(d)
	case "dials":
		for _, x := range s.Dials() {
			fmt.Fprintf(out, "host %d at %v: say % x\n", x.Host, x.Address, x.Greeting)
		}
	case "dialed":
		s.Dialed(arg("conn"), wire.HostRank(arg("host")))
	case "failed":
		s.DialFailed(wire.HostRank(arg("host")), errors.New("connection refused"))
	case "silent":
		s.NoAnswer(wire.HostRank(arg("host")), errors.New("no route to host"))
	case "connected":
		s.Connected(wire.HostRank(arg("host")))
	case "accepted":
		var from wire.HostID
		if h := ints(d, "from"); len(h) > 0 {
			from = danceHosts(h[0] + 1)[h[0]].Address
		}
		if d.HasArg("mapped") {
			from[10], from[11] = 0xff, 0xff
		}
		s.Accepted(arg("conn"), from)
	case "input":
		var b []byte
		for _, a := range d.CmdArgs[1:] {
			v, _ := strconv.ParseUint(a.Key, 16, 8)
			b = append(b, byte(v))
		}
		fmt.Fprintf(out, "took %d", s.Input(arg("conn"), b))
		fmt.Fprintf(out, ", wants %d\n", s.MissingBytes(arg("conn")))
	case "admits":
		if v, err := s.Admits(arg("conn"), wire.HostRank(arg("host"))); err != nil {
			return fmt.Errorf("%v: %w", v, err)
		}
	case "proven":
		fmt.Fprintln(out, s.Proven(arg("conn"), wire.HostRank(arg("host"))))
	case "brought":
		fmt.Fprintln(out, s.ProvenElsewhere(arg("conn"), wire.HostRank(arg("host"))))
	case "closed":
		s.Closed(arg("conn"), nil)
	case "tick":
		n, _ := strconv.Atoi(d.CmdArgs[0].Key)
		s.Tick(instant(n))
	case "missing":
		fmt.Fprintf(out, "%v done=%v\n", s.Missing(), s.Done())
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return nil
}

func (s *danceScript) hosts(d *datadriven.TestData) (err error) {
	c := DanceConfig{Self: wire.HostRank(ints(d, "self")[0]), Hosts: danceHosts(ints(d, "n")[0])}
	for _, h := range ints(d, "proves") {
		c.Hosts[h].Proves = true
	}
	if arg, ok := d.Arg("also"); ok {
		h, prefix, _ := strings.Cut(arg.Vals[0], ":")
		rank, _ := strconv.Atoi(h)
		c.Hosts[rank].From = append(c.Hosts[rank].From, netip.MustParsePrefix(prefix))
	}
	for _, h := range ints(d, "skip") {
		c.Hosts[h].Skip = true
	}
	if at := ints(d, "by"); len(at) > 0 {
		for h := range c.Hosts {
			c.Hosts[h].By = instant(at[0])
		}
	}
	if at := ints(d, "deadline"); len(at) > 0 {
		c.Deadline = instant(at[0])
	}
	s.Dance, err = NewDance(c)
	return err
}

// TestDanceAll lets all hosts of a job dance with each other, connections
// arriving in an order that the seed decides.
func TestDanceAll(t *testing.T) {
	const n = 7
	dances := make([]*Dance, n)
	for h := range dances {
		d, err := NewDance(DanceConfig{Self: wire.HostRank(h), Hosts: danceHosts(n)})
		if err != nil {
			t.Fatal(err)
		}
		dances[h] = d
	}
	for h := n - 1; h >= 0; h-- { // highest first, so that nobody arrives in order
		for _, x := range dances[h].Dials() {
			conn := h*100 + int(x.Host)
			peer := dances[x.Host]
			peer.Accepted(conn, danceHosts(n)[h].Address)
			dances[h].Dialed(conn, x.Host)
			stream := append(x.Greeting[:], 0, 0, 0, 7) // a packet follows at once
			if k := peer.Input(conn, stream); k != GreetingSize {
				t.Fatalf("host %d took %d bytes", x.Host, k)
			}
		}
	}
	for h, d := range dances {
		joined := map[wire.HostRank]bool{}
		var last Step
		for s, ok := d.Next(); ok; s, ok = d.Next() {
			if s.Kind == Joined {
				joined[s.Host] = true
				if want := max(h, int(s.Host))*100 + min(h, int(s.Host)); s.Conn != want {
					t.Errorf("host %d filed conn %d under host %d", h, s.Conn, s.Host)
				}
			}
			last = s
		}
		if len(joined) != n-1 || last.Kind != Complete || !d.Done() || len(d.Missing()) > 0 {
			t.Errorf("host %d joined %v, last step %v", h, joined, last)
		}
	}
}

// FuzzDance lets anybody say anything: no rank joins twice but one that has proven
// itself again, nobody joins without the proof that is wanted, what is wrong is refused
// once, and nothing is both.
func FuzzDance(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 2, 0, 4, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{1, 0, 0, 0, 3, 3, 2, 0, 0, 0x82, 0x42})
	f.Add([]byte{0, 4, 0x49, 0x44, 0x4c, 1, 0xfe, 0, 3, 0xfe, 0, 3, 0, 4, 0, 0, 0, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		defer watchdog.Start()()
		hosts := danceHosts(6)
		hosts[0].Proves, hosts[3].Proves, hosts[4].Proves = true, true, true
		d, err := NewDance(DanceConfig{Self: 1, Hosts: hosts, Deadline: instant(9)})
		if err != nil {
			t.Fatal(err)
		}
		fate := map[int]StepKind{}
		joined := map[wire.HostRank]bool{}
		proven := fuzzDance(d, b)
		for s, ok := d.Next(); ok; s, ok = d.Next() {
			if s.Kind != Joined && s.Kind != Refuse {
				continue
			}
			if fate[s.Conn] != 0 {
				t.Fatalf("conn %d: %v after %v", s.Conn, s.Kind, fate[s.Conn])
			}
			fate[s.Conn] = s.Kind
			if s.Kind != Joined {
				continue
			}
			if joined[s.Host] && !hosts[s.Host].Proves || s.Host == 1 {
				t.Fatalf("host %d joined twice", s.Host)
			}
			if hosts[s.Host].Proves && s.Conn >= 0 && !proven[s.Conn] {
				t.Fatalf("conn %d is host %d without a proof", s.Conn, s.Host)
			}
			joined[s.Host] = true
		}
		if len(d.conns) > d.maxSilent() {
			t.Fatalf("%d silent connections", len(d.conns))
		}
	})
}

// fuzzDance reads b as a program for three dozen connections, and tells which have
// proven themselves.
func fuzzDance(d *Dance, b []byte) map[int]bool {
	next := 0
	proven := map[int]bool{}
	for len(b) > 0 {
		op := b[0]
		b = b[1:]
		switch {
		case op < 0x80 && op%8 == 0:
			d.Accepted(next, wire.HostID{12: 10, 15: op >> 3})
			next++
		case op < 0x80:
			n := min(int(op%8), len(b))
			k := d.Input(int(op/8), b[:n])
			b = b[max(k, min(1, n)):]
		case op < 0xc0:
			d.Closed(int(op-0x80), nil)
		case op == 0xff:
			d.Tick(instant(10))
		case op == 0xfe && len(b) > 1:
			conn, h := int(b[0]), wire.HostRank(int8(b[1]))
			proven[conn] = d.Proven(conn, h) || proven[conn]
			b = b[2:]
		default:
			d.Dialed(-1-next, wire.HostRank(int8(op)<<2>>2))
			next++
		}
	}
	return proven
}

// TestGreetingBytes fixes the four bytes.
func TestGreetingBytes(t *testing.T) {
	d, err := NewDance(DanceConfig{Self: 0x102, Hosts: danceHosts(0x103)})
	if err != nil {
		t.Fatal(err)
	}
	all := d.Dials()
	if len(all) != 0x102 {
		t.Fatalf("%d dials", len(all))
	}
	for i, x := range all {
		if int(x.Host) != i || binary.BigEndian.Uint32(x.Greeting[:]) != 0x102 {
			t.Fatalf("dial %d: host %d, greeting % x", i, x.Host, x.Greeting)
		}
	}
}
