package script

import (
	"math"
	"strconv"
	"strings"
)

// message reads what follows "message".
func (l *reader) message() Message {
	m := Message{ID: l.id()}
	from, to, _ := strings.Cut(l.next("from>to"), ">")
	m.From, m.To = l.integer("the sender", from, 0, maxProcs), l.integer("the receiver", to, 0, maxProcs)
	m.Comm, m.Tag, m.Kind = l.text("comm"), l.keyed("tag", 0, maxCount), l.kind()
	m.Len = l.keyed("len", 0, maxCount)
	m.Cap = l.otherwise("cap", m.Len)
	if l.has("mode") {
		m.Mode = choice[Mode](l, "mode", modeNames)
	}
	if l.has("any") {
		m.AnySource, m.AnyTag = l.wildcards()
	}
	if l.has("by") {
		m.By = choice[By](l, "by", byNames)
	}
	m.SendSlot, m.RecvSlot = l.otherwise("sendslot", 0), l.otherwise("recvslot", 0)
	return m
}

// has tells whether the next word has that key.
func (l *reader) has(key string) bool {
	return len(l.words) > 0 && strings.HasPrefix(l.words[0], key+"=")
}

// otherwise reads key=number, or takes n where there is none.
func (l *reader) otherwise(key string, n int) int {
	if value, there := l.optional(key); there {
		return l.integer(key, value, 0, maxCount)
	}
	return n
}

func (l *reader) wildcards() (source, tag bool) {
	switch value := l.text("any"); value {
	case "source":
		return true, false
	case "tag":
		return false, true
	case "source+tag":
		return true, true
	default:
		l.fail("any is %q, not source, tag or source+tag", value)
	}
	return false, false
}

func (l *reader) kind() Kind {
	value := l.text("type")
	k, ok := kindNamed(value)
	if !ok {
		l.fail("there is no type %q", value)
	}
	return k
}

// collective reads what follows the name of a collective operation.
func (l *reader) collective(call Call) Step {
	s := Collective{Call: call, Comm: l.name()}
	if call == Barrier {
		return s
	}
	s.ID, s.Kind = l.keyed("id", 0, maxCount), l.kind()
	if call.rooted() {
		s.Root = l.keyed("root", 0, maxProcs)
	}
	if call.reduces() {
		s.Op = choice[Op](l, "op", opNames)
	}
	s.Counts = l.numbers("counts", 0, maxCount)
	s.Gap = l.otherwise("gap", 0)
	s.InPlace = l.otherwise("inplace", 0) != 0
	return s
}

func (l *reader) split() Step {
	s := Split{Comm: l.name()}
	if l.has("new") {
		if value, _ := l.optional("new"); value != "" {
			s.New = strings.Split(value, ",")
		}
	}
	for _, word := range l.names("colors") {
		color := NoColor
		if word != "none" {
			color = l.integer("a color", word, 0, math.MaxInt32)
		}
		s.Colors = append(s.Colors, color)
	}
	for _, word := range l.names("keys") {
		key, err := strconv.ParseInt(word, 10, 32)
		if err != nil {
			l.fail("a key is %q, not a number of 32 bits", word)
		}
		s.Keys = append(s.Keys, int(key))
	}
	return s
}
