package conformance

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

var callCases = []Case{
	{ID: "P-CALL-01", Name: "introduction", Kind: Correct, run: introduction,
		Rule: "Info has a name, a version, the number of its process and the library that it is written with"},
	{ID: "P-CALL-02", Name: "health", Kind: Robust, run: health,
		Rule: `the health service answers SERVING for "plugin"`},
	{ID: "P-CALL-03", Name: "same-key", Kind: Robust, run: sameKey,
		Rule: "the same request again, by its key, gives the same answer and is not carried out twice"},
	{ID: "P-CALL-04", Name: "bad-key", Kind: Robust, run: badKey,
		Rule: "a request without a key or a time, or with the key of another method's, is INVALID_ARGUMENT"},
	{ID: "P-CALL-05", Name: "abandon", Kind: Robust, run: abandon,
		Rule: "Abandon undoes a request that has succeeded, and one that comes later is refused"},
	{ID: "P-CALL-06", Name: "unknown-numbers", Kind: Robust, run: unknownNumbers,
		Rule: "to stop a listener or close a link that is not there is no error, to open one is an error in the answer"},
	{ID: "P-CALL-07", Name: "events", Kind: Robust, run: events,
		Rule: "a link that waits is announced again to a node that asks again, one that was closed is not"},
	{ID: "P-CALL-08", Name: "no-plane", Kind: Correct, run: noPlane,
		Rule: "a link for which there is no data plane in common is closed, and the answer is unsupported"},
	{ID: "P-CALL-09", Name: "capabilities", Kind: Correct, run: capabilities,
		Rule: "it offers at least one data plane that there is, the preferred one first, and its reach is machine or network"},
	{ID: "P-CALL-10", Name: "waiting-links", Kind: Robust, run: waitingLinks, Slow: true,
		Rule: "it holds 256 links that nobody opens, not more: further dials are answered with resource, and it goes on when there is room"},
	{ID: "P-CALL-11", Name: "dial-time", Kind: Correct, run: dialTime,
		Rule: "a dial ends with an error code, and not later than its time"},
	{ID: "P-CALL-12", Name: "transports-health", Kind: Correct, run: transportsHealth,
		Rule: "one that speaks version 2 of the protocol answers Health and lists its versions, that of its handshake among them"},
}

func introduction(e *env) {
	n := e.node(nodeOptions{})
	info := ask(e, n.rpc.Info, &proto.InfoRequest{Call: n.request()})
	switch {
	case info.GetName() == "" || info.GetVersion() == "":
		e.Fatalf("it is called %q, version %q", info.GetName(), info.GetVersion())
	case info.GetSdk() == "":
		e.Fatalf("it does not say what library it is written with")
	case int(info.GetPid()) != n.cmd.Process.Pid && parentOf(itoa(info.GetPid())) != n.cmd.Process.Pid:
		e.Fatalf("it says that it is process %d, and is %d", info.GetPid(), n.cmd.Process.Pid)
	}
}

func health(e *env) {
	n := e.node(nodeOptions{})
	answer, err := grpc_health_v1.NewHealthClient(n.conn).Check(e.context(), &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
	e.must(err)
	if answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		e.Fatalf("it answers %v", answer.GetStatus())
	}
}

func transportsHealth(e *env) {
	n := e.configured(nodeOptions{})
	if n.shake.version == "1" {
		e.Skipf("it speaks version 1 of the protocol, which has no Health")
	}
	answer := ask(e, n.rpc.Health, &proto.HealthRequest{Call: n.request()})
	if answer.GetProblem() != "" {
		e.Logf("it says that it is degraded: %s", answer.GetProblem())
	}
	if v, err := strconv.Atoi(n.shake.version); err != nil || !slices.Contains(n.speaks, uint32(v)) {
		e.Fatalf("its handshake says version %s, Info says %v", n.shake.version, n.speaks)
	}
}

func sameKey(e *env) {
	n := e.configured(nodeOptions{})
	req := e.listenRequest(n.request())
	first := ask(e, n.rpc.Listen, req)
	again := ask(e, n.rpc.Listen, req)
	if first.GetListenerId() != again.GetListenerId() || first.GetAddress() != again.GetAddress() {
		e.Fatalf("Listen gives listener %d at %s, and %d at %s when the same request comes again",
			first.GetListenerId(), first.GetAddress(), again.GetListenerId(), again.GetAddress())
	}
	dial := &proto.DialRequest{Call: n.request(), Address: first.GetAddress()}
	one := ask(e, n.rpc.Dial, dial)
	two := ask(e, n.rpc.Dial, dial)
	if one.GetLinkId() == 0 || one.GetLinkId() != two.GetLinkId() {
		e.Fatalf("Dial gives link %d, and %d when the same request comes again", one.GetLinkId(), two.GetLinkId())
	}
}

