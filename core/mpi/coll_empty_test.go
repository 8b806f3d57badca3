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

// Who takes no part in a reduction between groups has no buffers, and may name any
// operation.
func TestReduceBesideTheRoot(t *testing.T) {
	acrossGroups(t, func(c *Comm, left bool) error {
		root := argument(c, left, 0)
		value, sum := []int32{3}, []int32{0}
		send, recv := Of(value), Of(sum)
		if root == ProcNull {
			send, recv = Buffer{}, Buffer{}
		}
		if err := c.Reduce(send, recv, Sum, root); err != nil {
			return err
		}
		if n := int32(c.Comm.Remote().Size()); root == Root && sum[0] != 3*n {
			return fmt.Errorf("the sum is %d, want %d", sum[0], 3*n)
		}
		return nil
	})
}
