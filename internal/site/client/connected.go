package client

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/cluster"
	"github.com/openimpi/impi/internal/routes"
)

// Input passes the head's standard input to a proc of another host.
func (o *Cluster) Input() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(w, o.tree.Load().Stdin()) // until the end of the input, of the proc, or of the job
		_ = w.Close()
	}()
	return r, nil
}

// finish waits until all hosts of the site have finished, at the head, and until the head
// says that the job is over, elsewhere.
func (o *Cluster) finish(ctx context.Context) error {
	tree := o.tree.Load()
	tree.Finish()
	done := tree.Finished()
	if !o.IsHead() {
		done = o.over
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Topic selects the function that answers a question.
type Topic byte

// The topics.
const (
	Inspection Topic = iota // of impi-node links and the like
	Spawning
	Starting // of the procs of a native site
	counting
	topics
)

// Ask sends a question to the node of another host, and returns the answer of the function that
// AnswerBy set there.
func (o *Cluster) Ask(ctx context.Context, about Topic, host int, question []byte) ([]byte, error) {
	tree := o.connected()
	if tree == nil {
		return nil, cluster.ErrAbsent
	}
	answer, err := tree.Ask(ctx, host, append([]byte{byte(about)}, question...))
	if err == nil && len(answer) == 0 {
		return nil, errors.New("its node cannot answer: it is starting or ending")
	}
	return answer, err
}

// AnswerBy makes f answer the questions of other hosts about a topic. If f is nil, they are not
// answered.
func (o *Cluster) AnswerBy(about Topic, f func(ctx context.Context, question []byte) []byte) {
	o.answer[about].Store(&f)
}

// KeepParents keeps the hosts above this one running until its result is called, for procs that
// outlive the job.
func (o *Cluster) KeepParents() (leave func()) {
	if tree := o.connected(); tree != nil {
		return tree.KeepParents()
	}
	return func() {}
}

// AwaitBelow waits until the hosts below this one have left: their procs may spawn procs here.
func (o *Cluster) AwaitBelow() {
	if tree := o.connected(); tree != nil {
		tree.AwaitBelow(o.leaveTime())
	}
}

// leaveTime is how long hosts below may take to leave if they do not say that they stay.
func (o *Cluster) leaveTime() time.Duration {
	return routes.CurrentLimits(o.Routes).Stop + 2*time.Second
}

// Present reports, at the head, whether a host is still there.
func (o *Cluster) Present(host int) bool {
	tree := o.connected()
	return tree != nil && tree.Has(host)
}

// Stop makes, at the head, the other hosts end all that was spawned there.
func (o *Cluster) Stop() {
	if tree := o.connected(); tree != nil && o.IsHead() {
		tree.Stop()
	}
}

// ReportLate reports to the head that a proc failed after its Finalize.
func (o *Cluster) ReportLate(f *ending.Failure) {
	if tree := o.connected(); tree != nil && !o.IsHead() {
		tree.Fail(reportOf(f, true, time.Now()))
	}
}

// ReportEnd reports how the job ended: the head to all, the others to the head. f is nil if it went
// well. At the head, Close then waits for hosts that are still connecting, as long as latecomers.
func (o *Cluster) ReportEnd(f *ending.Failure, latecomers time.Duration) {
	tree := o.connected()
	if tree == nil {
		return
	}
	o.latecomers = latecomers
	switch {
	case o.IsHead() && f == nil:
		tree.End(nil)
	case o.IsHead():
		tree.End(reportOf(f, false, time.Now()))
	case f != nil:
		tree.Fail(reportOf(f, false, time.Now()))
	}
}

// passOn gives the procs the head's signals once they are in MPI, until Close.
func (o *Cluster) passOn() {
	select {
	case <-o.Ready:
	case <-o.closed:
		return
	}
	for {
		select {
		case s := <-o.signals:
			o.Signal(s)
		case <-o.closed:
			return
		}
	}
}

// Close leaves the other hosts, once all output of this one is written.
func (o *Cluster) Close() {
	tree := o.connected()
	if tree == nil {
		return
	}
	close(o.closed)
	if o.latecomers > 0 {
		tree.AwaitLateHosts(o.latecomers)
	}
	tree.Close(o.leaveTime())
	if o.Spawned != "" {
		return
	}
	for _, x := range o.Redirects {
		x.to.Store(&x.own)
	}
}

// PassSignal passes a signal on to the procs of the other hosts.
func (o *Cluster) PassSignal(s syscall.Signal) {
	if tree := o.connected(); tree != nil && o.IsHead() {
		tree.Signal(int(s))
	}
}