func badKey(e *env) {
	n := e.configured(nodeOptions{})
	ctx := e.context()
	want := func(what string, err error) {
		if status.Code(err) != codes.InvalidArgument {
			e.Fatalf("%s: the status is %v", what, status.Code(err))
		}
	}
	_, err := n.rpc.Dial(ctx, &proto.DialRequest{Address: "x"})
	want("no call", err)
	_, err = n.rpc.Dial(ctx, &proto.DialRequest{Call: &proto.Call{TimeoutMs: 1000}, Address: "x"})
	want("no key", err)
	_, err = n.rpc.Dial(ctx, &proto.DialRequest{Call: &proto.Call{Key: "k"}, Address: "x"})
	want("no time", err)
	call := n.request()
	ask(e, n.rpc.Info, &proto.InfoRequest{Call: call})
	_, err = n.rpc.Dial(ctx, &proto.DialRequest{Call: call, Address: "x"})
	want("the key of an Info, for a Dial", err)
}

func abandon(e *env) {
	n := e.configured(nodeOptions{})
	ctx := e.context()
	late := n.request()
	ask(e, n.rpc.Abandon, &proto.AbandonRequest{Call: n.request(), Key: late.GetKey()})
	if answer, err := n.rpc.Listen(ctx, e.listenRequest(late)); err == nil && answer.GetError() == nil {
		e.Fatalf("a Listen that was abandoned before it came is carried out")
	}
	req := e.listenRequest(n.request())
	made := ask(e, n.rpc.Listen, req)
	ask(e, n.rpc.Abandon, &proto.AbandonRequest{Call: n.request(), Key: req.GetCall().GetKey()})
	if answer := e.dial(n, made.GetAddress()); answer.GetError() == nil {
		e.Fatalf("the listener %s was abandoned and can be dialled", made.GetAddress())
	}
}

func unknownNumbers(e *env) {
	n := e.configured(nodeOptions{})
	ask(e, n.rpc.StopListen, &proto.StopListenRequest{Call: n.request(), ListenerId: 4711})
	ask(e, n.rpc.CloseLink, &proto.CloseLinkRequest{Call: n.request(), LinkId: 4711})
	answer := ask(e, n.rpc.OpenDataPlane, &proto.OpenDataPlaneRequest{Call: n.request(), LinkId: 4711, Modes: []string{"fd"}})
	if answer.GetError() == nil {
		e.Fatalf("link 4711, which there is not, is opened")
	}
}

// announced waits for the first announcement of a link after the event numbered after.
func (e *env) announced(ctx context.Context, n *node, after uint64) (*proto.Event, error) {
	stream, err := n.rpc.Events(ctx, &proto.EventsRequest{After: after})
	if err != nil {
		return nil, err
	}
	for {
		event, err := stream.Recv()
		if err != nil || event.GetAccepted() != nil {
			return event, err
		}
	}
}

func events(e *env) {
	n := e.configured(nodeOptions{})
	address := e.listen(n)
	e.dial(n, address)
	first, err := e.announced(e.context(), n, 0)
	e.must(err)
	again, err := e.announced(e.context(), n, 0)
	e.must(err)
	if first.GetSequence() != again.GetSequence() || first.GetSequence() == 0 {
		e.Fatalf("link %d is event %d, and event %d when it is announced again", first.GetAccepted().GetLinkId(), first.GetSequence(), again.GetSequence())
	}
	ctx := e.context()
	ask(e, n.rpc.CloseLink, &proto.CloseLinkRequest{Call: n.request(), LinkId: first.GetAccepted().GetLinkId()})
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if event, err := e.announced(short, n, 0); err == nil {
		e.Fatalf("link %d was closed and is announced again", event.GetAccepted().GetLinkId())
	}
}

func noPlane(e *env) {
	n := e.configured(nodeOptions{})
	address := e.listen(n)
	made := e.dial(n, address)
	if made.GetError() != nil {
		e.Fatalf("Dial: %s", made.GetError().GetReason())
	}
	ctx := e.context()
	open := func() *proto.Error {
		answer, err := n.rpc.OpenDataPlane(ctx, &proto.OpenDataPlaneRequest{
			Call: n.request(), LinkId: made.GetLinkId(), Modes: []string{"carrier-pigeon"}, Pinned: true})
		e.must(err)
		return answer.GetError()
	}
	if err := open(); err.GetCode() != string(transports.CodeUnsupported) {
		e.Fatalf(`the node can do "carrier-pigeon" only, and the answer is %q`, err.GetCode())
	}
	if err := open(); err == nil || err.GetCode() == string(transports.CodeUnsupported) {
		e.Fatalf("the link waits on, although its node was told that it is closed (%q)", err.GetCode())
	}
}

