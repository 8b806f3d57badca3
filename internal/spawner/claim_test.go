package spawner

import (
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/internal/routes"
)

// TestClaimThatComesLate: a claim whose host does not wait any more, and has said so before the
// claim came, takes no slots.
func TestClaimThatComesLate(t *testing.T) {
	site := &config.Site{Name: "alpha", Hosts: make([]config.Host, 2), Spawn: config.Spawn{Slots: 4}}
	d := New(t.Context(), Settings{Routes: &routes.Table{Site: site}})
	late := claim{Host: 1, Number: 1}
	ask := func(c claim) result {
		return d.do(t.Context(), &hostRequest{Do: doClaim, Claim: c, Hosts: []int{0, 1}, Commands: []spawn.Command{{Path: "p", Procs: 4}}})
	}
	d.do(t.Context(), &hostRequest{Do: doWithdraw, Claim: late})
	if a := ask(late); a.Refused == nil {
		t.Errorf("%+v", a)
	}
	if taken, _ := d.InUse(); taken != 0 {
		t.Errorf("%d slots are taken", taken)
	}
	if a := ask(claim{Host: 1, Number: 2}); a.Refused != nil {
		t.Errorf("the next one: %v", a.Refused)
	}
}
