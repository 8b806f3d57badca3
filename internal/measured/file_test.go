package measured

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "measured.json")
	f, err := Read(path)
	if err != nil || len(f.Pairs) != 0 {
		t.Fatalf("a file that is not there: %+v, %v", f, err)
	}
	at := time.Unix(1e9, 5)
	f.Add("beta", "alpha", 100*time.Millisecond, 50e6, at)
	f.Add("alpha", "gamma", 20*time.Millisecond, 0, at)
	f.Add("alpha", "beta", 120*time.Millisecond, 25e6, at)
	f.Add("gamma", "beta", 250*time.Millisecond, 100e6, at)
	f.Add("alpha", "alpha", time.Second, 1e6, at) // by hand: no site is far from itself
	if err := f.Write(path); err != nil {
		t.Fatal(err)
	}
	if f, err = Read(path); err != nil || len(f.Pairs) != 4 {
		t.Fatalf("%+v, %v", f, err)
	}
	for site, want := range map[string]struct {
		rtt  time.Duration
		rate int64
	}{
		"alpha": {120 * time.Millisecond, 25e6}, "beta": {250 * time.Millisecond, 25e6}, "gamma": {250 * time.Millisecond, 100e6}, "delta": {},
	} {
		if rtt, rate := f.Worst(site); rtt != want.rtt || rate != want.rate {
			t.Errorf("%s: %v and %d, want %v", site, rtt, rate, want)
		}
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	for name, text := range map[string]string{
		"not JSON": "{", "a time of the past": `{"pairs":[{"a":"x","b":"y","rtt_ms":-1}]}`, "too far": `{"pairs":[{"a":"x","b":"y","rtt_ms":1e300}]}`,
		"a rate that is none": `{"pairs":[{"a":"x","b":"y","rate_mbit_s":1e30}]}`, "too long": strings.Repeat(" ", most+1),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if f, err := Read(path); err == nil || len(f.Pairs) > 0 || !strings.Contains(err.Error(), "remove the file") {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
}
