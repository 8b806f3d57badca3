package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/sim"
)

// explain says what was wrong with a run, and makes the case smaller.
func (o *options) explain(c *sim.Case, v *sim.Verdict, again string, w io.Writer) {
	fmt.Fprintf(w, "\nFAIL seed %d: %v\n", c.Seed, v.Failure)
	if o.trace > 0 {
		fmt.Fprintf(w, "\nthe last events, times in microseconds:\n%s", v.Trace)
	}
	fmt.Fprintf(w, "\nagain: %s\n", again)
	if !o.shrink {
		return
	}
	limits := &o.limits
	if o.file != "" {
		limits = nil
	}
	small, runs := sim.Shrink(c, limits, v.Failure.Oracle, o.shrinkTime)
	fmt.Fprintf(w, "after %d runs of smaller cases, this one fails in the same way:\n\n%v\n", runs, small)
	path, err := o.keep(c.Seed, small, sim.Run(small, sim.Options{}).Failure)
	if err != nil {
		fmt.Fprintln(w, "impi-sim:", err)
		return
	}
	fmt.Fprintf(w, "again: impi-sim -case %s\n", path)
}

func (o *options) keep(seed uint64, c *sim.Case, f *sim.Failure) (path string, err error) {
	if err := os.MkdirAll(o.out, 0o777); err != nil {
		return "", err
	}
	name := fmt.Sprintf("seed-%d.txt", seed)
	if o.file != "" { // the file stays as it is
		name = strings.TrimSuffix(filepath.Base(o.file), ".txt") + "-smaller.txt"
	}
	path = filepath.Join(o.out, name)
	text := ""
	if f != nil {
		first, _, _ := strings.Cut(f.Error(), "\n")
		text = "# " + first + "\n"
	}
	return path, os.WriteFile(path, []byte(text+c.String()), 0o666)
}

func (o *options) end(t sim.Tally, remark string, out, report io.Writer) int {
	if o.coverage {
		fmt.Fprintf(report, "per 1000 jobs:\n%v", t.Coverage)
	}
	if o.json {
		_ = json.NewEncoder(out).Encode(o.summary(t)) // an error means that the reader is gone
	} else {
		line := fmt.Sprintf("%s, %d failed", rates(t), len(t.Findings))
		if remark != "" {
			line += ", " + remark
		}
		fmt.Fprintln(report, line)
	}
	if len(t.Findings) > 0 {
		return exitFailed
	}
	return exitOK
}

// summary is what -json prints.
type summary struct {
	Seeds    uint64           `json:"seeds"`
	Failed   []failed         `json:"failed"`
	Repeated uint64           `json:"repeated"`
	Events   uint64           `json:"events"`
	Virtual  float64          `json:"virtual_seconds"`
	Seconds  float64          `json:"seconds"`
	Coverage map[string]int64 `json:"coverage"`
}

type failed struct {
	Seed   uint64 `json:"seed"`
	Oracle string `json:"oracle"`
	Text   string `json:"text"`
	Again  string `json:"again"`
}

func (o *options) summary(t sim.Tally) summary {
	s := summary{
		Seeds: t.Seeds, Failed: []failed{}, Repeated: t.Repeated, Events: t.Events,
		Virtual: t.Time.Seconds(), Seconds: t.Took.Seconds(), Coverage: t.Coverage,
	}
	for _, f := range t.Findings {
		again := o.again(f.Seed)
		if o.file != "" {
			again = "impi-sim -case " + o.file
		}
		s.Failed = append(s.Failed, failed{f.Seed, f.Failure.Oracle, f.Failure.Err.Error(), again})
	}
	return s
}

func rates(t sim.Tally) string {
	seconds := max(t.Took.Seconds(), 1e-6)
	return fmt.Sprintf("%d seeds in %v (%.0f/s), %.1f M events (%.2f M/s), %v of virtual time",
		t.Seeds, t.Took.Round(10*time.Millisecond), float64(t.Seeds)/seconds,
		float64(t.Events)/1e6, float64(t.Events)/1e6/seconds, t.Time.Round(time.Second))
}

// progress shows how far a sweep is: on a terminal in one line that changes, else
// in one line after the other.
type progress struct {
	w        io.Writer
	terminal bool
	every    time.Duration
	count    uint64
}

// newProgress returns nil if nobody wants to see it.
func newProgress(o *options, w io.Writer) *progress {
	f, ok := w.(*os.File)
	terminal := false
	if ok {
		info, err := f.Stat()
		terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	switch {
	case terminal:
		return &progress{w, true, 300 * time.Millisecond, o.count}
	case o.progress:
		return &progress{w, false, 5 * time.Second, o.count}
	}
	return nil
}

func (p *progress) show(t sim.Tally) {
	line := rates(t)
	if p.count > 0 {
		line = fmt.Sprintf("%3d%% %s", t.Seeds*100/p.count, line)
	}
	if n := len(t.Findings); n > 0 {
		line += fmt.Sprintf(", %d failed", n)
	}
	if p.terminal {
		fmt.Fprintf(p.w, "\r%s\x1b[K", line)
		return
	}
	fmt.Fprintln(p.w, line)
}

func (p *progress) clear() {
	if p != nil && p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
