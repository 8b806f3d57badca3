package agent

import (
	"errors"
	"io"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/watchdog"
)

// The operations of FuzzSwitch. The upper bits choose a link.
const (
	swPacket = iota // a packet: type, source and destination, length
	swHalf          // the same, but only the first bytes: how many
	swBytes         // as many bytes as the next one says
	swTake          // the link takes 16 times as many bytes as the next one says
	swClose         // it ends
	swDone          // the proc is done
	swDrain         // the link takes everything
	swFlip          // a packet with one bit wrong: which
	swCount
)

// switchLinks are two local procs, an own host, a foreign one, and a host that
// comes last.
var switchLinks = [...]LinkID{0, 1, 101, 102, 103}

// switchJob has procs 0 and 1 here, 2 and 3 on a host of ours, 4 and 5 on a
// foreign host, 6 on another.
func switchJob(chunk int) Config {
	c := job(0, 2, 2, 2, 1)
	c.Hosts[0].Own, c.Hosts[1].Own = true, true
	c.MaxData, c.AckMark, c.HiWater, c.ChunkSize = 700, 2, 6, chunk
	return c
}

// swarm is an agent between peers that do as a fuzzer likes.
type swarm struct {
	*rig
	b    []byte
	out  map[LinkID][]byte
	dead map[LinkID]bool
	fed  int
}

// FuzzSwitch lets procs and hosts send packets and rubbish in any order, while
// links take what they like, end, and procs finish. Nobody gets a packet that is
// not for him or not whole, only who breaks the rules loses his link, and memory
// stays within what doc.go promises.
func FuzzSwitch(f *testing.F) {
	link := func(kind, l int) byte { return byte(kind + swCount*l) }
	good := []byte{
		link(swPacket, 0), byte(wire.PkData), 4, 20, link(swPacket, 3), byte(wire.PkDataSync), 4 << 3, 200,
		link(swHalf, 3), byte(wire.PkData), 4<<3 | 1, 255, 130, link(swTake, 0), 9, link(swPacket, 2), 0, 2<<3 | 1, 3,
		link(swBytes, 3), 3, 1, 2, 3, link(swDrain, 0), link(swDrain, 1),
		link(swPacket, 1), byte(wire.PkProtoAck), 1<<3 | 4, 0, link(swPacket, 3), byte(wire.PkProtoAck), 4<<3 | 1, 0,
		link(swDone, 0), link(swDone, 1), link(swPacket, 3), byte(wire.PkFini), 4 << 3, 0, link(swDrain, 3), link(swClose, 3),
	}
	f.Add(good, uint16(0))
	f.Add(good, uint16(900))
	var flood []byte
	for i := range 9 {
		flood = append(flood, link(swPacket, 3), byte(wire.PkData), 4<<3, byte(30*i), link(swFlip, 4), byte(wire.PkSyncAck), 6<<3|1, 5, byte(i*17), 1)
	}
	f.Add(flood, uint16(3000))
	f.Add([]byte{link(swClose, 0), link(swPacket, 3), byte(wire.PkData), 4 << 3, 250, link(swDone, 1), link(swDone, 0)}, uint16(100))
	f.Add([]byte{link(swPacket, 3), byte(wire.PkData), 4 << 3, 250}, uint16(0))                      // too long
	f.Add([]byte{link(swPacket, 3), byte(wire.PkData), 2 << 3, 25}, uint16(0))                       // of another host's proc
	f.Add([]byte{link(swPacket, 0), byte(wire.PkData), 1<<3 | 4, 25}, uint16(0))                     // of the neighbour
	f.Add([]byte{link(swPacket, 2), byte(wire.PkData), 2<<3 | 4, 25}, uint16(0))                     // for somebody elsewhere
	f.Add([]byte{link(swHalf, 3), byte(wire.PkData), 4 << 3, 220, 150, link(swClose, 3)}, uint16(0)) // ends in the middle
	f.Fuzz(func(t *testing.T, b []byte, chunk uint16) {
		defer watchdog.Start()()
		r := newRig(t, switchJob(minChunkSize+int(chunk)%5000))
		for _, l := range switchLinks[:4] {
			if l < 100 {
				r.must(r.AttachProc(l, wire.WorldRank(l)))
			} else {
				r.must(r.AttachHost(l, wire.HostRank(l-100)))
			}
		}
		s := &swarm{rig: r, b: b, out: map[LinkID][]byte{}, dead: map[LinkID]bool{}}
		steps := 0
		cost := allocs.Bytes(func() { steps = s.run() })
		if most := uint64(allocs.MaxError + 64*s.fed + (8<<10+4*r.pool.size)*steps); cost > most {
			t.Fatalf("%d bytes in %d steps took %d bytes of memory, at most %d should be", s.fed, steps, cost, most)
		}
		s.finish()
	})
}

func (s *swarm) byte() byte {
	if len(s.b) == 0 {
		return 0
	}
	x := s.b[0]
	s.b = s.b[1:]
	return x
}

