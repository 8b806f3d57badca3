package transporttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

func planes(e *env) {
	if e.h.InProcess {
		e.Skipf("the transport's links do not leave this process")
	}
	dialled, accepted := e.pair()
	a := e.leaves("Dial", e.h.Dialler, dialled)
	b := e.leaves("Accept", e.h.Transport, accepted)
	for _, way := range [][2]link.Link{{a, b}, {b, a}} {
		if err := e.greet(way[0], way[1], "as a proc would"); err != nil {
			e.Fatalf("what Dial and Accept give are not the two ends of one link once it has left: %v", err)
		}
	}
	e.must(b.Close())
	if err := e.end(a); !gone(err) {
		e.Fatalf("a link has left and its end was closed, which the peer does not see, so that a copy of the descriptor is open: %v", err)
	}
}

// leaves checks that a link of t's can leave by a plane that t lists, and makes the link anew of
// what Detach gives, as a proc does.
func (e *env) leaves(method string, t transports.Transport, l link.Link) link.Link {
	e.Helper()
	what, can := planesOf(l)
	listed := t.Capabilities().DataPlanes
	if !slices.ContainsFunc(can, func(p transports.DataPlane) bool { return slices.Contains(listed, p) }) {
		e.Fatalf("%s gives %s, which can leave by %s; Capabilities lists %s", method, what, list(can), list(listed))
	}
	made, err := remade(l)
	if err != nil {
		e.Fatalf("%s gives %s, and no link can be made of what its Detach gives: %v", method, what, err)
	}
	e.Cleanup(func() { made.Close() })
	return made
}

// planesOf returns what a link is, and the data planes by which it can leave without being passed
// on where that is not necessary.
func planesOf(l link.Link) (what string, planes []transports.DataPlane) {
	switch x := l.(type) {
	case transports.Socket:
		return "a kernel socket (transports.Socket)", []transports.DataPlane{transports.PlaneFD}
	case transports.Memory:
		return "memory shared with the peer (transports.Memory)", []transports.DataPlane{transports.PlanePeerSHM}
	case transports.Piped:
		return "a connection inside the process (transports.Piped)",
			[]transports.DataPlane{transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC}
	case *fabric.Link:
		return "a connection that reads remote memory (fabric.Link)", fabric.Planes()
	case transports.Relayed:
		return "a link whose bytes a plugin passes on", []transports.DataPlane{x.Plane()}
	}
	return fmt.Sprintf("a %T, which has the Detach of neither transports.Socket nor Memory nor Piped, and is no fabric.Link", l), nil
}

func list(planes []transports.DataPlane) string {
	if len(planes) == 0 {
		return "no data plane"
	}
	names := make([]string, len(planes))
	for i, p := range planes {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}

func remade(l link.Link) (link.Link, error) {
	switch x := l.(type) {
	case transports.Socket:
		fd, preread, err := x.Detach()
		if err != nil {
			return nil, err
		}
		if len(preread) > 0 {
			return nil, fmt.Errorf("%d bytes were read ahead, and none were sent", len(preread))
		}
		made, err := socket.New(fd, nil)
		if err != nil {
			return nil, err
		}
		return made, nil
	case transports.Memory:
		region, bell, side, err := x.Detach()
		if err != nil {
			return nil, err
		}
		made, err := ring.NewDetachable(region, bell, side)
		if err != nil {
			return nil, errors.Join(errors.New("the memory"), err)
		}
		return made, nil
	}
	return l, nil
}
