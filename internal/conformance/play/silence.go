package play

import "time"

// glance is how long a connection on which nothing may come is watched at least. What
// proves silence is the order of events; this is for where there is none, and for an
// IUT that needs a moment to do wrong.
const glance = 100 * time.Millisecond

// while is how long something is waited for that an IUT need not say.
const while = 10 * glance

// probe has the IUT say something on a channel: a channel keeps its order, so whatever
// was sent before has come then. It asks each proc behind the channel to cancel a
// message that never was. An MPI must answer that by itself, whatever its program waits
// for; one that does not is not waited for long, and is not asked again: other cases judge
// it. Nobody can tell then whether it has counted the packet.
func (ch *channel) probe() {
	from := ch.prober()
	if from == nil || ch.deaf {
		return
	}
	end := time.After(while)
	for _, to := range ch.remote.procs {
		ch.mu.Lock()
		room := ch.room(from.id, to.id)
		ch.mu.Unlock()
		if !room {
			continue
		}
		id, answered := ch.j.control.ask()
		if ch.write(&packet{typ: pkCancel, src: from.id, dest: to.id, srqid: id}) != nil {
			return // the channel's reader has noticed
		}
		ch.watchUntil(end, func() bool { return isClosed(answered) || ch.err != nil })
		if isClosed(answered) {
			continue
		}
		forgotten := ch.j.control.giveUp(id)
		ch.mu.Lock()
		defer ch.mu.Unlock()
		if ch.deaf = true; forgotten {
			ch.settled(pair{from.id, to.id}, -1)
		}
		return
	}
}

// settled records whether the IUT has counted a probe. n is -1 for a probe that was written, which
// makes it unsure, and 1 for one of these that was answered after all. The caller holds mu.
func (ch *channel) settled(x pair, n int) {
	w := ch.window(x.from, x.to)
	w.sent, w.unsure = w.sent+n, w.unsure-n
	ch.changed()
}

// prober is the proc of the tester that sends probes. Its windows must be open, and nothing else
// may use them.
func (ch *channel) prober() *proc {
	self := ch.j.control.self
	if self != nil && self.host == ch.local {
		return self
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.manual {
		return nil
	}
	return ch.local.procs[len(ch.local.procs)-1]
}

// unanswered proves the same of a server. It closes the first of the connections one way: a client
// is lost, and the server must close them all. The server may say why in a command of its own.
func unanswered(why string, all ...*conn) {
	all[0].hangUp()
	for _, c := range all {
		b, err := c.tryRead(recordHeader, while)
		if err == nil && !command(uint32s(b)[0]).known() {
			continue
		}
		if len(b) > 0 {
			c.said(b, why)
		}
	}
}

func (c *conn) hangUp() {
	c.t.trace.add("-> %s: closed, one way", c.name)
	_ = c.tcp.CloseWrite()
}

// question is a probe that was not answered yet.
type question struct {
	answered chan struct{} // closed by the answer
	late     bool          // its waiter has given up
}

// ask returns the request ID of a new probe, and a channel that is closed when CANCELNO comes for
// it.
func (c *control) ask() (id uint64, answered <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	id = controlProbes + c.last
	q := &question{answered: make(chan struct{})}
	c.probes[id] = q
	return id, q.answered
}

// giveUp stops waiting for the answer to a probe. It returns false if the answer has come.
func (c *control) giveUp(id uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.probes[id]
	if q != nil {
		q.late = true
	}
	return q != nil
}

// answered returns the probe that the packet answers, nil if it is something else.
func (c *control) answered(p *packet) *question {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.probes[p.srqid]
	if p.typ != pkCancelNo || q == nil {
		return nil
	}
	close(q.answered)
	delete(c.probes, p.srqid)
	return q
}
