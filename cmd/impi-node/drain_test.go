package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/links"
)

// TestDrainCommand: the command finds the host, says what is left, and takes it back.
func TestDrainCommand(t *testing.T) {
	r := startJob(t, 2, "-config", file(t, twoSites+"route \"*\" {\n  prefer = [\"tcp\"]\n  data_plane = [\"stream\"]\n  resume = true\n}\n"))
	drain := func(args ...string) (int, string, string) {
		return impiNode(t, "", append([]string{"drain", "-run-dir", r.base}, args...)...)
	}
	status, out, errs := drain("-transport", "tcp", "127.0.0.3")
	if status != 3 || !strings.Contains(out, "host 127.0.0.3: links by tcp, process ") || !strings.Contains(out, ": 1 are resumed, but have no other transport") ||
		!strings.Contains(errs, "impi-node plugins reload tcp replaces it") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	status, out, errs = drain("-json", "-transport", "tcp", "127.0.0.3")
	var got links.Drain
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 3 || got.Site != "beta" || got.Transports[0].Waiting != 1 || !got.Transports[0].Drained {
		t.Errorf("status %d, %v\n%s%s", status, err, out, errs)
	}
	if status, out, errs := drain("-undrain", "-transport", "tcp", "127.0.0.3"); status != statusOK || out != "host 127.0.0.3: new links use tcp again\n" {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if status, out, errs := drain("-transport", "unix", "127.0.0.2"); status != statusBad || !strings.Contains(errs, `no plugin of transport "unix" runs at site alpha`) {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	for args, want := range map[string]string{"": "give one host", "a b": "give one host", "127.0.0.9": "has a host 127.0.0.9", "127.0.0.2": "name one by -transport"} {
		if status, out, errs := drain(strings.Fields(args)...); status == statusOK || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
	}
}
