package protocol

import (
	"encoding/binary"
	"errors"
	"os"
	"time"
)

const refDance = "ch. 2, Host-to-host connections"

func init() {
	register("dance",
		Case{ID: "IMPI-2-DANCE-01", Level: Must, Needs: Client, Run: dialsAll, Reference: refDance,
			Expect: "The last host connects to every other one, and says its host rank (not its client's) in 4 bytes, big-endian; nothing more comes until a program sends."},
		Case{ID: "IMPI-2-DANCE-02", Level: Must, Needs: Program, Run: acceptsAll, Reference: refDance,
			Expect: "Host 0 connects to nobody, and accepts the others in any order."},
		Case{ID: "IMPI-2-DANCE-03", Level: Must, Needs: Program, Run: betweenOthers, Reference: refDance,
			Expect: "A host in the middle connects to lower ones and accepts higher ones, even if they come before it has connected."},
		Case{ID: "IMPI-2-DANCE-04", Level: Must, Needs: Program, Run: listensEarly, Reference: refDance,
			Expect: "A host can be connected to as soon as it has told its port, though its own client does not have DONE yet."},
		Case{ID: "IMPI-2-DANCE-05", Level: Must, Needs: Client, Run: ownRanks, Reference: refDance,
			Expect: "Each host of a client connects by itself, with its own rank."},
		Case{ID: "IMPI-2-DANCE-06", Level: Must, Needs: Program, Run: packetsAtOnce, Reference: refDance,
			Expect: "Packets may follow the host's rank at once, in the same segment."},
		Case{ID: "IMPI-2-DANCE-07", Level: Must, Needs: Program, Run: rankInPieces, Reference: refDance,
			Expect: "The host's rank may come in pieces."},
		Case{ID: "IMPI-2-DANCE-08", Level: Should, Needs: Client, Run: fromItsAddress, Reference: refDance,
			Expect: "A host connects from the address that it told in H_IPV6: some peers know hosts by nothing else."},
		Case{ID: "IMPI-2-DANCE-11", Level: Should, Needs: Program, Run: func(t *T) { intruder(t, u32(99)) }, Reference: refDance,
			Expect: "A connection that says it is a host that the job has not is closed, and the dance goes on."},
		Case{ID: "IMPI-2-DANCE-12", Level: Should, Needs: Program, Run: func(t *T) { intruder(t, u32(0)) }, Reference: refDance,
			Expect: "A connection that says it is the host itself is closed, and the dance goes on."},
		Case{ID: "IMPI-2-DANCE-13", Level: Should, Needs: Program, Run: func(t *T) { intruder(t, []byte("GET / HTTP/1.0\r\n\r\n")) }, Reference: refDance,
			Expect: "A connection of something that is no host is closed, and the dance goes on."},
		Case{ID: "IMPI-2-DANCE-14", Level: Should, Needs: Program, Run: halfIntruder, Reference: refDance,
			Expect: "Connections that close or are reset before they have told a whole rank do not disturb the dance."},
		Case{ID: "IMPI-2-DANCE-15", Level: Should, Needs: Program, Run: silentIntruder, Reference: refDance,
			Expect: "A connection that says nothing does not keep the hosts waiting that come after it."},
		Case{ID: "IMPI-2-DANCE-16", Level: Should, Needs: Program, Run: sameHostTwice, Reference: refDance,
			Expect: "Of two connections that say they are the same host one is closed, and the job goes on with the other."},
	)
}

// ready is join without the dance.
func (t *T) ready(s setup) *job {
	j := t.newJob(s)
	j.launch()
	j.startup()
	return j
}

func dialsAll(t *T) {
	j := t.ready(setup{others: [][]int{{1, 1}, {1}}})
	for _, h := range j.hosts[:3] {
		c := h.listen.accept("a host of the IUT")
		equal(t, "the host's rank", binary.BigEndian.Uint32(c.read(4, "the host's rank")), 3)
		j.addChannel(c, h, j.hosts[3])
	}
	for _, ch := range j.channels {
		ch.stays("no program sends")
	}
}

func acceptsAll(t *T) {
	j := t.ready(setup{place: first, others: [][]int{{2}, {1, 1}}})
	for _, i := range []int{2, 3, 1} {
		j.dialHost(j.hosts[i], j.hosts[0])
	}
	j.quiet("no program sends")
	j.finish()
	if h := j.visited(); h != nil {
		t.Fatalf("host 0 connected to host %d", h.rank)
	}
}

