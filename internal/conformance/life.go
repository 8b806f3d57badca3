package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

var lifeCases = []Case{
	{ID: "P-LIFE-01", Name: "node-dies", Kind: Robust, run: nodeDies,
		Rule: "when descriptor 3 ends, because the node has died or wants no more, it exits within seconds and removes its files"},
	{ID: "P-LIFE-02", Name: "shutdown", Kind: Robust, run: shutdown,
		Rule: "it exits upon go-plugin's Shutdown"},
	{ID: "P-LIFE-03", Name: "drain", Kind: Correct, run: drain,
		Rule: "after Drain its listeners are closed, and Dial and Listen are answered with resource"},
}

// lifeLinkCases are done for each data plane.
var lifeLinkCases = []Case{
	{ID: "P-LIFE-04", Name: "killed", Kind: Robust, run: killed,
		Rule: "when it is killed, links of fd and peer-shm live on and others fail; the listener comes back where it was"},
	{ID: "P-LIFE-05", Name: "killed-meanwhile", Kind: Robust, run: killedMeanwhile, Slow: true,
		Rule: "dials during which it is killed make a link or fail with a typed error, none hangs, and later ones succeed"},
}

const exitTime = 5 * time.Second

func nodeDies(e *env) {
	dir, listenDir := e.dir(), e.dir()
	n := e.configured(nodeOptions{dir: dir})
	made := ask(e, n.rpc.Listen, &proto.ListenRequest{Call: n.request(), Host: e.s.Host, Dir: listenDir, Name: "conform"})
	e.dial(n, made.GetAddress()) // a link waits, and its peer
	n.fds.Close()
	if !n.gone(exitTime) {
		e.Fatalf("descriptor 3 has ended, and the process runs on %v later", exitTime)
	}
	if left := append(filesIn(dir), filesIn(listenDir)...); len(left) > 0 {
		e.Fatalf("it leaves %q behind", left)
	}
}

