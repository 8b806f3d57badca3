package node

import (
	"slices"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/node/routes"
)

func TestRepresentationsAreOnTheCard(t *testing.T) {
	job := testJob("ring", 1, 1, 1)
	site := job.Sites[1]
	site.Routes = []config.Route{
		{Site: "alpha", Prefer: []string{"tcp"}, Representation: config.External32},
		{Site: "*", Prefer: []string{"tcp"}},
	}
	if got, want := routes.RepresentationFeatures(job, site), []string{"external32-to-0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	job.Complete = false
	site.Routes[1].Representation = config.NativeBE
	want := []string{"external32-to-0", "native-be-to-2", "native-be-to-all"}
	if got := routes.RepresentationFeatures(job, site); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBothEndsFindTheSameRepresentation(t *testing.T) {
	card := func(order string, features ...string) *dynamic.Card {
		return &dynamic.Card{Version: dynamic.CardVersion, ByteOrder: order, Features: features}
	}
	const little, big = dynamic.LittleEndian, dynamic.BigEndian
	for _, c := range []struct {
		name string
		a, b *dynamic.Card // clients 1 and 11
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
		{"for one build", card(little, "native-to-11"), card(little), "external32"},
	} {
		ab, ba := routes.Representation(c.a, c.b, 1, 11), routes.Representation(c.b, c.a, 11, 1)
		if ab != c.want || ba != c.want {
			t.Errorf("%s: %s and %s, want %s", c.name, ab, ba, c.want)
		}
	}
}
