package protocol

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/openimpi/impi/transports/transporttest"
)

// Level says how binding a case's rule is.
type Level string

// The levels. A rule is a SHOULD where the text that could be obtained leaves it
// open, or where peers can live with the opposite.
const (
	Must   Level = "MUST"
	Should Level = "SHOULD"
)

// Needs says which part of the IUT a case is played against.
type Needs string

// The parts.
const (
	Client  Needs = "client"  // the IUT is one client of the job, with its hosts; its program may be any
	Server  Needs = "server"  // the IUT is the server
	Program Needs = "program" // a client whose procs run our interpreter
)

// Case is one rule of the standard and the way to try it.
type Case struct {
	ID        string // as in "IMPI-2-AUTH-01"; never given to another rule
	Chapter   string // as in "startup"
	Level     Level
	Expect    string // what a right implementation does, in a sentence
	Reference string // where the standard says so, as in "ch. 3, Packet Protocol"
	Needs     Needs
	Slow      bool // not part of a quick run

	Run func(*T)
}

// registered are the cases of all chapters.
var registered []Case

// register adds a chapter's cases. It is called by the init functions of case files.
func register(chapter string, cases ...Case) {
	for _, c := range cases {
		c.Chapter = chapter
		registered = append(registered, c)
	}
}

// chapters, in the order in which they are best read.
var chapters = []string{
	"startup", "bad clients", "bad servers", "dance", "packets", "flow control", "short", "long", "synchronous",
	"cancel", "probe", "order", "data", "collectives", "communicators", "bad packets", "shutdown",
}

// Cases gives all cases, by chapter and number.
func Cases() []Case {
	all := slices.Clone(registered)
	slices.SortStableFunc(all, func(a, b Case) int {
		return cmp.Or(cmp.Compare(slices.Index(chapters, a.Chapter), slices.Index(chapters, b.Chapter)), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// T is one run of a case.
type T struct {
	transporttest.T
	Case Case

	subject  Subject
	trace    *trace
	patience time.Duration
	data     Data
	dir      string // private to this run, may be used by anybody on this machine
}

// Fatalf ends the case: the rule is violated.
func (t *T) Fatalf(format string, args ...any) {
	t.trace.add("!! "+format, args...)
	t.T.Fatalf("%s", fmt.Sprintf(format, args...))
}

// must ends the case if the tester itself could not do its work.
func (t *T) must(err error) {
	if err != nil {
		t.Fatalf("the tester: %v", err)
	}
}

// equal compares a field.
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
