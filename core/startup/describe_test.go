package startup

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
)

// Procs of one site with the same card are one group of a job's description; a job of others, or with
// a proc that has no card, has none.
func TestDescribe(t *testing.T) {
	card := &dynamic.Card{Version: dynamic.CardVersion, Node: "a"}
	cards := []*dynamic.Card{card, card, card, card}
	cardOf := func(r wire.WorldRank) *dynamic.Card { return cards[r] }
	j := &Job{AllOwn: true, DataLen: 64, AckMark: 1, HiWater: 2, TagUB: 32767, XSize: 1, MaxLinear: 1, Procs: ListProcs(ProcInfo{Card: []byte("a")}, ProcInfo{Card: []byte("a")}, ProcInfo{Card: []byte("b")}, ProcInfo{Client: 1, Card: []byte("b")})}
	j.Token[0] = 1
	b, err := j.Describe(cardOf)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dynamic.ReadDescription(b)
	if err != nil || len(d.Groups) != 3 || d.Groups[0].Count != 2 || d.Groups[1].Count != 1 || d.Groups[2].Site != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	cards[3] = nil
	if _, err := j.Describe(cardOf); !errors.Is(err, errMeetsCards) {
		t.Errorf("without a card: %v", err)
	}
	j.AllOwn = false
	if _, err := j.Describe(cardOf); !errors.Is(err, errMeetsForeign) {
		t.Errorf("with sites of others: %v", err)
	}
}
