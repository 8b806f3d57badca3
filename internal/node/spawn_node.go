package node

import (
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/node/procs"
)

// What is different in a node of a spawned world: where it writes, whose transports
// it uses, what its procs run.

// moveIn has a new node of a spawned world use what the site's own has.
func (n *node) moveIn() {
	s := n.opt.share
	n.spawning = s.service
	root := s.service.root
	n.stdout, n.stderr = root.stdout, root.stderr
	n.log = root.log.With("world", s.part.World)
}

func (n *node) borrowTransports() {
	root := n.opt.share.service.root
	n.routes.Transports, n.routes.Channels = slices.Clone(root.routes.Transports), root.routes.Channels
	n.routes.CloseRoutes()
}

// program is what a proc runs.
func (n *node) program(local int) config.Program {
	if s := n.opt.share; s != nil {
		return s.programs[s.runs[local]]
	}
	program, _ := n.opt.Site.ProgramOf(local)
	return program
}

// appNum is a proc's MPI_APPNUM.
func (n *node) appNum(p *procs.Proc) int {
	if s := n.opt.share; s != nil {
		return s.numbers[p.Local]
	}
	_, part := n.opt.Site.ProgramOf(p.Local)
	return appNum(n.opt.Job.Sites, n.opt.Site) + part
}

// parent is the port that the procs call in Init; empty if nobody has spawned them.
func (n *node) parent() string {
	if s := n.opt.share; s != nil {
		return s.parent
	}
	return ""
}

// spawnedWorld names the world that the node is of; empty: the site's own.
func (n *node) spawnedWorld() string {
	if s := n.opt.share; s != nil {
		return s.part.World
	}
	return ""
}
