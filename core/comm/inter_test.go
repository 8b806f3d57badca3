package comm

import (
	"testing"
)

// pair makes an intercommunicator as proc self of group a sees it.
func pair(t *testing.T, a, b *Group, self Proc) *Comm {
	t.Helper()
	c, err := New(Spec{Context: 8, Group: a, Remote: b, Self: self, Clients: sites})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestIntercommunicator(t *testing.T) {
	c := pair(t, of(t, 1, 2, 3), of(t, 9, 7), 2)
	if !c.Inter() || c.Size() != 3 || c.Rank() != 1 || c.Remote().Size() != 2 {
		t.Errorf("inter %v, rank %d of %d, remote size %d", c.Inter(), c.Rank(), c.Size(), c.Remote().Size())
	}
	for rank, want := range []Proc{9, 7} {
		if p, ok := c.Partner(rank); !ok || p != want {
			t.Errorf("partner %d is %d, %v, want %d", rank, p, ok, want)
		}
		if client, ok := c.PartnerClient(rank); !ok || client != sites.Of(want) {
			t.Errorf("client of partner %d is %d, %v", rank, client, ok)
		}
	}
	if _, ok := c.PartnerClient(2); ok {
		t.Error("there is a remote rank 2")
	}
	if p, ok := c.Proc(0); !ok || p != 1 {
		t.Errorf("local rank 0 is %d, %v", p, ok)
	}
}

// Each side's private communicator has its own two contexts, which are neither
// of the intercommunicator's.
func TestPrivateCommunicator(t *testing.T) {
	a, b := of(t, 1, 2, 3), of(t, 9, 7)
	left, right := pair(t, a, b, 3).Local(), pair(t, b, a, 7).Local()
	if left.Inter() || left.Group() != a || left.Rank() != 2 || right.Group() != b || right.Rank() != 1 {
		t.Errorf("rank %d of %v and %d of %v", left.Rank(), left.Group().Procs(), right.Rank(), right.Group().Procs())
	}
	if left.Context() != 10 || left.CollectiveContext() != 11 || right.Context() != 10 {
		t.Errorf("contexts %d, %d and %d", left.Context(), left.CollectiveContext(), right.Context())
	}
	if c := newComm(t, a, 1); c.Local() != c || c.Inter() || c.Remote() != nil || c.Partners() != a {
		t.Error("an intracommunicator has another side")
	}
}

func TestIntercommunicatorThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		what         string
		local, other *Group
		want         error
	}{
		{"nobody there", of(t, 1), Empty, ErrGroup},
		{"one in both groups", of(t, 1, 2), of(t, 3, 2), ErrComm},
		{"caller in neither", of(t, 5, 2), of(t, 3), ErrGroup},
	} {
		_, err := New(Spec{Group: c.local, Remote: c.other, Self: 1, Clients: sites})
		t.Log(c.what, err)
		wrong(t, err, c.want)
	}
}

func TestCompareIntercommunicators(t *testing.T) {
	a, b := of(t, 1, 2, 3), of(t, 9, 7)
	c := pair(t, a, b, 2)
	for _, d := range []struct {
		what  string
		other *Comm
		want  Comparison
	}{
		{"itself", c, Identical},
		{"the same groups", pair(t, a, b, 2), Congruent},
		{"local permuted", pair(t, of(t, 3, 2, 1), b, 2), Similar},
		{"remote permuted", pair(t, a, of(t, 7, 9), 2), Similar},
		{"both permuted", pair(t, of(t, 3, 2, 1), of(t, 7, 9), 2), Similar},
		{"another remote group", pair(t, a, of(t, 9, 8), 2), Unequal},
		{"another local group", pair(t, of(t, 2, 3), b, 2), Unequal},
		{"the other side", pair(t, b, a, 9), Unequal},
		{"an intracommunicator", newComm(t, a, 2), Unequal},
	} {
		if got := c.Compare(d.other); got != d.want {
			t.Errorf("%s: %d, want %d", d.what, got, d.want)
		}
		if got := d.other.Compare(c); got != d.want {
			t.Errorf("%s, the other way round: %d, want %d", d.what, got, d.want)
		}
	}
}
