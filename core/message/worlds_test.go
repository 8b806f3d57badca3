package message

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/flow"
	"github.com/openimpi/impi/core/match"
	"github.com/openimpi/impi/core/wire"
)

// strangers makes rank 1 of one job and rank 0 of another, whose hosts and
// process numbers are the same, and links them. data, ack and hi are what the jobs
// have in common.
func strangers(t *testing.T, data, ack, hi uint32) (a, b *Engine, bForA, aForB Peer) {
	t.Helper()
	d := jobOf(t, 3)
	engine := func(self Peer, maxData uint32) *Engine {
		e, err := New(Config{Directory: d, Self: self, MaxData: maxData, AckMark: 8, HiWater: 32})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	a, b = engine(1, 1000), engine(0, 100)
	idA, idB := wire.Proc{Host: wire.HostID{0xa}, PID: 1}, wire.Proc{Host: wire.HostID{0xb}, PID: 0}
	add := func(e *Engine, self, other wire.Proc) Peer {
		first, err := e.AddWorld(ConnectedWorld{Host: other.Host, Size: 3, Self: self, MaxData: data, AckMark: ack, HiWater: hi})
		if err != nil {
			t.Fatal(err)
		}
		p := first + Peer(other.PID)
		if e.Proc(p) != other {
			t.Fatalf("peer %d is %v, want %v", p, e.Proc(p), other)
		}
		e.AttachPeer(5, p)
		e.SetRoute(p, 5)
		return p
	}
	return a, b, add(a, idA, idB), add(b, idB, idA)
}

// carry moves what a has to send to b by link 5 and tells how many packets that is.
func carry(t *testing.T, a, b *Engine) (packets int) {
	t.Helper()
	for a.HasOutput(5) {
		var bytes []byte
		for _, s := range a.Output(5) {
			bytes = append(bytes, s...)
		}
		a.Sent(5, len(bytes))
		var h wire.Packet
		for rest := bytes; len(rest) > 0; packets++ {
			wire.Dialect(0).Header(rest, &h)
			rest = rest[headerSize:]
			if h.Type.HasData() {
				rest = rest[h.Len:]
			}
		}
		for len(bytes) > 0 {
			n := 0
			for _, s := range b.Input(5) {
				n += copy(s, bytes[n:])
			}
			if err := b.Received(5, n); err != nil {
				t.Fatal(err)
			}
			bytes = bytes[n:]
		}
	}
	return packets
}

// TestWorldsExchange: procs of two jobs exchange messages with the parameters that the jobs
// have in common, whatever those of each job are.
func TestWorldsExchange(t *testing.T) {
	a, b, to, from := strangers(t, 100, 2, 4)
	message := make([]byte, 950) // one packet in a's own job
	for i := range message {
		message[i] = byte(i)
	}
	got := make([]byte, 2000)
	r := b.Recv(Envelope{Context: 7, Rank: 3, Tag: 1}, from, got)
	s := a.Send(to, Envelope{Context: 7, Rank: 3, Tag: 1}, Standard, message, 950, 0)
	packets := 0
	for range 20 {
		packets += carry(t, a, b)
		carry(t, b, a)
	}
	st := r.Status()
	if !r.Done() || !s.Done() || st.Err != nil || string(got[:st.Len]) != string(message) || st.Peer != from {
		t.Fatalf("received %v, sent %v: %+v", r.Done(), s.Done(), st)
	}
	if packets < 10 {
		t.Errorf("%d packets of at most 100 bytes", packets)
	}
}

// TestWorldsWindow: the window between worlds is the common one.
func TestWorldsWindow(t *testing.T) {
	a, b, to, _ := strangers(t, 100, 2, 4)
	for range 10 {
		a.Send(to, Envelope{}, Standard, []byte{1}, 1, 0)
	}
	if n := carry(t, a, b); n != 4 {
		t.Errorf("%d packets without an acknowledgement, the common window is 4", n)
	}
	if n := carry(t, b, a); n != 2 {
		t.Errorf("%d acknowledgements, the common ackmark is 2", n)
	}
}

// TestWorldsIdentities: the identities of the job do not hold between worlds.
func TestWorldsIdentities(t *testing.T) {
	for what, spoil := range map[string]func(h *wire.Packet){
		"source":      func(h *wire.Packet) { h.Src = wire.Proc{PID: 1} },
		"destination": func(h *wire.Packet) { h.Dest = wire.Proc{PID: 0} },
		"length":      func(h *wire.Packet) { h.Len, h.MsgLen = 101, 101 },
	} {
		_, b, _, _ := strangers(t, 100, 2, 4)
		h := wire.Packet{Type: wire.PkData, Src: wire.Proc{Host: wire.HostID{0xa}, PID: 1}, Dest: wire.Proc{Host: wire.HostID{0xb}}}
		spoil(&h)
		bytes := make([]byte, headerSize)
		wire.Dialect(0).PutHeader(bytes, &h)
		n := copy(b.Input(5)[0], bytes)
		var fault *ProtocolError
		if err := b.Received(5, n); !errors.As(err, &fault) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAddWorldRefuses(t *testing.T) {
	e := engineOf(t, jobOf(t, 2))
	good := ConnectedWorld{Size: 1, MaxData: 1, AckMark: 1, HiWater: 1}
	for what, spoil := range map[string]func(w *ConnectedWorld){
		"nobody":    func(w *ConnectedWorld) { w.Size = 0 },
		"too many":  func(w *ConnectedWorld) { w.Size = 1<<31 - 2 },
		"no data":   func(w *ConnectedWorld) { w.MaxData = 0 },
		"no window": func(w *ConnectedWorld) { w.HiWater = 0 },
	} {
		w := good
		spoil(&w)
		if _, err := e.AddWorld(w); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", what, err)
		}
	}
	good.AckMark = 2
	if _, err := e.AddWorld(good); !errors.Is(err, flow.ErrLimits) {
		t.Errorf("the cause is lost: %v", err)
	}
}

// TestForgetWorld: nothing is left of a world but its numbers, which nobody gets
// again.
func TestForgetWorld(t *testing.T) {
	a, _, to, _ := strangers(t, 100, 2, 4)
	r := a.Recv(Envelope{}, to, nil)
	a.Detach(5, errCut)
	before := len(a.peers.made)
	early := a.newMessage(a.peer(to), 0) // that nobody has received
	a.unexpected.Add(&early.entry, match.Key{Tag: 7})
	a.ForgetWorld(3)
	for x := range a.Pending() {
		t.Errorf("left: %v", x)
	}
	if !r.Done() || len(a.peers.made) != before-1 || len(a.worlds) != 0 || a.lost != 0 {
		t.Errorf("request %v, %d peers, %d worlds, %d lost", r.Done(), len(a.peers.made), len(a.worlds), a.lost)
	}
	if first, err := a.AddWorld(ConnectedWorld{Size: 2, MaxData: 1, AckMark: 1, HiWater: 1}); err != nil || first != 6 {
		t.Errorf("the next world begins at %d: %v", first, err)
	}
	if a.Proc(7).PID != 1 || a.Unreachable(7) != nil {
		t.Error("the next world is not itself")
	}
	for range 1000 {
		first, _ := a.AddWorld(ConnectedWorld{Size: 1, MaxData: 1, AckMark: 1, HiWater: 1})
		a.AttachPeer(5, first)
		a.SetRoute(first, 5)
		a.Detach(5, errCut)
		a.ForgetWorld(first)
	}
	if len(a.peers.made) > 2 || len(a.peers.slots) > firstPeers || len(a.worlds) != 1 {
		t.Errorf("%d peers in %d slots, %d worlds", len(a.peers.made), len(a.peers.slots), len(a.worlds))
	}
}
