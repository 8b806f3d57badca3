package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// linkCases are about connections in the plugin's process. They are done for each data plane by
// which a plugin passes bytes on.
var linkCases = []Case{
	{ID: "P-LINK-01", Name: "lost-is-no-end", Kind: Robust, run: lostIsNoEnd,
		Rule: "over a connection in the plugin's process: when a proc is gone that has not ended its stream, its peer's link breaks and does not end in order: Break of the connection must not send its end"},
	{ID: "P-LINK-02", Name: "close-delivers", Kind: Correct, run: closeDelivers,
		Rule: "what was sent before CloseSend arrives, also when the link is closed right after: Close of the connection must not discard what Write has taken"},
}

// passesOn skips the case if the plugin has no part in a link once it is made.
func (e *env) passesOn() {
	if survives(e.plane) {
		e.Skipf("by %s the plugin has no more to do with the link", e.plane)
	}
}

func lostIsNoEnd(e *env) {
	e.passesOn()
	if e.plane != transports.PlaneRing && e.plane != transports.PlaneRDMA {
		e.Skipf("by %s the plugin does not learn whether a proc has ended its stream", e.plane)
	}
	_, far, ln := e.listening()
	if slices.Contains(far.Transport().Capabilities().DataPlanes, transports.PlaneFD) {
		e.Skipf("its links are kernel sockets, some of which can only end: by fd, the death of a proc is an end too")
	}
	ctx := e.context()
	a, b := e.connect(ctx, far, ln)
	e.must(send(ctx, a, []byte("and then")))
	got := make([]byte, len("and then"))
	e.must(receive(ctx, b, got))
	e.must(dies(a))
	if err := failure(ctx, b); !errors.Is(err, link.ErrBroken) {
		e.Fatalf("a proc has died, and its peer sees on the link: %v", err)
	}
}

// dies closes a link's descriptors, as the death of its proc does.
func dies(l link.Link) error {
	r, ok := l.(transports.Relayed)
	if !ok {
		return fmt.Errorf("%w: a plugin that passes bytes on has made a %T", errors.ErrUnsupported, l)
	}
	fds, _, err := r.Detach()
	for _, fd := range fds {
		err = errors.Join(err, unix.Close(fd))
	}
	return err
}

// closeDelivers sends more than sockets and rings hold, so that some of it is still in the
// plugin's process when the link is closed.
func closeDelivers(e *env) {
	e.passesOn()
	_, far, ln := e.listening()
	for _, size := range []int{100, 300_000, 8 << 20} {
		ctx := e.context()
		a, b := e.connect(ctx, far, ln)
		var n int
		var end error
		started, ended := make(chan struct{}), make(chan struct{})
		go func() {
			n, end = drained(ctx, b, started)
			close(ended)
		}()
		if size <= 300_000 { // the peer reads only when the link is closed
			e.must(send(ctx, a, make([]byte, size)))
			e.must(a.CloseSend())
			e.must(a.Close())
			close(started)
		} else {
			close(started)
			e.must(send(ctx, a, make([]byte, size)))
			e.must(a.CloseSend())
			e.must(a.Close())
		}
		if <-ended; n != size || !errors.Is(end, io.EOF) {
			e.Fatalf("%d bytes were sent, the stream ended and the link closed; %d bytes arrive, and then: %v", size, n, end)
		}
	}
}

func drained(ctx context.Context, l link.Link, start <-chan struct{}) (n int, err error) {
	<-start
	buf := make([]byte, 64<<10)
	for {
		k, err := l.Recv([][]byte{buf})
		if n += k; err != nil {
			return n, err
		}
		if k == 0 {
			err = await(ctx, l, link.Readable)
		}
		if err != nil {
			return n, err
		}
	}
}
