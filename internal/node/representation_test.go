package node

import (
	"slices"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/routes"
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

// TestSitesOfOursWithDifferentForms: where only two of three sites insist on external32 between
// them, all procs still use the same messages in constructors and collectives.
func TestSitesOfOursWithDifferentForms(t *testing.T) {
	job := testJob("forms", 2, 1, 2)
	tcp := config.Route{Site: "*", Prefer: []string{"tcp"}, Direct: true}
	to := tcp
	to.Site, to.Representation = "beta", config.External32
	job.Sites[0].Routes = []config.Route{to, tcp}
	job.Sites[1].Routes, job.Sites[2].Routes = []config.Route{tcp}, []config.Route{tcp}
	all := start(t, job)
	wantNone(t, all)
	for i, r := range all {
		var forms []string
		for _, x := range r.n.job.Clients {
			forms = append(forms, r.n.routes.Data(r.n.job.Clients[i].FirstProc, x.FirstProc))
		}
		want := []string{datatype.HostOrder().String(), datatype.HostOrder().String(), datatype.HostOrder().String()}
		if i < 2 {
			want[1-i] = datatype.External32.String()
		}
		if !slices.Equal(forms, want) {
			t.Errorf("site %d exchanges %q, want %q", i, forms, want)
		}
	}
}
