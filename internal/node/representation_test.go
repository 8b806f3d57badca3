package node

import (
	"slices"
	"testing"

	"github.com/openimpi/impi/config"
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
