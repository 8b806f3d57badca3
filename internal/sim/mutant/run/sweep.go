package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/sim/mutant"
)

// sweep runs seeds with a fault until one fails. Number 0 is none: then all seeds
// are run, however long that takes.
func (t *tool) sweep(ctx context.Context, number int) (r result) {
	args := []string{
		"-seeds", fmt.Sprintf("%d:%d", t.first, t.first+t.seeds),
		"-json", "-failures", "1", "-shrink=false", "-trace", "0",
	}
	bounded, stop := context.WithCancel(ctx)
	defer stop()
	if number > 0 {
		args = append(args, "-j", "1", "-time", t.limit.String())
		bounded, stop = context.WithTimeout(ctx, t.limit+t.hang)
		defer stop()
	}
	begin := time.Now()
	cmd := exec.CommandContext(bounded, t.program(), args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", mutant.Switch, number))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if bounded.Err() != nil {
		r = result{Caught: true, By: "hang", Text: fmt.Sprintf("not over %v after the last seed was begun", t.hang)}
	} else {
		r = t.read(out.Bytes(), said.String(), err)
	}
	if number > 0 {
		m := &t.faults[number-1]
		r.Name, r.File, r.What = m.Name, m.File, m.What
	}
	r.Seconds = time.Since(begin).Seconds()
	return r
}

// read makes sense of what impi-sim has printed and of how it ended.
func (t *tool) read(out []byte, said string, err error) result {
	var s struct {
		Seeds  uint64 `json:"seeds"`
		Failed []struct {
			Seed   uint64 `json:"seed"`
			Oracle string `json:"oracle"`
			Text   string `json:"text"`
		} `json:"failed"`
	}
	switch bad := json.Unmarshal(out, &s); {
	case bad != nil:
		return result{Caught: true, By: "crash", Text: crash(said, err)}
	case len(s.Failed) > 0:
		f := s.Failed[0]
		return result{Caught: true, By: f.Oracle, Seeds: f.Seed - t.first + 1, Text: firstLine(f.Text)}
	case err != nil:
		return result{By: "not run", Text: err.Error()}
	}
	return result{Seeds: s.Seeds}
}

// crash finds out what a program has died of.
func crash(said string, err error) string {
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return strings.TrimSpace(line)
		}
	}
	return fmt.Sprintf("%v, %s", err, firstLine(said))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
