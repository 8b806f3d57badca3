package matrix

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/netns"
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

func (c Cell) onMachines() bool { return c.Mode == DirectMachines || c.Mode == AgentsMachines }

func (c Cell) byAgents() bool { return c.Mode == Agents || c.Mode == AgentsMachines }

type kind struct{ transport, plane string }

// kinds returns what the links of the cell's job are like: those within a machine, then those
// between machines. The cell is about the second, and the first are of shared memory, unless its
// transport stays on the machine: then it is about the first, and the second are plain TCP. On one
// machine, and by agents, whose channels lead from machine to machine, all are the same.
func (c Cell) kinds(t Transport) [2]kind {
	own := kind{t.ConfigName, c.Plane}
	switch {
	case c.Mode != DirectMachines:
		return [2]kind{own, own}
	case t.Machine:
		return [2]kind{own, {"tcp", string(transports.PlaneFD)}}
	}
	return [2]kind{{"shm", string(transports.PlanePeerSHM)}, own}
}

type machines struct {
	list    []*netns.Machine
	cleanup []func()
}

type impossible string

func (m *machines) Helper()                        {}
func (m *machines) Cleanup(f func())               { m.cleanup = append(m.cleanup, f) }
func (m *machines) Skip(why ...any)                { panic(impossible(fmt.Sprint(why...))) }
func (m *machines) Fatalf(format string, a ...any) { panic(impossible(fmt.Sprintf(format, a...))) }

func newMachines() (m *machines, err error) {
	m = &machines{}
	defer func() {
		if why, ok := recover().(impossible); ok {
			m.close()
			err = fmt.Errorf("there are no machines: %s", string(why))
		}
	}()
	m.list = netns.New(m, machinesPerSite*len(sites))
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
		fmt.Fprintf(&b, "ip netns exec %s \"$@\" -site %s & all=\"$all $!\"\n", x.Name, sites[i/machinesPerSite])
	}
	b.WriteString("status=0\nfor p in $all; do wait $p; s=$?; [ $status = 0 ] && status=$s; done\nexit $status\n")
	return exec.CommandContext(ctx, "bash", append([]string{"-c", b.String(), "bash", node}, args...)...)
}
