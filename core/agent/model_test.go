package agent

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// stream is what one link feeds, and how far it is.
type stream struct {
	link  LinkID
	bytes []byte
}

// model is the naive switch: for each directed pair, its packets in order, and
// how many PROTOACKs it had.
type model struct {
	want map[[2]int][][]byte
	acks map[[2]int]int
}

// TestSwitchEqualsModel lets random jobs inquiry over links of random pace and
// checks that each packet arrives once, whole, at the right link, in the order of
// its pair; and that no memory is held in the end.
func TestSwitchEqualsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 4).Draw(rt, "procs of each host")
		c := job(rapid.IntRange(0, len(sizes)-1).Draw(rt, "self"), sizes...)
		c.ChunkSize = rapid.SampledFrom([]int{256, 1000, 4096, 1 << 16}).Draw(rt, "chunk")
		c.MaxData = uint32(rapid.SampledFrom([]int{1, 100, 5000, 70000}).Draw(rt, "maxdata"))
		c.HiWater, c.AckMark = 1<<30, 1
		r := newRig(t, c).attachAll()
		m := &model{map[[2]int][][]byte{}, map[[2]int]int{}}
		in := m.streams(rt, r)
		got := map[LinkID][]byte{}
		pace(rt, r, in, got)
		for i := range c.Procs.Len() {
			if c.Procs.At(wire.WorldRank(i)).Host == c.Self {
				r.must(r.ProcDone(wire.WorldRank(i)))
			}
		}
		for _, l := range r.all() {
			got[l] = append(got[l], r.take(l, everything)...)
		}
		m.check(rt, r, got)
		for _, l := range r.all() {
			r.Closed(l, io.EOF)
		}
		if s := r.Counts(); s.Queued != 0 || s.Memory != 0 || s.Discarded != 0 {
			rt.Fatalf("in the end: %+v", s)
		}
	})
}

// all lists the attached links.
func (r *rig) all() (links []LinkID) {
	for h := range r.c.Hosts {
		if wire.HostRank(h) != r.c.Self {
			links = append(links, hostLink(h))
		}
	}
	for i, p := range r.c.Procs.All() {
		if p.Host == r.c.Self {
			links = append(links, procLink(int(i)))
		}
	}
	return links
}

// streams draws what everybody sends.
func (m *model) streams(rt *rapid.T, r *rig) (all []*stream) {
	for rank, p := range r.c.Procs.All() {
		src, l := int(rank), hostLink(int(p.Host))
		if p.Host == r.c.Self {
			l = procLink(src)
		}
		all = append(all, &stream{link: l})
		for i := range rapid.IntRange(0, 12).Draw(rt, "packets") {
			dest := rapid.IntRange(0, r.c.Procs.Len()-1).Draw(rt, "dest")
			if p.Host != r.c.Self && r.c.Procs.At(wire.WorldRank(dest)).Host != r.c.Self {
				continue
			}
			kind := wire.PacketType(rapid.IntRange(0, 6).Draw(rt, "kind"))
			n := rapid.IntRange(0, int(r.c.MaxData)).Draw(rt, "len")
			b := r.packet(kind, src, dest, n, uint64(i))
			pair := [2]int{src, dest}
			if kind == wire.PkProtoAck {
				m.acks[pair]++
			} else {
				m.want[pair] = append(m.want[pair], b)
			}
			all[len(all)-1].bytes = append(all[len(all)-1].bytes, b...)
		}
	}
	return merge(rt, all)
}

// merge joins the streams of procs that share a channel, packet by packet.
func merge(rt *rapid.T, all []*stream) (joined []*stream) {
	byLink := map[LinkID]*stream{}
	for _, s := range all {
		o := byLink[s.link]
		if o == nil {
			byLink[s.link] = s
			joined = append(joined, s)
			continue
		}
		x, _ := cut(o.bytes)
		y, _ := cut(s.bytes)
		var b []byte
		for len(x)+len(y) > 0 {
			if len(y) == 0 || len(x) > 0 && rapid.Bool().Draw(rt, "first") {
				b, x = append(b, x[0]...), x[1:]
			} else {
				b, y = append(b, y[0]...), y[1:]
			}
		}
		o.bytes = b
	}
	return joined
}

// pace feeds and drains the links in random steps until all is fed.
func pace(rt *rapid.T, r *rig, in []*stream, got map[LinkID][]byte) {
	step := rapid.SampledFrom([]int{200, 3000, 100000}).Draw(rt, "step")
	for len(in) > 0 {
		i := rapid.IntRange(0, len(in)-1).Draw(rt, "link")
		s := in[i]
		n := min(rapid.IntRange(1, step).Draw(rt, "bytes"), len(s.bytes))
		if err := r.feed(s.link, s.bytes[:n], step); err != nil {
			rt.Fatal(err)
		}
		if s.bytes = s.bytes[n:]; len(s.bytes) == 0 {
			in = append(in[:i], in[i+1:]...)
		}
		for _, l := range r.GrownQueues() {
			if !r.HasOutput(l) && len(got[l]) == 0 {
				rt.Fatalf("link %d was touched, but has no output", l)
			}
			if rapid.IntRange(0, 2).Draw(rt, "drain") > 0 {
				got[l] = append(got[l], r.take(l, rapid.IntRange(1, step).Draw(rt, "limit"))...)
			}
		}
	}
}

