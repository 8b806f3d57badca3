package pmix

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/launch/pmi"
)

// fake is a library that says what a test wants.
type fake struct {
	library
	rank    uint32
	numbers map[string]uint32
	list    []string
	ranks   map[string][]uint32
	value   string
	err     error
}

func (f *fake) init() (space string, rank uint32, err error) { return "job", f.rank, nil }
func (f *fake) number(_ uint32, key string) (n uint32, found bool, err error) {
	n, found = f.numbers[key]
	return n, found, f.err
}
func (f *fake) text(uint32, string) (text string, found bool, err error) { return f.value, true, nil }
func (f *fake) nodes() ([]string, error)                                 { return f.list, f.err }
func (f *fake) peers(node string) ([]uint32, error)                      { return f.ranks[node], nil }

// TestIdentity: what the server says of a process is checked.
func TestIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		fake *fake
		says string
	}{
		"no size":        {&fake{}, "does not say how many processes there are: nothing is found"},
		"no answer":      {&fake{err: errors.New("gone")}, "does not say how many processes there are: gone"},
		"rank too large": {&fake{rank: 2, numbers: map[string]uint32{"pmix.job.size": 2}}, "rank 2 of 2"},
		"too many":       {&fake{numbers: map[string]uint32{"pmix.job.size": 1 << 30}}, "of 1073741824"},
		"program":        {&fake{numbers: map[string]uint32{"pmix.job.size": 1, "pmix.appnum": 1<<32 - 1}}, "of program 4294967295"},
	} {
		if _, err := begin(c.fake); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	c, err := begin(&fake{rank: 1, numbers: map[string]uint32{"pmix.job.size": 2, "pmix.appnum": 3}, value: "n1"})
	if want := (pmi.Identity{Rank: 1, Size: 2, AppNum: 3, Job: "job", Machine: "n1"}); err != nil || c.Me() != want {
		t.Errorf("%+v, %v, want %+v", c, err, want)
	}
}

// TestNodes: each rank is on one machine, or it is not known where they are.
func TestNodes(t *testing.T) {
	for name, c := range map[string]struct {
		fake fake
		want string // the machines, or what the error has in it
	}{
		"one":         {fake{list: []string{"a"}, ranks: map[string][]uint32{"a": {2, 0, 1}}}, "[0 0 0]"},
		"in turns":    {fake{list: []string{"a", "b"}, ranks: map[string][]uint32{"a": {0, 2}, "b": {1}}}, "[0 1 0]"},
		"an idle one": {fake{list: []string{"a", "b"}, ranks: map[string][]uint32{"b": {0, 1, 2}}}, "[1 1 1]"},
		"nothing":     {fake{}, "[]"},
		"not all":     {fake{list: []string{"a"}, ranks: map[string][]uint32{"a": {0, 1}}}, "[]"},
		"twice":       {fake{list: []string{"a", "b"}, ranks: map[string][]uint32{"a": {0, 1}, "b": {1, 2}}}, `rank 1 of 3 is on "b"`},
		"none":        {fake{list: []string{"a"}, ranks: map[string][]uint32{"a": {3}}}, "rank 3 of 3"},
		"fails":       {fake{err: errors.New("gone")}, "the machines of the job: gone"},
	} {
		got, err := (&Conn{&c.fake, pmi.Identity{Size: 3}}).Nodes()
		if text := fmt.Sprint(got); err == nil && text != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, %v, want %s", name, text, err, c.want)
		}
	}
}

// TestValuesAreBounded, as are ranks.
func TestValuesAreBounded(t *testing.T) {
	c := &Conn{&fake{value: strings.Repeat("x", maxValue+1)}, pmi.Identity{Size: 2}}
	if _, found, err := c.Get("key", 1); found || err == nil || !strings.Contains(err.Error(), "65537 bytes") {
		t.Error(found, err)
	}
	if _, _, err := c.Get("key", 2); err == nil || !strings.Contains(err.Error(), "rank 2 is none of 2") {
		t.Error(err)
	}
}
