package repotest

import (
	"slices"
	"strconv"
	"strings"
)

// layers of core, and of the engine: a package imports only packages of the same part with a lower
// number.
var layers = map[string]int{
	"core/sums": -1,
	"core/wire": 0, "core/board": 0, "core/names": 0, "core/agree": 0,
	"core/datatype": 1, "core/flow": 1, "core/match": 1, "core/comm": 1, "core/dynamic": 1, "core/resume": 1, "core/membership": 1,
	"core/compress": 1, "core/route": 2, "core/startup": 2, "core/message": 2, "core/coll": 2, "core/rma": 2,
	"core/agent":  3,
	"core/mpierr": 4, "core/ending": 4,
	"core/spawn": 5,
	"core/mpi":   6,

	// The rooms of the engine behind core/mpi.
	"internal/engine/calls": -1, "internal/engine/proc": 0, "internal/engine/p2p": 1, "internal/engine/object": 1, "internal/engine/collective": 2, "internal/engine/construct": 3,
	"internal/engine/meet": 4, "internal/engine/window": 4, "internal/engine/file": 4, "internal/engine/tool": 4, "internal/engine/life": 5,
}

// rooms are what a node is put together of, lowest first, and which others of them each may import.
// Beside them only commands do.
var rooms = map[string][]string{
	"internal/lifetime": nil,
	"internal/routes":   nil,
	"internal/procs":    {"internal/lifetime", "internal/routes"},
	"internal/site":     {"internal/lifetime", "internal/routes", "internal/procs"},
	"internal/connmgr":  {"internal/lifetime", "internal/routes", "internal/procs", "internal/site"},
	"internal/spawner":  {"internal/lifetime", "internal/routes", "internal/procs", "internal/connmgr"},
	"internal/operator": {"internal/routes", "internal/procs", "internal/site", "internal/connmgr"},
	nodeRoom:            {"internal/lifetime", "internal/routes", "internal/procs", "internal/site", "internal/connmgr", "internal/spawner", "internal/operator"},
}

// nodeRoom is the room at the top, which puts the others together.
const nodeRoom = "internal/node"

// roomOf returns the room that a package is in, or "".
func roomOf(dir string) string {
	for room := range rooms {
		if fits(room+"/...", dir) {
			return room
		}
	}
	return ""
}

// direction says what the packages of a subtree may import. A pattern is a
// folder, or a folder and all below it if it ends in "/...".
type direction struct {
	from   string
	ours   []string
	others []string // modules that are not ours; nil: any in go.mod
}

var noOthers = []string{}

// sdk is the module that plugins are written with, which the rest of the repository is made of as
// well.
const sdk = "plugins/sdk"

// pure are the packages of the SDK that core is built upon, and machines of the node that use
// packages which core must not. What holds for core holds for them.
var pure = []string{"plugins/sdk/link", "plugins/sdk/support/ntcopy", "plugins/sdk/support/unproved", "internal/meetings", "internal/cluster/neighbour"}

// isPure reports whether what a package does must not depend on the machine.
func isPure(dir string) bool { return fits("core/...", dir) || slices.Contains(pure, dir) }

// ofNode is what the node's process may import: it knows the contract and no transport.
var ofNode = []string{
	"core/...", "plugins/sdk/link", "plugins/sdk/support/polling", "plugins/sdk/support/unproved", "plugins/sdk/support/pki", "plugins/sdk/support/plainfile", "plugins/sdk/transports", "plugins/sdk/transports/socket", "transports/support/trace", "config", "plugins/host", "plugins/sdk/proto/...",
	"internal/...",
}

