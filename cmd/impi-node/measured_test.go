package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestValidateReadsWhatWasMeasured: a file of round trips that a start would pass over is a
// warning, at the place where the job file names it.
func TestValidateReadsWhatWasMeasured(t *testing.T) {
	path := filepath.Join(t.TempDir(), "measured.json")
	job := file(t, strings.TrimPrefix(twoSites, "\n")+"protocol {\n  measured = \""+path+"\"\n}\n")
	for _, text := range []string{"", `{"pairs":[{"a":"alpha","b":"beta","rtt_ms":100}]}`} {
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if status, out, errs := impiNode(t, "", "validate", job); status != statusOK || strings.Contains(out+errs, "warning") {
			t.Errorf("%q: status %d, %s%s", text, status, out, errs)
		}
	}
	if err := os.WriteFile(path, []byte("{\"pairs\":[\n{\"a\":\"alpha\",\"b\":\"beta\",\"rtt\":100}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, errs := impiNode(t, "", "validate", job)
	want := `: warning: ` + path + `:2: the key "rtt" is not known: the file has the key pairs, and each pair a, b, rtt_ms, rate_mbit_s and measured: the job runs as though nothing had been measured`
	if said := out + errs; status != statusOK || strings.Count(said, want) != 1 || !strings.Contains(said, "measured = ") || !strings.Contains(said, "-measure -keep "+path) {
		t.Errorf("status %d, %s\nwant %s", status, said, want)
	}
}
