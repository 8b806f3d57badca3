package play

import (
	"context"
	"encoding/binary"
	"net"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/conformance/iut"
)

// server is what the tester plays for the IUT in startup and at the end of a job.
type server struct {
	layout
	terms
	listener *listener
	conn     *conn    // the IUT's connection
	run      *process // the IUT
}

// startup plays the server until the IUT has DONE: AUTH, IMPI, the labels.
func (s *server) startup() {
	s.connected()
	s.authenticate()
	s.rank()
	s.collect()
	s.settle()
}

func (s *server) connected() {
	const what = "client to server"
	var c *net.TCPConn
	for end := time.Now().Add((begins - 1) * s.t.patience); c == nil && s.run.running() && time.Now().Before(end); {
		c = s.listener.tryAccept(glance)
	}
	if c == nil {
		c = s.listener.tryAccept(s.t.patience) // a command that has ended may have left a daemon
	}
	switch {
	case c != nil:
		s.conn = s.listener.take(c, what)
		s.conn.pieces = s.setup.pieces
	case !s.run.running():
		s.t.Fatalf("no connection came: %s: the client has ended (%v)", what, s.run.cmd.ProcessState)
	default:
		s.t.Fatalf("no connection came within %v: %s", begins*s.t.patience, what)
	}
}

func (s *server) takeAuth() uint32 {
	return binary.BigEndian.Uint32(s.conn.expect(cmdAuth, 4).data)
}

func (s *server) choose(which uint32) {
	s.conn.send("which="+[]string{"NONE", "KEY"}[which&1]+" len=0", u32(which, 0))
}

func (s *server) takeKey() uint64 {
	b := s.conn.read(8, "the key")
	s.t.trace.add("<- %s: key %x", s.conn.name, b)
	return binary.BigEndian.Uint64(b)
}

func (s *server) authenticate() {
	mask := s.takeAuth()
	switch both := mask & s.setup.auth.Mask(); {
	case both&(1<<authKey) != 0:
		s.choose(authKey)
		equal(s.t, "the key", s.takeKey(), s.setup.auth.Key)
	case both&(1<<authNone) != 0:
		s.choose(authNone)
	default:
		s.t.Fatalf("AUTH: the mask is 0x%x, which has nothing of 0x%x", mask, s.setup.auth.Mask())
	}
}

func (s *server) rank() {
	r := s.conn.expect(cmdIMPI, 4)
	equal(s.t, "IMPI: the client rank", int(int32(binary.BigEndian.Uint32(r.data))), s.self.rank)
	s.conn.record(record{cmdIMPI, u32(uint32(len(s.clients)))})
}

// takeLabel reads COLL, or DONE as label 0.
func (s *server) takeLabel() (label, []byte) {
	r := s.conn.next("COLL or DONE")
	switch {
	case r.cmd == cmdDone && len(r.data) == 0:
		return 0, nil
	case r.cmd != cmdColl || len(r.data) < 4:
		s.t.Fatalf("%s: %v where COLL or DONE should be", s.conn.name, r)
	}
	return label(binary.BigEndian.Uint32(r.data)), r.data[4:]
}

// collect takes the IUT's labels and answers them with everybody's, until DONE, which
// it answers too.
func (s *server) collect() {
	s.until(0)
	s.conn.record(record{cmd: cmdDone})
}

// until takes and answers labels until the IUT has sent this one (DONE for 0), which is
// left unanswered.
func (s *server) until(end label) {
	for {
		l, values := s.takeLabel()
		if _, twice := s.self.values[l]; twice {
			s.t.Fatalf("COLL %v comes twice", l)
		}
		if l != 0 {
			s.self.values[l] = values
		}
		if s.setup.before != nil {
			s.setup.before(s.conn, l)
		}
		if l == end {
			return
		}
		if l == 0 {
			s.t.Fatalf("DONE comes, and %v has not come", end)
		}
		s.conn.record(s.answer(l))
	}
}

func (s *server) answer(l label) record {
	mask, all := s.everybody(l)
	if s.setup.answers != nil {
		mask, all = s.setup.answers(l, mask, all)
	}
	return answer(l, mask, all)
}

func (s *server) begin() {
	s.launch()
	s.connected()
	s.authenticate()
	s.rank()
}

// refuses waits until the IUT gives up because of what it was told: it closes its connection to the
// server. Before that it may send a command of its own that IMPI does not have, but none of IMPI's.
// It has not given up, and fails, if it connects to a host of the job.
func (s *server) refuses(why string) {
	r := s.conn.closed(why)
	if len(r.data) >= recordHeader {
		if c := command(uint32s(r.data)[0]); c.known() {
			s.t.Fatalf("the client goes on with %v: %s", c, why)
		}
	}
	s.run.survives(why)
	if h := s.visited(glance / 10); h != nil {
		s.t.Fatalf("the client has gone on and connected to host %d: %s", h.rank, why)
	}
}

// visited returns a host of the tester to which somebody has connected without having been
// accepted, or nil. It waits for d at each host.
func (s *server) visited(d time.Duration) *host {
	for _, h := range s.hosts {
		if h.listen != nil && h.listen.tryAccept(d) != nil {
			return h
		}
	}
	return nil
}

