package file

import (
	"slices"
	"syscall"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/proc"
)

func TestAggregators(t *testing.T) {
	hosts := []string{"a", "a", "a", "b", "b", "c"}
	names := map[string]string{"a": "alpha", "b": "beta", "c": "gamma"}
	for _, c := range []struct {
		nodes  int
		config string
		want   []int
	}{
		{0, "", []int{0, 3, 5}},
		{2, "", []int{0, 3}},
		{4, "", []int{0, 3, 5, 1}},
		{5, "", []int{0, 3, 5, 1, 4}},
		{100, "", []int{0, 3, 5, 1, 4, 2}},
		{0, "*:1", []int{0, 3, 5}},
		{0, "*:2", []int{0, 3, 5, 1, 4}},
		{0, "*:*", []int{0, 3, 5, 1, 4, 2}},
		{3, "*:*", []int{0, 3, 5}},
		{0, "beta:2", []int{3, 4}},
		{0, "Alpha:3, gamma", []int{0, 5, 1, 2}},
		{0, "beta:0,*:1", []int{0, 5}},
		{0, "delta:4", []int{0}},
		{0, "*:many", []int{0, 3, 5}},
	} {
		if got := aggregators(hosts, names, c.nodes, c.config); !slices.Equal(got, c.want) {
			t.Errorf("cb_nodes %d, cb_config_list %q: %v, want %v", c.nodes, c.config, got, c.want)
		}
	}
	if got := aggregators([]string{"a", "a"}, nil, 0, ""); !slices.Equal(got, []int{0}) {
		t.Errorf("two of one host: %v", got)
	}
}

// TestGathers: aggregators are used for what interleaves in small pieces, or if hints say so.
func TestGathers(t *testing.T) {
	two := func(first, end, bytes int64, cores int64) []record {
		return []record{{first: 0, end: 1000, bytes: 500, runs: 50, cores: cores}, {first: first, end: end, bytes: bytes, runs: 50, cores: cores}}
	}
	large, far := two(10, 1010, 500, 4), two(10, 1010, 500, 0)
	never, always := two(10, 1010, 500, 4), two(2000, 3000, 500, 4)
	for i := range large {
		large[i].bytes, large[i].end, far[i].bytes = 50*largePiece, 100*largePiece, 50*largePiece
		never[i].allowed, always[i].allowed = disable, enable
	}
	var many []record
	for range 20 {
		many = append(many, two(10, 1010, 500, 4)...)
	}
	for _, c := range []struct {
		what        string
		all         []record
		write, read bool
	}{
		{"interleaved", two(10, 1010, 500, 4), true, false},
		{"by more procs than cores", many, true, true},
		{"with holes", two(10, 1010, 50, 4), false, false},
		{"one after the other", two(1000, 2000, 500, 4), false, false},
		{"the second one has nothing", two(0, 0, 0, 4), false, false},
		{"large pieces", large, false, false},
		{"large pieces at a server", far, true, true},
		{"disabled", never, false, false},
		{"enabled", always, true, true},
	} {
		if write, read := gathers(c.all, true), gathers(c.all, false); write != c.write || read != c.read {
			t.Errorf("%s: writing %v, reading %v", c.what, write, read)
		}
	}
}

func TestClassesOfSystemErrors(t *testing.T) {
	for err, want := range map[error]mpierr.Class{
		syscall.ENOSPC: mpierr.NoSpace, syscall.EDQUOT: mpierr.Quota, syscall.EIO: mpierr.IO, syscall.EBADF: mpierr.Access,
		errNoLocks: mpierr.UnsupportedOperation, &syscallError{syscall.EDQUOT}: mpierr.Quota,
	} {
		if got := proc.ErrorClass(ofSystem(err)); got != want {
			t.Errorf("%v has class %v, want %v", err, got, want)
		}
	}
}

// syscallError wraps an error as package os does.
type syscallError struct{ err error }

func (e *syscallError) Error() string { return "write: " + e.err.Error() }

func (e *syscallError) Unwrap() error { return e.err }
