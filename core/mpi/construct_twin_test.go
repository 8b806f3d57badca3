package mpi

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/internal/engine/construct"
)

func TestTwin(t *testing.T) {
	everywhere(t, 4, func(t *testing.T, c *Comm) error {
		copied := 0
		key, err := CreateKeyval(func(_ *Comm, _ Keyval, _, v any) (any, bool, error) { copied++; return v, true, nil }, nil, nil)
		ring, err2 := c.CartCreate([]int{4}, []bool{true}, false)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if err := ring.SetAttr(key, "mine"); err != nil {
			return err
		}
		d, err := ring.Twin()
		if err != nil {
			return err
		}
		if d == nil || !construct.AllRunImpi(c.in()) {
			return errors.Join(expect("twin, with another library", d != nil, construct.AllRunImpi(c.in())), ring.Free())
		}
		how, err := ring.Compare(d)
		kind, err2 := d.TopoTest()
		return errors.Join(err, err2, expect("comparison", how, Congruent), expect("topology", kind, Cart),
			expect("attributes copied", copied, 0), talks(ring, d, 0, 1, 2, 3), d.Free(), ring.Free())
	})
}
