package check

import (
	"encoding/binary"
	"hash/crc32"
)

// table uses the polynomial that processors have an instruction for. That makes comparing packets
// by checksum cheaper than copying them.
var table = crc32.MakeTable(crc32.Castagnoli)

func (s *stream) written(data []byte) error {
	if s.ended && len(data) > 0 {
		return s.fault(RuleFraming, s.sent, "%d bytes after the end", len(data))
	}
	if s.commands != nil {
		return s.commands.written(s, data)
	}
	s.moved(s.from, -int64(len(data)))
	for len(data) > 0 {
		n, err := s.step(data)
		s.sent += int64(n)
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (s *stream) step(data []byte) (n int, err error) {
	switch {
	case len(s.greeting) > 0:
		return s.greet(data)
	case s.left > 0:
		n = int(min(int64(s.left), int64(len(data))))
		p := s.packets.back()
		p.crc = crc32.Update(p.crc, table, data[:n])
		s.left -= uint32(n)
		if s.left == 0 {
			err = s.complete(p)
		}
		return n, err
	}
	if s.have == 0 {
		s.late = s.back.endSeen && !s.link.cut || s.back.finiRead
		if len(data) >= HeaderSize {
			return HeaderSize, s.header(data[:HeaderSize], s.sent)
		}
	}
	n = copy(s.head[s.have:], data)
	if s.have += n; s.have == HeaderSize {
		s.have = 0
		err = s.header(s.head[:], s.sent+int64(n)-HeaderSize)
	}
	return n, err
}

// header processes a complete header that begins at offset at.
func (s *stream) header(h []byte, at int64) error {
	p := decode(h)
	p.at = at
	if err := s.frame(&p); err != nil {
		return err
	}
	s.count(&p)
	switch p.typ {
	case pkFini:
		return s.takeFini(&p, h)
	case pkFail:
		return s.takeFail(&p, h)
	}
	if err := s.address(&p, h); err != nil {
		return err
	}
	if err := s.allowed(&p, h); err != nil {
		return err
	}
	if s.source {
		if err := s.leaves(&p); err != nil {
			return err
		}
	}
	return s.append(&p, h)
}

func (s *stream) append(p *packet, h []byte) error {
	if s.c.trace != nil {
		s.c.trace(s.from, s.to, p.line())
	}
	p.crc = crc32.Update(0, table, h)
	s.left = uint32(p.size() - HeaderSize)
	s.packets.push(*p)
	if s.left == 0 {
		return s.complete(s.packets.back())
	}
	return nil
}

// longPiece is the data length of packets that continue a message between procs that use fast
// boxes.
const longPiece = 1 << 20

func (s *stream) most(p *packet) uint32 {
	if s.link.boxed && p.continues() {
		return max(s.c.job.Datalen, longPiece)
	}
	return s.c.job.Datalen
}

// frame judges the fields by which the rest of the stream is divided into packets.
func (s *stream) frame(p *packet) error {
	if p.typ > pkFini && p.typ != pkFail {
		return s.wrong(RuleFraming, p, "there is no such type")
	}
	if most := s.most(p); p.hasData() && p.length > most {
		return s.wrong(RuleFraming, p, "pk_len is above the data length %d", most)
	}
	return nil
}

func (s *stream) allowed(p *packet, h []byte) error {
	if s.fini && (p.counted() || !s.foreignWriter()) {
		return s.wrong(RuleFini, p, "after FINI")
	}
	if s.late && p.counted() {
		return s.wrong(RuleFini, p, "%v has finished, and %v knew", s.to, s.from)
	}
	if s.source && s.from.Kind == KindProc && s.c.procs[s.from.Number].finished {
		return s.wrong(RuleFini, p, "%v has finished", s.from)
	}
	if s.source && !s.foreignWriter() {
		return s.checkFields(p, h)
	}
	return nil
}

func (s *stream) foreignWriter() bool {
	h := s.from.Number
	if s.from.Kind == KindProc {
		h = s.c.procs[h].host
	}
	return s.c.hosts[h].Foreign
}

func (s *stream) complete(p *packet) error {
	p.complete = true
	if p.typ == pkFini || p.typ == pkFail || s.source {
		return nil
	}
	return s.carried(p)
}

func (s *stream) received(n int) error {
	if n < 0 || int64(n) > s.sent-s.read {
		return s.fault(RuleWiring, s.read, "%d bytes were read where %d had been written", n, s.sent-s.read)
	}
	greeted := max(0, min(s.base-s.read, int64(n)))
	s.read += int64(n)
	if s.commands != nil {
		s.commands.received(s)
		return nil
	}
	s.moved(s.to, int64(n)-greeted)
	for s.packets.n > 0 {
		p := s.packets.front()
		if s.last && !p.headerRead && s.read >= p.at+HeaderSize {
			p.headerRead = true
			s.announced(p)
		}
		if s.read < p.at+p.size() {
			return nil
		}
		done := s.packets.pop()
		s.taken(&done)
	}
	return nil
}

func (s *stream) taken(p *packet) {
	switch {
	case p.typ == pkFini:
		s.finiRead = true
		s.moved(s.to, -HeaderSize)
	case p.typ == pkFail:
		s.moved(s.to, -p.size())
	case s.last:
		s.arrived(p)
	default:
		p.pair.hold(s.c, s.to.Number).queue(p).push(*p)
	}
}

const greetingSize = 4

// greetingOf returns what host h sends first on the channels that it dials. IMPI ch.2, Host-to-host
// connections: its host rank.
func greetingOf(h int) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(h))
}

func (s *stream) greet(data []byte) (n int, err error) {
	n = min(len(data), len(s.greeting))
	s.moved(s.from, int64(n))
	for i := range n {
		if data[i] != s.greeting[i] {
			return n, s.fault(RuleDance, s.sent, "it says %x where its host rank is %x", data[:n], s.greeting[:n])
		}
	}
	s.greeting = s.greeting[n:]
	return n, nil
}
