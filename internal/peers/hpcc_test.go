package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

// buildHPCC compiles the HPC Challenge with our library, or ends the test.
func buildHPCC(t *testing.T, k *ctest.Kit) (program, input string) {
	t.Helper()
	archive, err := HPCC.Find()
	if err != nil {
		notThere(t, err)
	}
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.c")
	if err := os.WriteFile(empty, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ctest.Run(t.Context(), dir, nil, "cc", "-o", "empty", empty, "-lblas"); err != nil {
		skips.NotRun(t, "there is no BLAS to link with", "apt-get install libblas-dev")
	}
	if _, err := ctest.Run(t.Context(), dir, nil, "tar", "-xzf", archive, "--strip-components=1", "--no-same-owner"); err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("testdata/Make.impi")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hpl", "Make.impi"), rules, 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + filepath.Dir(k.Command("impicc")) + ":" + os.Getenv("PATH")}
	if _, err := ctest.Run(t.Context(), dir, env, "make", "arch=impi"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "_hpccinf.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "hpcc"), strings.Replace(string(text), "1000         Ns", "200 Ns", 1)
}

// TestHPCC runs the HPC Challenge with our library, on one site and on two.
func TestHPCC(t *testing.T) {
	soak.SkipUnlessSoak(t, "the program is compiled for half a minute")
	if _, err := HPCC.Find(); err != nil {
		notThere(t, err)
	}
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	if given := os.Getenv(ctest.Installed); given != "" {
		k.Dir = given
	}
	program, input := buildHPCC(t, k)
	sites := `site "a" { client = 0  host { address = "127.0.0.10"  procs = 4 } }`
	two := `site "a" { client = 0  host { address = "127.0.0.10"  procs = 2 } }
site "b" { client = 1  host { address = "127.0.0.11"  procs = 2 } }`
	for name, text := range map[string]string{"one site": sites, "two sites": two, "two sites over tcp": two + "\nroute \"*\" { prefer = [\"tcp\"] }"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			job := fmt.Sprintf("job { embedded_server {} }\nprogram { command = [%q] }\n%s\n", program, text)
			for file, text := range map[string]string{"job.hcl": job, "hpccinf.txt": input} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := ctest.Run(t.Context(), dir, nil, k.Command("impi-node"), "-config", "job.hcl"); err != nil {
				t.Fatal(err)
			}
			judgeHPCC(t, filepath.Join(dir, "hpccoutf.txt"))
		})
	}
}

// judgeHPCC looks at what the program found out about its results.
func judgeHPCC(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, want := range []string{"Success=1\n", "\nMPIRandomAccess_Errors=0\n", "\nMPIRandomAccess_LCG_Errors=0\n", "End of MPIFFT section.", "End of LatencyBandwidth section."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the output", want)
		}
	}
	if n := strings.Count(text, "PASSED"); n < 6 || strings.Contains(text, "FAILED") {
		t.Errorf("%d results passed, or one has failed", n)
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
}
