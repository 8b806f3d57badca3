package check

import (
	"encoding/binary"
	"hash/crc32"
)

// commandSize is the size of the header of all commands. The answer to AUTH and the key are as
// long, and have no payload.
const commandSize = 8

// Commands, and numbers for messages without a command header. IMPI ch.2, Client-Server Protocol;
// FAIL is ours.
const (
	cmdAuth   = 0x41555448
	cmdIMPI   = 0x494D5049
	cmdColl   = 0x434F4C4C
	cmdDone   = 0x444F4E45
	cmdFini   = 0x46494E49
	cmdINIF   = 0x494E4946 // FINI in the other byte order, as some clients send it
	cmdFail   = 0x4641494C
	cmdChoice = 1 // the answer to AUTH
	cmdKey    = 2
	cmdOther  = 3 // skipped
)

const maxFail = 1024

// maxKept is the most bytes of a payload that are looked at; longer ones are
// compared by their checksums.
const maxKept = 1 << 16

// command is what is kept of a command: everything but most of its payload.
type command struct {
	cmd   uint32
	at    int64  // offset at which it begins
	size  int64  // of the payload
	value uint32 // AUTH: mask; choice: mechanism; COLL: label
}

// phase is what a side of a connection to the server may say next.
type phase uint8

const (
	saysAuth   phase = iota // AUTH, or the answer to it
	saysIMPI                // IMPI, perhaps with the key before it
	saysLabels              // COLL, DONE
	saysFini
	saysFail // FAIL, or nothing
	saysNothing
)

var phaseNames = [...]string{"AUTH", "IMPI", "COLL or DONE", "FINI", "FAIL", "nothing more"}

// commandStream is what one side of a connection to the server says.
type commandStream struct {
	client *client
	up     bool // the client sends it
	phase  phase

	head    [commandSize]byte
	have    int
	now     command
	left    int64 // remaining bytes of the payload
	payload []byte
	crc     uint32 // of the payload except the label, on the way up
	answer  answer // on the way down
	said    queue[command]
}

func (c *Checker) placeServerLink(l *link, rank int) (why string) {
	k := &c.clients[rank]
	if k.link != nil {
		return "that client has its link"
	}
	c.connected++
	k.link = l
	up := l.stream(l.a.from.Kind == KindClient)
	k.up, k.down = &commandStream{client: k, up: true}, &commandStream{client: k}
	up.commands, up.back.commands = k.up, k.down
	return ""
}

func (t *commandStream) written(s *stream, data []byte) error {
	for len(data) > 0 {
		n, err := t.step(s, data)
		s.sent += int64(n)
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (t *commandStream) step(s *stream, data []byte) (n int, err error) {
	if t.left > 0 {
		n = int(min(t.left, int64(len(data))))
		t.left -= int64(n)
		err = t.data(s, data[:n])
	} else {
		n = copy(t.head[t.have:], data)
		if t.have += n; t.have < commandSize {
			return n, nil
		}
		t.have, t.payload, t.crc = 0, t.payload[:0], 0
		t.now = command{
			cmd: binary.BigEndian.Uint32(t.head[:]),
			at:  s.sent + int64(n) - commandSize, size: int64(int32(binary.BigEndian.Uint32(t.head[4:]))),
		}
		err = t.begin(s)
		t.left = t.now.size
	}
	if err == nil && t.left == 0 {
		if err = t.finish(s); err == nil {
			t.said.push(t.now)
		}
	}
	return n, err
}

func (t *commandStream) begin(s *stream) error {
	if !t.up && t.client.fini {
		return t.wrong(s, "the server has read the client's FINI")
	}
	if t.now.cmd == cmdFail && t.phase != saysNothing && t.now.size >= 0 && t.now.size <= maxFail {
		t.phase = saysNothing
		return nil
	}
	if t.phase == saysNothing {
		return t.wrong(s, "it has nothing more to say")
	}
	if t.up {
		return t.beginUp(s)
	}
	return t.beginDown(s)
}

func (t *commandStream) data(s *stream, b []byte) error {
	// The label, and in an answer the mask, come before the values.
	prefix := 0
	if t.now.cmd == cmdColl {
		prefix = 4
		if !t.up {
			prefix = 8
		}
	}
	if n := min(prefix-len(t.payload), len(b)); n > 0 {
		t.payload, b = append(t.payload, b[:n]...), b[n:]
		if len(t.payload) == prefix {
			t.now.value = binary.BigEndian.Uint32(t.payload)
			if err := t.labelled(s); err != nil {
				return err
			}
		}
	}
	if !t.up && t.now.cmd == cmdColl {
		return t.answer.data(s, t, b)
	}
	t.crc = crc32.Update(t.crc, table, b)
	t.payload = append(t.payload, b[:min(len(b), maxKept-len(t.payload))]...)
	return nil
}

// labelled judges a COLL as soon as its label, and in an answer its mask, are complete.
func (t *commandStream) labelled(s *stream) error {
	if t.up {
		return t.submits(s)
	}
	if t.phase == saysFail {
		return t.misses(s)
	}
	return t.answers(s)
}

func (t *commandStream) finish(s *stream) error {
	if t.now.cmd == cmdFail {
		if s.c.failed == nil {
			s.c.failed = s.fault(RuleStartup, t.now.at, "%v says FAIL: %q", s.from, t.payload)
		}
		return nil
	}
	if t.up {
		return t.finishUp(s)
	}
	return t.finishDown(s)
}

func (t *commandStream) received(s *stream) {
	for t.said.n > 0 {
		if m := t.said.front(); s.read < m.at+commandSize+m.size {
			break
		}
		m := t.said.pop()
		if t.up {
			s.c.serverRead(t.client, &m)
		} else {
			t.client.read(&m)
		}
	}
}

func (t *commandStream) wrong(s *stream, format string, args ...any) *Violation {
	v := s.fault(RuleStartup, t.now.at, format, args...)
	v.Packet = t.now.line()
	return v
}

func (t *commandStream) wrongLabel(s *stream, format string, args ...any) error {
	v := t.wrong(s, format, args...)
	v.Rule = RuleLabel
	return v
}
