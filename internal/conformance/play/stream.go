package play

import "github.com/openimpi/impi/internal/conformance/script"

// stream is a long message of the IUT's proc and one of the tester's that cross. The
// tester acknowledges as late as it can, so that the IUT's window is full most of the
// time, and has the IUT say something while it is: a channel keeps its order, so a
// packet that is one too many has come by then.
type stream struct {
	*procPair
	theirs      packet // the IUT's first packet
	ours        packet // the tester's first packet
	drqid       uint64 // the tester's choice
	asked       uint64 // the IUT's choice
	want, data  []byte // of the IUT and of the tester
	taken, gone int    // bytes received and sent
	full        int    // packets without PROTOACK at which the IUT stops
}

// stream passes the rest of a message of the tester and of one of the IUT, both of which the
// receivers have acknowledged.
func (p *player) stream(w script.Words) {
	ours, theirs := p.said[w.Word(0)], p.said[w.Word(1)]
	s := &stream{procPair: p.k, theirs: theirs.packet, ours: ours.packet, drqid: w.Number("theirs", 0), asked: w.Number("drqid", 0),
		want: theirs.data, data: ours.data, taken: len(theirs.packet.data), gone: len(ours.packet.data)}
	s.run()
}

func (s *stream) run() {
	s.full = int(s.hiwater)
	for s.taken < len(s.want) || s.gone < len(s.data) {
		switch {
		case s.taken == len(s.want), s.behind() >= s.full:
			s.provoke()
			for s.behind() >= int(s.ackmark) {
				s.acks()
			}
		case s.stopped():
			s.full = s.behind() // it may stop before it has to
		default:
			s.use(s.ch.next("a packet of the IUT's long message"))
		}
	}
}

// stopped reports whether the IUT sends nothing more for a moment, and has sent enough that it may
// get a PROTOACK.
func (s *stream) stopped() bool {
	s.ch.watch(10 * glance)
	s.ch.mu.Lock()
	nothing := len(s.ch.queue) == 0 && s.ch.err == nil
	s.ch.mu.Unlock()
	return nothing && s.behind() >= int(s.ackmark)
}

// behind counts the packets of the IUT that the tester has not acknowledged, ahead those
// of the tester that the IUT has not.
func (s *stream) behind() int {
	w, a := s.windows()
	return w.got - w.told*a
}

func (s *stream) ahead() int {
	w, a := s.windows()
	return w.sent - w.acked*a
}

func (s *stream) windows() (w window, ackmark int) {
	s.ch.mu.Lock()
	defer s.ch.mu.Unlock()
	return *s.ch.window(s.p.id, s.u.id), int(s.ackmark)
}

// provoke sends as many packets as the IUT must acknowledge, and waits until it does.
func (s *stream) provoke() {
	for s.ahead() < int(s.ackmark) && s.gone < len(s.data) {
		n := min(int(s.datalen), len(s.data)-s.gone)
		s.send(piece(s.ours, s.asked, s.data[s.gone:s.gone+n]))
		s.gone += n
	}
	for s.ahead() >= int(s.ackmark) {
		s.use(s.ch.next("the PROTOACK that is due"))
	}
}

func (s *stream) use(p packet) {
	if p.typ == pkProtoAck {
		return // the packet is counted
	}
	if p.typ != pkData || s.taken == len(s.want) {
		s.t.Fatalf("%s: %v came where PROTOACKs and what is left of a long message should be", s.ch.c.name, &p)
	}
	n := min(int(s.datalen), len(s.want)-s.taken)
	s.continues(&p, &s.theirs, s.drqid, "the long message")
	s.hasData(&p, s.want[s.taken:s.taken+n], "a continuation of the long message")
	s.taken += n
}
