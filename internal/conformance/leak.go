package conformance

import (
	"context"
	"time"

	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// leakCases are done for each data plane.
var leakCases = []Case{
	{ID: "P-LEAK-01", Name: "process-holds-nothing", Kind: Robust, run: processHoldsNothing,
		Rule: "links that were closed leave no descriptor, no thread and no memory in the plugin's process"},
	{ID: "P-LEAK-02", Name: "process-stays-small", Kind: Robust, run: processStaysSmall,
		Rule: "a reader that stops does not make the plugin's process grow: read no more from a connection than its link takes"},
	{ID: "P-LEAK-03", Name: "no-listener-left", Kind: Robust, run: noListenerLeft,
		Rule: "listeners that were closed leave no descriptor and no thread in the plugin's process: Close must close what Listen has opened"},
}

// Maximum growth of what a process holds, after thousands of links.
const (
	spareDescriptors = 20
	spareThreads     = 12
	spareMemory      = 24 << 20
)

// settleTime is how long a process may take to give up what closed links held.
const settleTime = 12 * time.Second

// most is how many bytes a link that nobody reads may take: many times what sockets and rings hold.
const most = 64 << 20

func (e *env) both(near, far *host.Plugin) (u [2]host.Usage) {
	for i, p := range []*host.Plugin{near, far} {
		var err error
		u[i], err = host.UsageOf(p.Status().PID)
		e.must(err)
	}
	return u
}

func grown(before, after [2]host.Usage) bool {
	for i := range before {
		if after[i].Descriptors > before[i].Descriptors+spareDescriptors ||
			after[i].Threads > before[i].Threads+spareThreads || after[i].Own > before[i].Own+spareMemory {
			return true
		}
	}
	return false
}

func processHoldsNothing(e *env) {
	near, far, ln := e.listening()
	links := 500
	if e.quick {
		links = 150
	}
	e.churn(far, ln, 50)
	before := e.both(near, far)
	e.churn(far, ln, links)
	after := e.both(near, far)
	for end := time.Now().Add(min(settleTime, e.wait)); grown(before, after); after = e.both(near, far) {
		if time.Now().After(end) {
			e.Fatalf("the processes that accept and that dial have %v and %v; after %d links more they have %v and %v",
				before[0], before[1], links, after[0], after[1])
		}
		time.Sleep(100 * time.Millisecond)
	}
	e.Logf("the process that accepts has %v", after[0])
}

func (e *env) churn(from *host.Plugin, ln transports.Listener, links int) {
	for range links {
		ctx, cancel := context.WithTimeout(context.Background(), e.wait)
		a, err := from.Transport().Dial(ctx, transports.DialSpec{Address: ln.Address()})
		e.must(err)
		b, err := ln.Accept(ctx)
		e.must(err)
		e.must(exchange(ctx, a, b))
		a.Close()
		b.Close()
		cancel()
	}
}

func processStaysSmall(e *env) {
	near, far, ln := e.listening()
	ctx := e.context()
	a, _ := e.connect(ctx, far, ln)
	before := e.both(near, far)
	piece := make([]byte, 1<<20)
	taken := 0
	var pauses transporttest.Pauses
	for !pauses.Over() && taken < most {
		n, err := a.Send([][]byte{piece})
		e.must(err)
		if taken += n; n > 0 {
			pauses.Moved()
		} else {
			e.must(await(ctx, a, link.Writable))
		}
	}
	after := e.both(near, far)
	e.Logf("the link takes %d bytes; the processes had %v and %v, and have %v and %v", taken, before[0], before[1], after[0], after[1])
	if taken >= most || grown(before, after) {
		e.Fatalf("the link takes %d bytes that nobody reads; the processes had %v and %v, and have %v and %v",
			taken, before[0], before[1], after[0], after[1])
	}
}

// noListenerLeft opens and closes so many listeners that what each leaves behind is more than
// anything else the process may open meanwhile.
func noListenerLeft(e *env) {
	near, far := e.host(), e.host()
	round := func(listeners int) {
		for range listeners {
			ln, err := near.Transport().Listen(e.context(), e.at())
			e.must(err)
			e.must(ln.Close())
		}
	}
	round(5)
	before := e.both(near, far)
	round(3 * spareDescriptors)
	after := e.both(near, far)
	for end := time.Now().Add(min(settleTime, e.wait)); grown(before, after); after = e.both(near, far) {
		if time.Now().After(end) {
			e.Fatalf("the process had %v; after %d listeners that were closed it has %v", before[0], 3*spareDescriptors, after[0])
		}
		time.Sleep(100 * time.Millisecond)
	}
}
