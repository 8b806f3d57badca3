// Package transporttest is the conformance suite of transports: whether one
// keeps the contract of package transports and of package link. It needs nothing
// but a Transport, so it runs on an object in the test's own process and on a
// plugin's client alike.
//
// It guesses no times: it waits on a link's Handle, with a deadline so generous that
// only a link that is stuck meets it. What links may end in the background is looked
// at until it has come, with that deadline too.
package transporttest

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Harness is what one case runs on.
type Harness struct {
	// Transport listens, and dials too unless there is a Dialler.
	Transport transports.Transport

	// Dialler dials: another object or another plugin process; or nil.
	Dialler transports.Transport

	// Listen is where listeners are opened, with Port 0. The suite opens several at once and
	// appends a number to Name.
	Listen transports.ListenSpec

	// From is the From of each DialSpec.
	From string

	// Large is the number of bytes of the large transfer; 0 means 64 MiB.
	Large int64

	// Links is the number of short links that are made one after another; 0 means 500.
	Links int

	// InProcess means that no plugin serves the transport, whose links are for tests and leave the
	// process by no data plane: T-ABOUT-06 is skipped.
	InProcess bool

	// Patience bounds each wait for something to move; 0 means 30 seconds.
	Patience time.Duration
}

// T is the part of *testing.T that a case uses, so that a program that is no test can run the suite
// too. Fatalf and Skipf must not return; Cleanup may be called from several goroutines at once.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Cleanup(func())
}

// Case is one rule of the contract and the way to check it. Its number goes with
// it in every report.
type Case struct {
	ID   string // as in "T-CLOSE-01"; a number is never given to another rule
	Name string // as in "half-close"
	Rule string // what must hold, in a sentence
	run  func(*env)
}

// Run checks the rule on h.
func (c Case) Run(t T, h Harness) {
	h.Dialler = cmp.Or(h.Dialler, h.Transport)
	h.Large = cmp.Or(h.Large, 64<<20)
	h.Links = cmp.Or(h.Links, 500)
	h.Patience = cmp.Or(h.Patience, 30*time.Second)
	c.run(&env{T: t, c: c, h: h})
}

// Cases returns the whole suite, in the order in which it is best read.
func Cases() []Case {
	return slices.Concat(aboutCases, dataCases, sizeCases, pressureCases, readyCases, closeCases, cutCases, lossCases, listenCases, loadCases, leakCases, socketCases)
}

// Run runs the whole suite, each case as a subtest on a harness of its own. open
// registers with t what must be done at the end.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, open(t)) })
	}
}
