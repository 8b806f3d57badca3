package conformance

import (
	"context"
	"time"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

var giveUpCases = []Case{
	{ID: "P-CALL-13", Name: "dial-abandoned", Kind: Robust, run: dialAbandoned,
		Rule: "Abandon ends a Dial that is under way, long before the Dial's own time: the transport's Dial must heed its context"},
	{ID: "P-CALL-14", Name: "stop-listening", Kind: Robust, run: stopListening,
		Rule: "StopListen ends the waiting for links and is answered at once, and nobody can dial the address any more: the listener's Close must end Accept"},
}

// grace is how long what was given up may take to end. It is far more than an end takes, and
// less than what is given up would take by itself.
func (e *env) grace() time.Duration { return max(e.wait/4, 2*time.Second) }

const headStart = 300 * time.Millisecond

// dialAbandoned dials what does not answer: a port with no room for connections, one that takes
// them and says nothing, and a plugin whose process is stopped.
func dialAbandoned(e *env) {
	n, frozen := e.configured(nodeOptions{}), e.configured(nodeOptions{})
	own, asleep := e.listen(n), e.listen(frozen)
	addresses := []string{asleep}
	for _, backlog := range []int{0, 1000} {
		if a, ok := withPort(own, e.silent(backlog)); ok {
			addresses = append(addresses, a)
		}
	}
	defer frozen.stop()()
	tried := 0
	for _, address := range addresses {
		if e.abandonDial(n, address) {
			tried++
		}
	}
	if tried == 0 {
		e.Skipf("its dials end at once, whether or not their peer answers")
	}
}

// abandonDial abandons a dial while it runs; it returns false if the dial ended before.
func (e *env) abandonDial(n *node, address string) bool {
	call := n.request()
	call.TimeoutMs = uint32(4 * e.grace().Milliseconds())
	ctx, cancel := context.WithTimeout(context.Background(), 5*e.grace())
	e.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() {
		_, err := n.rpc.Dial(ctx, &proto.DialRequest{Call: call, Address: address})
		ended <- err
	}()
	select {
	case <-ended:
		return false
	case <-time.After(headStart):
	}
	ask(e, n.rpc.Abandon, &proto.AbandonRequest{Call: n.request(), Key: call.GetKey()})
	select {
	case <-ended:
	case <-time.After(e.grace()):
		e.Fatalf("a dial of %s, where nobody answers, was abandoned and goes on %v later", address, e.grace())
	}
	return true
}

func stopListening(e *env) {
	n, other := e.configured(nodeOptions{}), e.configured(nodeOptions{})
	made := ask(e, n.rpc.Listen, e.listenRequest(n.request()))
	if made.GetError() != nil {
		e.Fatalf("Listen: %s", made.GetError().GetReason())
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.grace())
	defer cancel()
	if _, err := n.rpc.StopListen(ctx, &proto.StopListenRequest{Call: n.request(), ListenerId: made.GetListenerId()}); err != nil {
		e.Fatalf("nobody has dialled, and StopListen is not answered within %v: %v", e.grace(), err)
	}
	if answer := e.dial(other, made.GetAddress()); answer.GetError() == nil {
		e.Fatalf("StopListen was answered, and %s can still be dialled", made.GetAddress())
	}
}
