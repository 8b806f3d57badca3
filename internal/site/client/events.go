package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/openimpi/impi/core/ending"
)

type hostReport struct {
	Text       string            `json:"text"`
	Status     int               `json:"status"`
	Remote     bool              `json:"remote,omitempty"`
	Early      bool              `json:"early,omitempty"`
	Precedence ending.Precedence `json:"weight"`
	Ago        time.Duration     `json:"ago,omitempty"` // since the proc ended
	Proc       int               `json:"proc,omitempty"`
	Late       bool              `json:"late,omitempty"` // after its Finalize
}

// reportOf encodes a failure for other hosts, with its age at the time now.
func reportOf(f *ending.Failure, late bool, now time.Time) []byte {
	r := hostReport{Text: f.Text, Status: f.Status, Remote: f.Remote, Early: f.Early, Precedence: f.Precedence, Proc: f.Proc, Late: late}
	if !f.At.IsZero() {
		r.Ago = max(now.Sub(f.At), 1)
	}
	b, _ := json.Marshal(r) // a struct of strings and numbers
	return b
}

// failure makes a failure of a report. The report says how long ago the proc ended, not when, since
// the clocks of two hosts differ.
func (r *hostReport) failure(now time.Time) *ending.Failure {
	f := &ending.Failure{Text: r.Text, Status: r.Status, Remote: r.Remote, Early: r.Early, Precedence: r.Precedence, Proc: r.Proc}
	if r.Ago > 0 {
		f.At = now.Add(-r.Ago)
	}
	return f
}

type events struct{ o *Cluster }

// Waits records which hosts are missing.
func (e events) Waits(hosts []int) {
	e.o.mu.Lock()
	defer e.o.mu.Unlock()
	e.o.missing = hosts
}

// Fails handles another host's report.
func (e events) Fails(host int, b []byte) {
	var r hostReport
	if err := json.Unmarshal(b, &r); err != nil {
		e.o.End.Fail(ending.NodeFailed(fmt.Errorf("host %s reports a failure that cannot be read: %w", e.o.name(host), err)))
		return
	}
	if f := r.failure(time.Now()); !r.Late {
		e.o.End.Fail(f)
	} else {
		e.o.End.Report(func(_ time.Time, e *ending.Ending) { e.ReportLate(f) }) // that host has logged it, and its log is printed here
	}
}

// JobEnded handles the head's message that the job is over.
func (e events) JobEnded(b []byte) {
	if len(b) == 0 {
		e.o.once.Do(func() { close(e.o.over) })
		return
	}
	r := hostReport{Text: "the head has ended the job", Status: ending.StatusNode}
	_ = json.Unmarshal(b, &r) // the job is over in any case
	f := r.failure(time.Now())
	f.Precedence, f.Reported = ending.Decided, true
	e.o.End.Fail(f)
}

// Unfit ends the start for a host that cannot be part of the site.
func (e events) Unfit(host int, why error) {
	e.o.End.Fail(ending.Misconfigured(fmt.Errorf("site %s: host %s: %w", e.o.Routes.Site.Name, e.o.name(host), why)))
}

// Signal queues a signal for the procs, which is sent once they are in MPI.
func (e events) Signal(number int) {
	select {
	case e.o.signals <- syscall.Signal(number):
	default: // the procs have not come, and maxSignals signals wait
	}
}

// Lost ends the job for the loss of a host. The others may continue, and are informed without this
// one.
func (e events) Lost(_ int, why error) {
	f := e.o.lost(why)
	if e.o.survives.Load() {
		e.o.ContinueWithout([]int{e.o.Self}, f)
	}
	e.o.End.Fail(f)
}

// LostBelow makes the job continue without hosts.
func (e events) LostBelow(hosts []int, why error) { e.o.ContinueWithout(hosts, e.o.lost(why)) }

// Ask answers a question of another host.
func (e events) Ask(ctx context.Context, question []byte) []byte {
	if len(question) == 0 || question[0] >= byte(topics) {
		return nil
	}
	if f := e.o.answer[question[0]].Load(); f != nil && *f != nil {
		return (*f)(ctx, question[1:])
	}
	return nil
}

// Stop ends what was spawned here.
func (e events) Stop() { e.o.StopSpawned() }

// Redirect is a writer that first writes to the node's own output, and to that of the head once
// they are connected.
type Redirect struct {
	own io.Writer
	to  atomic.Pointer[io.Writer]
}

// NewRedirect returns a Redirect that writes to the node's own output.
func NewRedirect(own io.Writer) *Redirect {
	o := &Redirect{own: own}
	o.to.Store(&o.own)
	return o
}

// Write writes to the present destination.
func (o *Redirect) Write(b []byte) (int, error) { return (*o.to.Load()).Write(b) }
