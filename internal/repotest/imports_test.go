package repotest

import (
	"strconv"
	"strings"
)

// layers of core, and of the engine: a package imports only packages of the same part with a lower
// number.
var layers = map[string]int{
	"core/ntcopy": -1,
	"core/sums":   -1,
	"core/wire":   0, "core/link": 0, "core/board": 0, "core/unproved": 0, "core/names": 0, "core/agree": 0,
	"core/datatype": 1, "core/flow": 1, "core/match": 1, "core/comm": 1, "core/dynamic": 1, "core/resume": 1, "core/membership": 1,
	"core/route": 2, "core/startup": 2, "core/message": 2, "core/coll": 2, "core/rma": 2,
	"core/agent":  3,
	"core/mpierr": 4, "core/ending": 4,
	"core/spawn": 5,
	"core/mpi":   6,
	doubles:      9, // for tests alone

	// The rooms of the engine behind core/mpi.
	"internal/engine/calls": -1, "internal/engine/proc": 0, "internal/engine/p2p": 1, "internal/engine/object": 1, "internal/engine/collective": 2, "internal/engine/construct": 3,
	"internal/engine/meet": 4, "internal/engine/window": 4, "internal/engine/file": 4, "internal/engine/tool": 4, "internal/engine/life": 5,
}

// direction says what the packages of a subtree may import. A pattern is a
// folder, or a folder and all below it if it ends in "/...".
type direction struct {
	from   string
	ours   []string
	others []string // modules that are not ours; nil: any in go.mod
}

var noOthers = []string{}

// directions: the first one whose from fits counts.
var directions = []direction{
	{from: "core/mpi", ours: []string{"core/...", "internal/engine/..."}, others: noOthers},
	{
		from:   engine,
		ours:   []string{"core/...", "internal/engine/...", "internal/bootstrap", "internal/native", "internal/fileview", "internal/machine", "internal/poll", "internal/wireup", "internal/resumable", "internal/drive", "internal/fastpath", "transports", "transports/socket", "transports/support/ring", "transports/support/relay", "transports/support/trace"},
		others: []string{"golang.org/x/sys/..."},
	},
	{from: "core/...", ours: []string{"core/..."}, others: noOthers},
	{from: "transports", ours: []string{"core/link"}, others: noOthers},
	{from: "transports/support/trace/...", ours: []string{"transports", "transports/socket", "core/link", "core/wire"}},
	{from: "transports/shm/...", ours: []string{"transports", "transports/socket", "transports/support/ring", "transports/unix", "core/link"}},
	{from: "transports/conn/...", ours: []string{"transports", "transports/support/ring", "core/link"}},
	{from: "transports/stripe", ours: []string{"transports", "transports/conn", "core/link"}},
	{from: "transports/support/relay/...", ours: []string{"transports", "transports/support/ring", "transports/socket", "core/link"}},
	{from: "transports/support/ring", ours: []string{"transports", "core/link", "core/ntcopy"}},
	{from: "transports/...", ours: []string{"transports", "transports/socket", "transports/conn", "transports/stripe", "transports/identity", "core/link", "core/unproved", "internal/keyfile"}},
	{from: "plugins/proto/...", ours: []string{"transports", "plugins/proto/..."}},
	{from: "plugins/sdk/...", ours: []string{"transports", "transports/socket", "transports/support/ring", "transports/conn", "core/link", "plugins/proto/...", "plugins/sdk/..."}},
	{from: "plugins/...", ours: []string{"transports", "transports/socket", "transports/support/ring", "transports/support/relay", "transports/conn", "core/link", "plugins/...", "internal/launch"}},
	{from: "config/...", ours: []string{"internal/hostlist", "internal/keyfile", "internal/hcldepth", "internal/pluginlock"}, others: []string{"github.com/hashicorp/hcl/v2/...", "github.com/zclconf/go-cty/...", "github.com/hashicorp/go-version", "aead.dev/minisign"}},
	{from: "internal/hcldepth", ours: nil, others: []string{"github.com/hashicorp/hcl/v2/..."}},
	{from: "internal/pluginlock", ours: []string{"internal/hcldepth"}, others: []string{"github.com/hashicorp/hcl/v2/...", "github.com/zclconf/go-cty/...", "github.com/hashicorp/go-version"}},
	{from: "internal/distribution", ours: []string{"config", "internal/cmdline", "internal/pluginlock"}},
	{from: "include", ours: nil, others: noOthers},
	{from: "internal/repotest", ours: nil, others: noOthers},
	{from: "internal/meetings", ours: []string{"core/...", "internal/wireup"}, others: noOthers},
	{from: "internal/poll", ours: []string{"core/link", "core/wire"}},
	{from: "internal/wireup", ours: []string{"core/wire", "core/dynamic", "core/startup", "core/board"}},
	{from: "internal/hostlist", ours: nil, others: noOthers},
	{from: "internal/exported", ours: nil, others: noOthers},
	{from: "internal/keyfile", ours: nil, others: noOthers},
	{from: "internal/launch", ours: nil},
	{from: "internal/launch/pmi", ours: nil},
	{from: "internal/launch/pmix", ours: []string{"internal/launch/pmi"}},
	{from: "internal/native", ours: []string{"core/link", "internal/poll"}},
	{from: "internal/bootstrap", ours: []string{"core/wire", "internal/launch/pmi", "internal/launch/pmix", "internal/wireup"}},
	{from: "internal/fastpath", ours: []string{"core/board", "core/link"}, others: noOthers},
	{from: "internal/resumable", ours: []string{"core/link", "core/resume"}, others: noOthers},
	{from: "internal/machine", ours: []string{"core/link", "internal/poll", "internal/wireup"}, others: noOthers},
	{from: "internal/drive", ours: []string{"core/link", "core/link/linktest", "core/resume", "internal/resumable", "internal/machine", "internal/poll"}, others: noOthers},
	{from: "internal/packetswitch", ours: []string{"core/...", "internal/drive", "internal/machine", "internal/poll", "transports/socket", "transports/support/ring"}, others: []string{"golang.org/x/sys/..."}},
	{from: "internal/wan", ours: nil, others: noOthers},
	{from: "internal/measured", ours: nil, others: noOthers},
	{from: "internal/mutant", ours: nil, others: noOthers},
	{from: "internal/sim/...", ours: []string{"core/...", "internal/sim/...", "internal/mutant", "internal/machine", "internal/poll", "internal/wireup", "internal/packetswitch", "internal/cluster", "internal/cluster/neighbour", "internal/meetings", "internal/rpc/proto"}},
	{from: "internal/conformance/faults/...", ours: []string{"internal/conformance/...", "internal/mutant"}, others: noOthers},
	{
		// It knows the contract, the protocol and the node's client; and our tcp, to
		// compare with.
		from: "internal/conformance/...",
		ours: []string{"core/link", "transports", "transports/transporttest", "transports/tcp", "plugins/host", "plugins/proto/...", "internal/conformance/..."},
	},
	{
		// The agent process knows the contract and no transport.
		from: "internal/node/...",
		ours: []string{
			"core/...", "transports", "transports/socket", "transports/support/trace", "config", "plugins/host", "plugins/proto/...",
			"internal/...",
		},
	},
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
	return ""
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
