package life

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/native"
	"github.com/openimpi/impi/internal/wireup"
)

func joinNative(place native.Environment) (*proc.Process, error) {
	library, err := native.Load(place.Shim)
	if err != nil {
		err = fmt.Errorf("site %s has its own MPI: %w", place.Site, err)
		if !native.Loads { // it can do nothing at this site, whatever it is given: all such programs end alike
			machine.Local{}.Exit(int(proc.ErrorClass(err)), err.Error())
		}
		return nil, err
	}
	if err := library.Init(); err != nil {
		return nil, fmt.Errorf("site %s has its own MPI: %w", place.Site, err)
	}
	native.Forget()
	control, _, err := wireup.Attach(place.Socket)
	if err != nil {
		return nil, fmt.Errorf("the node of rank %d of site %s: %w: has the site's launcher started this process on a machine that is no host of the site?", library.Rank, place.Site, err)
	}
	m := wireup.Message{Kind: wireup.KindAttach, Version: wireup.Version, Peer: wire.WorldRank(library.Rank), Library: library.Text, Size: library.Size}
	if err := control.Send(m); err != nil {
		return nil, err
	}
	p, err := Join(proc.NodeConn{Conn: control}, machine.Local{})
	if err != nil {
		return nil, err
	}
	p.UseNative(library)
	return p, nil
}
