package route

import (
	"testing"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
)

func TestBothEndsFindTheSameRepresentation(t *testing.T) {
	card := func(order string, features ...string) *dynamic.BusinessCard {
		return &dynamic.BusinessCard{Version: dynamic.CardVersion, ByteOrder: order, Features: features}
	}
	const little, big = dynamic.LittleEndian, dynamic.BigEndian
	for _, c := range []struct {
		name string
		a, b *dynamic.BusinessCard // clients 1 and 11
		want string
	}{
		{"one order", card(little), card(little), "native-le"},
		{"one order", card(big), card(big), "native-be"},
		{"two orders", card(little), card(big), "external32"},
		{"order unknown", card(""), card(""), "external32"},
		{"one insists", card(little, "external32-to-11"), card(little), "external32"},
		{"the other insists", card(little), card(little, "external32-to-1"), "external32"},
		{"for all", card(little), card(little, "external32-to-all"), "external32"},
		{"for another client", card(little, "external32-to-1"), card(little, "external32-to-11"), "native-le"},
		{"agreed", card(little, "native-be-to-11"), card(big, "native-be-to-1"), "native-be"},
		{"at odds", card(little, "native-le-to-11"), card(big, "native-be-to-1"), "external32"},
		{"from the future", card(little, "cbor-to-11"), card(little), "external32"},
		{"rounded", card(little, "float"), card(little, "float-1"), "native-float"},
		{"rounded between two orders", card(little, "float-11"), card(big, "float"), "native-float"},
		{"rounded by one", card(little, "float"), card(little), "native-le"},
		{"not rounded to this one", card(little, "float", "no-float-11"), card(little, "float"), "native-le"},
		{"rounded, but one insists", card(little, "float", "native-le-to-11"), card(little, "float"), "native-le"},
		{"for one build", card(little, "native-to-11"), card(little), "external32"},
	} {
		ab, ba := Representation(c.a, c.b, 1, 11), Representation(c.b, c.a, 11, 1)
		if ab != c.want || ba != c.want {
			t.Errorf("%s: %s and %s, want %s", c.name, ab, ba, c.want)
		}
	}
}

// TestFeatures: what Features writes is what HasFeature reads.
func TestFeatures(t *testing.T) {
	clients := []wire.ClientRank{0, 1, 11}
	for _, usual := range []bool{false, true} {
		for bits := range 8 {
			such := func(i int) bool { return bits>>i&1 == 1 }
			c := &dynamic.BusinessCard{Features: Features("tls", usual, clients, such)}
			for i, to := range clients {
				if got := HasFeature(c, "tls", to); got != such(i) {
					t.Errorf("%q to %d: %t", c.Features, to, got)
				}
			}
			for _, to := range []wire.ClientRank{2, AnyClient} {
				if got := HasFeature(c, "tls", to); got != usual {
					t.Errorf("%q to %d: %t", c.Features, to, got)
				}
			}
		}
	}
}

func TestDemandOf(t *testing.T) {
	for _, c := range []struct {
		features []string
		want     Secrecy
	}{
		{nil, AnyLink},
		{[]string{"closed"}, Closed},
		{[]string{"tls-1"}, Encrypted},
		{[]string{"closed", "tls-1"}, Encrypted},
		{[]string{"closed", "tls-2"}, Closed},
		{[]string{"closed", "no-closed-1"}, AnyLink},
	} {
		if got := DemandOf(&dynamic.BusinessCard{Features: c.features}, 1); got != c.want {
			t.Errorf("%q: %d, want %d", c.features, got, c.want)
		}
	}
	if got := DemandOf(nil, 1); got != AnyLink {
		t.Errorf("without a card: %d", got)
	}
	if got := DemandOf(&dynamic.BusinessCard{Features: []string{"closed-1"}}, AnyClient); got != AnyLink {
		t.Errorf("abroad: %d", got)
	}
}
