package script

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrSyntax is wrapped by the errors of Parse, which name the line.
var ErrSyntax = errors.New("script: cannot be read")

// Bounds of what is read.
const (
	maxProcs = 4096
	maxCount = 1 << 26 // elements, IDs and tags
	maxWords = 1 << 16 // in a list
)

// Parse reads what String writes. Empty lines and what follows a # are ignored.
// It does not decide whether the program is legal: Check does.
func Parse(text string) (*Program, error) {
	p := &Program{}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		l := &reader{words: words[1:]}
		if err := p.line(words[0], l); err != nil {
			return nil, fmt.Errorf("%w: line %d: %s: %w", ErrSyntax, i+1, words[0], err)
		}
	}
	if p.Procs == 0 {
		return nil, fmt.Errorf("%w: there is no line \"procs N\"", ErrSyntax)
	}
	return p, nil
}

// line adds what one line says.
func (p *Program) line(verb string, l *reader) error {
	switch verb {
	case "procs":
		if p.Procs != 0 {
			return errors.New("said twice")
		}
		p.Procs = l.number("the number of ranks", 1, maxProcs)
	case "message":
		p.Messages = append(p.Messages, l.message())
	default:
		read, ok := stepReader(verb)
		if !ok {
			return errors.New("no such step")
		}
		if step := read(l); l.err == nil {
			p.Steps = append(p.Steps, step)
		}
	}
	return l.end()
}

// stepReader gives what reads the rest of a step's line.
func stepReader(verb string) (func(*reader) Step, bool) {
	if read, ok := stepReaders[verb]; ok {
		return read, true
	}
	if how, ok := named[How](howNames, verb); ok {
		return func(l *reader) Step { return Wait{l.rank(), how, l.requests()} }, true
	}
	if call, ok := named[Call](callNames, verb); ok {
		return func(l *reader) Step { return l.collective(call) }, true
	}
	return nil, false
}

var stepReaders = map[string]func(*reader) Step{
	"send":     func(l *reader) Step { return Start{Req{l.id(), SendSide}, true} },
	"isend":    func(l *reader) Step { return Start{Req{l.id(), SendSide}, false} },
	"recv":     func(l *reader) Step { return Start{Req{l.id(), RecvSide}, true} },
	"irecv":    func(l *reader) Step { return Start{Req{l.id(), RecvSide}, false} },
	"exchange": func(l *reader) Step { return Exchange{Msgs: l.ids()} },
	"replace":  func(l *reader) Step { return Exchange{Msgs: l.ids(), Replace: true} },
	"cancel":   func(l *reader) Step { return Cancel{l.request()} },
	"pause":    func(l *reader) Step { return Pause{l.rank(), l.duration()} },
	"attach":   func(l *reader) Step { return Attach{l.rank(), l.number("the size", 0, 1<<40)} },
	"detach":   func(l *reader) Step { return Detach{l.rank()} },
	"lone": func(l *reader) Step {
		s := Lone{Rank: l.rank(), Comm: l.text("comm"), Source: anySource}
		if source := l.text("source"); source != "any" {
			s.Source = l.integer("source", source, 0, maxProcs)
		}
		s.Tag = l.keyed("tag", 0, maxCount)
		return s
	},
	"null": func(l *reader) Step {
		return Null{l.rank(), l.text("comm"), choice[NullCall](l, "call", nullNames)}
	},
	"dup":   func(l *reader) Step { return Dup{l.name(), l.text("new")} },
	"split": func(l *reader) Step { return l.split() },
	"cart": func(l *reader) Step {
		return Cart{l.name(), l.text("new"), l.numbers("dims", 1, maxCount), l.flags("periodic")}
	},
	"cartsub": func(l *reader) Step { return CartSub{l.name(), l.names("new"), l.flags("keep")} },
	"window": func(l *reader) Step {
		return Window{l.name(), l.keyed("seed", 0, maxCount), l.keyed("len", 0, maxStretch)}
	},
	"free": func(l *reader) Step { return Free{l.name()} },
}

// reader takes the words of a line one after the other, and keeps the first
// error.
type reader struct {
	words []string
	err   error
}

func (l *reader) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, args...)
	}
}

func (l *reader) end() error {
	if len(l.words) > 0 {
		l.fail("%q is too much", l.words[0])
	}
	return l.err
}

// next takes a word that has to be there.
func (l *reader) next(what string) string {
	if len(l.words) == 0 {
		l.fail("%s is missing", what)
		return ""
	}
	word := l.words[0]
	l.words = l.words[1:]
	return word
}

// integer understands word as a number within bounds.
func (l *reader) integer(what, word string, lowest, highest int) int {
	n, err := strconv.Atoi(word)
	if err != nil || n < lowest || n > highest {
		l.fail("%s is %q, not a number from %d to %d", what, word, lowest, highest)
		return lowest
	}
	return n
}

func (l *reader) number(what string, lowest, highest int) int {
	return l.integer(what, l.next(what), lowest, highest)
}

func (l *reader) rank() int { return l.number("the rank", 0, maxProcs) }
func (l *reader) id() int   { return l.number("the message", 1, maxCount) }

func (l *reader) name() string { return l.next("the communicator") }

func (l *reader) duration() time.Duration {
	word := l.next("the duration")
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 {
		l.fail("%q is no duration", word)
	}
	return d
}

func (l *reader) ids() (ids []int) {
	for first := true; first || len(l.words) > 0; first = false {
		ids = append(ids, l.id())
	}
	return ids
}

func (l *reader) request() Req {
	word := l.next("the request")
	q := Req{}
	switch {
	case strings.HasPrefix(word, "s"):
	case strings.HasPrefix(word, "r"):
		q.Side = RecvSide
	default:
		l.fail("%q is no request, as s1 or r1", word)
		return q
	}
	q.Msg = l.integer("the message", word[1:], 1, maxCount)
	return q
}

func (l *reader) requests() (reqs []Req) {
	for first := true; first || len(l.words) > 0; first = false {
		reqs = append(reqs, l.request())
	}
	return reqs
}

// optional takes the next word if it is key=value.
func (l *reader) optional(key string) (value string, there bool) {
	if len(l.words) == 0 {
		return "", false
	}
	if value, there = strings.CutPrefix(l.words[0], key+"="); there {
		l.words = l.words[1:]
	}
	return value, there
}

func (l *reader) text(key string) string {
	value, there := l.optional(key)
	if !there || value == "" {
		l.fail("%s= is missing", key)
	}
	return value
}

func (l *reader) keyed(key string, lowest, highest int) int {
	return l.integer(key, l.text(key), lowest, highest)
}

// choice takes key=value with one of some values.
func choice[T ~uint8](l *reader, key string, names []string) T {
	value := l.text(key)
	v, ok := named[T](names, value)
	if !ok {
		l.fail("%s is %q, not one of %s", key, value, strings.Join(names, " "))
	}
	return v
}

func (l *reader) names(key string) []string {
	value := l.text(key)
	if strings.Count(value, ",") > maxWords {
		l.fail("%s is too long", key)
		return nil
	}
	return strings.Split(value, ",")
}

func (l *reader) numbers(key string, lowest, highest int) []int {
	var numbers []int
	for _, word := range l.names(key) {
		numbers = append(numbers, l.integer(key, word, lowest, highest))
	}
	return numbers
}

func (l *reader) flags(key string) []bool {
	var flags []bool
	for _, n := range l.numbers(key, 0, 1) {
		flags = append(flags, n == 1)
	}
	return flags
}
