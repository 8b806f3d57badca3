package matrix

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
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

type machines struct {
	list    []*netns.Machine // of the first site, then of the second one
	cleanup []func()
}

// noMachines begins the reason of a cell that failed as its machines could not be made.
const noMachines = "there are no machines"

type impossible string

func (m *machines) Helper()                        {}
func (m *machines) Cleanup(f func())               { m.cleanup = append(m.cleanup, f) }
func (m *machines) Skip(why ...any)                { panic(impossible(fmt.Sprint(why...))) }
func (m *machines) Fatalf(format string, a ...any) { panic(impossible(fmt.Sprintf(format, a...))) }

func newMachines(c Cell) (m *machines, err error) {
	m = &machines{}
	defer func() {
		if why, ok := recover().(impossible); ok {
			m.close()
			err = fmt.Errorf("%s: %s", noMachines, string(why))
		}
	}()
	if c.Mode == DirectWide {
		m.list = area.New(m, area.Options{Sites: len(sites), Seed: wideSeed, Shape: func(int, int) wan.Shape { return wideArea }}).Sites
	} else {
		m.list = netns.New(m, machinesPerSite*len(sites))
	}
	return m, nil
}

func (m *machines) close() {
	for _, f := range slices.Backward(m.cleanup) {
		f()
	}
}

// command runs a node with the same arguments on each machine, and ends with the first status that
// is not 0. SIGTERM is passed on.
func (m *machines) command(ctx context.Context, node string, args ...string) *exec.Cmd {
	var b strings.Builder
	b.WriteString("trap 'kill $all 2>/dev/null' TERM\n")
	for i, x := range m.list {
		fmt.Fprintf(&b, "ip netns exec %s \"$@\" -site %s & all=\"$all $!\"\n", x.Name, sites[i*len(sites)/len(m.list)])
	}
	b.WriteString("status=0\nfor p in $all; do wait $p; s=$?; [ $status = 0 ] && status=$s; done\nexit $status\n")
	return exec.CommandContext(ctx, "bash", append([]string{"-c", b.String(), "bash", node}, args...)...)
}
