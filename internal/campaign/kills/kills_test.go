package kills

import (
	"errors"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/openimpi/impi/internal/campaign/job"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/internal/wan/tun"
)

func workspace(t *testing.T) *job.Workspace {
	t.Helper()
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/", "../../../cmd/impi-node", "../../../cmd/impi-transport-chaos", "../../../examples/ring").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := job.NewWorkspace(bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// tryKills runs some jobs, and more until something was killed: a fast one has ended before.
func tryKills(t *testing.T, jobs int, run func(seed uint64) (Result, error)) {
	t.Helper()
	killed := 0
	for seed := 0; seed < jobs || killed == 0 && seed < 20; seed++ {
		r, err := run(uint64(seed))
		if errors.Is(err, job.ErrNoArea) {
			skips.NotRun(t, err.Error(), tun.Remedy)
		}
		if err != nil {
			t.Fatal(err)
		}
		killed += len(r.Kills)
		t.Logf("job %d, %s: killed %v, status %d", seed, r.Kind, r.Kills, r.Status)
		if wrong := r.Wrong(); wrong != "" {
			t.Errorf("job %d, %s, killed %v: %s\n%s", seed, r.Kind, r.Kills, wrong, r.Output)
		}
	}
	if killed == 0 {
		t.Error("nothing was killed")
	}
}

// TestKills: a job of which processes are killed ends, and leaves nothing.
func TestKills(t *testing.T) {
	b := workspace(t)
	tryKills(t, soak.Repetitions(2, 50), func(seed uint64) (Result, error) { return Run(t.Context(), b, seed) })
}

// So does one whose sites are far from each other, while its links break.
func TestKillsInAWideArea(t *testing.T) {
	if err := tun.Usable(); err != nil {
		skips.NotRun(t, "there are no TUN devices, as "+err.Error(), tun.Remedy)
	}
	b := workspace(t)
	tryKills(t, soak.Repetitions(2, 50), func(seed uint64) (Result, error) {
		return run(t.Context(), b, job.Wide, seed, rand.New(rand.NewPCG(seed, 0)))
	})
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