func (m *model) check(rt *rapid.T, r *rig, got map[LinkID][]byte) {
	for l, b := range got {
		packets, rest := cut(b)
		if len(rest) > 0 {
			rt.Fatalf("link %d: %d bytes are no packet", l, len(rest))
		}
		for i, p := range packets {
			m.arrived(rt, r, l, p, i == len(packets)-1)
		}
	}
	for pair, left := range m.want {
		if len(left) > 0 {
			rt.Fatalf("%d->%d: %d packets are missing", pair[0], pair[1], len(left))
		}
	}
	for pair, n := range m.acks {
		if n != 0 {
			rt.Fatalf("%d->%d: %d PROTOACKs are missing", pair[0], pair[1], n)
		}
	}
}

func (m *model) arrived(rt *rapid.T, r *rig, l LinkID, b []byte, last bool) {
	var p wire.Packet
	wire.Published.Header(b, &p)
	if p.Type == wire.PkFini {
		if l < 100 || !last {
			rt.Fatalf("FINI on link %d, last %v", l, last)
		}
		return
	}
	src, dest := int(p.Src.PID-1000), int(p.Dest.PID-1000)
	to := procLink(dest)
	if h := r.c.Procs.At(wire.WorldRank(dest)).Host; h != r.c.Self {
		to = hostLink(int(h))
	}
	if to != l {
		rt.Fatalf("%s on link %d", r.name(b), l)
	}
	pair := [2]int{src, dest}
	if p.Type == wire.PkProtoAck {
		m.acks[pair]--
		return
	}
	if w := m.want[pair]; len(w) == 0 || !bytes.Equal(w[0], b) {
		rt.Fatalf("%s is not what comes next of that pair", r.name(b))
	}
	m.want[pair] = m.want[pair][1:]
}

// TestCutAnywhere feeds the same traffic cut at every place once.
func TestCutAnywhere(t *testing.T) {
	c := job(0, 2, 1)
	c.ChunkSize = 300
	var want []byte
	for at := range 1000 {
		r := newRig(t, c).attachAll()
		var all []byte
		for i, n := range []int{0, 5, 290, 1, 0} {
			all = append(all, r.packet(wire.PacketType(i%2), 2, 0, n, uint64(i))...)
		}
		at = min(at, len(all))
		for _, part := range [][]byte{all[:at], all[at:]} {
			r.must(r.feed(hostLink(1), part, 77+at))
		}
		if want == nil {
			want = all
		}
		if got := r.take(procLink(0), everything); !bytes.Equal(got, want) {
			t.Fatalf("cut at %d: %d bytes came, %d were sent", at, len(got), len(want))
		}
	}
}

// TestLateOutput lets packets arrive between Output and Sent: what Output gave
// is what Sent takes off.
func TestLateOutput(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := job(0, 2, 1)
		c.HiWater, c.AckMark, c.ChunkSize = 1<<30, 1, 512
		r := newRig(t, c).attachAll()
		m := &model{map[[2]int][][]byte{}, map[[2]int]int{}}
		var got []byte
		for i := range rapid.IntRange(1, 20).Draw(rt, "rounds") {
			lent := bytes.Join(r.Output(hostLink(1)), nil)
			src := rapid.IntRange(0, 1).Draw(rt, "src")
			kind := rapid.SampledFrom([]wire.PacketType{wire.PkData, wire.PkProtoAck}).Draw(rt, "kind")
			b := r.packet(kind, src, 2, rapid.IntRange(0, 400).Draw(rt, "len"), uint64(i))
			if pair := [2]int{src, 2}; kind == wire.PkProtoAck {
				m.acks[pair]++
			} else {
				m.want[pair] = append(m.want[pair], b)
			}
			r.must(r.feed(procLink(src), b, rapid.IntRange(1, 600).Draw(rt, "step")))
			n := rapid.IntRange(0, len(lent)).Draw(rt, "sent")
			r.Sent(hostLink(1), n)
			got = append(got, lent[:n]...)
		}
		got = append(got, r.take(hostLink(1), everything)...)
		m.check(rt, r, map[LinkID][]byte{hostLink(1): got})
	})
}

func ExampleProtocolError() {
	a, _ := New(Config{
		Hosts:   []Host{{Client: 0}, {Client: 1}},
		Procs:   startup.ListProcs(startup.ProcInfo{ID: ident(0, 0), Host: 0}, startup.ProcInfo{ID: ident(1, 1), Host: 1}),
		MaxData: 1024, AckMark: 8, HiWater: 16,
	})
	_ = a.AttachHost(3, 1)
	bad := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(bad, &wire.Packet{Len: 5000, Src: ident(1, 1), Dest: ident(0, 0)})
	fmt.Println(a.Received(3, copy(a.Input(3)[0], bad)))
	// Output: host 1 (client 1) sent pk_len 5000: the job's maximum data length is 1024
}