// directions: the first one whose from fits counts.
var directions = []direction{
	{from: "core/mpi", ours: []string{"core/...", "internal/engine/...", "plugins/sdk/link"}, others: noOthers},
	{
		from:   engine,
		ours:   append([]string{"core/...", "internal/engine/...", "internal/bootstrap", "internal/native", "internal/fileview", "internal/machine", "internal/poll", "internal/wireup", "internal/resumable", "internal/drive", "internal/fastpath", "internal/zstd", "plugins/sdk/transports", "plugins/sdk/transports/socket", "plugins/sdk/support/ring", "plugins/sdk/support/rdma", "plugins/sdk/support/relay", "plugins/sdk/support/polling", "transports/support/trace"}, pure...),
		others: []string{"golang.org/x/sys/..."},
	},
	{from: "core/...", ours: append([]string{"core/..."}, pure...), others: noOthers},

	// Nothing of the SDK needs anything of ours that is outside.
	{from: "plugins/sdk/link/...", ours: []string{"plugins/sdk/link", "plugins/sdk/support/ntcopy"}, others: noOthers},
	{from: "plugins/sdk/support/ring", ours: []string{"plugins/sdk/link", "plugins/sdk/support/ntcopy"}},
	{from: "plugins/sdk/support/rdma", ours: []string{"plugins/sdk/link", "plugins/sdk/support/ring"}, others: []string{"golang.org/x/sys/..."}},
	{from: "plugins/sdk/support/relay", ours: []string{"plugins/sdk/support/rdma", "plugins/sdk/transports", "plugins/sdk/transports/socket", "plugins/sdk/support/ring", "plugins/sdk/link"}},
	{from: "plugins/sdk/support/memory", ours: []string{"plugins/sdk/transports", "plugins/sdk/link"}, others: noOthers},
	{from: "plugins/sdk/support/polling", ours: nil, others: []string{"golang.org/x/sys/..."}},
	{from: "plugins/sdk/support/pki/...", ours: []string{"plugins/sdk/support/pki"}, others: noOthers},
	{from: "plugins/sdk/support/...", ours: nil, others: noOthers},
	{from: "plugins/sdk/transports", ours: []string{"plugins/sdk/link"}, others: noOthers},
	{from: "plugins/sdk/transports/conn", ours: []string{"plugins/sdk/transports", "plugins/sdk/support/ring", "plugins/sdk/support/polling", "plugins/sdk/link"}},
	{from: "plugins/sdk/transports/fabric", ours: []string{"plugins/sdk/transports", "plugins/sdk/transports/conn", "plugins/sdk/support/rdma", "plugins/sdk/support/polling", "plugins/sdk/link"}, others: []string{"golang.org/x/sys/..."}},
	{from: "plugins/sdk/transports/fabric/fabrictest", ours: []string{"plugins/sdk/transports", "plugins/sdk/transports/fabric", "plugins/sdk/transports/socket", "plugins/sdk/link"}, others: []string{"golang.org/x/sys/..."}},
	{from: "plugins/sdk/transports/stripe", ours: []string{"plugins/sdk/transports", "plugins/sdk/transports/conn", "plugins/sdk/link"}},
	// It makes links anew of what their Detach gives.
	{from: "plugins/sdk/transports/transporttest", ours: []string{"plugins/sdk/transports", "plugins/sdk/transports/socket", "plugins/sdk/transports/fabric", "plugins/sdk/support/ring", "plugins/sdk/link"}},
	{from: "plugins/sdk/transports/...", ours: []string{"plugins/sdk/transports", "plugins/sdk/link", "plugins/sdk/support/unproved", "plugins/sdk/support/keyfile", "plugins/sdk/support/plainfile"}},
	{from: "plugins/sdk/proto/...", ours: []string{"plugins/sdk/transports", "plugins/sdk/proto/..."}},
	{from: "plugins/sdk", ours: []string{"plugins/sdk/transports", "plugins/sdk/transports/socket", "plugins/sdk/support/ring", "plugins/sdk/support/failfast", "plugins/sdk/transports/conn", "plugins/sdk/transports/fabric", "plugins/sdk/link", "plugins/sdk/proto/..."}},

	{from: "transports/support/trace/...", ours: []string{"plugins/sdk/transports", "plugins/sdk/transports/socket", "plugins/sdk/link", "core/wire"}},
	{from: "transports/shm/...", ours: []string{"plugins/sdk/transports", "plugins/sdk/transports/socket", "plugins/sdk/support/ring", "transports/unix", "plugins/sdk/link"}},
	{from: "transports/...", ours: []string{"plugins/sdk/transports", "plugins/sdk/transports/socket", "plugins/sdk/transports/conn", "plugins/sdk/transports/stripe", "plugins/sdk/transports/identity", "plugins/sdk/link", "plugins/sdk/support/unproved"}},
	{from: "plugins/...", ours: []string{"plugins/...", "internal/launch"}},
	{from: "config/...", ours: []string{"internal/hostlist", "plugins/sdk/support/keyfile", "plugins/sdk/support/plainfile", "internal/hcldepth", "internal/pluginlock"}, others: []string{"github.com/hashicorp/hcl/v2/...", "github.com/zclconf/go-cty/...", "github.com/hashicorp/go-version", "aead.dev/minisign"}},
	{from: "internal/hcldepth", ours: nil, others: []string{"github.com/hashicorp/hcl/v2/..."}},
	{from: "internal/pluginlock", ours: []string{"internal/hcldepth", "plugins/sdk/support/plainfile"}, others: []string{"github.com/hashicorp/hcl/v2/...", "github.com/zclconf/go-cty/...", "github.com/hashicorp/go-version"}},
	{from: "internal/distribution", ours: []string{"config", "plugins/sdk/support/plainfile", "internal/cmdline", "internal/pluginlock"}},
	{from: "include", ours: nil, others: noOthers},
	{from: "internal/repotest", ours: nil, others: noOthers},
	{from: "internal/meetings", ours: []string{"core/...", "internal/wireup"}, others: noOthers},
	{from: "internal/poll", ours: []string{"plugins/sdk/link", "core/wire"}},
	{from: "internal/wireup", ours: []string{"core/wire", "core/dynamic", "core/startup", "core/board"}},
	{from: "internal/hostlist", ours: nil, others: noOthers},
	{from: "internal/exported", ours: nil, others: noOthers},
	{from: "internal/launch", ours: nil},
	{from: "internal/launch/pmi", ours: nil},
	{from: "internal/launch/pmix", ours: []string{"internal/launch/pmi"}},
	{from: "internal/native", ours: []string{"plugins/sdk/link", "plugins/sdk/support/polling", "internal/poll", "internal/native/shortbox"}},
	{from: "internal/native/shortbox", ours: []string{"plugins/sdk/link"}},
	{from: "internal/bootstrap", ours: []string{"core/wire", "internal/launch/pmi", "internal/launch/pmix", "internal/wireup"}},
	{from: "internal/fastpath", ours: []string{"core/board", "plugins/sdk/link"}, others: noOthers},
	{from: "internal/resumable", ours: []string{"plugins/sdk/link", "core/resume"}, others: noOthers},
	{from: "internal/zstd", ours: []string{"core/compress"}, others: []string{"github.com/klauspost/compress/..."}},
	{from: "internal/machine", ours: []string{"plugins/sdk/link", "internal/poll", "internal/wireup"}, others: noOthers},
	{from: "internal/drive", ours: []string{"plugins/sdk/link", "plugins/sdk/link/linktest", "core/compress", "core/resume", "internal/resumable", "internal/machine", "internal/poll"}, others: noOthers},
	{from: "internal/packetswitch", ours: []string{"core/...", "plugins/sdk/link", "internal/drive", "internal/machine", "internal/poll", "plugins/sdk/transports/socket", "plugins/sdk/support/ring", "plugins/sdk/support/polling"}, others: []string{"golang.org/x/sys/..."}},
	{from: "internal/campaign", ours: []string{"internal/provenance"}, others: noOthers},
	{from: "internal/campaign/inject", ours: nil, others: []string{"golang.org/x/sys/..."}},
	{from: "internal/campaign/job", ours: []string{"internal/netns", "internal/wan", "internal/wan/area"}, others: noOthers},
	{from: "internal/wan", ours: nil, others: noOthers},
	{from: "internal/measured", ours: []string{"plugins/sdk/support/plainfile"}, others: noOthers},
	{from: "internal/mutant", ours: nil, others: noOthers},
	{from: "internal/sim/...", ours: []string{"core/...", "plugins/sdk/link/...", "plugins/sdk/support/unproved", "plugins/sdk/support/polling", "internal/sim/...", "internal/mutant", "internal/machine", "internal/poll", "internal/wireup", "internal/zstd", "internal/packetswitch", "internal/cluster", "internal/cluster/neighbour", "internal/meetings", "internal/rpc/proto"}},
	{from: "internal/conformance/faults/...", ours: []string{"internal/conformance/...", "internal/mutant"}, others: noOthers},
	{
		// It knows the contract, the protocol, the node's client and how plugins may be called; and our
		// tcp, to compare with.
		from: "internal/conformance/...",
		ours: []string{"plugins/sdk/link", "plugins/sdk/transports", "plugins/sdk/transports/transporttest", "plugins/sdk/support/rdma", "plugins/sdk/support/relay", "transports/tcp", "plugins/host", "plugins/sdk/proto/...", "internal/pluginlock", "internal/conformance/..."},
	},
	{from: "internal/lifetime", ours: []string{"core/ending", "internal/launch"}, others: noOthers},
	{from: "internal/routes/...", ours: ofNode},
	{from: "internal/procs/...", ours: ofNode},
	{from: "internal/site/...", ours: ofNode},
	{from: "internal/connmgr/...", ours: ofNode},
	{from: "internal/spawner/...", ours: ofNode},
	{from: "internal/operator/...", ours: ofNode},
	{from: "internal/node/...", ours: ofNode},
	{from: "internal/...", ours: []string{"core/...", "transports/...", "plugins/...", "config", "include", "internal/..."}},
	{from: "examples/...", ours: []string{"core/mpi", "examples/..."}, others: noOthers},
	{from: "cmd/...", ours: []string{"core/...", "transports/...", "plugins/...", "config", "include", "internal/..."}},
}

