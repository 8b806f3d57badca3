package dynamic

import (
	"slices"
	"testing"
)

// TestWorldNamesDiffer: what is derived from a token is the same for the same
// token, and differs between tokens and purposes.
func TestWorldNamesDiffer(t *testing.T) {
	a, b := testToken, otherToken
	if a.World() != testToken.World() || a.Meeting() != testToken.Meeting() {
		t.Error("the same token")
	}
	if a.World() == b.World() || a.Meeting() == b.Meeting() {
		t.Error("two tokens")
	}
	secret := a.Meeting()
	if secret == a || secret.World() == a.World() {
		t.Error("the secret of a world greets as its job")
	}
}

func TestMemberOrder(t *testing.T) {
	low, high := WorldID{1}, WorldID{2}
	members := []WorldProc{{high, 0}, {low, 7}, {high, -1}, {low, 2}}
	slices.SortFunc(members, WorldProc.Compare)
	want := []WorldProc{{low, 2}, {low, 7}, {high, -1}, {high, 0}}
	if !slices.Equal(members, want) {
		t.Errorf("%v", members)
	}
}

// TestMemberIdentity: procs of two jobs with the same ranks differ on the wire.
func TestMemberIdentity(t *testing.T) {
	a, b := WorldProc{WorldID{15: 9}, 3}, WorldProc{WorldID{15: 8}, 3}
	if a.Identity() == b.Identity() || a.Identity().PID != 3 || a.Identity().Host[15] != 9 {
		t.Errorf("%v %v", a.Identity(), b.Identity())
	}
}
