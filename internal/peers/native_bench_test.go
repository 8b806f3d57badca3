package peers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
)

// TestBenchOfASite: impi-bench -native measures a site's MPI alone, and impi at a site that has it.
func TestBenchOfASite(t *testing.T) {
	needNatives(t)
	needC(t)
	dir := t.TempDir()
	bench := filepath.Join(dir, "impi-bench")
	if _, err := ctest.Run(t.Context(), "", nil, "go", "build", "-o", bench, "../../cmd/impi-bench"); err != nil {
		t.Fatal(err)
	}
	k := &ctest.Kit{Dir: ownCDir}
	if given := os.Getenv(ctest.Installed); given != "" {
		k.Dir = given
	}
	for cc, name := range map[string]string{"mpicc.openmpi": "Open MPI", "mpicc.mpich": "MPICH"} {
		out, err := ctest.Run(t.Context(), dir, nil, bench, "-native", "-cc", cc, "-node", k.Command("impi-node"),
			"-procs", "2", "-repeat", "1", "-seconds", "0.001", "-sizes", "8", "-quiet", "-json", "pingpong", "allreduce")
		var got struct {
			Results []struct {
				Benchmark, Base string
				Rows            []struct{ Values, Ratios map[string]float64 }
			}
		}
		if wrong := json.Unmarshal([]byte(out), &got); err != nil || wrong != nil || len(got.Results) != 2 {
			t.Fatalf("%s: %v, %v:\n%s", name, err, wrong, out)
		}
		for _, r := range got.Results {
			if r.Base != name || len(r.Rows) != 1 || len(r.Rows[0].Values) != 3 || r.Rows[0].Values[name] <= 0 ||
				r.Rows[0].Ratios["impi by "+name] <= 0 || r.Rows[0].Ratios["impi by default"] <= 0 {
				t.Errorf("%s: %s: %+v", name, r.Benchmark, r)
			}
		}
	}
}
