package mpi

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/mpierr"
)

// checkLayouts compare what members call.
var checkLayouts = map[string]layout{
	"one site":    {procs: 4, check: true},
	"three sites": {procs: 5, check: true, client: func(r int) int { return r / 2 }},
}

// TestMismatch has one rank call something else: everybody hears of it and of who
// it was, nobody hangs, and the communicator can be used afterwards.
func TestMismatch(t *testing.T) {
	b := func(n int) []int32 { return make([]int32, n) }
	usual := func(c *Comm) error { return Reduce(c, b(4), b(4), Sum, 0) }
	for name, f := range map[string]func(c *Comm) error{
		"operation": func(c *Comm) error { return Barrier(c) },
		"root":      func(c *Comm) error { return Reduce(c, b(4), b(4), Sum, 1) },
		"op":        func(c *Comm) error { return Reduce(c, b(4), b(4), Max, 0) },
		"count":     func(c *Comm) error { return Reduce(c, b(5), b(5), Sum, 0) },
		"kind":      func(c *Comm) error { return Reduce(c, make([]float32, 4), make([]float32, 4), Sum, 0) },
		"arguments": func(c *Comm) error { return Reduce(c, b(4), b(4), MaxLoc, 0) },
		"Dup":       func(c *Comm) error { _, err := c.Dup(); return err },
		"Split":     func(c *Comm) error { _, err := c.Split(0, 0); return err },
		"non-blocking": func(c *Comm) error {
			q, err := Ibcast(c, b(4), 0)
			if err == nil {
				_, err = q.Wait()
			}
			return err
		},
	} {
		for where, l := range checkLayouts {
			for _, odd := range []int{0, 2, l.procs - 1} {
				t.Run(fmt.Sprint(name, where, odd), func(t *testing.T) {
					l.run(t, func(t *testing.T, c *Comm) error {
						call := usual
						if c.Rank() == odd {
							call = f
						}
						err := call(c)
						if name == "arguments" && c.Rank() == odd {
							if ErrorClass(err) != mpierr.Op {
								return fmt.Errorf("own fault: %v", err)
							}
							return Barrier(c)
						}
						if !errors.Is(err, coll.ErrMismatch) || ErrorClass(err) != mpierr.NotSame {
							return fmt.Errorf("%v of class %v", err, ErrorClass(err))
						}
						if !strings.Contains(err.Error(), fmt.Sprintf("rank %d calls", odd)) {
							return fmt.Errorf("%w: not a word of rank %d", err, odd)
						}
						return Barrier(c)
					})
				})
			}
		}
	}
}

// What is right stays right, with several operations under way.
func TestCheckedCollectives(t *testing.T) {
	for where, l := range checkLayouts {
		t.Run(where, func(t *testing.T) {
			l.run(t, func(t *testing.T, c *Comm) error {
				for _, name := range starterNames {
					var open []begun
					for n := range 3 {
						b, err := starters[name](c, n, n%c.Size())
						if err != nil {
							return fmt.Errorf("%s: %w", name, err)
						}
						open = append(open, b)
					}
					for i := range open {
						b := open[len(open)-1-i]
						_, err := b.req.Wait()
						if err := first(err, b.check()); err != nil {
							return fmt.Errorf("%s: %w", name, err)
						}
					}
				}
				return together(c, 3)
			})
		})
	}
}

// Where some members run another library nobody compares, as they could not answer.
func TestUncheckedAmongForeigners(t *testing.T) {
	layout{procs: 4, check: true, client: func(r int) int { return r % 3 }, data: byClient, foreign: true}.run(t, func(t *testing.T, c *Comm) error {
		return together(c, 1)
	})
}

// Constructors compare, too, and work if all is right.
func TestCheckedConstructors(t *testing.T) {
	for where, l := range checkLayouts {
		t.Run(where, func(t *testing.T) {
			l.run(t, func(t *testing.T, c *Comm) error {
				other := c.Dup
				if c.Rank() == 1 {
					other = func() (*Comm, error) { return c.Split(0, 0) }
				}
				if _, err := other(); !errors.Is(err, coll.ErrMismatch) {
					return fmt.Errorf("Dup and Split: %v", err)
				}
				var err error
				if c.Rank() == 1 {
					_, err = c.SplitType(CommTypeShared, 0, nil)
				} else {
					_, err = c.FileOpen("nowhere", ModeReadOnly, nil)
				}
				if !errors.Is(err, coll.ErrMismatch) || !strings.Contains(err.Error(), "SplitType") || !strings.Contains(err.Error(), "FileOpen") {
					return fmt.Errorf("SplitType and FileOpen: %v", err)
				}
				local, inter, err := halves(c, 2)
				if err != nil {
					return err
				}
				merged, err := inter.Merge(c.Rank() < 2)
				if err != nil {
					return err
				}
				d, err := merged.Dup()
				return first(err, Barrier(local), Barrier(inter), Barrier(d))
			})
		})
	}
}