func shutdown(e *env) {
	n := e.node(nodeOptions{})
	// It may exit before it answers.
	err := n.conn.Invoke(e.context(), "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
	if !n.gone(exitTime) {
		e.Fatalf("Shutdown gives %v, and the process runs on %v later", err, exitTime)
	}
}

func drain(e *env) {
	n := e.configured(nodeOptions{})
	address := e.listen(n)
	call := n.request()
	call.TimeoutMs = 2000
	ask(e, n.rpc.Drain, &proto.DrainRequest{Call: call})
	resource := string(transports.CodeResource)
	if answer := e.dial(n, address); answer.GetError().GetCode() != resource {
		e.Fatalf("a Dial after Drain is answered with code %q", answer.GetError().GetCode())
	}
	listened := ask(e, n.rpc.Listen, e.listenRequest(n.request()))
	if listened.GetError().GetCode() != resource {
		e.Fatalf("a Listen after Drain is answered with code %q", listened.GetError().GetCode())
	}
	if answer := e.dial(e.configured(nodeOptions{}), address); answer.GetError() == nil {
		e.Fatalf("its listener %s can be dialled after Drain", address)
	}
}

func (e *env) listening() (near, far *host.Plugin, ln transports.Listener) {
	near, far = e.host(), e.host()
	ln, err := near.Transport().Listen(e.context(), e.at())
	e.must(err)
	e.Cleanup(func() { ln.Close() })
	return near, far, ln
}

func (e *env) connect(ctx context.Context, from *host.Plugin, ln transports.Listener) (dialled, accepted link.Link) {
	dialled, err := from.Transport().Dial(ctx, transports.DialSpec{Address: ln.Address()})
	e.must(err)
	e.Cleanup(func() { dialled.Close() })
	accepted, err = ln.Accept(ctx)
	e.must(err)
	e.Cleanup(func() { accepted.Close() })
	e.must(exchange(ctx, dialled, accepted))
	return dialled, accepted
}

// survives reports whether links of a data plane live without the plugin.
func survives(p transports.DataPlane) bool {
	return p == transports.PlaneFD || p == transports.PlanePeerSHM
}

func killed(e *env) {
	near, far, ln := e.listening()
	ctx := e.context()
	a, b := e.connect(ctx, far, ln)
	e.kill(near)
	if survives(e.plane) {
		e.must(exchange(ctx, a, b))
	} else {
		if err := failure(ctx, b); !errors.Is(err, link.ErrBroken) {
			e.Fatalf("after the kill, its own node sees on the link: %v", err)
		}
		switch err := failure(ctx, a); {
		case errors.Is(err, io.EOF):
			e.Logf("after the kill, the peer sees an end and no failure, as with plain TCP")
		case !errors.Is(err, link.ErrBroken):
			e.Fatalf("after the kill, the peer sees on the link: %v", err)
		}
	}
	e.comeBack(far, ln)
}

// kill kills a plugin's process, which may have gone already.
func (e *env) kill(p *host.Plugin) {
	if pid := p.Status().PID; pid > 0 {
		e.crashes.kills(pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// comeBack dials a listener whose plugin has been killed until a link is made, and
// accepts it. Links whose diallers have gone may come before it.
func (e *env) comeBack(from *host.Plugin, ln transports.Listener) {
	whole, most := returnLimits(e.wait, e.started)
	ctx := e.contextOf(whole)
	// A dial that was lost with the process before is never accepted: the first try is short.
	for limit, try := time.Second, uint64(1); ; limit, try = min(2*limit, most), try+1 {
		err := again(ctx, limit, try, from.Transport(), ln)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			e.Fatalf("%v later the listener %s is not back, and a start of the plugin takes %v: %v",
				whole, ln.Address(), e.started.Round(time.Millisecond), err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// returnLimits returns how long a listener may take to be back, and a try to dial it, if cases wait
// for wait and a start of the plugin takes started. On a busy machine starts take many seconds, and
// there are up to four in turn: both sides were killed, and each again while it started.
func returnLimits(wait, started time.Duration) (whole, try time.Duration) {
	return min(wait+4*started, 5*wait/2), max(wait/6, min(2*started, wait))
}

// again makes a link that works both ways. It sends try, which distinguishes the link from those of
// earlier tries, since these may be accepted only now.
func again(ctx context.Context, limit time.Duration, try uint64, from transports.Transport, ln transports.Listener) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a, err := from.Dial(ctx, transports.DialSpec{Address: ln.Address()})
	if err != nil {
		return err
	}
	defer a.Close()
	sent := binary.BigEndian.AppendUint64(nil, try)
	if err := send(ctx, a, sent); err != nil {
		return fmt.Errorf("send on a link that was dialled: %w", err)
	}
	for others := 0; ; others++ {
		b, err := ln.Accept(ctx)
		if err != nil {
			return fmt.Errorf("a link was dialled, but not accepted, and %d others were: %w", others, err)
		}
		got := make([]byte, len(sent))
		err = receive(ctx, b, got)
		if err != nil || !bytes.Equal(got, sent) {
			b.Close()
			continue
		}
		if err = send(ctx, b, got); err == nil {
			err = receive(ctx, a, got)
		}
		b.Close()
		if err != nil {
			return fmt.Errorf("no answer on a link that was accepted: %w", err)
		}
		return nil
	}
}

// failure waits for the error of a link from which nothing comes.
func failure(ctx context.Context, l link.Link) error {
	buf := make([]byte, 1000)
	for {
		if _, err := l.Recv([][]byte{buf}); err != nil {
			return err
		}
		if err := await(ctx, l, link.Readable); err != nil {
			return err
		}
	}
}

// The number of dials to try. It is smaller for a transport whose dials or starts take long, but at
// least someKills: the case checks that no dial hangs, and each may take its time.
const (
	mostKills  = 20
	someKills  = 6
	dialsShare = 6 // part of a case's time that a dial may take
)

func killedMeanwhile(e *env) {
	near, far, ln := e.listening()
	begun := time.Now()
	for i := range mostKills {
		if i >= someKills && time.Since(begun) > e.wait {
			e.Logf("%d dials have taken %v, and more were not tried", i, time.Since(begun).Round(time.Second))
			break
		}
		victim, whose := near, "the listening side"
		if i%2 == 1 {
			victim, whose = far, "its own side"
		}
		done := make(chan error, 1)
		ctx := e.context() // of this dial: all dials of a slow transport take longer
		go func() { done <- dialAndClose(ctx, e.wait/dialsShare, far, ln.Address()) }()
		time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		e.kill(victim)
		var err error
		select {
		case err = <-done:
		case <-ctx.Done():
			e.Fatalf("a dial hangs: it might take %v, the process of %s was killed meanwhile, and %v later it goes on", e.wait/dialsShare, whose, e.wait)
		}
		if _, ok := errors.AsType[*transports.Error](err); err != nil && !ok {
			e.Fatalf("a dial fails with %T: %v", err, err)
		}
	}
	e.comeBack(far, ln)
}

func dialAndClose(ctx context.Context, limit time.Duration, from *host.Plugin, address string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l, err := from.Transport().Dial(ctx, transports.DialSpec{Address: address})
	if err != nil {
		return err
	}
	return l.Close()
}
