package performance

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/provenance"
	"github.com/openimpi/impi/internal/skips"
)

// TestPublished: docs/performance.md answers every question, by the figures beside it, and
// is of commits that anybody can look at.
func TestPublished(t *testing.T) {
	data, err := os.ReadFile("../../docs/performance.json")
	if err != nil {
		t.Fatal(err)
	}
	var answers []Answer
	if err := json.Unmarshal(data, &answers); err != nil {
		t.Fatal(err)
	}
	for _, q := range Questions {
		if !slices.ContainsFunc(answers, func(a Answer) bool { return a.Question == q.Name }) {
			t.Errorf("%s is not answered: make performance ONLY='^%s$'", q.Name, q.Name)
		}
	}
	page, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, answers); err != nil || b.String() != string(page) {
		t.Errorf("the page is not what its figures give: go run ./internal/performance/run -render (%v)", err)
	}
	if err := provenance.History("../.."); err != nil {
		skips.NotRun(t, err.Error(), "test a checkout with its history")
	}
	for _, a := range answers {
		if _, err := provenance.CommitsBehind("../..", a.Made.Commit, "core"); err != nil || strings.HasSuffix(a.Made.Commit, "-dirty") {
			t.Errorf("%s is of commit %s (%v)", a.Question, a.Made.Commit, err)
		}
	}
}
