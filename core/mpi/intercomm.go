package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
)

// TestInter tells whether c is an intercommunicator: one that joins two groups,
// whose messages go from members of one group to members of the other.
func (c *Comm) TestInter() (bool, error) {
	if err := c.check(); err != nil {
		return false, c.failed("TestInter", err)
	}
	return c.Inter(), nil
}

// Compare says how c and d relate: the same object (Identical), the same groups
// (Congruent), the same members in another order (Similar), or Unequal.
func (c *Comm) Compare(d *Comm) (Comparison, error) {
	err := c.check()
	if err == nil {
		err = d.check()
	}
	if err != nil {
		return Unequal, c.failed("Compare", err)
	}
	return c.Comm.Compare(d.Comm), nil
}

// RemoteSize is the number of members of an intercommunicator's remote group.
func (c *Comm) RemoteSize() (int, error) {
	if err := c.checkInter(); err != nil {
		return 0, c.failed("RemoteSize", err)
	}
	return c.Remote().Size(), nil
}

// RemoteGroup gives the remote group of an intercommunicator.
func (c *Comm) RemoteGroup() (*Group, error) {
	if err := c.checkInter(); err != nil {
		return nil, c.failed("RemoteGroup", err)
	}
	return c.p.newGroup(c.Remote()), nil
}

// checkInter refuses what is no intercommunicator.
func (c *Comm) checkInter() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.local == nil {
		return fmt.Errorf("%w: it is no intercommunicator", comm.ErrComm)
	}
	return nil
}

// checkIntra refuses intercommunicators.
func (c *Comm) checkIntra() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.local != nil {
		return fmt.Errorf("%w: it is an intercommunicator", comm.ErrComm)
	}
	return nil
}
