package play

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/conformance/iut"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// Level is how binding a case's rule is.
type Level string

// The levels. A rule is a SHOULD where the text that could be obtained leaves it
// open, or where peers can live with the opposite.
const (
	Must   Level = "MUST"
	Should Level = "SHOULD"
)

// Case is one rule of the standard and the way to check it.
type Case struct {
	ID        string // as in "IMPI-2-AUTH-01"; never given to another rule
	Chapter   string // as in "startup"
	Level     Level
	Expect    string // what a right implementation does, in a sentence
	Reference string // where the standard says so, as in "ch. 3, Packet Protocol"
	Needs     iut.Needs
	Slow      bool // not part of a quick run

	Run func(*T)
}

// Chapters are the chapters of the cases, in the best order for reading.
var Chapters = []string{
	"startup", "bad clients", "bad servers", "dance", "packets", "flow control", "short", "long", "synchronous",
	"cancel", "probe", "order", "data", "collectives", "communicators", "bad packets", "shutdown",
}

// Cases returns all cases, by chapter and number.
func Cases() []Case {
	var all []Case
	for _, c := range texts().Cases {
		all = append(all, Case{
			ID: c.ID, Chapter: c.Chapter, Level: Level(c.Level), Needs: iut.Needs(c.Needs), Slow: c.Slow, Expect: c.Expect, Reference: c.Reference,
			Run: func(t *T) { t.play(c.Steps) },
		})
	}
	slices.SortStableFunc(all, func(a, b Case) int {
		return cmp.Or(cmp.Compare(slices.Index(Chapters, a.Chapter), slices.Index(Chapters, b.Chapter)), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Data is a form of elements on the wire.
type Data string

// The forms. The standard forbids NativeLittle, but LAM/MPI sends it where all its machines have
// one byte order; without it no other property of a collective operation with LAM could be judged.
const (
	External32   Data = "external32"
	NativeLittle Data = "native-le"
)

// limit is how long any case may take, as a multiple of the run's patience.
const limit = 12

// Run plays a case against an implementation; patience is the maximum time of each step. It also
// returns the trace of all messages.
func Run(c Case, s iut.Subject, patience time.Duration, d Data) (out transporttest.Outcome, trace []string) {
	if ok, reason := s.Has(c.Needs); !ok {
		return transporttest.Outcome{Verdict: transporttest.Skip, Reason: reason}, nil
	}
	dir, err := tempDir()
	if err != nil {
		return transporttest.Outcome{Verdict: transporttest.Fail, Reason: err.Error()}, nil
	}
	defer os.RemoveAll(dir)
	defer sweep(dir)
	tr := newTrace()
	out = transporttest.Record(func(inner transporttest.T) {
		c.Run(&T{T: inner, Case: c, subject: s, trace: tr, patience: patience, data: d, dir: dir})
	}, limit*patience)
	return out, tr.lines()
}

// T is one run of a case.
type T struct {
	transporttest.T
	Case Case

	subject  iut.Subject
	trace    *trace
	at       string // the step that is played, as file and line
	patience time.Duration
	data     Data
	dir      string // private to this run, open to all users of this machine
}

// Fatalf ends the case: the rule is violated.
func (t *T) Fatalf(format string, args ...any) {
	t.trace.add("!! "+t.at+" "+format, args...)
	t.T.Fatalf("%s", fmt.Sprintf(format, args...))
}

// must ends the case if the tester itself could not do its work.
func (t *T) must(err error) {
	if err != nil {
		t.Fatalf("the tester: %v", err)
	}
}

func equal[V comparable](t *T, what string, got, want V) {
	if got != want {
		t.Fatalf("%s is %v, not %v", what, got, want)
	}
}

// tempDir makes a directory that other users can use: some IUTs refuse root.
func tempDir() (string, error) {
	d, err := os.MkdirTemp("", "impi-conform-")
	if err != nil {
		return "", err
	}
	return d, os.Chmod(d, 0o777) //nolint:gosec // the IUT may run as another user
}
