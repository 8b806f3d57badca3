package play

import (
	"errors"
	"os"
	"time"

	"github.com/openimpi/impi/internal/conformance/script"
)

// danceVerbs are the steps of host-to-host connections, in which hosts are called by their ranks. A
// connection to the IUT's first host that does not say who it is has a number, like a client of a
// server, and takes the same steps.
var danceVerbs map[string]verb

func init() {
	danceVerbs = map[string]verb{
		"startup":    func(p *player, _ script.Words) { p.j.launch(); p.j.startup(); p.joined(p.j) },
		"take-dials": func(p *player, _ script.Words) { p.j.takeDials() },
		"make-dials": func(p *player, _ script.Words) { p.j.makeDials() },
		"dial": func(p *player, w script.Words) { // with the held bytes after the rank
			p.j.dialHost(p.host(w.Word(0)), p.j.self.hosts[0], p.held...)
			p.held = nil
		},
		"visit": func(p *player, w script.Words) {
			p.members[w.At(0)] = &member{conn: p.j.connect(p.host(w.Word(1)), p.j.self.hosts[0])}
		},
		"channel": func(p *player, w script.Words) {
			p.j.addChannel(p.chosen(w.Word(0))[0].conn, p.host(w.Word(1)), p.j.self.hosts[0])
		},
		"survivor": func(p *player, w script.Words) { // of two visits, one of which has ended
			all := p.chosen(w.Word(0))
			a, b := all[0].conn, all[1].conn
			if !ended(p.T, a, b) {
				a, b = b, a
			}
			b.close()
			p.j.addChannel(a, p.host(w.Word(1)), p.j.self.hosts[0])
		},
		"from-addresses": func(p *player, _ script.Words) {
			for _, ch := range p.j.channels {
				equal(p.T, "the address from which the host connects", ch.c.remote().Addr(), ch.remote.address())
			}
		},
		"no-host": func(p *player, w script.Words) {
			if h := p.j.visited(glance); h != nil {
				p.Fatalf("somebody connected to our host %d: %s", h.rank, w.Rest)
			}
		},
	}
}

func (p *player) host(rank string) *host { return p.j.hosts[int(script.Number(rank))] }

// ended waits until one of two connections has ended, and tells whether it is b.
func ended(t *T, a, b *conn) bool {
	for end := time.Now().Add(t.patience); time.Now().Before(end); {
		for _, c := range []*conn{a, b} {
			if _, err := c.tryRead(1, glance/4); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.trace.add("<- %s: closed, %v", c.name, c.local())
				return c == b
			}
		}
	}
	t.Fatalf("two connections say they are host 1, and after %v both are open", t.patience)
	return false
}
