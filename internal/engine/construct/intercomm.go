package construct

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/proc"
)

// TestInter reports whether c is an intercommunicator (MPI-4.1, 7.6.1).
func TestInter(c *proc.Comm) (bool, error) {
	if err := c.Usable(); err != nil {
		return false, err
	}
	return c.Inter(), nil
}

// Compare compares the groups and contexts of two communicators (MPI-4.1, 7.4.1).
func Compare(c *proc.Comm, d *proc.Comm) (comm.Comparison, error) {
	err := c.Usable()
	if err == nil {
		err = d.Usable()
	}
	if err != nil {
		return comm.Unequal, err
	}
	return c.Comm.Compare(d.Comm), nil
}

// RemoteSize returns the number of members of the other group of an intercommunicator (MPI-4.1,
// 7.6.1).
func RemoteSize(c *proc.Comm) (int, error) {
	if err := CheckInter(c); err != nil {
		return 0, err
	}
	return c.Remote().Size(), nil
}

// RemoteGroup returns a new group of the members of the other group (MPI-4.1, 7.6.1).
func RemoteGroup(c *proc.Comm) (*proc.Group, error) {
	if err := CheckInter(c); err != nil {
		return nil, err
	}
	return c.Process().NewGroup(c.Remote()), nil
}

// CheckInter returns ErrComm unless c is an intercommunicator.
func CheckInter(c *proc.Comm) error {
	if err := c.Usable(); err != nil {
		return err
	}
	if c.State().Local == nil {
		return fmt.Errorf("%w: it is no intercommunicator", comm.ErrComm)
	}
	return nil
}

// CheckIntra returns ErrComm unless c is an intracommunicator.
func CheckIntra(c *proc.Comm) error {
	if err := c.Usable(); err != nil {
		return err
	}
	if c.State().Local != nil {
		return fmt.Errorf("%w: it is an intercommunicator", comm.ErrComm)
	}
	return nil
}
