package life

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/native"
	"github.com/openimpi/impi/internal/wireup"
)

func joinNative(environment native.Environment) (*proc.Process, error) {
	library, err := native.Load(environment.Shim)
	if err != nil {
		err = fmt.Errorf("site %s has its own MPI: %w", environment.Site, err)
		if !native.CanLoad { // it can do nothing at this site, whatever it is given: all such programs end alike
			machine.Local{}.Exit(int(proc.ErrorClass(err)), err.Error())
		}
		return nil, err
	}
	if err := library.Init(); err != nil {
		return nil, fmt.Errorf("site %s has its own MPI: %w", environment.Site, err)
	}
	native.UnsetEnvironment()
	control, _, err := wireup.Attach(environment.Socket)
	if err != nil {
		return nil, fmt.Errorf("the node of rank %d of site %s: %w: has the site's launcher started this process on a machine that is no host of the site?", library.Rank, environment.Site, err)
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
