package measured

import (
	"errors"
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
}

// TestWrongFiles: what is wrong with a file is said in its own words, with the line, and what to
// do.
func TestWrongFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "measured.json")
	for text, want := range map[string]string{
		"{": ":1: it ends in the middle", "{\n\n\"pairs\": [ }": ":3: it is not JSON: invalid character '}'",
		`{"pairs":[{"a":"x","b":"y","rtt_ms":-1}]}`:                              `: pair 1: sites "x" and "y": rtt_ms is -1, and must be from 0 to 3600000`,
		`{"pairs":[{"a":"x","b":"y","rtt_ms":1e300}]}`:                           "rtt_ms is 1e+300",
		`{"pairs":[{"a":"x","b":"y"},{"a":"x","b":"y","rate_mbit_s":1e30}]}`:     `: pair 2: sites "x" and "y": rate_mbit_s is 1e+30, and must be from 0 to 1000000000`,
		`{"pairs":[{"a":"x","rtt_ms":1}]}`:                                       "a and b must be the names of two sites",
		"{\"pairs\":[{\"a\":\"x\",\"b\":\"y\",\n\"rtt\":1}]}":                    `:2: the key "rtt" is not known: the file has the key pairs, and each pair a, b,`,
		"{\"pairs\":[{\"a\":\"x\",\"b\":\"y\",\n\"rtt_ms\":\"1\"}]}":             ":2: rtt_ms is a string, and must be a number",
		`{"pairs":{"a":"x"}}`:                                                    ":1: something is in a wrong place, which JSON calls object: the file is {",
		`[]`:                                                                     ":1: something is in a wrong place, which JSON calls array",
		"{\"pairs\":[{\"a\":\"x\",\"b\":\"y\",\n\n\"measured\":\"yesterday\"}]}": `:3: the times called measured must be as in "2026-`,
		"{\"pairs\":[{\"a\":\"x\",\"b\":\"y\",\n\"measured\":7}]}":               ":2: the times called measured",
		"{}\n{}":                    "something follows the closing brace",
		strings.Repeat(" ", most+1): "it has more than 1024 KiB",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Read(path)
		var wrong *FileError
		if !errors.As(err, &wrong) || len(f.Pairs) > 0 || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "remove the file and measure again") {
			t.Errorf("%.60q: %+v, %v\nwant %s", text, f, err, want)
		}
	}
	if _, err := Read(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a folder: %v", err)
	}
	if err := os.WriteFile(path, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Read(path); err != nil || len(f.Pairs) > 0 {
		t.Errorf("an empty file: %+v, %v", f, err)
	}
}
