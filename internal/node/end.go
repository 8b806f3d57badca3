package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/lifetime"
)

// finish waits until all packets are delivered, then for the end of the procs, then for the end of
// the job at the server.
func (n *node) finish(ctx context.Context) error {
	for _, h := range n.hosts {
		select {
		case <-h.finished:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	n.recorder.AskLastTime(ctx)
	for _, p := range n.procs.All() {
		select {
		case <-p.EndHandled():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return n.client.Leave(ctx, n.native.Finish)
}

// verdict returns the failure of the job, or nil if there is none, given the error of run. A step
// may have failed as a consequence of something else: the ending decides what is to blame.
func (n *node) verdict(ctx context.Context, err error) *ending.Failure {
	if err == nil {
		n.end.Close()
		return nil
	}
	var f *ending.Failure
	if ctx.Err() == nil && !errors.As(err, &f) {
		f = ending.NodeFailed(fmt.Errorf("site %s: %w", n.opt.Site.Name, err))
	}
	if f != nil {
		n.end.Fail(f)
	}
	<-ctx.Done()
	n.end.Close()
	if f := lifetime.FailureOf(ctx); f != nil {
		return f
	}
	return lifetime.Interrupted(n.opt.Site.Name, context.Cause(ctx))
}

// shutDown ends everything that the node has started. If there is a failure f, the other sites and
// hosts are told first: whoever looks at this node may hold up the rest.
func (n *node) shutDown(f *ending.Failure) {
	declined := n.client.Decline(f)
	notice := ending.EndingNode{Head: n.cluster.IsHead(), Excluded: n.survival.excluded()}.Notice(f)
	if f != nil {
		n.log.Debug("ending", "reason", f.Text)
	}
	switch notice.Server {
	case ending.Resigns:
		n.client.Resign(f)
	case ending.Abandons:
		n.client.Abandon()
	}
	if notice.Site {
		n.cluster.ReportEnd(f, notice.Latecomers)
	}
	if f != nil {
		n.procs.AnnounceEnd(f.Text, f.Status)
	}
	n.tellHosts(f, notice.Peers)
	if n.metrics != nil {
		n.metrics.Close()
	}
	if n.unserve != nil {
		n.unserve()
	}
	if n.control != nil {
		n.control.End.SetEnd(n.opt.Site.Name, textOf(f))
	}
	if n.ui != nil {
		n.ui.Drain() // the page gets its data at the control socket
		n.ui.Close()
	}
	if n.control != nil {
		n.control.Close()
	}
	if n.spareSites != nil {
		n.spareSites.Close(textOf(f))
	}
	if n.parents != nil && f != nil {
		n.parents.Failed(f)
	}
	n.stopSwitches()
	n.procs.Stop()
	n.native.Stop()
	if n.tasks != nil {
		n.tasks.Close()
		if n.meetings != nil {
			n.meetings.Close()
		}
	}
	n.site.Close() // before the wait: nobody accepts any more, and who dials has to learn that at once
	if n.opt.spawned == nil {
		leave := n.cluster.KeepParents()
		n.spawner.Wait(n.cluster.AwaitBelow)
		leave()
		n.site.StopTransports() // a spawned node shares them
	}
	n.cluster.Close()
	<-declined
	if n.server != nil {
		n.server.Close()
	}
	n.launcher.Close()
	if n.dir != nil {
		if err := n.dir.Close(); err != nil {
			n.log.Warn("cannot remove the runtime directory", "error", err)
		}
	}
}

func textOf(f *ending.Failure) string {
	if f == nil {
		return ""
	}
	return f.Text
}
