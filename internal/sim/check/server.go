package check

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// answer is the part of a COLL of the server that is still to come: the values of
// one client after the other.
type answer struct {
	sub  *submissions
	next int // client
	left int64
	crc  uint32
	want uint32
}

func (t *commandStream) beginDown(s *stream) error {
	m := &t.now
	switch {
	case t.phase == saysAuth:
		return t.chooses(s)
	case t.phase == saysIMPI && m.cmd == cmdIMPI && m.size == 4:
		t.phase = saysLabels
		return t.sizes(s)
	case t.phase == saysLabels && m.cmd == cmdColl && m.size >= 8:
		return nil
	case t.phase == saysLabels && m.cmd == cmdDone && m.size == 0:
		t.phase = saysFail
		return t.runs(s)
	case t.phase == saysFail && m.cmd == cmdColl && m.size > 8 && m.size <= 8+maxFail:
		return nil
	}
	return t.wrong(s, "%v may say %s now", s.from, phaseNames[t.phase])
}

// chooses judges the answer to AUTH, which has no command header.
// IMPI ch.2, Authentication.
func (t *commandStream) chooses(s *stream) error {
	k, m := t.client, &t.now
	m.value, m.cmd = m.cmd, cmdChoice
	if !k.auth || m.value > mechKey || k.mask>>m.value&1 == 0 || m.size != 0 {
		return t.wrong(s, "mechanism %d with %d bytes, where the server has read mask %b", m.value, m.size, k.mask)
	}
	t.phase, k.asked = saysIMPI, m.value
	return nil
}

// sizes judges whether the server may announce the number of clients now. IMPI ch.2, IMPI command:
// when all have joined.
func (t *commandStream) sizes(s *stream) error {
	for i := range s.c.clients {
		k := &s.c.clients[i]
		if !k.ranked || k.asked == mechKey && !k.key {
			return t.wrong(s, "client %d has not joined", i)
		}
	}
	return nil
}

func (t *commandStream) finishDown(s *stream) error {
	if n := len(s.c.clients); t.now.cmd == cmdIMPI && binary.BigEndian.Uint32(t.payload) != uint32(n) {
		return t.wrong(s, "it says %d, the job has %d clients", binary.BigEndian.Uint32(t.payload), n)
	}
	return nil
}

// answers judges label and mask of an answer.
//
// IMPI ch.2, COLL command: an answer goes to all clients when all have sent the
// label or something behind it, in ascending order of labels.
func (t *commandStream) answers(s *stream) error {
	c, label := s.c, t.now.value
	mask := binary.BigEndian.Uint32(t.payload[4:])
	if next, ok := c.nextLabel(t.client.told); !ok || next != label {
		return t.wrongLabel(s, "the next label that a client sent is %s", labelName(next))
	}
	t.client.told = label
	sub := c.submissions(label)
	size := int64(0)
	for i := range c.clients {
		k := &c.clients[i]
		if !sub.of[i].read && k.top < label && !k.done && !k.gone() {
			return t.wrongLabel(s, "client %d has still to send that label or a higher one", i)
		}
		if sub.of[i].read != (mask>>i&1 != 0) {
			return t.wrongLabel(s, "in the mask %b, bit %d is wrong", mask, i)
		}
		if sub.of[i].read {
			size += sub.of[i].size
		}
	}
	if uint64(mask)>>len(c.clients) != 0 || t.now.size != 8+size {
		return t.wrongLabel(s, "it has %d bytes and mask %b, the clients sent %d bytes", t.now.size-8, mask, size)
	}
	t.answer = answer{sub: sub}
	return t.answer.turn(s, t)
}

// misses judges the server's message that a client is lost without which the job goes on. Only
// clients that understand it get it, and only of another client whose connection has ended.
func (t *commandStream) misses(s *stream) error {
	c, all := s.c, uint32(uint64(1)<<len(s.c.clients)-1)
	mask := binary.BigEndian.Uint32(t.payload[4:])
	who := bits.TrailingZeros32(mask)
	switch {
	case t.now.value != labelLost || c.submissions(labelVersion).hears != all:
		return t.wrongLabel(s, "after DONE, where the clients that list 0.%d are %b", lostVersion, c.submissions(labelVersion).hears)
	case mask&all == 0 || mask != 1<<who || who == t.client.rank || !c.clients[who].gone():
		return t.wrongLabel(s, "the mask %b is of no other client that is gone", mask)
	}
	return nil
}

func (k *client) gone() bool {
	return k.link != nil && (k.link.cut || k.link.stream(k.link.a.commands == k.up).ended)
}

// data compares the values of an answer with what the clients sent, in ascending
// order of their ranks.
func (a *answer) data(s *stream, t *commandStream, b []byte) error {
	for len(b) > 0 && a.sub != nil {
		n := min(a.left, int64(len(b)))
		a.crc = crc32.Update(a.crc, table, b[:n])
		a.left -= n
		b = b[n:]
		if err := a.turn(s, t); err != nil {
			return err
		}
	}
	return nil
}

// turn goes on to the next client that has values when one's are complete.
func (a *answer) turn(s *stream, t *commandStream) error {
	for a.left == 0 {
		if a.crc != a.want {
			return t.wrongLabel(s, "the values of client %d are not those that it sent", a.next-1)
		}
		for a.next < maxClients && !a.sub.of[a.next].read {
			a.next++
		}
		if a.next == maxClients {
			a.sub = nil
			return nil
		}
		of := &a.sub.of[a.next]
		a.left, a.want, a.crc = of.size, of.crc, 0
		a.next++
	}
	return nil
}

// runs judges the server's DONE.
func (t *commandStream) runs(s *stream) error {
	c := s.c
	for i := range c.clients {
		if k := &c.clients[i]; !k.done && !k.gone() {
			return t.wrong(s, "client %d has not said DONE", i)
		}
	}
	if next, ok := c.nextLabel(t.client.told); ok {
		return t.wrongLabel(s, "%s has not been answered", labelName(next))
	}
	for _, m := range []struct {
		label, want uint32
	}{{labelDatalen, c.job.Datalen}, {labelAckmark, c.job.AckMark}, {labelHiwater, c.job.HiWater}} {
		if sub := c.labels[m.label]; sub != nil && sub.least != m.want {
			return t.wrongLabel(s, "the least %s is %d, and the job has %d", labelName(m.label), sub.least, m.want)
		}
	}
	return nil
}
