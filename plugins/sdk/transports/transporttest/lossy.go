package transporttest

import (
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
)

var lossCases = []Case{
	{"T-LOSS-01", "lossy-path", "over a path that loses, doubles and reorders packets all bytes arrive unchanged and in order: what is sent in datagrams has to be numbered, acknowledged and sent again", lossyPath},
}

func lossyPath(e *env) {
	ln := e.listen()
	r := e.lossy(ln.Address())
	for range 2 {
		a, b := e.pairAt(relayed{ln, r.address})
		const total = 256 << 10
		cuts := func(n uint64) cut { return cut{seeded(n), 3, 8000} }
		ab, abIn := e.stream(a, b, total, cuts(1), cuts(2))
		ba, baIn := e.stream(b, a, total, cuts(3), cuts(4))
		e.together(ab, abIn, ba, baIn)
		e.must(a.CloseSend())
		e.must(e.eof(b))
	}
	lost, twice, late := r.counts()
	e.Logf("the path has lost %d packets, doubled %d and passed %d behind later ones", lost, twice, late)
	if lost+twice+late == 0 {
		e.Skipf("no packet has come by the path: the transport finds another way to %s", ln.Address())
	}
}

// One packet of this many is lost, duplicated, or sent after the next one.
const (
	lossOf    = 40
	doubleOf  = 40
	reorderOf = 15
)

type lossy struct {
	address string // what to dial instead
	target  string
	front   net.PacketConn

	mu                sync.Mutex
	rng               *rand.Rand
	peers             map[string]*net.UDPConn // sockets towards the listener, by dialler
	lost, twice, late int
	all               sync.WaitGroup
}

// lossy puts a lossy path before a listener on this machine. The case is skipped if the listener's
// address does not say how to get there by UDP.
func (e *env) lossy(address string) *lossy {
	e.Helper()
	target := where.FindString(address)
	if target == "" {
		e.Skipf("%q is not reached by UDP on this machine", address)
	}
	if free, err := net.ListenPacket("udp", target); err == nil {
		_ = free.Close()
		e.Skipf("nobody has the UDP port %s", target)
	}
	host, _, _ := net.SplitHostPort(target)
	front, err := net.ListenPacket("udp", net.JoinHostPort(host, "0"))
	e.must(err)
	r := &lossy{
		address: strings.Replace(address, target, front.LocalAddr().String(), 1),
		target:  target, front: front, rng: seeded(11), peers: map[string]*net.UDPConn{},
	}
	r.all.Go(r.outward)
	e.Cleanup(func() {
		r.close()
		r.all.Wait()
	})
	return r
}

const mostDatagram = 64 << 10

func (r *lossy) outward() {
	buf := make([]byte, mostDatagram)
	ways := map[string]*way{}
	for {
		n, from, err := r.front.ReadFrom(buf)
		if err != nil {
			return
		}
		w := ways[from.String()]
		if w == nil {
			to := r.peer(from)
			if to == nil {
				continue
			}
			w = &way{r: r, write: func(b []byte) { _, _ = to.Write(b) }} // a packet that is not sent is lost, like other lost ones
			ways[from.String()] = w
		}
		w.pass(buf[:n])
	}
}

// peer makes the socket that stands for a dialler, to whom its answers are passed back.
func (r *lossy) peer(from net.Addr) *net.UDPConn {
	c, err := net.Dial("udp", r.target)
	if err != nil {
		return nil
	}
	to := c.(*net.UDPConn)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.peers == nil { // closed
		_ = to.Close()
		return nil
	}
	r.peers[from.String()] = to
	r.all.Go(func() {
		back := way{r: r, write: func(b []byte) { _, _ = r.front.WriteTo(b, from) }}
		buf := make([]byte, mostDatagram)
		for {
			n, err := to.Read(buf)
			if err != nil {
				return
			}
			back.pass(buf[:n])
		}
	})
	return to
}

type way struct {
	r     *lossy
	write func([]byte)
	held  []byte // packet to be sent after the next one
}

func (w *way) pass(b []byte) {
	w.r.mu.Lock()
	lose, double, hold := w.r.rng.IntN(lossOf) == 0, w.r.rng.IntN(doubleOf) == 0, w.r.rng.IntN(reorderOf) == 0
	hold = hold && w.held == nil
	switch {
	case lose:
		w.r.lost++
	case hold:
		w.r.late++
	case double:
		w.r.twice++
	}
	w.r.mu.Unlock()
	switch {
	case lose:
		return
	case hold:
		w.held = slices.Clone(b)
		return
	case double:
		w.write(b)
	}
	w.write(b)
	if w.held != nil {
		w.write(w.held)
		w.held = nil
	}
}

func (r *lossy) counts() (lost, twice, late int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost, r.twice, r.late
}

func (r *lossy) close() {
	_ = r.front.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.peers {
		_ = c.Close()
	}
	r.peers = nil
}