// everybody returns the answer to a label. What setup leaves open, the tester's clients
// submit as the IUT does.
func (s *server) everybody(l label) (mask uint32, all []byte) {
	for _, c := range s.clients {
		v, has := c.values[l]
		if c.omits[l] {
			continue
		}
		if !has && (l == cXSize || l == cMaxLinear) {
			v, has = s.self.values[l]
		}
		if has {
			mask |= 1 << c.rank
			all = append(all, v...)
		}
	}
	return mask, all
}

// settle derives the job's values from what all submitted, after checking that the
// IUT's are complete.
func (s *server) settle() {
	for _, x := range labels {
		if _, has := s.self.values[x.label]; !has {
			s.t.Fatalf("the IUT has not submitted %v", x.label)
		}
	}
	s.identify()
	s.datalen, s.ackmark, s.hiwater = s.least(cDataLen), s.least(hAckMark), s.least(hHiWater)
	s.tagub = int32(s.least(cTagUB))
	s.xsize, s.maxlinear = s.chosen(cXSize, defaultXSize), s.chosen(cMaxLinear, defaultMaxLinear)
	for _, h := range s.hosts {
		for _, p := range h.procs {
			p.rank = len(s.procs)
			s.procs = append(s.procs, p)
		}
	}
}

// value returns what is in the IUT's submission of a label with width bytes per value.
func (s *server) value(l label, width, n int) []byte {
	v := s.self.values[l]
	if len(v) != width*n {
		s.t.Fatalf("the IUT submitted %d bytes for %v, not %d values of %d", len(v), l, n, width)
	}
	return v
}

func (s *server) identify() {
	be := binary.BigEndian
	n := len(s.self.hosts)
	equal(s.t, "C_NHOSTS of the IUT", int(be.Uint32(s.value(cNHosts, 4, 1))), n)
	ids, ports, sizes := s.value(hIPv6, 16, n), s.value(hPort, 4, n), uint32s(s.value(hNProcs, 4, n))
	total := 0
	for i, h := range s.self.hosts {
		equal(s.t, "H_NPROCS of a host of the IUT", int(sizes[i]), len(h.procs))
		total += len(h.procs)
		copy(h.id[:], ids[16*i:])
		h.port = uint16(be.Uint32(ports[4*i:]))
	}
	equal(s.t, "C_NPROCS of the IUT", int(be.Uint32(s.value(cNProcs, 4, 1))), total)
	s.self.identify(s.value(pIPv6, 16, total), s.value(pPID, 8, total))
	s.unique()
}

func (c *client) identify(hosts, pids []byte) {
	for i, p := range c.procs() {
		copy(p.id.host[:], hosts[16*i:])
		p.id.pid = int64(binary.BigEndian.Uint64(pids[8*i:]))
	}
}

func (s *server) unique() {
	seen := map[procID]bool{}
	for _, h := range s.hosts {
		for _, p := range h.procs {
			if seen[p.id] {
				s.t.Fatalf("two procs of the job are %v", p.id)
			}
			seen[p.id] = true
		}
	}
}

func (s *server) submitted(l label) (v []uint32) {
	_, all := s.everybody(l)
	return uint32s(all)
}

func (s *server) least(l label) uint32 { return slices.Min(s.submitted(l)) }

// chosen returns the value that all must have, -1 standing for the default.
func (s *server) chosen(l label, standard int32) int32 {
	v := int32(s.submitted(l)[0])
	if v == -1 {
		return standard
	}
	return v
}

func (s *server) finished() {
	s.conn.expect(cmdFini, 0)
	if r := s.conn.closed("the client has sent FINI"); len(r.data) > 0 {
		s.t.Fatalf("%s: %s came after FINI", s.conn.name, shortHex(r.data))
	}
	s.conn.close()
}

// untilGone answers labels and DONE as long as the IUT takes them.
func (s *server) untilGone() {
	for {
		r, err := s.conn.tryNext(s.t.patience)
		switch {
		case err != nil:
			return
		case r.cmd == cmdColl && len(r.data) >= 4:
			l := label(uint32s(r.data)[0])
			s.self.values[l] = r.data[4:]
			r = s.answer(l)
		case r.cmd == cmdDone:
		default:
			return // the IUT sends its reason to give up
		}
		if s.conn.trySend(r.String(), r.bytes()) != nil {
			return
		}
	}
}

// unanswered proves that the IUT says nothing to the server where it waits for it. No
// more comes from there, which a client must take for the loss of its server; whatever it
// would have said without waiting, and whatever host it would have connected to, it has
// before it ends. One that does not end is not waited for long: other cases judge it.
func (s *server) unanswered(why string) {
	s.conn.hangUp()
	if b, err := s.conn.tryRead(1, while); err == nil {
		s.conn.said(b, why)
	}
	closes(s.run.ended, while)
	if h := s.visited(glance / 10); h != nil {
		s.t.Fatalf("host %d was connected to: %s", h.rank, why)
	}
}

func (s *server) launch() {
	spec := iut.ClientSpec{
		Server: s.listener.addr.String(), Rank: s.self.rank, Clients: len(s.clients),
		Auth: s.setup.iutAuth, Dir: s.t.dir, MaxLinear: s.setup.iutMaxLinear,
	}
	for i, h := range s.self.hosts {
		spec.Hosts = append(spec.Hosts, iut.HostSpec{Address: h.addr.String(), Procs: s.setup.iutHosts[i]})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	s.t.Cleanup(cancel)
	cmd, err := s.t.subject.Client(ctx, spec)
	s.t.must(err)
	s.run = s.t.run("client", cmd)
}
