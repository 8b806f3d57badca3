package agent

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/openimpi/impi/core/wire"
)

// TestScripts plays the dialogues of testdata/agent. Each command answers with
// its error, the links that got something to send, and the events.
//
//	job self=1 hosts=1,2,1 [clients=0,0,1] [own=(0,2)] [unlinked=(0)] [maxdata= ackmark= hiwater= chunk=] [draft]
//	attach proc=0 | attach host=1 | attach all
//	from proc=0 | from host=1 [step=N]   lines: "DATA 0->2 5", "FINI", "hex 00 01", "cut 60 DATA 0->2 5" (its first 60 bytes)
//	read proc=0 | read host=1 [n=bytes]  what the agent sends there
//	done 0
//	close proc=0 | close host=1 [broken]
//	stats
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/agent", func(t *testing.T, path string) {
		s := &script{t: t, rest: map[LinkID][]byte{}}
		datadriven.RunTest(t, path, s.run)
	})
}

type script struct {
	*rig
	t    *testing.T
	seq  uint64
	rest map[LinkID][]byte // of a packet that was read in part
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	if err := s.command(t, d, &out); err != nil {
		fmt.Fprintf(&out, "error: %v\n", err)
	}
	if s.rig == nil {
		return out.String()
	}
	links := slices.Clone(s.GrownQueues())
	slices.Sort(links)
	for _, l := range links {
		fmt.Fprintf(&out, "output for %s\n", linkName(l))
	}
	for _, e := range s.events() {
		fmt.Fprintln(&out, e)
	}
	if out.Len() == 0 {
		return "ok\n"
	}
	return out.String()
}

func linkName(l LinkID) string {
	if l >= 100 {
		return fmt.Sprintf("host %d", l-100)
	}
	return fmt.Sprintf("proc %d", l)
}

func (s *script) command(t *testing.T, d *datadriven.TestData, out *strings.Builder) error {
	switch d.Cmd {
	case "job":
		return s.job(t, d)
	case "attach":
		return s.attach(d)
	case "from":
		return s.from(d)
	case "read":
		s.read(d, out)
	case "done":
		r, _ := strconv.Atoi(d.CmdArgs[0].Key)
		return s.ProcDone(wire.WorldRank(r))
	case "close":
		cause := io.EOF
		if d.HasArg("broken") {
			cause = errors.New("connection reset by peer")
		}
		s.Closed(s.link(d), cause)
	case "stats":
		st := s.Counts()
		fmt.Fprintf(out, "packets=%d bytes=%d dropped=%d discarded=%d queued=%d\n",
			st.Packets, st.Bytes, st.Dropped, st.Discarded, st.Queued)
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return nil
}

func ints(d *datadriven.TestData, key string) (all []int) {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			for _, v := range a.Vals {
				for _, x := range strings.Split(v, ",") {
					n, _ := strconv.Atoi(x)
					all = append(all, n)
				}
			}
		}
	}
	return all
}

func (s *script) job(t *testing.T, d *datadriven.TestData) error {
	var self, maxdata, ackmark, hiwater, chunk = 0, 16, 2, 4, 0
	d.MaybeScanArgs(t, "self", &self)
	d.MaybeScanArgs(t, "maxdata", &maxdata)
	d.MaybeScanArgs(t, "ackmark", &ackmark)
	d.MaybeScanArgs(t, "hiwater", &hiwater)
	d.MaybeScanArgs(t, "chunk", &chunk)
	c := job(self, ints(d, "hosts")...)
	c.MaxData, c.AckMark, c.HiWater, c.ChunkSize = uint32(maxdata), uint32(ackmark), uint32(hiwater), chunk
	if d.HasArg("draft") {
		c.Dialect = wire.Draft
	}
	for h, n := range ints(d, "clients") {
		c.Hosts[h].Client = wire.ClientRank(n)
	}
	for _, h := range ints(d, "own") {
		c.Hosts[h].Own = true
	}
	for _, h := range ints(d, "unlinked") {
		c.Hosts[h].Unlinked = true
	}
	a, err := New(c)
	if err != nil {
		return err
	}
	s.rig = &rig{a, s.t, c}
	s.rest = map[LinkID][]byte{}
	return nil
}

func (s *script) link(d *datadriven.TestData) LinkID {
	if h := ints(d, "host"); len(h) > 0 {
		return hostLink(h[0])
	}
	return procLink(ints(d, "proc")[0])
}

func (s *script) attach(d *datadriven.TestData) error {
	if d.HasArg("all") {
		s.attachAll()
		return nil
	}
	l := s.link(d)
	if at := ints(d, "link"); len(at) > 0 {
		l = LinkID(at[0])
	}
	if h := ints(d, "host"); len(h) > 0 {
		return s.AttachHost(l, wire.HostRank(h[0]))
	}
	return s.AttachProc(l, wire.WorldRank(ints(d, "proc")[0]))
}

func (s *script) from(d *datadriven.TestData) error {
	step := 1 << 20
	if n := ints(d, "step"); len(n) > 0 {
		step = n[0]
	}
	var all []byte
	for line := range strings.Lines(d.Input) {
		all = append(all, s.bytes(strings.Fields(line))...)
	}
	return s.feed(s.link(d), all, step)
}

// bytes makes what a line of "from" says.
func (s *script) bytes(f []string) []byte {
	var n int
	switch f[0] {
	case "hex":
		var b []byte
		for _, x := range f[1:] {
			v, _ := strconv.ParseUint(x, 16, 8)
			b = append(b, byte(v))
		}
		return b
	case "cut":
		n, _ = strconv.Atoi(f[1])
		return s.bytes(f[2:])[:n]
	case "set": // one byte of the header
		at, _ := strconv.Atoi(f[1])
		v, _ := strconv.ParseUint(f[2], 16, 8)
		b := s.bytes(f[3:])
		b[at] = byte(v)
		return b
	}
	s.seq++
	kind := wire.PacketType(0)
	for kind.String() != f[0] && kind <= wire.PkFini {
		kind++
	}
	if kind == wire.PkFini {
		return s.packet(kind, 0, 0, 0, s.seq)
	}
	var src, dest int
	fmt.Sscanf(f[1], "%d->%d", &src, &dest)
	if len(f) > 2 {
		n, _ = strconv.Atoi(f[2])
	}
	return s.packet(kind, src, dest, n, s.seq)
}

func (s *script) read(d *datadriven.TestData, out *strings.Builder) {
	limit := everything
	if n := ints(d, "n"); len(n) > 0 {
		limit = n[0]
	}
	l := s.link(d)
	packets, rest := cut(append(s.rest[l], s.take(l, limit)...))
	s.rest[l] = rest
	for _, p := range packets {
		fmt.Fprintln(out, s.name(p))
	}
	if len(rest) > 0 {
		fmt.Fprintf(out, "and %d bytes\n", len(rest))
	}
}