var planes = []string{"fd", "peer-shm", "rdma", "ring", "stream", "grpc"}

func capabilities(e *env) {
	n := e.configured(nodeOptions{})
	c := ask(e, n.rpc.Capabilities, &proto.CapabilitiesRequest{Call: n.request()})
	known := 0
	for _, p := range c.GetDataPlanes() {
		if slices.Contains(planes, p) {
			known++
		}
	}
	switch {
	case known == 0:
		e.Fatalf("its data planes are %q", c.GetDataPlanes())
	case c.GetReach() != string(transports.ReachMachine) && c.GetReach() != string(transports.ReachNetwork):
		e.Fatalf("its reach is %q", c.GetReach())
	}
}

func waitingLinks(e *env) {
	far, near := e.configured(nodeOptions{}), e.configured(nodeOptions{})
	address := e.listen(far)
	var last *proto.DialResponse
	for i := range proto.MaxWaiting {
		last = e.dialBriefly(near, address, i+1)
		if i > proto.MaxWaiting/2 && last.GetError().GetCode() == string(transports.CodeTimeout) {
			e.Logf("dial %d waits for the other side, which has as many links as it takes: whether more than %d may wait here was not tried", i+1, proto.MaxWaiting)
			return
		}
		if last.GetError() != nil {
			e.Fatalf("dial %d: %s (%s)", i+1, last.GetError().GetReason(), last.GetError().GetCode())
		}
	}
	switch over := e.dialBriefly(near, address, proto.MaxWaiting+1); {
	case over.GetError() == nil:
		e.Fatalf("dial %d makes a link, although %d wait to be opened", proto.MaxWaiting+1, proto.MaxWaiting)
	case over.GetError().GetCode() != string(transports.CodeResource):
		e.Fatalf("dial %d, with %d links waiting: %s (%s), not resource", proto.MaxWaiting+1, proto.MaxWaiting, over.GetError().GetReason(), over.GetError().GetCode())
	}
	ask(e, near.rpc.CloseLink, &proto.CloseLinkRequest{Call: near.request(), LinkId: last.GetLinkId()})
	if again := e.dialBriefly(near, address, proto.MaxWaiting+2); again.GetError() != nil && again.GetError().GetCode() != string(transports.CodeTimeout) {
		e.Fatalf("dial %d, when one link was closed and there is room again: %s (%s)", proto.MaxWaiting+2, again.GetError().GetReason(), again.GetError().GetCode())
	}
}

func dialTime(e *env) {
	n := e.configured(nodeOptions{})
	own := e.listen(n)
	addresses := []string{"nonsense", "/nowhere", "x!y", "127.0.0.1:1"}
	silent, full := e.silent(1000), e.silent(0)
	for _, port := range []int{silent, full} {
		if a, ok := withPort(own, port); ok {
			addresses = append(addresses, a)
		}
	}
	for i, address := range addresses {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		answer, err := n.rpc.Dial(ctx, &proto.DialRequest{Call: &proto.Call{Key: "dial " + itoa(uint32(i)), TimeoutMs: 500}, Address: address})
		cancel()
		switch {
		case status.Code(err) == codes.DeadlineExceeded:
			e.Fatalf("dial %s with half a second: no answer after 5", address)
		case err != nil:
			e.Fatalf("dial %s: %v", address, err)
		case answer.GetError() == nil && i < 4:
			e.Fatalf("dial %s makes a link", address)
		case answer.GetError() != nil && (answer.GetError().GetCode() == "" || answer.GetError().GetReason() == ""):
			e.Fatalf("dial %s fails without a code or a reason: %v", address, answer.GetError())
		}
	}
}

func itoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// silent makes a TCP port on which nobody ever answers; one with a backlog of 0 does
// not even take connections.
func (e *env) silent(backlog int) (port int) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	e.must(err)
	e.Cleanup(func() { _ = unix.Close(fd) })
	e.must(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	e.must(unix.Listen(fd, backlog))
	name, err := unix.Getsockname(fd)
	e.must(err)
	for range 3 * max(0, 1-backlog) { // fills the backlog
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		e.must(err)
		e.Cleanup(func() { _ = unix.Close(c) })
		_ = unix.Connect(c, name) // in progress, and stays so
	}
	return name.(*unix.SockaddrInet4).Port
}

var portPattern = regexp.MustCompile(`(127\.0\.0\.1:)\d+`)

func withPort(address string, port int) (string, bool) {
	if !portPattern.MatchString(address) {
		return "", false
	}
	return portPattern.ReplaceAllString(address, "${1}"+strconv.Itoa(port)), true
}