// Imports wants imports to go down: design, folders.
func Imports(r *Repo) []Problem {
	var problems []Problem
	for _, f := range r.Go {
		if f.Test {
			continue
		}
		d, known := directionOf(f.Dir)
		if !known {
			problems = append(problems, Problem{Path: f.Path, Text: "nothing is said about the imports of " + f.Dir})
			continue
		}
		for _, spec := range f.AST.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if why := d.forbids(f.Dir, name); why != "" {
				problems = append(problems, Problem{f.Path, r.line(spec.Pos()), "import of " + name + ": " + why})
			}
		}
	}
	return problems
}

func directionOf(dir string) (direction, bool) {
	for _, d := range directions {
		if fits(d.from, dir) {
			return d, true
		}
	}
	return direction{}, false
}

// forbids returns the reason why a package may not import name, or "".
func (d direction) forbids(dir, name string) string {
	ours, isOurs := strings.CutPrefix(name, Module+"/")
	switch {
	case !isOurs && !strings.Contains(strings.SplitN(name, "/", 2)[0], "."):
		return "" // the standard library; PureCore looks at it
	case !isOurs && d.others != nil && !fitsAny(d.others, name):
		return "a module that is not for " + d.from
	case !isOurs:
		return ""
	case fits("cmd/...", ours):
		return "nobody imports a command"
	case !fitsAny(d.ours, ours):
		return "imports go down only"
	case fits(engine, dir) && fits("core/mpi", ours):
		return "the engine does not know who shows it"
	case fits("core/...", dir) && fits("core/...", ours), fits(engine, dir) && fits(engine, ours):
		return forbidsLayer(dir, ours)
	}
	return forbidsRoom(roomOf(dir), roomOf(ours), fits("cmd/...", dir))
}

// forbidsRoom returns the reason why a package of the room from, or of none, may not import one of
// the room to.
func forbidsRoom(from, to string, command bool) string {
	switch {
	case to == "" || to == from || command || slices.Contains(rooms[from], to):
		return ""
	case from == "":
		return to + " is for the node alone"
	}
	return "the rooms of the node go down only, and internal/repotest does not say that " + from + " may import " + to
}

func forbidsLayer(dir, name string) string {
	from, knownFrom := layers[dir]
	to, knownTo := layers[name]
	switch {
	case !knownFrom || !knownTo:
		return "this package has no layer in internal/repotest"
	case to >= from:
		return "imports inside core and the engine go to a lower layer only"
	}
	return ""
}

func fits(pattern, name string) bool {
	tree, all := strings.CutSuffix(pattern, "/...")
	return name == tree || (all && strings.HasPrefix(name, tree+"/"))
}

func fitsAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if fits(p, name) {
			return true
		}
	}
	return false
}
