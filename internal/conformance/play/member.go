package play

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/conformance/iut"
)

type served struct {
	t    *T
	run  *process
	addr netip.AddrPort
	n    int
}

func (t *T) serve(n int, a iut.Auth) *served {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	cmd, err := t.subject.Server(ctx, iut.ServerSpec{Clients: n, Host: loopback(1).String(), Auth: a, Dir: t.dir})
	t.must(err)
	s := &served{t: t, run: t.run("server", cmd), n: n}
	line := strings.TrimSpace(s.run.line("its address"))
	if s.addr, err = netip.ParseAddrPort(line); err != nil {
		t.Fatalf("the server's first line is %q, not address:port: %v", line, err)
	}
	return s
}

// member is the connection of one client that the tester plays.
type member struct {
	*conn
	s    *served
	rank int
	held []byte // bytes that it sends next, in one piece
}

// connect connects as a client; nothing is sent yet.
func (s *served) connect(rank int) *member {
	return &member{conn: s.t.dial(fmt.Sprintf("server, as client %d", rank), netip.Addr{}, s.addr), s: s, rank: rank}
}

func (m *member) auth(mask uint32) uint32 {
	m.record(record{cmdAuth, u32(mask)})
	b := m.read(8, "the answer to AUTH")
	m.t.trace.add("<- %s: which=%d len=%d", m.name, binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]))
	return binary.BigEndian.Uint32(b)
}

func (m *member) joins(rank int) { m.record(record{cmdIMPI, u32(uint32(rank))}) }

func (m *member) takesSize(n int) {
	r := m.expect(cmdIMPI, 4)
	equal(m.t, "IMPI: the number of clients", int(binary.BigEndian.Uint32(r.data)), n)
}

func (m *member) takes(l label, mask uint32, values []byte) {
	r := m.next("the answer to " + l.String())
	want := answer(l, mask, values)
	if r.cmd != want.cmd || string(r.data) != string(want.data) {
		m.t.Fatalf("%s: the answer is %v, not %v", m.name, r, want)
	}
}

func (m *member) done()      { m.record(record{cmd: cmdDone}) }
func (m *member) takesDone() { m.expect(cmdDone, 0) }

func (m *member) fini() { m.record(record{cmd: cmdFini}) }

// join joins all clients of the job, up to the answer to IMPI.
func (s *served) join() []*member {
	all := make([]*member, s.n)
	for i := range all {
		all[i] = s.connect(i)
		equal(s.t, "the mechanism", all[i].auth(1<<authNone), authNone)
		all[i].joins(i)
	}
	for _, m := range all {
		m.takesSize(s.n)
	}
	return all
}

// end is the orderly end of a job, from DONE on.
func (s *served) end(all []*member) {
	for _, m := range all {
		m.done()
	}
	for _, m := range all {
		m.takesDone()
	}
	for i, m := range all {
		m.fini()
		if i < len(all)-1 {
			s.run.alive("others have not sent FINI")
		}
		m.close()
	}
	s.run.succeeds()
}
