package main

type neighbours interface {
	// start begins to exchange the edges of b with the halos of the other blocks.
	start(b *block) error
	// finish waits until the halo of b has come.
	finish(b *block) error
	// largest returns the largest v of all blocks.
	largest(v float64) (float64, error)
}

type rules struct {
	steps     int     // at most
	check     int     // steps between two looks at the change
	tolerance float64 // enough when no cell changes by more in a step
}

// watcher is called with the change every rules.check steps, and after each step with the
// block, whose edges may still be in use.
type watcher interface {
	progress(step int, change float64)
	after(step int, b *block) error
}

// solve computes steps until the rules say to stop. While the edges travel, it computes the
// cells that do not depend on them.
func solve(b *block, n neighbours, r rules, w watcher) (steps int, change float64, err error) {
	for step := 1; step <= r.steps; step++ {
		if err := n.start(b); err != nil {
			return step, change, err
		}
		b.relaxInner()
		if err := n.finish(b); err != nil {
			return step, change, err
		}
		b.relaxEdges()
		b.step()
		steps = step
		if step%r.check == 0 || step == r.steps {
			if change, err = n.largest(b.change()); err != nil {
				return step, change, err
			}
			w.progress(step, change)
			if change <= r.tolerance {
				break
			}
		}
		if err := w.after(step, b); err != nil {
			return step, change, err
		}
	}
	return steps, change, nil
}

// solveAlone does the whole computation in one process, without MPI.
func solveAlone(f *field, r rules) (*field, int) {
	b := newBlock(f.width, f.height, f.t)
	steps, _, _ := solve(b, nobody{}, r, nobody{}) // nobody returns no errors
	return &field{f.width, f.height, b.cells()}, steps
}

// nobody is the neighbours of a block that is the whole field, and a watcher that does
// nothing.
type nobody struct{}

func (nobody) start(*block) error                 { return nil }
func (nobody) largest(v float64) (float64, error) { return v, nil }
func (nobody) progress(int, float64)              {}
func (nobody) after(int, *block) error            { return nil }

func (nobody) finish(b *block) error {
	for s := range sides {
		b.insulate(s)
	}
	return nil
}
