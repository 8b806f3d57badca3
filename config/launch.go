package config

import (
	"slices"
	"strings"
)

// The engines that a launch block can name.
const (
	LaunchSSH   = "ssh"
	LaunchSlurm = "slurm"
	LaunchPBS   = "pbs"
	LaunchExec  = "exec"
)

var launchEngines = []string{LaunchSSH, LaunchSlurm, LaunchPBS, LaunchExec}

// DefaultFanout is Launch.Fanout where the file says nothing.
const DefaultFanout = 32

// Launch says how the node of a site's head starts those of its other hosts.
type Launch struct {
	Engine  string            // LaunchSSH, ...
	Program string            `hcl:"program"` // impi-node there; empty: the path that it has here
	Fanout  int               `hcl:"fanout"`  // by ssh: how many hosts the head, and each of them, starts itself
	Options []string          `hcl:"options"` // added to the command line of ssh or srun
	MPI     string            `hcl:"mpi"`     // srun's --mpi; empty: none
	Command []string          `hcl:"command"` // of LaunchExec: runs the words that are added to it, on {host}
	Users   map[string]string // to log in as by ssh, for some hosts; in jobs that no file describes
	Pos     Pos
}

// knowsHosts reports whether the site may take its hosts from a scheduler.
func (l *Launch) knowsHosts() bool {
	return l != nil && (l.Engine == LaunchSlurm || l.Engine == LaunchPBS)
}

// launchAttributes are the attributes that only some engines have.
var launchAttributes = map[string][]string{
	"options": {LaunchSSH, LaunchSlurm, LaunchPBS},
	"fanout":  {LaunchSSH, LaunchPBS},
	"mpi":     {LaunchSlurm},
	"command": {LaunchExec},
}

// launch takes s's launch block.
func (s *siteDraft) launch() {
	in := s.block.only("launch")
	if in == nil {
		return
	}
	l := Launch{Engine: in.label, Fanout: DefaultFanout, Pos: in.pos}
	fill(&l, in)
	s.Launch = &l
	switch {
	case !slices.Contains(launchEngines, l.Engine):
		s.fault(in.pos, "there is no engine "+quote(l.Engine), meant(l.Engine, launchEngines))
		return
	case l.Engine == LaunchExec && !in.has("command"):
		s.fault(in.pos, "it does not say which command runs others on a host", `add command = ["kubectl", "exec", "-i", "{host}", "--"]`)
	}
	if l.Engine == LaunchExec && in.has("command") && !slices.ContainsFunc(l.Command, func(w string) bool { return strings.Contains(w, "{host}") || strings.Contains(w, "{name}") }) {
		s.warn(in.at("command"), "the command is the same for all hosts: nothing in it says on which one to run", `put {host}, the host's address, where it belongs: command = ["kubectl", "exec", "-i", "{host}", "--"]`)
	}
	for _, name := range in.spec.attrNames() {
		engines, some := launchAttributes[name]
		if some && in.has(name) && !slices.Contains(engines, l.Engine) {
			s.fault(in.at(name), in.title()+" takes no "+name, "remove it: it is for "+strings.Join(engines, ", "))
		}
	}
}

var blockLaunch = &blockSpec{name: "launch", label: `"ssh", "slurm", "pbs" or "exec"`, example: "ssh", attrs: []attrSpec{
	{name: "program", kind: text("the path of impi-node on the other hosts", "/usr/local/bin/impi-node")},
	{name: "options", kind: words(`["-p", "2222"]`)},
	{name: "fanout", kind: integer(1, 4096)},
	{name: "mpi", kind: text("a plugin that srun --mpi=list names", "none")},
	{name: "command", kind: words(`["kubectl", "exec", "-i", "{host}", "--"]`)},
}}