func betweenOthers(t *T) {
	j := t.ready(setup{place: middle, others: [][]int{{2, 1}, {1, 1}}})
	j.makeDials()
	j.takeDials()
	j.quiet("no program sends")
	j.finish()
}

func listensEarly(t *T) {
	j := t.newJob(setup{place: first})
	j.begin()
	j.until(0)
	j.settle()
	j.makeDials()
	j.conn.record(record{cmd: cmdDone})
	j.quiet("no program sends")
	j.finish()
}

func ownRanks(t *T) {
	j := t.ready(setup{iutHosts: []int{1, 1, 1}})
	seen := map[uint32]bool{}
	for range 3 {
		c := j.hosts[0].listen.accept("a host of the IUT")
		rank := binary.BigEndian.Uint32(c.read(4, "the host's rank"))
		if rank < 1 || rank > 3 || seen[rank] {
			t.Fatalf("a host says it is host %d", rank)
		}
		seen[rank] = true
	}
}

func packetsAtOnce(t *T) {
	j := t.ready(setup{place: first})
	h := j.hosts[1]
	c := j.connect(h, j.hosts[0])
	p := j.packet(pkData, j.peer(0), j.iut(0), 5, []byte("early"))
	c.send("host rank and "+p.String(), append(u32(uint32(h.rank)), p.bytes()...))
	ch := j.addChannel(c, h, j.hosts[0])
	ch.mu.Lock()
	ch.window(p.src, p.dest).sent++
	ch.mu.Unlock()
	r := j.do(j.iut(0), "recv src=%d tag=5 type=byte n=5", j.peer(0).rank)
	r.is("count", 5)
	j.finish()
}

func rankInPieces(t *T) {
	j := t.ready(setup{place: first})
	h := j.hosts[1]
	c := j.connect(h, j.hosts[0])
	t.must(c.tcp.SetNoDelay(true))
	for i, b := range u32(uint32(h.rank)) {
		if i > 0 {
			c.silent("the host's rank is not complete")
		}
		c.raw([]byte{b})
	}
	j.addChannel(c, h, j.hosts[0])
	j.quiet("no program sends")
	j.finish()
}

func fromItsAddress(t *T) {
	j := t.ready(setup{})
	c := j.hosts[0].listen.accept("a host of the IUT")
	equal(t, "the address from which the host connects", c.remote().Addr(), j.hosts[1].address())
}

// danceAfter lets something come before the host that is waited for.
func danceAfter(t *T, f func(j *job, to *host)) {
	j := t.ready(setup{place: first})
	f(j, j.hosts[0])
	j.dialHost(j.hosts[1], j.hosts[0])
	j.quiet("no program sends")
	j.finish()
}

func intruder(t *T, says []byte) {
	danceAfter(t, func(j *job, to *host) {
		c := j.connect(j.hosts[1], to)
		c.raw(says)
		c.closed("it is not a host that is waited for")
	})
}

func halfIntruder(t *T) {
	danceAfter(t, func(j *job, to *host) {
		j.connect(j.hosts[1], to).close()
		c := j.connect(j.hosts[1], to)
		c.raw([]byte{0, 0})
		c.close()
		c = j.connect(j.hosts[1], to)
		c.raw([]byte{0, 0, 0})
		c.reset()
	})
}

func silentIntruder(t *T) {
	danceAfter(t, func(j *job, to *host) {
		j.connect(j.hosts[1], to)
		j.connect(j.hosts[1], to).raw([]byte{0})
	})
}

func sameHostTwice(t *T) {
	j := t.ready(setup{place: first, others: [][]int{{2}, {1}}})
	a, b := j.connect(j.hosts[1], j.hosts[0]), j.connect(j.hosts[1], j.hosts[0])
	a.raw(u32(1))
	b.raw(u32(1))
	if !ended(t, a, b) {
		a, b = b, a
	}
	b.close() // a is the channel
	j.addChannel(a, j.hosts[1], j.hosts[0])
	j.dialHost(j.hosts[2], j.hosts[0])
	j.quiet("no program sends")
	j.finish()
}

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
