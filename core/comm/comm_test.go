package comm

import (
	"errors"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

var sites = func() *Clients {
	clients := make([]wire.ClientRank, 100)
	for i := range clients {
		clients[i] = wire.ClientRank(i % 3)
	}
	return NewClients(clients)
}()

func newComm(t *testing.T, g *Group, self Proc) *Comm {
	t.Helper()
	c, err := New(Spec{Context: 8, Group: g, Self: self, Clients: sites})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCommAccessors(t *testing.T) {
	c := newComm(t, NewGroup(10, 4), 12)
	if c.Size() != 4 || c.Rank() != 2 || c.Self() != 12 || c.Context() != 8 || c.CollectiveContext() != 9 {
		t.Errorf("size %d, rank %d, self %d, contexts %d and %d", c.Size(), c.Rank(), c.Self(), c.Context(), c.CollectiveContext())
	}
	if p, ok := c.Proc(3); !ok || p != 13 {
		t.Errorf("rank 3 is %d, %v", p, ok)
	}
	if _, ok := c.Proc(4); ok {
		t.Error("rank 4 exists")
	}
	if c.ClientOf(13) != 1 || c.Cart() != nil || c.Group().Size() != 4 {
		t.Error("client, topology or group")
	}
	for _, s := range []Spec{{Clients: sites}, {Group: Empty}, {Group: NewGroup(0, 2), Self: 2, Clients: sites}} {
		if _, err := New(s); !errors.Is(err, ErrGroup) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestCommCompare(t *testing.T) {
	c := newComm(t, of(t, 1, 2, 3), 2)
	for _, d := range []struct {
		other *Comm
		want  Comparison
	}{
		{c, Identical}, {newComm(t, of(t, 1, 2, 3), 2), Congruent},
		{newComm(t, of(t, 3, 2, 1), 2), Similar}, {newComm(t, of(t, 1, 2), 2), Unequal},
	} {
		if got := c.Compare(d.other); got != d.want {
			t.Errorf("with %v: %d, want %d", d.other.Group().Procs(), got, d.want)
		}
	}
}

// mastersOf returns the masters of a communicator whose ranks are procs of these clients.
func mastersOf(clients []wire.ClientRank) *Masters {
	return NewMasters(NewGroup(0, len(clients)), NewClients(clients))
}

// IMPI ch.4, Utility functions: ranks {0,1,4}, {2,3,5} and {6,7}, whose clients
// are not numbered in that order.
func TestMasters(t *testing.T) {
	m := mastersOf([]wire.ClientRank{7, 7, 2, 2, 7, 2, 5, 5})
	if m.Count() != 3 {
		t.Fatalf("%d masters", m.Count())
	}
	locals := [][]Proc{{0, 1, 4}, {2, 3, 5}, {6, 7}}
	clients := []wire.ClientRank{7, 2, 5}
	for n, want := range locals {
		if got := m.Locals(n).Procs(); !slices.Equal(got, want) {
			t.Errorf("locals of master %d are %v, want %v", n, got, want)
		}
		if m.Rank(n) != int(want[0]) || m.Client(n) != clients[n] {
			t.Errorf("master %d is rank %d of client %d", n, m.Rank(n), m.Client(n))
		}
		for place, r := range want {
			if m.Number(int(r)) != n || m.LocalIndex(int(r)) != place {
				t.Errorf("rank %d has master %d, place %d, want %d and %d", r, m.Number(int(r)), m.LocalIndex(int(r)), n, place)
			}
		}
	}
	if !m.Local(0, 4) || m.Local(4, 5) || !m.Local(6, 7) {
		t.Error("who is local to whom")
	}
}

func TestCommMasters(t *testing.T) {
	c := newComm(t, of(t, 5, 3, 4, 6), 3) // clients 2, 0, 1, 0
	m := c.Masters()
	if m != c.Masters() {
		t.Error("worked out twice")
	}
	if m.Count() != 3 || m.Number(3) != 1 || m.Client(0) != 2 {
		t.Errorf("%d masters, rank 3 has %d, client of the first is %d", m.Count(), m.Number(3), m.Client(0))
	}
}
