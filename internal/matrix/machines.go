package matrix

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/netns"
)

// machinesPerSite is how many machines a site has in cells that have several.
const machinesPerSite = 3

// Ports of the job's server and of the heads of its sites, whose connections are no links.
const (
	serverPort = 7800
	headPort   = 7802
)

// apart reports whether the cell's sites have several machines each.
func (c Cell) apart() bool { return c.Mode == DirectApart || c.Mode == AgentsApart }

// byAgents reports whether the cell's packets go through agents.
func (c Cell) byAgents() bool { return c.Mode == Agents || c.Mode == AgentsApart }

// machines are network namespaces for one job.
type machines struct {
	list    []*netns.Machine
	cleanup []func()
}

// impossible is why machines cannot be made.
type impossible string

func (m *machines) Helper()                        {}
func (m *machines) Cleanup(f func())               { m.cleanup = append(m.cleanup, f) }
func (m *machines) Skip(why ...any)                { panic(impossible(fmt.Sprint(why...))) }
func (m *machines) Fatalf(format string, a ...any) { panic(impossible(fmt.Sprintf(format, a...))) }

// newMachines makes those of all sites. They are removed by close.
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

// command runs a node with the same arguments on each machine, and ends with the first status that is
// not 0. SIGTERM is passed on.
func (m *machines) command(ctx context.Context, node string, args ...string) *exec.Cmd {
	var b strings.Builder
	b.WriteString("trap 'kill $all 2>/dev/null' TERM\n")
	for i, x := range m.list {
		fmt.Fprintf(&b, "ip netns exec %s \"$@\" -site %s & all=\"$all $!\"\n", x.Name, sites[i/machinesPerSite])
	}
	b.WriteString("status=0\nfor p in $all; do wait $p; s=$?; [ $status = 0 ] && status=$s; done\nexit $status\n")
	return exec.CommandContext(ctx, "bash", append([]string{"-c", b.String(), "bash", node}, args...)...)
}
