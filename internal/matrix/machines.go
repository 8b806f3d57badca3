package matrix

import (
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/wan"
	"github.com/openimpi/impi/internal/wan/area"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// machinesPerSite is how many machines a site has in cells that have several. Each has as many
// procs as a site on one machine, so that such jobs have links within machines beside those between
// them.
const (
	machinesPerSite = 3
	procsPerMachine = 2
)

// Ports of the job's server and of the heads of its sites, whose connections are no links.
const (
	serverPort = 7800
	headPort   = 7802
)

// onMachines reports whether the sites are on machines of their own, each a network namespace.
func (c Cell) onMachines() bool {
	return c.Mode == DirectMachines || c.Mode == AgentsMachines || c.Mode == DirectWide
}

func (c Cell) byAgents() bool { return c.Mode == Agents || c.Mode == AgentsMachines }

type kind struct{ transport, plane string }

// hosts returns the hosts of each site in its notation, or nil if all are on this machine.
func (c Cell) hosts() []string {
	switch {
	case c.Mode == DirectWide:
		return []string{area.Address(0, 0).String(), area.Address(1, 0).String()}
	case c.onMachines():
		return []string{"10.77.0.[1-3]", "10.77.0.[4-6]"}
	}
	return nil
}

func (c Cell) serverHost() string {
	if c.Mode == DirectWide {
		return area.Address(0, 0).String()
	}
	return "10.77.0.1"
}

// kinds returns what the links of the cell's job are like: those within a machine, then those
// between machines. The cell is about the second, and the first are of shared memory, unless its
// transport stays on the machine: then it is about the first, and the second are plain TCP. On one
// machine, and by agents, whose channels lead from machine to machine, all are the same.
func (c Cell) kinds(t Transport) [2]kind {
	own := kind{t.ConfigName, c.Plane}
	switch {
	case c.byAgents() || !c.onMachines():
		return [2]kind{own, own}
	case t.Machine:
		return [2]kind{own, {"tcp", string(transports.PlaneFD)}}
	}
	return [2]kind{{"shm", string(transports.PlanePeerSHM)}, own}
}

// wideArea is what a packet meets on its way to the other site: a line that is slower than the
// machine, loses packets, doubles them and has them overtake each other, and is down for a moment
// every few seconds. Its queue has room for what is under way in a round trip.
var wideArea = wan.Shape{
	Rate: 500e6, Delay: 10 * time.Millisecond, Jitter: time.Millisecond, Queue: 1 << 20,
	Loss: 0.001, Duplicate: 0.001, Reorder: 0.005, ReorderDelay: 2 * time.Millisecond,
	OutageInterval: 5 * time.Second, OutageLength: 300 * time.Millisecond,
}

// WideArea describes the lines of cells over a wide area, for the page.
var WideArea = fmt.Sprintf("lines of %d Mb/s\nthat take %v each way and up to %v more, lose %g %% of the packets, double %g %%, let %g %% come late, and are down\nfor %v every %v or so",
	wideArea.Rate/1e6, wideArea.Delay, wideArea.Jitter, 100*wideArea.Loss, 100*wideArea.Duplicate, 100*wideArea.Reorder, wideArea.OutageLength, wideArea.OutageInterval)

// wideSeed is the seed of the lines.
const wideSeed = 1

// newMachines makes the machines of the first site, then those of the second one.
func newMachines(c Cell) (list []*netns.Machine, remove func(), err error) {
	remove, err = netns.Outside(func(t netns.TB) {
		if c.Mode == DirectWide {
			list = area.New(t, area.Options{Sites: len(sites), Seed: wideSeed, Shape: func(int, int) wan.Shape { return wideArea }}).Sites
		} else {
			list = netns.New(t, machinesPerSite*len(sites))
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNoMachines, err)
	}
	return list, remove, nil
}

// errNoMachines is wrapped by the error of a cell whose machines could not be made.
var errNoMachines = errors.New("the cell cannot be run here")
