package main

import (
	"fmt"
	"io"
	"os"
)

// progressLine shows how far the computation is: one line that is written over
// and over on a terminal, a line for each tenth of the way elsewhere.
type progressLine struct {
	out     io.Writer
	rewrite bool
	steps   int
	tenth   int
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progressLine) show(step int, change float64) {
	text := fmt.Sprintf("heat2d: step %*d of %d  %3d %%  change %.2e", len(fmt.Sprint(p.steps)), step, p.steps, 100*step/p.steps, change)
	if p.rewrite {
		fmt.Fprintf(p.out, "\r%s\x1b[K", text)
		return
	}
	if tenth := 10 * step / p.steps; tenth > p.tenth {
		p.tenth = tenth
		fmt.Fprintln(p.out, text)
	}
}

func (p *progressLine) close() {
	if p.rewrite && p.steps > 0 {
		fmt.Fprintln(p.out)
	}
}
