package weakmem

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The models below are what procs do in memory that they share, with the orders that the sources
// have. Each is tried as it is, and with each order weakened, which must be found out: so every
// order that is needed is there, and every one that is stronger than it needs to be is known.

// point is a place of the sources where procs access a word that they share, and the order there.
type point struct {
	name  string
	file  string // below the repository's root
	code  string // the statement, as it stands there
	order Order
	less  Order  // the next weaker one
	slack string // why less would do; "": it would not
}

// orders has the order of each point of a model.
type orders map[string]Order

func ordersOf(points []point) orders {
	o := orders{}
	for _, p := range points {
		o[p.name] = p.order
	}
	return o
}

// try runs a model as it is and with each of its orders weakened.
func try(t *testing.T, points []point, model func(*Program, orders)) {
	t.Helper()
	counts, err := Run(func(p *Program) { model(p, ordersOf(points)) })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d states, %d executions", counts.States, counts.Runs)
	for _, x := range points {
		checkSource(t, x)
		o := ordersOf(points)
		o[x.name] = x.less
		_, err := Run(func(p *Program) { model(p, o) })
		if errors.Is(err, ErrTooLarge) {
			t.Errorf("%s weaker: %v", x.name, err)
		}
		if (err == nil) != (x.slack != "") {
			t.Errorf("%s weaker: %v; expected to be found: %t", x.name, err, x.slack == "")
		}
	}
}

// checkSource wants the statement of a point to be in its file, so that whoever changes it comes
// here.
func checkSource(t *testing.T, x point) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../..", x.file))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), x.code) {
		t.Errorf("%s has no %q any more: does the model still say what it does?", x.file, x.code)
	}
}

// finds wants a model with something left out or done in another order to fail.
func finds(t *testing.T, what, want string, model func(*Program)) {
	t.Helper()
	if _, err := Run(model); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func atLeast(want uint64) func(uint64) bool { return func(v uint64) bool { return v >= want } }

// sleeper is a thread that waits in the kernel until others see by word that it does.
type sleeper struct {
	word Word
	bell Bell
}

func newSleeper(p *Program, name string) sleeper {
	return sleeper{p.Word(name+" sleeps", 0), p.Bell(name + "'s bell")}
}
