package coll

import (
	"errors"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
)

// verdicts has the members compare what they call.
func verdicts(t *testing.T, j *job, call func(i int) Call) []error {
	t.Helper()
	memory := make([][]byte, len(j.planners))
	j.run(func(i int, p *Planner, s *Schedule) error {
		memory[i] = make([]byte, CheckLen)
		c := call(i)
		p.Check(s, &c, memory[i])
		return nil
	})
	errs := make([]error, len(memory))
	for i, p := range j.planners {
		errs[i] = p.CompareCalls(memory[i])
	}
	return errs
}

// TestCheck has one member differ in each respect: all hear of it, and who it was.
func TestCheck(t *testing.T) {
	base := Call{Name: "Reduce", Root: 1, Op: "sum", Kind: datatype.Int32, Bytes: 16}
	for name, c := range map[string]struct {
		change func(*Call)
		says   string
	}{
		"operation": {func(c *Call) { c.Name = "Bcast" }, "calls Bcast"},
		"root":      {func(c *Call) { c.Root = 0 }, "root 0"},
		"op":        {func(c *Call) { c.Op = "max" }, "with max"},
		"kind":      {func(c *Call) { c.Kind = datatype.Float32 }, "float32"},
		"amount":    {func(c *Call) { c.Bytes = 20 }, "20 bytes"},
		"arguments": {func(c *Call) { c.Bad = true }, "arguments that cannot be"},
		"nothing":   {func(*Call) {}, ""},
	} {
		for _, clients := range [][]wire.ClientRank{{0, 0, 0, 0, 0}, {0, 0, 1, 1, 2}, {0, 1, 0, 1, 2}} {
			for _, odd := range []int{0, 3, 4} {
				p := ours
				p.MaxLinear = odd
				errs := verdicts(t, newJob(t, clients, p, nil, 3), func(i int) Call {
					call := base
					if i == odd {
						c.change(&call)
					}
					return call
				})
				for i, err := range errs {
					switch {
					case c.says == "" && err != nil:
						t.Errorf("%s: rank %d: %v", name, i, err)
					case c.says != "" && (!errors.Is(err, ErrMismatch) || err.Error() != errs[0].Error()):
						t.Errorf("%s: rank %d hears %v, rank 0 %v", name, i, err, errs[0])
					case c.says != "" && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "rank "+string(rune('0'+odd)))):
						t.Errorf("%s: %v does not tell what rank %d did", name, err, odd)
					}
				}
			}
		}
	}
}

// TestCheckBetweenGroups compares roots inside a group and operations between.
func TestCheckBetweenGroups(t *testing.T) {
	clients := []wire.ClientRank{0, 0, 1, 1, 2}
	for name, c := range map[string]struct {
		call func(i int) Call
		want error
	}{
		"root's group and others": {func(i int) Call { return Call{Name: "Bcast", Root: []int{-3, -3, 0, 0, 0}[i]} }, nil},
		"roots of the others":     {func(i int) Call { return Call{Name: "Bcast", Root: []int{-3, -3, 0, 1, 0}[i]} }, ErrMismatch},
		"operations": {func(i int) Call {
			return Call{Name: []string{"Bcast", "Bcast", "Barrier", "Barrier", "Barrier"}[i], Root: NoRoot}
		}, ErrMismatch},
		"one member": {func(i int) Call {
			return Call{Name: []string{"Bcast", "Barrier", "Bcast", "Bcast", "Bcast"}[i], Root: NoRoot}
		}, ErrMismatch},
	} {
		for i, err := range verdicts(t, newInterJob(t, clients, 2, ours, nil, 1), c.call) {
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%s: member %d: %v, want %v", name, i, err, c.want)
			}
		}
	}
}
