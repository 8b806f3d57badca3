package play

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"time"
)

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

func barrierFirst(t *T) {
	j := t.join(setup{})
	j.finalize()
	j.takeBarrier(j.iut(0), j.peer(0))
	ch := j.channels[0]
	ch.stays("the barrier has not been released")
	j.send(j.collective(pkData, j.peer(0), j.iut(0), tagBarrier, nil))
	ch.takesFini()
}

func waitsForMasters(t *T) {
	j := t.join(setup{place: first, others: [][]int{{2}, {1}, {1}}})
	j.finalize()
	for _, i := range []int{3, 1} { // in another order than it receives them
		j.send(j.collective(pkData, j.masters()[i], j.iut(0), tagBarrier, nil))
	}
	for _, ch := range j.channels {
		ch.stays("client 2 has not come to the barrier")
	}
	j.send(j.collective(pkData, j.masters()[2], j.iut(0), tagBarrier, nil))
	for _, m := range j.masters()[1:] {
		j.takeBarrier(j.iut(0), m)
	}
}

func oneFiniEach(t *T) {
	j := t.join(setup{iutHosts: []int{1, 2}, others: [][]int{{1, 1}}})
	j.do(j.iut(1), "finalize")
	j.do(j.iut(2), "finalize")
	j.do(j.iut(0), "ping")
	for _, ch := range j.channels {
		ch.empty("one proc has not called MPI_Finalize")
		if ch.finished() {
			t.Fatalf("%s: FINI came before all procs have called MPI_Finalize", ch.c.name)
		}
	}
	j.do(j.iut(0), "finalize")
	j.barrier()
	j.finishChannels()
}

func waitsForFinis(t *T) {
	half := func() *job {
		j := t.join(setup{others: [][]int{{2}, {1}}})
		j.finalize()
		j.barrier()
		for _, ch := range j.channels {
			ch.takesFini()
		}
		j.channels[0].send(packet{typ: pkFini})
		return j
	}
	const why = "FINI has not gone over one of the channels"
	half().unanswered(why)
	j := half()
	j.conn.silent(why)
	if err := j.channels[1].failure(); err != nil {
		t.Fatalf("%s: %s before FINI went the other way", j.channels[1].c.name, ending(err))
	}
	j.channels[1].send(packet{typ: pkFini})
	for _, ch := range j.channels {
		ch.hangUp()
	}
	j.finished()
	j.run.succeeds()
}

func earlyFini(t *T) {
	j := t.join(setup{})
	j.finalize()
	j.takeBarrier(j.iut(0), j.peer(0))
	ch := j.channels[0]
	release, fini := j.collective(pkData, j.peer(0), j.iut(0), tagBarrier, nil), packet{typ: pkFini}
	ch.c.send("the barrier's release and FINI", append(release.bytes(), fini.bytes()...))
	ch.takesFini()
	ch.hangUp()
	j.finished()
	j.run.succeeds()
}

func lateAck(t *T) {
	j := t.join(setup{ackmark: 2, hiwater: 8})
	ch := j.channels[0]
	ch.handle()
	me, it := j.peer(0), j.iut(0)
	for range 3 {
		j.do(it, "send dst=0 tag=1 type=byte n=1")
		j.next(it, me, pkData, "a message")
	}
	j.finalize()
	j.barrier() // the fourth packet
	ch.takesFini()
	for range 2 {
		ch.send(packet{typ: pkProtoAck, src: me.id, dest: it.id})
	}
	j.finishChannels()
}

func peerDies(t *T) {
	j := t.join(setup{})
	j.channels[0].c.close()
	j.run.fails("its peer has died")
}

// deserted checks how a client ends whose proc ended without MPI_Finalize.
func (j *job) deserted() {
	ch := j.channels[0]
	if err := ch.ends("a proc of it has died"); ch.finished() || !errors.Is(err, io.EOF) && !isReset(err) {
		j.t.Fatalf("%s: %v; a FINI came: %v", ch.c.name, err, ch.finished())
	}
	ch.c.close()
	if rest := j.conn.closed("a proc of the client has died"); len(rest.data) >= 4 && string(rest.data[:4]) == cmdFini.String() {
		j.t.Fatalf("%s: FINI came", j.conn.name)
	}
	j.run.fails("one of its procs has died")
}

func programExits(t *T) {
	j := t.join(setup{})
	j.start(j.iut(0), "exit code=3")
	j.deserted()
}

func programAborts(t *T) {
	j := t.join(setup{})
	j.start(j.iut(0), "abort code=3")
	j.deserted()
}
