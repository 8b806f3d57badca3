package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/openimpi/impi/core/mpi"
)

var errDiffers = errors.New("the result differs from that of one process")

// reporter prints progress and draws the pictures, at rank 0; the other ranks only take
// part in gathering.
type reporter struct {
	s       *solver
	o       options
	out     io.Writer
	line    progressLine
	started float64
}

func newReporter(s *solver, o options) *reporter {
	r := &reporter{s: s, o: o, out: io.Discard}
	if s.grid.Rank() == 0 {
		r.out = os.Stdout
		r.line = progressLine{out: os.Stdout, rewrite: isTerminal(os.Stdout), steps: o.steps}
	}
	return r
}

func (r *reporter) begin(initial *field) error {
	l := r.s.layout
	fmt.Fprintf(r.out, "heat2d: %d x %d cells on %d x %d ranks, at most %d steps\n", l.width, l.height, l.cols, l.rows, r.o.steps)
	r.started = mpi.Wtime()
	if initial == nil {
		return nil
	}
	if err := os.MkdirAll(r.o.out, 0o755); err != nil {
		return err
	}
	_, err := r.draw("heat2d-initial.png", initial, false)
	return err
}

func (r *reporter) draw(name string, f *field, isotherms bool) (string, error) {
	path, err := filepath.Abs(filepath.Join(r.o.out, name))
	if err != nil {
		return "", err
	}
	return path, writePicture(path, f, r.o.scale, isotherms)
}

func (r *reporter) progress(step int, change float64) {
	if r.s.grid.Rank() == 0 {
		r.line.show(step, change)
	}
}

// after draws a frame if one is due after this step: frames are spread evenly.
func (r *reporter) after(step int, b *block) error {
	n := frameAt(step, r.o.steps, r.o.frames)
	if n == 0 {
		return nil
	}
	f, err := r.s.gather(b)
	if err != nil || f == nil {
		return err
	}
	_, err = r.draw(fmt.Sprintf("heat2d-frame-%03d.png", n), f, true)
	return err
}

// frameAt returns the number of the frame that is due after a step; 0 is none.
func frameAt(step, steps, frames int) int {
	n := step * (frames + 1) / max(steps, 1)
	if n == (step-1)*(frames+1)/max(steps, 1) || n > frames {
		return 0
	}
	return n
}

func (r *reporter) end(initial, result *field, steps int, change float64) error {
	if result == nil {
		return nil
	}
	r.line.close()
	fmt.Fprintf(r.out, "heat2d: %d steps in %.2f s, the last one changed no cell by more than %.2g\n", steps, mpi.Wtime()-r.started, change)
	fmt.Fprintf(r.out, "heat2d: field sha256 %s\n", result.digest())
	if r.o.verify {
		if err := verify(initial, result, r.o.rules); err != nil {
			return err
		}
		fmt.Fprintln(r.out, "heat2d: one process computes the same, bit for bit")
	}
	path, err := r.draw("heat2d-final.png", result, true)
	if err == nil {
		fmt.Fprintf(r.out, "heat2d: the picture is %s\n", path)
	}
	return err
}

func verify(initial, result *field, r rules) error {
	alone, _ := solveAlone(initial, r)
	if d := result.difference(alone); d != "" {
		return fmt.Errorf("%w: %s", errDiffers, d)
	}
	return nil
}
