package campaign

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/provenance"
	"github.com/openimpi/impi/internal/skips"
)

var monday, tuesday = provenance.Stamp{Day: "2026-11-23", Commit: "aaaaaaaaaaaa"}, provenance.Stamp{Day: "2026-11-24", Commit: "bbbbbbbbbbbb"}

// A search goes on behind what was done, and what was done at one commit is one piece.
func TestPieces(t *testing.T) {
	r := &Record{}
	r.Add(Piece{Kind: Seeds, Made: monday, From: 0, To: 500, Seconds: 7})
	r.Add(Piece{Kind: Kills, Made: monday, From: 0, To: 3, Seconds: 5})
	r.Add(Piece{Kind: Seeds, Made: monday, From: 500, To: 900, Seconds: 3, Found: 1})
	r.Add(Piece{Kind: Seeds, Made: tuesday, From: 900, To: 900})
	r.Add(Piece{Kind: Seeds, Made: tuesday, From: 900, To: 1000, Seconds: 1})
	if len(r.Pieces) != 3 || r.Pieces[0].To != 900 || r.Pieces[0].Found != 1 || r.Pieces[2].From != 900 {
		t.Errorf("%+v", r.Pieces)
	}
	n, seconds := r.Count(Seeds)
	if r.Next(Seeds) != 1000 || r.Next(Worlds) != 0 || n != 1000 || seconds != 11 {
		t.Errorf("next %d, %d in %d s", r.Next(Seeds), n, seconds)
	}
}

// What is found again is open again.
func TestFindings(t *testing.T) {
	r := &Record{}
	r.Find(Finding{Kind: Seeds, What: "impi-sim -seed 7", Made: monday, Text: "order: x"})
	r.Find(Finding{Kind: Calls, What: "tcp: node 1: openat 3: EMFILE", Made: monday, Text: "it hangs"})
	if err := r.End("seeds impi-sim -seed 7", "0123456"); err != nil || len(r.Open()) != 1 {
		t.Errorf("%v, %+v", err, r.Open())
	}
	if r.End("seeds impi-sim -seed 8", "0123456") == nil {
		t.Error("what was not found has ended")
	}
	r.Find(Finding{Kind: Seeds, What: "impi-sim -seed 7", Made: tuesday, Text: "order: y"})
	if len(r.Open()) != 2 || len(r.Findings) != 2 {
		t.Errorf("%+v", r.Findings)
	}
}

func TestReadWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	r, err := Read(path)
	if err != nil || len(r.Pieces) != 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	r.Add(Piece{Kind: Calls, Made: monday, From: 0, To: 5, Of: 100})
	r.Position = 1<<64 - 1
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	if again, err := Read(path); err != nil || again.Position != r.Position || again.Pieces[0] != r.Pieces[0] {
		t.Errorf("%v, %+v", err, again)
	}
	for _, bad := range []string{"", "[]", `{"pieces": [{"kind": "sea"}]}`, `{"pieces": [{"kind": "seeds", "from": 3, "to": 2}]}`} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "c.json") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestLock: a second run is refused, and a later one is not.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	unlock, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path); !errors.Is(err, ErrTwo) {
		t.Errorf("%v, %v wanted", err, ErrTwo)
	}
	unlock()
	if unlock, err = Lock(path); err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestPage(t *testing.T) {
	r := &Record{Targets: map[string]Total{"core/wire.FuzzHeader": {Seconds: 90, Inputs: 1234567}}}
	r.Add(Piece{Kind: Seeds, Made: monday, From: 60000, To: 74683, Seconds: 3661, Found: 2})
	r.Add(Piece{Kind: Calls, Made: monday, From: 0, To: 5, Of: 30000, Missed: 1})
	r.Find(Finding{Kind: Seeds, What: "impi-sim -seed 7", Made: monday, Text: "a | b\nc", Ended: "0123456"})
	r.Find(Finding{Kind: Calls, What: "tcp: node 1: openat 3: EMFILE", Made: monday, Text: "it hangs"})
	var b strings.Builder
	if err := r.WritePage(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 14,683 seeds in 1h1m1s | 1,000,000 |", "2 findings, of which 1 is open", "| it hangs | **open** |", `| a \| b c | 0123456 |`,
		"| `seeds` | 2026-11-23 | aaaaaaaaaaaa | 60,000 to 74,682 | 1h1m1s | 2 |", "| 5 of about 30,000 points; 1 of these", "| `core/wire.FuzzHeader` | 1m30s | 1,234,567 |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Index(b.String(), "it hangs") > strings.Index(b.String(), `a \| b`) {
		t.Error("open findings do not come first")
	}
}

// TestPublished: docs/campaign.md is made of docs/campaign.json, which is of commits that anybody
// can look at.
func TestPublished(t *testing.T) {
	r, err := Read("../../docs/campaign.json")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/campaign.md")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.WritePage(&b); err != nil || b.String() != string(page) {
		t.Errorf("the page is not what its record gives: go run ./internal/campaign/run -render (%v)", err)
	}
	for _, kind := range Kinds {
		if n, _ := r.Count(kind); n == 0 {
			t.Errorf("nothing of %s is done", kind)
		}
	}
	if err := provenance.History("../.."); err != nil {
		skips.NotRun(t, err.Error(), "test a checkout with its history")
	}
	for _, p := range r.Pieces {
		if _, err := provenance.CommitsBehind("../..", p.Made.Commit, "core"); err != nil || strings.HasSuffix(p.Made.Commit, "-dirty") {
			t.Errorf("%s of %s: commit %s (%v)", p.Kind, p.Made.Day, p.Made.Commit, err)
		}
	}
}
