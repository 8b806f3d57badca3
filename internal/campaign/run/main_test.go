package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/campaign"
	"github.com/openimpi/impi/internal/campaign/inject"
)

func TestMain(m *testing.M) {
	inject.Shim()
	os.Exit(m.Run())
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-what", "calls", "-only", "^tcp", "-budget", "30s"})
	if err != nil || !slices.Equal(o.kinds, []string{campaign.Calls}) || o.budget != 30*time.Second || !o.only.MatchString("tcp: x") {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = parse(nil); err != nil || !slices.Equal(o.kinds, campaign.Kinds) || o.budget != 10*time.Minute {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range [][]string{
		{"-what", "sea"}, {"-only", "("}, {"-only", "x"}, {"-what", "calls,fuzz", "-only", "x"}, {"-budget", "0s"}, {"-budget", "10"}, {"-j", "0"}, {"word"}, {"-ended", "x"}, {"-how", "x"},
	} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
		var log strings.Builder
		if status := run(t.Context(), bad, &log); status != 2 || !strings.Contains(log.String(), "campaign: ") {
			t.Errorf("%q: status %d, %s", bad, status, log.String())
		}
	}
	var log strings.Builder
	if status := run(t.Context(), []string{"-help"}, &log); status != 0 || log.String() != help {
		t.Errorf("status %d, %s", status, log.String())
	}
}

// A search goes on where it stopped, and its page is of the record.
func TestGoesOn(t *testing.T) {
	dir := t.TempDir()
	t.Chdir("../../..") // provenance
	data, page := filepath.Join(dir, "c.json"), filepath.Join(dir, "c.md")
	made := uint64(0)
	for range 2 {
		var log strings.Builder
		if status := run(t.Context(), []string{"-what", "seeds", "-budget", "1s", "-data", data, "-out", page}, &log); status != 0 {
			t.Fatalf("status %d, %s", status, log.String())
		}
		r, err := campaign.Read(data)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := r.Count(campaign.Seeds)
		if r.Next(campaign.Seeds) != n || n <= made || len(r.Pieces) != 1 {
			t.Errorf("after %d there are %d: %+v", made, n, r.Pieces)
		}
		made = n
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "| `seeds` |") {
		t.Errorf("%v: %s", err, text)
	}
}

// A finding is kept, printed, and the exit status; and can end.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	data, page := filepath.Join(dir, "c.json"), filepath.Join(dir, "c.md")
	var log strings.Builder
	c := &searches{options: &options{data: data, out: page}, record: &campaign.Record{}, log: &log}
	c.find(campaign.Calls, "tcp: node 1: openat 3: EMFILE", "it hangs", "the words of the job")
	if err := c.save(); err != nil || c.found != 1 || !strings.Contains(log.String(), "the words of the job") {
		t.Errorf("%v, %d, %s", err, c.found, log.String())
	}
	if status := run(t.Context(), []string{"-ended", "calls tcp: node 1: openat 3: EMFILE", "-how", "0123456", "-data", data, "-out", page}, &log); status != 0 {
		t.Errorf("status %d, %s", status, log.String())
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "1 findings, of which 0 are open") {
		t.Errorf("%v, %s", err, text)
	}
}
