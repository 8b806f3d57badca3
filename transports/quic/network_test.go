package quic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/quic"
)

// network is a UDP relay in front of a listener that behaves like the network between two
// sites: it loses and reorders packets. It knows each client by its address, as a device
// that translates addresses (NAT) does.
type network struct {
	t    *testing.T
	near *net.UDPConn // diallers send here
	far  *net.UDPAddr // the listener

	mu      sync.Mutex
	random  *rand.Rand
	loss    float64 // of packets, both ways
	swap    float64 // of packets, that are overtaken by their successor
	held    map[*net.UDPConn][]byte
	flows   map[string]*net.UDPConn // by client
	blocked map[string]bool         // clients that nothing comes from any more
	dropped int
	lost    chan struct{} // closed when the first packet is lost
}

func newNetwork(t *testing.T, to string) *network {
	t.Helper()
	far, err := net.ResolveUDPAddr("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	near, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	n := &network{
		t: t, near: near, far: far, random: rand.New(rand.NewPCG(1, 2)),
		held: map[*net.UDPConn][]byte{}, flows: map[string]*net.UDPConn{}, blocked: map[string]bool{},
		lost: make(chan struct{}),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.outward()
	}()
	t.Cleanup(func() {
		near.Close()
		<-done
		n.forget()
	})
	return n
}

func (n *network) address() string { return n.near.LocalAddr().String() }

// worsen sets the shares of packets that are lost and reordered from now on.
func (n *network) worsen(loss, swap float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loss, n.swap = loss, swap
}

func (n *network) losses() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dropped
}

// outward passes packets of the clients on.
func (n *network) outward() {
	buf := make([]byte, 65536)
	for {
		k, from, err := n.near.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		if out := n.flow(from.String()); out != nil && n.fate() {
			n.pass(out, buf[:k], func(b []byte) { _, _ = out.Write(b) })
		}
	}
}

// flow is the socket that stands for a client, and brings it the answers.
func (n *network) flow(client string) *net.UDPConn {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.blocked[client] {
		return nil
	}
	if out := n.flows[client]; out != nil {
		return out
	}
	out, err := net.DialUDP("udp", nil, n.far)
	if err != nil {
		n.t.Errorf("relay: %v", err)
		return nil
	}
	n.flows[client] = out
	to, _ := net.ResolveUDPAddr("udp", client)
	go func() {
		buf := make([]byte, 65536)
		for {
			k, err := out.Read(buf)
			if err != nil {
				return
			}
			if n.fate() {
				n.pass(out, buf[:k], func(b []byte) { _, _ = n.near.WriteToUDP(b, to) })
			}
		}
	}()
	return out
}

// fate draws whether a packet arrives.
func (n *network) fate() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.random.Float64() < n.loss {
		if n.dropped++; n.dropped == 1 {
			close(n.lost)
		}
		return false
	}
	return true
}

// pass sends a packet, or keeps it until after the next.
func (n *network) pass(of *net.UDPConn, b []byte, send func([]byte)) {
	n.mu.Lock()
	late := n.held[of]
	delete(n.held, of)
	if late == nil && n.random.Float64() < n.swap {
		n.held[of] = bytes.Clone(b)
		n.mu.Unlock()
		return
	}
	n.mu.Unlock()
	send(b)
	if len(late) > 0 {
		send(late)
	}
}

// forget makes all clients come from other ports from now on, as after the restart of a NAT
// device.
func (n *network) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, out := range n.flows {
		out.Close()
	}
	clear(n.flows)
}

// block drops all packets of the clients that are known now, as if their addresses no
// longer existed.
func (n *network) block() {
	n.mu.Lock()
	for client := range n.flows {
		n.blocked[client] = true
	}
	n.mu.Unlock()
	n.forget()
}

