package repotest

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/provenance"
	"github.com/openimpi/impi/internal/skips"
)

// commitsBase is the commit after which messages are looked at.
const commitsBase = "410dc9823293c4b560b3eb00769328cbdafc1c8e"

// TestCommitsSayWhy wants each commit that is no merge to have a body.
func TestCommitsSayWhy(t *testing.T) {
	if err := provenance.History("../.."); err != nil {
		skips.NotRun(t, err.Error(), "test a checkout with its history")
	}
	if err := exec.Command("git", "merge-base", "--is-ancestor", commitsBase, "HEAD").Run(); err != nil {
		skips.NotRun(t, "commit "+commitsBase+" is not in this history", "test a checkout of main, or of a branch of it")
	}
	log, err := exec.Command("git", "log", "--no-merges", "--format=%x01%h %B", commitsBase+"..HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range withoutBody(string(log)) {
		t.Errorf("commit %s says what it does and not why: write a body (CONTRIBUTING.md, Commits)", c)
	}
}

// withoutBody lists the commits of a log, each after a byte 1, that have a first line only.
func withoutBody(log string) (list []string) {
	for _, c := range strings.Split(log, "\x01")[1:] {
		subject, body, _ := strings.Cut(c, "\n")
		if strings.TrimSpace(body) == "" {
			list = append(list, subject)
		}
	}
	return list
}

func TestWithoutBody(t *testing.T) {
	got := withoutBody("\x01a1 core: one\n\nWhy.\n\x01b2 core: two\n\n\x01c3 core: three\n")
	if strings.Join(got, ", ") != "b2 core: two, c3 core: three" {
		t.Errorf("%q", got)
	}
}
