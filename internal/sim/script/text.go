package script

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/sim/line"
)

// ErrSyntax is wrapped by the errors of Parse, which name the line.
var ErrSyntax = errors.New("script: cannot be read")

// verbs are the first words of lines, and the steps that they stand for, with the defaults of
// fields.
var verbs = map[string]Step{
	"send": Start{Blocking: true}, "isend": Start{}, "recv": Start{Req{Side: RecvSide}, true}, "irecv": Start{Req: Req{Side: RecvSide}},
	"replace": Exchange{Replace: true},
}

func init() {
	for h := range howNames {
		verbs[howNames[h]] = Wait{How: CompleteBy(h)}
	}
	for c := range callNames {
		verbs[callNames[c]] = Collective{Call: Call(c)}
	}
	for _, s := range []Step{Exchange{}, Cancel{}, Unmatched{}, Null{}, Pause{}, Attach{}, Detach{}, Dup{}, Split{}, Cart{}, CartSub{}, Window{}, Free{},
		OpenPort{}, ClosePort{}, Meet{}, Spawn{}, Idup{}, Finish{}, Merge{}, Intercomm{}, Disconnect{}, Death{}, Recover{}, Fail{},
		Publish{}, Unpublish{}, Lookup{}, Sever{}, Rejoin{}} {
		verbs[Verb(s)] = s
	}
}

// Verb returns the first word of a step's line.
func Verb(s Step) string {
	switch s := s.(type) {
	case Start:
		return [...]string{"i", ""}[truth[int](s.Blocking)] + [...]string{"send", "recv"}[s.Side]
	case Exchange:
		return [...]string{"exchange", "replace"}[truth[int](s.Replace)]
	case Wait:
		return s.How.String()
	case Collective:
		return s.Call.String()
	}
	return strings.ToLower(reflect.TypeOf(s).Name())
}

func lineOf(s Step) string { return line.Write(Verb(s), s, verbs[Verb(s)]) }

// String formats the program for Parse: a line for each step, and one for each message before the
// first step that uses it.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, line.Write("procs", procsLine{p.worlds()}, procsLine{}))
	byID, written := p.index(), map[int]bool{}
	for _, s := range p.Steps {
		for _, id := range messages(s) {
			if m := byID[id]; m != nil && !written[id] {
				written[id] = true
				fmt.Fprintln(&b, m)
			}
		}
		fmt.Fprintln(&b, lineOf(s))
	}
	for i := range p.Messages {
		if m := &p.Messages[i]; !written[m.ID] {
			fmt.Fprintln(&b, m)
		}
	}
	return b.String()
}

type procsLine struct {
	Worlds []int `line:"@"`
}

// asLong is the Cap of a Message in its line if it is the same as Len.
const asLong = -1

func (m *Message) String() string {
	c := *m
	if c.Cap == c.Len {
		c.Cap = asLong
	}
	return line.Write("message", c, Message{From: never, To: never, Tag: never, Len: never, Kind: Kind(len(kinds)), Cap: asLong})
}

// Parse parses the output of String. Empty lines and what follows a # are ignored. It does not
// check whether the program is legal: Check does.
func Parse(text string) (*Program, error) {
	p := &Program{}
	for i, l := range strings.Split(text, "\n") {
		l, _, _ = strings.Cut(l, "#")
		if words := strings.Fields(l); len(words) > 0 {
			if err := p.line(words[0], words[1:]); err != nil {
				return nil, fmt.Errorf("%w: line %d: %s: %w", ErrSyntax, i+1, words[0], err)
			}
		}
	}
	if p.Procs == 0 {
		return nil, fmt.Errorf("%w: there is no line \"procs N\"", ErrSyntax)
	}
	return p, nil
}

func (p *Program) line(verb string, words []string) error {
	step, ok := verbs[verb]
	switch {
	case verb == "procs":
		if p.Procs != 0 {
			return errors.New("said twice")
		}
		var l procsLine
		err := line.Read(words, &l)
		for _, n := range l.Worlds {
			p.Procs += n
		}
		if len(l.Worlds) > 1 {
			p.Worlds = l.Worlds
		}
		return err
	case verb == "message":
		m := Message{Cap: asLong}
		err := line.Read(words, &m)
		if m.Cap == asLong {
			m.Cap = m.Len
		}
		p.Messages = append(p.Messages, m)
		return err
	case !ok:
		return errors.New("no such step")
	}
	v := reflect.New(reflect.TypeOf(step))
	v.Elem().Set(reflect.ValueOf(step))
	err := line.Read(words, v.Interface())
	p.Steps = append(p.Steps, v.Elem().Interface().(Step))
	return err
}

// String returns the request as it appears in steps: s or r and the message.
func (q Req) String() string { return [...]string{"s", "r"}[q.Side] + strconv.Itoa(q.Msg) }

func (q *Req) UnmarshalText(text []byte) (err error) {
	side, msg := text[:min(1, len(text))], text[min(1, len(text)):]
	i := slices.Index([]string{"s", "r"}, string(side))
	q.Side = Side(max(i, 0))
	if q.Msg, err = strconv.Atoi(string(msg)); err != nil || i < 0 {
		return fmt.Errorf("%q is no request, as s1 or r1", text)
	}
	return nil
}

func set[T ~uint8](v *T, names []string, name []byte) error {
	i := slices.Index(names, string(name))
	if i < 0 {
		return fmt.Errorf("%q is not one of %s", name, strings.Join(names, " "))
	}
	*v = T(i)
	return nil
}

func (m *Mode) UnmarshalText(name []byte) error { return set(m, modeNames, name) }

func (b *ReceiveBy) UnmarshalText(name []byte) error { return set(b, byNames, name) }

func (n *NullCall) UnmarshalText(name []byte) error { return set(n, nullNames, name) }

func (o *Op) UnmarshalText(name []byte) error { return set(o, opNames, name) }

func (l *SpawnFailure) UnmarshalText(name []byte) error { return set(l, lackNames, name) }

func (k *Kind) UnmarshalText(name []byte) error {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].name
	}
	return set(k, names, name)
}
