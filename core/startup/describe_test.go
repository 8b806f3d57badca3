package startup

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/dynamic"
)

// Procs of one site with the same card are one group of a job's description; a client of others, or
// with a proc that has no card, has none. In a job with clients of others those procs cannot be
// reached.
func TestDescribe(t *testing.T) {
	a, b := []byte("impi-card/1 node=a"), []byte("impi-card/1 node=b")
	j := &Job{AllOwn: true, DataLen: 64, AckMark: 1, HiWater: 2, TagUB: 32767, XSize: 1, MaxLinear: 1, Clients: []ClientInfo{{Own: true}, {}}}
	j.Procs = ListProcs(ProcInfo{Card: a}, ProcInfo{Card: a, Host: 1}, ProcInfo{Card: b}, ProcInfo{Client: 1, Card: b})
	j.Token[0] = 1
	head, err := j.Describe()
	if err != nil {
		t.Fatal(err)
	}
	d, err := dynamic.ReadDescription(j.Procs.Describe(head))
	if err != nil || len(d.Groups) != 3 || d.Groups[0].Count != 2 || d.Groups[1].Count != 1 || d.Groups[2].Site != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	j.Procs.Set(2, ProcInfo{Card: []byte("b")})
	if _, err := j.Describe(); !errors.Is(err, dynamic.ErrCard) {
		t.Errorf("with what is no card: %v", err)
	}
	j.Procs.Set(3, ProcInfo{})
	if _, err := j.Describe(); !errors.Is(err, errMeetsCards) {
		t.Errorf("without a card: %v", err)
	}
	offers := []byte("impi-card/1 node=a order=big offer=tcp:a:1 unexpected=9")
	j.AllOwn, j.Procs = false, ListProcs(ProcInfo{Client: 1}, ProcInfo{Card: offers})
	if head, err = j.Describe(); err != nil {
		t.Fatal(err)
	}
	d, err = dynamic.ReadDescription(j.Procs.Describe(head))
	if err != nil || len(d.Groups) != 2 || len(d.Groups[1].Card.Addresses) != 1 {
		t.Fatalf("with a site of others: %+v, %v", d, err)
	}
	if blank := d.Groups[0].Card; blank.Node != "" || len(blank.Addresses) > 0 || blank.ByteOrder != "big" || blank.Unexpected != 9 {
		t.Errorf("the card of others: %+v", blank)
	}
	j.Procs.Set(1, ProcInfo{})
	if _, err := j.Describe(); !errors.Is(err, errMeetsCards) {
		t.Errorf("without a card, beside a site of others: %v", err)
	}
	j.Clients[0].Own = false
	if _, err := j.Describe(); !errors.Is(err, errMeetsForeign) {
		t.Errorf("of others: %v", err)
	}
}