// transfer sends total bytes from one end to the other and checks each. part is
// called after each of the parts.
func transfer(t *testing.T, from, to link.Link, total, parts int, part func(int)) {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		random := rand.NewChaCha8([32]byte{7})
		buf := make([]byte, 32<<10)
		for i := 0; i < total; i += len(buf) {
			_, _ = random.Read(buf)
			if err := sendAll(from, buf); err != nil {
				sent <- fmt.Errorf("send after %d bytes: %w", i, err)
				return
			}
		}
		sent <- nil
	}()
	random := rand.NewChaCha8([32]byte{7})
	want, got := make([]byte, 32<<10), make([]byte, 32<<10)
	next := 1
	for i := 0; i < total; i += len(got) {
		_, _ = random.Read(want)
		if err := recvAll(to, got); err != nil {
			t.Fatalf("receive after %d bytes: %v (sender: %v)", i, err, peek(sent))
		}
		if !bytes.Equal(want, got) {
			t.Fatalf("other bytes came after %d", i)
		}
		if i >= total/parts*next {
			part(next)
			next++
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

func peek(c chan error) error {
	select {
	case err := <-c:
		return err
	default:
		return nil
	}
}

func sendAll(l link.Link, b []byte) error {
	for len(b) > 0 {
		n, err := l.Send([][]byte{b})
		if err != nil {
			return err
		}
		if b = b[n:]; n == 0 {
			wait(l, link.Writable, unix.POLLOUT)
		}
	}
	return nil
}

func recvAll(l link.Link, b []byte) error {
	for len(b) > 0 {
		n, err := l.Recv([][]byte{b})
		if err != nil {
			return err
		}
		if b = b[n:]; n == 0 {
			wait(l, link.Readable, unix.POLLIN)
		}
	}
	return nil
}

func wait(l link.Link, want link.Interest, events int16) {
	if !l.Arm(want) {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(l.Handle()), Events: events}}, 1000)
	}
}

func TestLossAndDisorder(t *testing.T) {
	alpha, beta := two(t, nil)
	ln := listen(t, alpha, "127.0.0.1")
	n := newNetwork(t, ln.Address())
	a, b := join(t, beta, ln, n.address())
	n.worsen(0.02, 0.1)
	transfer(t, a, b, 4<<20, 1, func(int) {})
	transfer(t, b, a, 4<<20, 1, func(int) {})
	if n.losses() == 0 {
		t.Error("the network has lost nothing")
	}
	if beta.Stats()["packets_lost"] == 0 {
		t.Error("the statistics know of no loss")
	}
}

// A handshake succeeds over a network that loses many packets.
func TestHandshakeWithLoss(t *testing.T) {
	alpha, beta := two(t, map[string]any{"handshake_timeout": 30.0})
	ln := listen(t, alpha, "127.0.0.1")
	n := newNetwork(t, ln.Address())
	n.worsen(0.2, 0)
	join(t, beta, ln, n.address())
}

// The peer follows a change of address that our socket survives.
func TestAddressChangesOnTheWay(t *testing.T) {
	alpha, beta := two(t, nil)
	ln := listen(t, alpha, "127.0.0.1")
	n := newNetwork(t, ln.Address())
	a, b := join(t, beta, ln, n.address())
	transfer(t, a, b, 8<<20, 4, func(int) { n.forget() })
	transfer(t, b, a, 8<<20, 4, func(int) { n.forget(); _ = sendAll(a, nil) })
}

// A transfer leaves a dead path and goes on over another socket.
func TestPathDies(t *testing.T) {
	quick := map[string]any{"keepalive": 1.0, "lanes": 1.0}
	alpha, beta := two(t, quick)
	ln := listen(t, alpha, "127.0.0.1")
	n := newNetwork(t, ln.Address())
	a, b := join(t, beta, ln, n.address())
	c, d := join(t, beta, ln, n.address())
	transfer(t, a, b, 8<<20, 2, func(int) { n.block() })
	transfer(t, c, d, 1<<20, 1, func(int) {}) // the other link on it has moved too
	transfer(t, b, a, 8<<20, 2, func(int) { n.block() })
	if quic.Moves(beta) < 2 {
		t.Errorf("the path was changed %d times", quic.Moves(beta))
	}
}

// A peer that has vanished is given up after a while, by both ends.
func TestPeerVanishes(t *testing.T) {
	alpha, beta := two(t, map[string]any{"keepalive": 0.1, "idle_timeout": 0.5})
	ln := listen(t, alpha, "127.0.0.1")
	n := newNetwork(t, ln.Address())
	a, b := join(t, beta, ln, n.address())
	n.worsen(1, 0)
	for _, l := range []link.Link{a, b} {
		err := recvAll(l, make([]byte, 1))
		if !errors.Is(err, link.ErrBroken) || !errors.Is(err, link.ErrSilent) || !bytes.Contains([]byte(err.Error()), []byte("nothing was heard from quic ")) {
			t.Errorf("the link ends with: %v", err)
		}
	}
}

// Links to one peer share connections, as many as lanes says.
func TestLanes(t *testing.T) {
	alpha, beta := two(t, map[string]any{"lanes": 3.0})
	ln := listen(t, alpha, "127.0.0.1")
	for i := range 10 {
		join(t, beta, ln, ln.Address())
		if want := float64(min(i+1, 3)); beta.Stats()["connections"] != want {
			t.Fatalf("%d links have %v connections, not %v", i+1, beta.Stats()["connections"], want)
		}
	}
}

