package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPluginsReload(t *testing.T) {
	r := startJob(t, 2, "-config", file(t, twoSites))
	reload := func(args ...string) (int, string, string) {
		return impiNode(t, "", append([]string{"plugins", "reload", "-run-dir", r.base}, args...)...)
	}
	status, out, errs := reload("-json", "-job", "job", "tcp")
	var got struct{ Reloads []reloaded }
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != statusOK || len(got.Reloads) != 2 {
		t.Fatalf("status %d, %v\n%s%s", status, err, out, errs)
	}
	for _, x := range got.Reloads {
		if x.Error != "" || x.Before.PID == x.After.PID || x.After.PID == 0 || x.Transport != "tcp" {
			t.Errorf("%+v %+v", x, x.Reload)
		}
	}
	status, out, errs = reload("tcp")
	if status != statusOK || strings.Count(out, "replaced by") != 2 {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	for _, args := range [][]string{{"pigeon"}, {"-job", "another", "tcp"}} {
		if status, out, errs := reload(args...); status != statusBad || !strings.Contains(errs, "no node of a running job") || out != "" {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
	}
	if status, _, errs := reload(); status != statusUsage || !strings.Contains(errs, "the name of one transport") {
		t.Errorf("status %d\n%s", status, errs)
	}
}
