package kills

import (
	"os/exec"
	"testing"

	"github.com/openimpi/impi/internal/campaign/job"
	"github.com/openimpi/impi/internal/soak"
)

// TestKills: a job of which processes are killed ends, and leaves nothing.
func TestKills(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/", "../../../cmd/impi-node", "../../../cmd/impi-transport-chaos", "../../../examples/ring").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := job.NewWorkspace(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	killed := 0
	for seed := 0; seed < soak.Repetitions(2, 50) || killed == 0 && seed < 20; seed++ { // a fast one has ended before
		r, err := Run(t.Context(), b, uint64(seed))
		if err != nil {
			t.Fatal(err)
		}
		killed += len(r.Kills)
		if wrong := r.Wrong(); wrong != "" {
			t.Errorf("job %d, %s, killed %v: %s\n%s", seed, r.Kind, r.Kills, wrong, r.Output)
		}
	}
	if killed == 0 {
		t.Error("nothing was killed")
	}
}

func TestName(t *testing.T) {
	for want, line := range map[string]string{
		"launcher": "/b/impi-node -config job.hcl", "impi-node of beta": "impi-node -config job.hcl -site beta", "impi-node": "/b/impi-node", "ring": "/b/ring -rounds 4",
	} {
		if got := name(line); got != want {
			t.Errorf("%q is %q, not %q", line, got, want)
		}
	}
}
