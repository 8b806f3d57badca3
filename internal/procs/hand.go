package procs

import (
	"fmt"

	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// PassLink gives a proc a link with the message about it, in which it fills in the data plane. The
// node does not have the link any more then, even if there is an error.
func (p *Proc) PassLink(l link.Link, m *wireup.Message) error {
	fds, err := detach(l, m)
	if err != nil {
		_ = l.Close()
		return err
	}
	err = p.Send(*m, fds...)
	wireup.CloseAll(fds)
	return err
}

func detach(l link.Link, m *wireup.Message) (fds []int, err error) {
	switch x := l.(type) {
	case transports.Socket:
		m.DataPlane = string(transports.PlaneFD)
		fd, preread, err := x.Detach()
		if err == nil && len(preread) > 0 {
			wireup.CloseAll([]int{fd})
			return nil, fmt.Errorf("%d bytes of packets came with the greeting", len(preread))
		}
		return []int{fd}, err
	case transports.Relayed:
		m.DataPlane = string(x.Plane())
		fds, m.Side, err = x.Detach()
		return fds, err
	case transports.Memory:
		m.DataPlane = string(transports.PlanePeerSHM)
		region, socket, side, err := x.Detach()
		m.Side = side
		return []int{region, socket}, err
	}
	panic(fmt.Sprintf("procs: transport %s made a %T, which cannot be handed on", m.Transport, l))
}
