package node

import (
	"cmp"
	"context"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/internal/loglimit"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/site/client"
)

// passSignals passes the operator's signals on to the procs until stop is called. Signals wait
// until the procs are in MPI: before that there may be no proc yet, or one without a handler for
// the signal.
func (n *node) passSignals() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		procs := n.ready
		if n.spare != nil {
			procs = n.spare.there
		}
		select {
		case <-procs:
		case <-quit:
			return
		}
		for {
			select {
			case s := <-n.opt.Signals:
				n.signal(s.(syscall.Signal))
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// reloads has the site read its job file again when the operator has signalled that, until stop is
// called. What comes of it is in the logs of the hosts; here, it is said if nothing has changed.
func reloads(ctx context.Context, n *node) (stop func()) {
	ctx, quit := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-n.opt.Reload:
			case <-ctx.Done():
				return
			}
			select {
			case <-n.ready:
				reread(ctx, n)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { quit(); <-done }
}

// rereadLimit is how long the hosts of a site have to read their files. They may have to try
// plugins meanwhile.
const rereadLimit = 30 * time.Second

func reread(ctx context.Context, n *node) {
	ctx, cancel := context.WithTimeout(ctx, rereadLimit)
	defer cancel()
	a := n.control.Reread(ctx)
	if a.Error != "" {
		n.log.Error("the job file is not read again", "reason", a.Error)
		return
	}
	same := true
	for _, x := range a.Rereads {
		same = same && x.Applied && len(x.Changes)+len(x.Restart) == 0
		for _, fault := range append(x.Faults, x.Problem) {
			if fault != "" {
				n.log.Error("the job file is not taken", "of", cmp.Or(x.Host, x.Site), "reason", fault)
			}
		}
	}
	if same {
		loglimit.ReportReload(n.log, hclog.Info, "the job file says what it said before")
	}
}

// identities are the certificates that the node itself uses, not its plugins.
func identities(n *node) (list []*rendezvous.Identity) {
	for _, id := range []*rendezvous.Identity{n.client.Identity(), n.server.Identity(), client.Identity(n.cluster)} {
		if id != nil {
			list = append(list, id)
		}
	}
	return list
}

// renewed renews the node's connections that use its certificates. It returns what to say of those
// that keep the old ones.
func renewed(n *node) (left []string) {
	client.Renew(n.cluster)
	if n.client.Identity() != nil && !n.client.Renew() {
		left = []string{"connection to the job's server: keeps the certificates with which it was made, as it cannot be resumed"}
	}
	return left
}

func (n *node) signal(s syscall.Signal) {
	if n.opt.spawned == nil {
		n.cluster.PassSignal(s)
		n.spawner.Signal(s)
	}
	n.procs.Signal(s)
}