func (s *swarm) run() (steps int) {
	for ; len(s.b) > 0; steps++ {
		x := int(s.byte())
		l := switchLinks[x/swCount%len(switchLinks)]
		s.come(l)
		switch x % swCount {
		case swPacket:
			s.hear(l, s.draw(l))
		case swHalf:
			p := s.draw(l)
			s.hear(l, p[:min(len(p), 4*int(s.byte()))])
		case swFlip:
			p := s.draw(l)
			bit := int(s.byte()) | int(s.byte())<<8
			p[bit/8%wire.HeaderSize] ^= 1 << (bit % 8)
			s.hear(l, p)
		case swBytes:
			n := min(int(s.byte()), len(s.b))
			s.hear(l, s.b[:n])
			s.b = s.b[n:]
		case swTake:
			s.collect(l, 16*int(s.byte()))
		case swDrain:
			s.collect(l, everything)
		case swClose:
			s.close(l, io.EOF)
		case swDone:
			_ = s.ProcDone(wire.WorldRank(l)) // twice, or of a host: an error, no more
		}
		s.within("in the middle")
		for _, e := range s.events() {
			_ = e.String()
		}
		for _, l := range s.GrownQueues() {
			if s.lookup(l) == nil && !s.dead[l] {
				s.t.Fatalf("link %d was touched and is not there", l)
			}
		}
	}
	return steps
}

// come attaches the host that comes last, when it is first heard of.
func (s *swarm) come(l LinkID) {
	if l == 103 && !s.dead[l] && s.lookup(l) == nil {
		s.must(s.AttachHost(l, 3))
	}
}

// draw makes a packet out of three bytes. It bears the stamp of the link that it
// is said on.
func (s *swarm) draw(l LinkID) []byte {
	kind, who, n := s.byte(), int(s.byte()), int(s.byte())
	return s.packet(wire.PacketType(kind%9), who>>3%7, who%8%7, 3*n, stamp(l))
}

// stamp is a sequence number that tells a link, and no other with one bit wrong.
func stamp(l LinkID) uint64 { return 0x0101010101010101 * uint64(l+1) }

// forged reports whether a packet of src was said by somebody else, as far as it
// bears a stamp.
func (s *swarm) forged(p *wire.Packet, src int) bool {
	for _, l := range switchLinks {
		if p.Seq == stamp(l) {
			return src != int(l) && s.c.Procs.At(wire.WorldRank(src)).Host != wire.HostRank(l-100)
		}
	}
	return false
}

func (s *swarm) hear(l LinkID, b []byte) {
	if s.lookup(l) == nil {
		return
	}
	s.fed += len(b)
	switch err := s.feed(l, b, 1+int(s.c.MaxData)); {
	case err == nil:
	case errors.Is(err, ErrProtocol):
		if s.Input(l) != nil {
			s.t.Fatalf("link %d is still read after %v", l, err)
		}
		s.close(l, err)
	default:
		s.t.Fatalf("link %d: %v", l, err)
	}
}

func (s *swarm) collect(l LinkID, n int) {
	if s.lookup(l) != nil {
		s.out[l] = append(s.out[l], s.take(l, n)...)
	}
}

func (s *swarm) close(l LinkID, cause error) {
	s.Closed(l, cause)
	s.dead[l] = true
}

// finish takes what is left, checks who got what, and ends all links.
func (s *swarm) finish() {
	for _, l := range switchLinks {
		s.come(l)
		s.collect(l, everything)
		packets, rest := cut(s.out[l])
		if len(rest) > 0 && !s.dead[l] {
			s.t.Fatalf("link %d got %d bytes that are no packet", l, len(rest))
		}
		ended := false
		for _, b := range packets {
			ended = s.check(l, b, ended)
		}
		s.close(l, nil)
	}
	if st := s.Counts(); st.Memory != 0 || st.Queued != 0 {
		s.t.Fatalf("in the end: %+v", st)
	}
}

// check makes sure that a packet has come to the right place from the right one,
// and reports whether the link has its FINI, after which only PROTOACKs come.
func (s *swarm) check(l LinkID, b []byte, ended bool) bool {
	var p wire.Packet
	wire.Published.Header(b, &p)
	if ended && p.Type != wire.PkProtoAck || p.Type == wire.PkFini && l < 100 {
		s.t.Fatalf("link %d got %v, after FINI: %v", l, p.Type, ended)
	}
	if p.Type == wire.PkFini {
		return true
	}
	src, dest := -1, -1
	for i, x := range s.c.Procs.All() {
		if x.ID == p.Src {
			src = int(i)
		}
		if x.ID == p.Dest {
			dest = int(i)
		}
	}
	local := func(rank int) bool { return rank >= 0 && s.c.Procs.At(wire.WorldRank(rank)).Host == s.c.Self }
	right := local(dest) && dest == int(l) && src >= 0
	if l >= 100 {
		right = dest >= 0 && s.c.Procs.At(wire.WorldRank(dest)).Host == wire.HostRank(l-100) && local(src)
	}
	if !right || s.forged(&p, src) || !p.Type.Known() || p.Type.HasData() && p.Len > s.c.MaxData {
		s.t.Fatalf("link %d got %s", l, s.name(b))
	}
	return ended
}

// TestLyingLengths: a length within the job's limit costs the chunks that come,
// and one beyond it nothing at all.
func TestLyingLengths(t *testing.T) {
	for _, n := range []uint32{1 << 20, 1<<31 - 1 - wire.HeaderSize, 1<<31 - 1, 1<<32 - 1} {
		c := job(0, 1, 1)
		c.MaxData = 1<<31 - 1 - wire.HeaderSize
		r := newRig(t, c).attachAll()
		b := r.packet(wire.PkData, 1, 0, 0, 0)
		b[4], b[5], b[6], b[7] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
		cost := allocs.BytesExact(func() { _ = r.feed(hostLink(1), b, everything) })
		if most := uint64(2*DefaultChunkSize + 16<<10); cost > most {
			t.Errorf("length %d costs %d bytes", n, cost)
		}
	}
}
