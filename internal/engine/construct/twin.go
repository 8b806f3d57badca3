package construct

import (
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

func Twin(c *proc.Comm) (*proc.Comm, error) {
	d, err := twin(c)
	return d, c.Failed("Twin", err)
}

func twin(c *proc.Comm) (*proc.Comm, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	if !Ours(c) {
		return nil, nil
	}
	return deriveBy(c, collective.DoesDup, c.Spec(), nil)
}
