package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/ending"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/transports"
)

// declineTime is how long a site that fails before it has joined its job tries to tell
// the server.
const declineTime = 2 * time.Second

// decline tells the server that this site will not come, and why: the others would wait
// for it until the limit of the start. done is closed when that has succeeded or failed.
func (n *node) decline(f *ending.Failure) (done <-chan struct{}) {
	told := make(chan struct{})
	s := n.opt.Site.Server
	if f == nil || n.joined || n.opt.share != nil || f.Remote || s.Embedded && s.Clients == 1 || addressTaken(f) {
		close(told)
		return told
	}
	ctx, cancel := context.WithTimeout(context.Background(), declineTime)
	go func() {
		select {
		case <-n.opt.Now:
			cancel()
		case <-ctx.Done():
		}
	}()
	go func() {
		defer close(told)
		defer cancel()
		set, err := n.rendezvous()
		if err == nil {
			_, _, err = rendezvous.Join(ctx, set, startup.ClientConfig{
				Rank: wire.ClientRank(n.opt.Site.Client), Auth: authOf(n.opt.Site.Auth), Limit: declineTime, Decline: f,
			})
		}
		n.log.Debug("told the server that this site does not come", "outcome", err)
	}()
	return told
}

// addressTaken tells whether a site failed because somebody listens where its file says
// that it does. That may be the site itself, which was started twice: the job of the first
// one goes on.
func addressTaken(f *ending.Failure) bool {
	return errors.Is(f, syscall.EADDRINUSE) || // of the embedded server
		errors.Is(f, errPortTaken)
}

// errPortTaken is wrapped when somebody else has the port of a host block.
var errPortTaken = errors.New("the port is taken")

// portError is what a plugin says of a port of the file, with whether the port is taken:
// a plugin says no more than that the system did not give it.
func portError(err error, port uint16) error {
	var failed *transports.Error
	if port == 0 || !errors.As(err, &failed) || failed.Code != transports.CodeResource {
		return err
	}
	ln, free := net.Listen("tcp", fmt.Sprintf(":%d", port))
	switch {
	case free == nil:
		_ = ln.Close()
	case errors.Is(free, syscall.EADDRINUSE):
		return &portTaken{err}
	}
	return err
}

// portTaken says what the plugin said.
type portTaken struct{ error }

func (p *portTaken) Unwrap() []error { return []error{p.error, errPortTaken} }
