package examples

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// chapter has the programs that come from MPI's chapter about groups, contexts and
// communicators, and the lines that say that all was well.
var chapter = map[string][]string{
	"bcastinput":   {`bcastinput: 0 bytes on 4 ranks, checksum 00000000`},
	"clientserver": {`clientserver: 2 servers have answered 4 clients, each its own`},
	"evenodd":      {`evenodd: 5 ranks, 2 pairs, 1 alone`},
	"firstofleft":  {`firstofleft: the first of 2 has told all 3 of the right group, and heard of them`},
	"gopcache":     {`gopcache: 7 calls on four communicators, 2 plans, all gone`},
	"hello":        {`hello: all 4 are there`},
	"library1":     {`library1: two instances beside a Reduce on 4 ranks, all blocks as they must be`},
	"library2": {`library2: a: each call has its own messages`,
		`library2: b: the first call took a message of the second, as it may`, `library2: c: each call has its own messages`},
	"nameserver": {`nameserver: 3 times two groups met, of 4 ranks`},
	"pipeline3":  {`pipeline3: 16 numbers through three groups of 7 ranks, as they must be`},
	"ring3":      {`ring3: 20 rounds through three groups of 6 ranks: 120, as it must be`},
	"safety":     {`safety: 50 reductions beside pending messages, nothing mixed up`},
	"workers":    {`workers: 4 ranks, 3 of them workers, both sums as they must be`},
}

// said wants whole lines, of whatever rank, in this order.
func said(t *testing.T, out string, lines ...string) {
	t.Helper()
	rest := out
	for _, line := range lines {
		at := regexp.MustCompile(`(?m)^\[[0-9]+\] ` + regexp.QuoteMeta(line) + `$`).FindStringIndex(rest)
		if at == nil {
			t.Fatalf("no line %q after those before it in\n%s", line, out)
		}
		rest = rest[at[1]:]
	}
}

// Each runs on the two sites of its job file.
func TestChapter(t *testing.T) {
	for name, lines := range chapter {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said(t, runJob(t, name), lines...)
		})
	}
}

// Some run on as few ranks as there can be, and on one site.
func TestChapterOnOneSite(t *testing.T) {
	for name, c := range map[string]struct {
		ranks int
		line  string
	}{
		"hello":        {1, `hello: all 1 are there`},
		"evenodd":      {1, `evenodd: 1 ranks, 0 pairs, 1 alone`},
		"bcastinput":   {1, `bcastinput: 0 bytes on 1 ranks, checksum 00000000`},
		"workers":      {3, `workers: 3 ranks, 2 of them workers, both sums as they must be`},
		"pipeline3":    {3, `pipeline3: 16 numbers through three groups of 3 ranks, as they must be`},
		"ring3":        {3, `ring3: 20 rounds through three groups of 3 ranks: 60, as it must be`},
		"gopcache":     {1, `gopcache: 7 calls on four communicators, 2 plans, all gone`},
		"clientserver": {3, `clientserver: 2 servers have answered 1 clients, each its own`},
		"firstofleft":  {3, `firstofleft: the first of 2 has told all 1 of the right group, and heard of them`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said(t, succeed(t, "-n", fmt.Sprint(c.ranks), "--", filepath.Join("bin", name)), c.line)
		})
	}
}

// With too few ranks a job fails, and says why.
func TestChapterRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		ranks int
		why   string
	}{
		"workers": {2, "at least three ranks are needed, there are 2"}, "safety": {8, "at least nine ranks"},
		"library2": {3, "at least four ranks"}, "pipeline3": {2, "at least three ranks"}, "ring3": {2, "at least three ranks"},
		"nameserver": {4, "at least five ranks"}, "clientserver": {2, "more ranks than servers"}, "firstofleft": {2, "the right group too"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, problems, status := node(t, "-n", fmt.Sprint(c.ranks), "--", filepath.Join("bin", name))
			if status == 0 || !strings.Contains(problems, c.why) {
				t.Errorf("exit status %d\n%s%s", status, out, problems)
			}
		})
	}
}

func TestBcastinputReads(t *testing.T) {
	out, problems, status := nodeReads(t, strings.NewReader("123456789"), "-config", filepath.Join("examples", "bcastinput", "job.hcl"))
	if status != 0 {
		t.Fatalf("exit status %d\n%s%s", status, out, problems)
	}
	said(t, out, `bcastinput: 9 bytes on 4 ranks, checksum cbf43926`) // the check value of CRC-32
}
