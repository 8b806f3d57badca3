package dynamic

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

var portEpoch = time.Unix(1000, 0)

func portKey(n byte) (key Token) {
	key[0] = n
	return key
}

// testPorts are ports of owners "a" and "b", with connections that are numbers.
type testPorts struct {
	Ports[string, int]
	gone map[int]bool
}

func newTestPorts() *testPorts {
	p := &testPorts{gone: map[int]bool{}}
	p.ConnClosed = func(c int) bool { return p.gone[c] }
	return p
}

// steps returns all that is to be done, as text.
func (p *testPorts) steps() (list []string) {
	for {
		s, ok := p.Next()
		switch {
		case !ok:
			return list
		case s.Drop:
			list = append(list, fmt.Sprintf("drop %d", s.Conn))
		case s.Err != nil:
			list = append(list, fmt.Sprintf("%s %d: %v %v", s.Owner, s.Request, s.Err, s.Broken))
		default:
			list = append(list, fmt.Sprintf("%s %d: conn %d", s.Owner, s.Request, s.Conn))
		}
	}
}

func (p *testPorts) want(t *testing.T, want ...string) {
	t.Helper()
	if got := p.steps(); !slices.Equal(got, want) {
		t.Errorf("to be done is %q, want %q", got, want)
	}
}

func (p *testPorts) hold(t *testing.T, key Token, want Verdict) {
	t.Helper()
	if got := p.Reserve(key.World()); got != want {
		t.Errorf("who connects hears %v, want %v", got, want)
	}
}

// A full port has room again once a connection has been closed, and hands out those that are
// there, first come first served.
func TestPortIsBounded(t *testing.T) {
	p, key := newTestPorts(), portKey(1)
	p.hold(t, key, ClosedPort)
	if err := p.Open(portEpoch, "a", key, 2, 0); err != nil {
		t.Fatal(err)
	}
	for c := range 2 {
		p.hold(t, key, Accepted)
		if p.Admit(key.World(), c) {
			t.Error("nobody waits for it")
		}
	}
	p.hold(t, key, PortFull)
	p.gone[0] = true
	p.hold(t, key, Accepted)
	p.want(t, "drop 0")
	p.hold(t, key, PortFull) // the place of one that is being greeted is taken, too
	p.Release(key.World())
	p.hold(t, key, Accepted)
	p.Accept("b", key, 7)
	p.want(t, "b 7: the port is not open false")
	p.Accept("a", key, 1)
	p.Accept("a", key, 2)
	p.want(t, "a 1: conn 1")
	if !p.Admit(key.World(), 5) {
		t.Error("2 waits for it")
	}
	p.want(t, "a 2: conn 5")
}

func TestAcceptsAreServedInOrder(t *testing.T) {
	p, key := newTestPorts(), portKey(1)
	if err := p.Open(portEpoch, "a", key, 0, 0); err != nil {
		t.Fatal(err)
	}
	for _, request := range []uint64{5, 6, 7, 8} {
		p.Accept("a", key, request)
	}
	p.Cancel("b", key, 6)
	p.Cancel("a", key, 6)
	p.Cancel("a", key, 6)
	p.want(t, "a 6: given up false")
	for c := range 2 {
		p.hold(t, key, Accepted)
		p.Admit(key.World(), c)
	}
	p.want(t, "a 5: conn 0", "a 7: conn 1")
	if p.Close("b", key) || !p.Close("a", key) || p.Close("a", key) {
		t.Error("its owner closes a port, once")
	}
	p.want(t, "a 8: the port was closed false")
}

// Who has gone away is given to nobody; who came while the port was closed is let go.
func TestConnectionsThatAreOfNoUse(t *testing.T) {
	p, key := newTestPorts(), portKey(1)
	if err := p.Open(portEpoch, "a", key, 0, 0); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		p.hold(t, key, Accepted)
	}
	p.Admit(key.World(), 1)
	p.Admit(key.World(), 2)
	p.gone[1] = true
	p.Accept("a", key, 9)
	p.want(t, "drop 1", "a 9: conn 2")
	p.hold(t, key, Accepted)
	p.Admit(key.World(), 4)
	p.CloseAllOf("a")
	p.Admit(key.World(), 3)
	p.Release(key.World())
	p.want(t, "drop 4", "drop 3")
	if p.Len() != 0 {
		t.Errorf("%d ports are open", p.Len())
	}
}

func TestPortsExpire(t *testing.T) {
	p := newTestPorts()
	if _, ok := p.Deadline(); ok {
		t.Error("nothing expires")
	}
	for i, lifetime := range []time.Duration{0, 3 * time.Second, 2 * time.Second} {
		if err := p.Open(portEpoch, "a", portKey(byte(i)), 0, lifetime); err != nil {
			t.Fatal(err)
		}
		p.Accept("a", portKey(byte(i)), uint64(i))
	}
	for _, c := range []struct{ after, next time.Duration }{{2 * time.Second, 3 * time.Second}, {3 * time.Second, 0}} {
		at, ok := p.Deadline()
		if !ok || at != portEpoch.Add(c.after) {
			t.Errorf("expires at %v %v, want %v", at, ok, c.after)
		}
		p.Tick(at.Add(-1))
		p.want(t)
		p.Tick(at)
		p.want(t, fmt.Sprintf("a %d: the lifetime of the port is over false", 4-c.after/time.Second))
	}
	if _, ok := p.Deadline(); ok || p.Len() != 1 {
		t.Errorf("%d ports are open, and one expires: %v", p.Len(), ok)
	}
}

// A port that nobody will call says so to those who wait, and to who comes.
func TestBrokenPort(t *testing.T) {
	p, key := newTestPorts(), portKey(1)
	if err := p.Open(portEpoch, "a", key, 0, 0); err != nil {
		t.Fatal(err)
	}
	p.Accept("a", key, 1)
	p.Break("b", key.World(), errors.New("not theirs"))
	p.want(t)
	p.Break("a", key.World(), errors.New("it died"))
	p.Accept("a", key, 2)
	p.want(t, "a 1: it died true", "a 2: it died true")
}

func TestPortsAreFew(t *testing.T) {
	p := newTestPorts()
	if err := p.Open(portEpoch, "b", portKey(9), 1<<30, 0); err != nil {
		t.Fatal(err)
	}
	if err := p.Open(portEpoch, "a", portKey(9), 0, 0); !errors.Is(err, ErrPortOpen) {
		t.Errorf("the same port again: %v", err)
	}
	for i := range MaxPorts + 1 {
		var key Token
		key[1], key[2] = byte(i), byte(i>>8)+1
		if err := p.Open(portEpoch, "a", key, 0, 0); (err != nil) != (i == MaxPorts) || err != nil && !errors.Is(err, ErrTooManyPorts) {
			t.Fatalf("port %d: %v", i, err)
		}
	}
	for range MaxBacklog {
		p.hold(t, portKey(9), Accepted)
	}
	p.hold(t, portKey(9), PortFull)
	for i := range MaxAccepts + 1 {
		p.Accept("b", portKey(9), uint64(i))
	}
	p.want(t, fmt.Sprintf("b %d: %v false", MaxAccepts, ErrTooManyWait))
}
