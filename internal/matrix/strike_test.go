package matrix

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A fault counts if it was noticed and mended while the program ran: output before the
// fault, or after the program's last line, proves nothing.
func TestOutlasted(t *testing.T) {
	const (
		lost  = "a direct link is lost and dialled again: from=0 to=2\n"
		again = "a direct link is resumed: from=0 to=2\n"
		down  = "tcp: plugin is down: error=x\n"
		ready = "tcp: plugin is ready: pid=7\n"
		step  = "[0] ring: round 100 of 2000\n"
		right = "[0] ring: 4 ranks, as it must be\n"
		sums  = "[0] matrix-check: every result of collectives was right\n"
	)
	cut := Cell{"tcp", "fd", Direct, "ring", LinkCut}
	killed := Cell{"tcp", "fd", Direct, "ring", PluginKilled}
	waiting := Cell{"tcp", "fd", Direct, "collectives", LinkCut}
	for name, c := range map[string]struct {
		cell          Cell
		before, after string
		good          bool
	}{
		"cut":                         {cut, step, lost + again + step + step + right, true},
		"a channel":                   {cut, step, strings.ReplaceAll(lost+again, "direct link", "channel") + step + step + right, true},
		"lost, not resumed":           {cut, step, lost + step + step + right, false},
		"lost before":                 {cut, step + lost + again, step + step + right, false},
		"resumed before it was lost":  {cut, step, again + lost + step + step + right, false},
		"a line that was under way":   {cut, step + step, lost + again + step + right, false},
		"progress before the end":     {cut, step, lost + step + step + again + right, false},
		"over before the repair":      {cut, step, step + step + right + lost + again, false},
		"nothing was felt":            {cut, step, step + step + right, false},
		"killed":                      {killed, ready + ready, down + down + ready + ready + step + step + right, true},
		"one of two does not come up": {killed, ready + ready, down + down + ready + step + step + right, false},
		"not down":                    {killed, ready, ready + ready + step + step + right, false},
		"one that waits":              {waiting, mark, lost + again + sums, true},
		"one that did not wait":       {waiting, mark, sums + lost + again, false},
		"no fault":                    {Cell{"tcp", "fd", Direct, "ring", NoFault}, "", right, true},
	} {
		err := c.cell.outlasted(c.before+c.after, blow{at: len(c.before), hits: 2})
		if (err == nil) != c.good || err != nil && !errors.Is(err, errTooShort) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each program that a fault is tried on works for a while in its middle, and prints its
// progress there.
func TestProgramsTellOfProgress(t *testing.T) {
	r := &Runner{}
	for _, p := range Programs {
		c := Cell{"tcp", "fd", Direct, p, LinkCut}
		short, long := strings.Join(r.command(c, "/d", 1), " "), strings.Join(r.command(c, "/d", 4), " ")
		if progress[p] == nil || c.waits() == (short != long) {
			t.Errorf("%s: %q, longer %q", p, short, long)
		}
	}
	for line, p := range map[string]string{
		"[0] ring: round 100 of 2000":                           "ring",
		"[0] heat2d: step  200 of 2000   10 %  change 1.00e-02": "heat2d",
		"[0] wordcount: counted 3 times of 20":                  "wordcount",
		"[0] matrix: at work":                                   "large",
		"[alpha] matrix: at work":                               "collectives",
	} {
		if !progress[p].MatchString(line) {
			t.Errorf("%q is not taken for progress", line)
		}
	}
	if progress["large"].MatchString(`command=["mpirun", "matrix-check", "-mark", "matrix: at work"]` + "\n") {
		t.Error("a command line is taken for progress")
	}
	if progress["ring"].MatchString("[0] ring: 4 ranks, 2000 rounds: 8000 hops") {
		t.Error("the end of ring is taken for progress")
	}
}

// A program that is always done before the strike makes the cell run longer and at
// last fail; it is never ok.
func TestProgramThatIsAlwaysDone(t *testing.T) {
	bin := t.TempDir()
	tried := filepath.Join(bin, "tried")
	node := "#!/bin/sh\necho x >>" + tried + "\n" + `echo "ring: round 1 of 2"` + "\n" +
		`echo "direct link: rank=0 transport=tcp data_plane=fd"` + "\n" + `echo "as it must be"` + "\n"
	if err := os.WriteFile(filepath.Join(bin, "impi-node"), []byte(node), 0o700); err != nil {
		t.Fatal(err)
	}
	r := &Runner{Bin: bin, Temp: t.TempDir(), Limit: 10 * time.Minute, Transports: Known(bin), Repository: bin}
	for _, fault := range []string{LinkCut, PluginKilled} {
		_ = os.Remove(tried)
		res := r.Run(t.Context(), Cell{"tcp", "fd", Direct, "ring", fault})
		if res.Verdict != Failed || !strings.Contains(res.Reason, errTooShort.Error()) {
			t.Errorf("%s: %s %s", fault, res.Verdict, res.Reason)
		}
		if b, _ := os.ReadFile(tried); strings.Count(string(b), "x") != len(lengths) {
			t.Errorf("%s: %d tries, not %d", fault, strings.Count(string(b), "x"), len(lengths))
		}
	}
}
