package procs

import (
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/wireup"
)

// Hand gives a proc a link with the message that is about it, in which it fills in what the proc
// has to know of the link. The node has the link no more, whatever comes of it.
func (p *Proc) Hand(l link.Link, m *wireup.Message) error {
	fds, err := dial.Pack(l, m)
	if err != nil {
		_ = l.Close()
		return err
	}
	err = p.Tell(*m, fds...)
	wireup.CloseAll(fds)
	return err
}