// A link that nobody reads does not stop the others on its connection, however
// much was sent on it.
func TestStoppedReaderStopsNobodyElse(t *testing.T) {
	alpha, beta := two(t, map[string]any{"lanes": 1.0})
	ln := listen(t, alpha, "127.0.0.1")
	for range 20 {
		full, _ := join(t, beta, ln, ln.Address())
		buf := make([]byte, 64<<10)
		for idle := 0; idle < 3; {
			n, err := full.Send([][]byte{buf})
			if err != nil {
				t.Fatal(err)
			}
			if idle++; n > 0 {
				idle = 0
				continue
			}
			if !full.Arm(link.Writable) {
				_, _ = unix.Poll([]unix.PollFd{{Fd: int32(full.Handle()), Events: unix.POLLOUT}}, 20)
			}
		}
	}
	a, b := join(t, beta, ln, ln.Address())
	transfer(t, a, b, 4<<20, 1, func(int) {})
}

// The peers of a process that ends are told at once.
func TestCloseTellsThePeers(t *testing.T) {
	alpha, beta := two(t, nil)
	ln := listen(t, alpha, "127.0.0.1")
	a, b := join(t, beta, ln, ln.Address())
	if err := sendAll(a, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := recvAll(b, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	beta.Close()
	if err := recvAll(b, make([]byte, 1)); !errors.Is(err, link.ErrBroken) || !bytes.Contains([]byte(err.Error()), []byte("process ended")) {
		t.Errorf("the peer's link ends with: %v", err)
	}
}

// Bytes that were sent before Close arrive, however late the peer reads them.
func TestLastBytesOfALinkArriveLate(t *testing.T) {
	alpha, beta := two(t, nil)
	ln := listen(t, alpha, "127.0.0.1")
	a, b := join(t, beta, ln, ln.Address())
	text := bytes.Repeat([]byte("late "), 100000)
	go func() {
		_ = sendAll(a, text)
		a.Close()
		ln.Close()
	}()
	got := make([]byte, len(text))
	if err := recvAll(b, got); err != nil || !bytes.Equal(got, text) {
		t.Fatalf("%v", err)
	}
}

func TestDialNobody(t *testing.T) {
	_, beta := two(t, nil)
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	address := c.LocalAddr().String()
	c.Close()
	_, err = beta.Dial(t.Context(), transports.DialSpec{Address: address})
	var te *transports.Error
	if !errors.As(err, &te) || te.Code != transports.CodeRefused || !te.Retryable {
		t.Errorf("it is said: %v", err)
	}
}

// overAt is a context whose deadline is over when something has happened.
type overAt struct {
	context.Context
	done <-chan struct{}
}

func (o overAt) Done() <-chan struct{} { return o.done }

func (o overAt) Err() error {
	select {
	case <-o.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A dial that nobody answers says so, whether the handshake's time is over first or the
// caller's.
func TestDialSilence(t *testing.T) {
	for name, handshake := range map[string]float64{"handshake": 0.05, "caller": 3600} {
		alpha, beta := two(t, map[string]any{"handshake_timeout": handshake})
		n := newNetwork(t, listen(t, alpha, "127.0.0.1").Address())
		n.worsen(1, 0)
		ctx := t.Context()
		if name == "caller" {
			ctx = overAt{ctx, n.lost}
		}
		_, err := beta.Dial(ctx, transports.DialSpec{Address: n.address()})
		var te *transports.Error
		if !errors.As(err, &te) || te.Code != transports.CodeTimeout || !te.Retryable || !strings.HasPrefix(te.Reason, "nobody answers there") {
			t.Errorf("%s: it is said: %v", name, err)
		}
	}
}

// Where the kernel can segment packets, it does.
func TestSegmentationIsReported(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT); err != nil {
		skips.NotRun(t, fmt.Sprint("the kernel does not segment UDP: ", err), "use Linux 4.18 or later")
	}
	alpha, beta := two(t, nil)
	ln := listen(t, alpha, "127.0.0.1")
	join(t, beta, ln, ln.Address())
	for name, x := range map[string]*quic.Transport{"dialler": beta, "listener": alpha} {
		if s := x.Stats(); s["connections_gso"] != 1 || s["connections"] != 1 {
			t.Errorf("%s: %v", name, s)
		}
	}
}
