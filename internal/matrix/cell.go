package matrix

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/provenance"
	"github.com/openimpi/impi/internal/vendors"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Cell is one field of the matrix: the job that is run for it.
type Cell struct {
	Transport string `json:"transport"`
	Plane     string `json:"data_plane"`
	Mode      string `json:"mode"`
	Program   string `json:"program"`
	Fault     string `json:"fault"`
}

// The modes, the programs and the faults.
const (
	Direct = "direct"
	Agents = "agents"

	// On sites of several machines.
	DirectMachines = "direct, 2 x 3 machines"
	AgentsMachines = "agents, 2 x 3 machines"

	// On sites of one machine each, which are far from each other, by lines that lose packets.
	DirectWide = "direct, wide area"

	NoFault      = "none"
	PluginKilled = "plugin killed"
	LinkCut      = "link cut"
)

// Modes, Programs and Faults are the axes beside transports and planes.
var (
	Modes    = []string{Direct, Agents, DirectMachines, AgentsMachines, DirectWide}
	Programs = []string{"ring", "heat2d", "wordcount", "collectives", "large"}

	// FewPrograms are those of transports whose plugins differ from others in how bytes get to the
	// procs, which these programs show.
	FewPrograms = []string{"ring", "collectives", "large"}

	Faults = []string{NoFault, PluginKilled, LinkCut}
)

func (c Cell) String() string {
	return strings.Join([]string{c.Transport, c.Plane, c.Mode, c.Program, c.Fault}, "/")
}

// Verdict is the result of a cell.
type Verdict string

// The verdicts.
const (
	OK          Verdict = "ok"
	Ended       Verdict = "ends" // the job ended because of the fault, and reported it as Reason requires
	Failed      Verdict = "failed"
	Unsupported Verdict = "unsupported" // Reason says why it was not run
)

// Result is a cell and its verdict.
type Result struct {
	Cell
	Verdict Verdict          `json:"verdict"`
	Reason  string           `json:"reason,omitempty"`
	Took    time.Duration    `json:"took_ns"`
	Made    provenance.Stamp `json:"made"`
}

// Transport is what a job of the matrix needs to know of a transport.
type Transport struct {
	Name       string
	Block      string   // HCL for a site's transport block; DIR and SITE are replaced
	ConfigName string   // the transport's name in the job file
	Planes     []string // data planes that its links can have
	Missing    string   // why it cannot be run here; empty if it can
	Machine    bool     // links stay on the machine
	Datagrams  bool     // links are made of datagrams
	NoCut      string   // why its links cannot be cut; empty if they can
	Few        bool     // only some cells: FewPrograms on one machine, and by agents those of the first plane
	Natives    []string // HCL of each site with an MPI of its own, which ConfigName links; SITE is replaced; nil: they have none
}

// has reports whether there are cells with a plane in a mode. On several machines there are those
// of transports that leave a machine, by their first plane and by rings: whether bytes pass through
// the plugin matters there, and how does not. Over a wide area there are rings alone, as a link of TCP
// is several connections there. A transport that stays on the machine has its first plane on several
// ones, for the links between procs of one machine. It has no channels there: these are between hosts,
// and each machine is one.
func (t Transport) has(plane, mode string) bool {
	switch {
	case t.Natives != nil:
		return mode == Direct
	case t.Few:
		return mode == Direct || mode == Agents && plane == t.Planes[0]
	case mode == Direct || mode == Agents:
		return true
	case t.Machine:
		return mode == DirectMachines && plane == t.Planes[0]
	case mode == DirectWide:
		return plane == string(transports.PlaneRing)
	}
	return plane == t.Planes[0] || plane == string(transports.PlaneRing)
}

// Select lists the cells of some transports; of a quick selection only those that show each
// plane with each fault once.
func Select(all []Transport, quick bool) []Cell {
	var cells []Cell
	for _, t := range all {
		for _, plane := range t.Planes {
			for _, mode := range Modes {
				if !t.has(plane, mode) {
					continue
				}
				for _, program := range t.programs() {
					for _, fault := range Faults {
						c := Cell{t.Name, plane, mode, program, fault}
						if !quick || c.telling(t) {
							cells = append(cells, c)
						}
					}
				}
			}
		}
	}
	return cells
}

func (t Transport) programs() []string {
	if t.Few {
		return FewPrograms
	}
	return Programs
}

// lacks reports whether no transport of a name has cells with a program.
func lacks(transport, program string) bool {
	g, err := vendors.Find(transport)
	return err == nil && g.Few && !slices.Contains(FewPrograms, program)
}

// telling reports whether the cell is in a quick run.
func (c Cell) telling(t Transport) bool {
	switch {
	case c.Mode == DirectWide:
		return (t.Name == "tcp" || t.Name == "quic") && c.Program == "collectives"
	case c.onMachines():
		return t.Name == "tcp" && c.Plane == t.Planes[0] && c.Program == "collectives"
	case c.Mode == Agents:
		return c.Plane == t.Planes[0] && c.Program == "collectives"
	case c.Fault != NoFault:
		return c.Program == "collectives" || t.Name == "tcp" && c.Plane == "ring" && c.Fault == LinkCut && c.Program != "large"
	}
	return c.Program == "collectives" || c.Plane == t.Planes[0] && c.Program != "wordcount" && c.Program != "heat2d"
}

// breaks reports whether the cell's fault breaks links. Killing plugins does not break
// links whose bytes do not pass through them.
func (c Cell) breaks() bool {
	return c.Fault == LinkCut || c.Fault == PluginKilled && c.Plane != string(transports.PlaneFD) && c.Plane != string(transports.PlanePeerSHM)
}

// final returns why a cell's job cannot survive its fault and must end with an error that
// names the link's ends; "" if it can.
func (c Cell) final() string {
	if c.Fault == LinkCut && !c.byAgents() && c.Plane == string(transports.PlanePeerSHM) {
		return "the job ends at once and says between which ranks the link broke: its rings are the procs' own memory, which only the end of a proc takes away, " +
			"so that procs do not resume it; what was cut is the socket beside the rings"
	}
	return ""
}

// Find returns the transport of all with a name, or an error that names it.
func Find(all []Transport, name string) (Transport, error) {
	i := slices.IndexFunc(all, func(t Transport) bool { return t.Name == name })
	if i < 0 {
		return Transport{}, fmt.Errorf("no transport %q", name)
	}
	return all[i], nil
}
