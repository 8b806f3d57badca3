package loglimit

import (
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// TestRecent: the last lines are kept with names and arguments, faults longer than other lines, and
// whatever is written out.
func TestRecent(t *testing.T) {
	log, l := New(hclog.LoggerOptions{Name: "node", Level: hclog.Off, Output: io.Discard})
	log.Warn("lost", "peer", 3)
	child := log.Named("site").With("host", "a")
	child.Debug("not kept")
	for i := range 3 * keptLines {
		child.Info("line", "n", i)
	}
	got := l.Recent()
	if len(got) != keptLines+1 {
		t.Fatalf("%d lines", len(got))
	}
	if first := got[0]; first.Text != "lost: peer=3" || first.From != "node" || first.Level != hclog.Warn || first.At.IsZero() {
		t.Errorf("%+v", first)
	}
	for i, want := range map[int]string{1: "line: host=a n=400", keptLines: "line: host=a n=599"} {
		if got[i].Text != want || got[i].From != "node.site" {
			t.Errorf("line %d: %+v, want %q", i, got[i], want)
		}
	}
}

// TestLongLine: a line is cut, and is valid text.
func TestLongLine(t *testing.T) {
	log, l := New(hclog.LoggerOptions{Output: io.Discard})
	log.Error("e", "text", "x"+strings.Repeat("ä", 10*maxLine), "form", hclog.Fmt("%d", 3), "left over")
	log.Info("form", "a", hclog.Fmt("%03d", 7), "bytes", "\xff")
	got := l.Recent()
	if len(got) != 2 || len(got[0].Text) > maxLine+3 || !strings.HasSuffix(got[0].Text, "ä...") {
		t.Errorf("%q", got)
	}
	if got[1].Text != "form: a=007 bytes=?" {
		t.Errorf("%q", got[1].Text)
	}
}
