package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestLinesComeWholeAndBounded(t *testing.T) {
	l := newLines()
	for _, piece := range []string{"on", "e\r\ntw", "o\n", strings.Repeat("x", maxLine+10), "\nrest"} {
		_, _ = l.Write([]byte(piece))
	}
	l.close()
	all := l.all()
	want := []int{3, 3, maxLine, 10, 4}
	got := make([]int, len(all))
	for i, x := range all {
		got[i] = len(x)
	}
	if all[0] != "one" || all[1] != "two" || got[len(got)-1] != 4 || !slices.Equal(got, want) {
		t.Errorf("%d lines of %v bytes", len(all), got)
	}
	if first, err := l.first(context.Background()); first != "one" || err != nil {
		t.Errorf("%q, %v", first, err)
	}
}

func TestFirstLineMayNeverCome(t *testing.T) {
	l := newLines()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.first(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	l.close()
	if _, err := l.first(context.Background()); !errors.Is(err, errSilent) {
		t.Error(err)
	}
}

func TestLevelOf(t *testing.T) {
	for line, want := range map[string]struct {
		level    string
		mistaken bool
	}{
		`{"@level":"warn","@message":"x"}`:   {"warn", false},
		`{"level":"WARNING","msg":"x"}`:      {"warn", false},
		`{"level":"info","message":"x"}`:     {"info", false},
		`{"level":"info"}`:                   {"info", true},
		`{"severity":"info","message":"x"}`:  {"", true},
		`{"level":"loud","message":"x"}`:     {"loud", true},
		`{ this is not JSON`:                 {"", false},
		`[ERROR] x`:                          {"error", false},
		`plain text about an [ERROR] of his`: {"", false},
	} {
		if level, mistaken := levelOf(line); level != want.level || mistaken != want.mistaken {
			t.Errorf("%s: %q, %v", line, level, mistaken)
		}
	}
}

func TestHandshake(t *testing.T) {
	if h, err := parseHandshake("1|1|unix|/run/x|grpc|"); err != nil || h.address != "/run/x" || h.version != "1" {
		t.Errorf("%+v, %v", h, err)
	}
	for _, line := range []string{"", "hello", "2|1|unix|/x|grpc", "1|1|tcp|127.0.0.1:1|grpc", "1|1|unix|/x|netrpc", "1|1|unix|/x"} {
		if _, err := parseHandshake(line); !errors.Is(err, errHandshake) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestWithPort(t *testing.T) {
	for from, want := range map[string]string{
		"127.0.0.1:80":               "127.0.0.1:7",
		"ws://127.0.0.1:40001/impi":  "ws://127.0.0.1:7/impi",
		"67348e3e!/run/somewhere/x":  "",
		"127.0.0.1:4#ab127.0.0.1xyz": "127.0.0.1:7#ab127.0.0.1xyz",
	} {
		if got, ok := withPort(from, 7); got != want || ok != (want != "") {
			t.Errorf("%s becomes %q, %v", from, got, ok)
		}
	}
}
