package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/wan/measure"
)

func TestParse(t *testing.T) {
	o, _, _, err := parse([]string{"-quick", "-loss", "1", "-only", "iperf|impi", "-sites", "3", "-rate", "100"})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.RTT) != 2 || o.RTT[1] != 100*time.Millisecond || len(o.Loss) != 1 || o.Loss[0] != 0.01 || o.Time != 2*time.Second || o.Rate != 1e8 || o.Repeats != 3 || len(o.Sites) != 1 || o.Sites[0] != 3 {
		t.Errorf("-quick with another loss is %+v", o)
	}
	if got := strings.Join(o.Columns, ", "); got != "iperf3, iperf3 x 8, impi tcp, impi tcp x 8, impi quic, impi quic x 8, impi collectives" {
		t.Errorf("the columns are %s", got)
	}
	for _, bad := range [][]string{{"-rtt", "20"}, {"-loss", "101"}, {"-loss", ""}, {"-only", "("}, {"-only", "lam"}, {"-time", "0s"}, {"word"}, {"-rate", "-1"}, {"-sites", "1"}, {"-sites", "33"}, {"-repeats", "0"}, {"-of", "("}, {"-sysctl", "vm.swappiness=1"}} {
		if _, _, _, err := parse(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestReplaceKeepsTheText(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	r := &measure.Report{Rate: 1e9}
	if err := os.WriteFile(page, []byte("text\n\n"+begins+"\nold\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replace(page, r); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(got), "text\n\n"+begins+"\nMade by `make wan`") || strings.Contains(string(got), "old") {
		t.Errorf("%v: %s", err, got)
	}
	if err := os.WriteFile(page, []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if replace(page, r) == nil {
		t.Error("a page without the line is overwritten")
	}
}
