package mpi

import (
	"fmt"
	"testing"
)

// Reductions of no items at all have operations that take the datatype.
func TestReduceNothing(t *testing.T) {
	everyLayout(t, func(t *testing.T, c *Comm) error {
		none := At(nil, 0, TypeOf[int32]())
		if err := c.Allreduce(none, none, Sum); err != nil {
			return fmt.Errorf("Allreduce: %w", err)
		}
		if err := c.Reduce(none, none, Max, 0); err != nil {
			return fmt.Errorf("Reduce: %w", err)
		}
		return c.Scan(none, none, Sum)
	})
}
