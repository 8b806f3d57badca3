package ctest

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestBench has impi-bench run its C loops with our library, beside those in Go.
func TestBench(t *testing.T) {
	k := kit(t)
	bench := filepath.Join(t.TempDir(), "impi-bench")
	if _, err := Run(t.Context(), "", nil, "go", "build", "-o", bench, "github.com/openimpi/impi/cmd/impi-bench"); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), bench, "-node", k.Command("impi-node"), "-quiet", "-json", "-repeat", "1",
		"-seconds", "0.01", "-sizes", "8,70000", "-transport", "tcp", "-peer", "c", "pingpong", "rate", "allreduce").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Results []struct {
			Benchmark string
			Rows      []struct {
				Size   int
				Values map[string]float64
				Ratios map[string]float64
			}
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(got.Results) != 3 {
		t.Fatalf("%d results\n%s", len(got.Results), out)
	}
	for _, r := range got.Results {
		if len(r.Rows) != 2 {
			t.Errorf("%s has %d rows", r.Benchmark, len(r.Rows))
		}
		for _, row := range r.Rows {
			if row.Values["impi"] <= 0 || row.Values["impi in C"] <= 0 || row.Ratios["impi in C"] <= 0 {
				t.Errorf("%s, %d bytes: %v, ratios %v", r.Benchmark, row.Size, row.Values, row.Ratios)
			}
		}
	}
}
