package config

import (
	"path/filepath"
	"regexp"
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

// DefaultFanout is Launch.Fanout if the file does not set it.
const DefaultFanout = 32

// Launch configures how the node of a site's head starts the nodes of its other hosts.
type Launch struct {
	Engine  string            // LaunchSSH, ...
	Program string            `hcl:"program"` // path of impi-node on the hosts; empty: its path on this machine
	Fanout  int               `hcl:"fanout"`  // by ssh: maximum number of hosts that each node starts directly
	Options []string          `hcl:"options"` // added to the command line of ssh or srun
	MPI     string            `hcl:"mpi"`     // srun's --mpi; empty: none
	Command []string          `hcl:"command"` // for LaunchExec: runs the words appended to it, on {host}
	Users   map[string]string // login names for ssh, for some hosts; only in jobs without a file
	Pos     Pos
}

func (l *Launch) knowsHosts() bool {
	return l != nil && (l.Engine == LaunchSlurm || l.Engine == LaunchPBS)
}

// launchAttributes maps the attributes that only some engines have to those engines.
var launchAttributes = map[string][]string{
	"options": {LaunchSSH, LaunchSlurm, LaunchPBS},
	"fanout":  {LaunchSSH, LaunchPBS},
	"mpi":     {LaunchSlurm},
	"command": {LaunchExec},
}

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
	if l.Engine == LaunchExec && in.has("command") {
		s.launchCommand(in, l.Command)
	}
	for _, name := range in.spec.attrNames() {
		engines, some := launchAttributes[name]
		if some && in.has(name) && !slices.Contains(engines, l.Engine) {
			s.fault(in.at(name), in.title()+" takes no "+name, "remove it: it is for "+strings.Join(engines, ", "))
		}
	}
}

func (s *siteDraft) launchCommand(in *block, command []string) {
	if !slices.ContainsFunc(command, func(w string) bool { return strings.Contains(w, "{host}") || strings.Contains(w, "{name}") }) {
		s.warn(in.at("command"), "the command is the same for all hosts: nothing in it says on which one to run", `put {host}, the host's address, where it belongs: command = ["kubectl", "exec", "-i", "{host}", "--"]`)
	}
	if tool := deafTool(command); tool != "" {
		s.fault(in.at("command"), tool+" exec does not pass its standard input on without -i, and by that the node there is told what to run", `write -i behind exec: "exec", "-i"`)
	}
}

// deafTool returns the tool whose exec a command uses without the option that passes standard input
// on, or "".
func deafTool(command []string) string {
	i := slices.IndexFunc(command, func(w string) bool {
		return slices.Contains([]string{"kubectl", "oc", "docker", "podman"}, filepath.Base(w))
	})
	if i < 0 {
		return ""
	}
	words := command[i:]
	if end := slices.Index(words, "--"); end >= 0 {
		words = words[:end] // the words after -- are run on the host
	}
	if !slices.Contains(words, "exec") || slices.ContainsFunc(words, passesInput) {
		return ""
	}
	return filepath.Base(words[0])
}

// passesInput reports whether a word is the option -i of these tools, alone or among others that
// take no value, or its long form.
func passesInput(word string) bool {
	switch name, value, _ := strings.Cut(word, "="); name {
	case "--stdin", "--interactive":
		return value != "false"
	}
	letters, ok := strings.CutPrefix(word, "-")
	return ok && strings.HasPrefix(strings.TrimLeft(letters, "tqd"), "i")
}

var blockLaunch = &blockSpec{name: "launch", label: `"ssh", "slurm", "pbs" or "exec"`, example: "ssh", attrs: []attrSpec{
	{name: "program", kind: text("the path of impi-node on the other hosts", "/usr/local/bin/impi-node")},
	{name: "options", kind: words(`["-p", "2222"]`)},
	{name: "fanout", kind: integer(1, 4096)},
	{name: "mpi", kind: text("a plugin that srun --mpi=list names", "none")},
	{name: "command", kind: words(`["kubectl", "exec", "-i", "{host}", "--"]`)},
}}

// Native is set for a site whose procs use the MPI library of its machines among each other, and
// are started by the launcher of that library.
type Native struct {
	MPICC  string   `hcl:"mpicc"`  // that library's compiler, as written; programs in its folder are preferred to those in PATH
	Launch []string `hcl:"launch"` // the words before the program; nil: chosen for that library
	Shim   string   `hcl:"shim"`   // absolute path of a ready shim; empty: it is built with the compiler
	Pos    Pos
}

// NativeName stands for a site's own MPI among the transports of a route.
const NativeName = "native"

// Placeholders in Native.Launch.
const (
	NativeProcs       = "{procs}"       // number of procs of the site
	NativeHostfile    = "{hostfile}"    // file with a line "address slots=N" for each host, for Open MPI
	NativeMachinefile = "{machinefile}" // file with a line "address:N" for each host, for Hydra
)

var nativePlaceholders = []string{NativeProcs, NativeHostfile, NativeMachinefile}

// placeholder matches what looks like a placeholder, such as {procs}.
var placeholder = regexp.MustCompile(`\{[a-z_]*\}`)

var blockNative = &blockSpec{name: NativeName, attrs: []attrSpec{
	{name: "mpicc", kind: text("the compiler of the site's own MPI", "mpicc")},
	{name: "launch", kind: words(`["mpirun", "-n", "{procs}"]`)},
	{name: "shim", kind: text("a file that impi-node native build has made", "shim.so")},
}}

// native takes s's native block. Its program and routes must have been set.
func (s *siteDraft) native() {
	in := s.block.only(NativeName)
	if in == nil {
		return
	}
	n := Native{MPICC: "mpicc", Pos: in.pos}
	fill(&n, in)
	if n.Shim != "" {
		n.Shim = absolute(s.dir, n.Shim)
	}
	s.Native = &n
	for i, w := range n.Launch {
		for _, p := range placeholder.FindAllString(w, -1) {
			if !slices.Contains(nativePlaceholders, p) {
				s.fault(elementOf("launch", i, in), quote(p)+" is not a placeholder", meant(p, nativePlaceholders))
			}
		}
	}
	if in.has("shim") && n.Launch == nil && len(s.Hosts) > 1 {
		s.fault(in.at("shim"), "the shim does not say which MPI it is for, so impi-node does not know how to start procs on several hosts",
			`add launch = ["mpirun", "-n", "{procs}", "--hostfile", "{hostfile}"], or remove shim`)
	}
	s.checkNative()
	if s.here() {
		s.findNative(in)
	}
}

func (s *siteDraft) checkNative() {
	own, shared := s.layers("program")
	if s.Program.Bind == BindCore {
		s.warn(placeOf("bind", own, shared), "the procs of site "+quote(s.Name)+" are not bound to cores by this: its own MPI starts them",
			"add its launcher's option to launch, such as --bind-to core")
	}
	if spawns := s.block.only("spawn"); spawns != nil && s.Spawn.Slots > 0 {
		s.fault(spawns.pos, "nothing can be spawned at site "+quote(s.Name)+", as the launcher of its own MPI cannot add procs", "remove the block, or native")
	}
	for _, h := range s.Hosts {
		if h.Auto && s.guessed {
			s.fault(h.Pos, `procs = "auto" is not enough for the launcher of the site's own MPI outside of a scheduler's job`, "write how many procs "+h.String()+" has: procs = 4")
			break
		}
	}
	if r := s.RouteTo(s.Name); r.Native && r.RequireTLS {
		s.fault(r.Pos, "the site's own MPI carries messages inside of site "+quote(s.Name)+", and whether it encrypts them is not known here",
			"add route "+quote(s.Name)+` { require_tls = false } to the site, or prefer there with transports that encrypt, without "native"`)
	}
}

func (s *siteDraft) findNative(in *block) {
	n := s.Native
	if n.Shim != "" {
		if problem, _ := readableFault(n.Shim, s.shown(pick("", "shim", in))); problem != "" {
			s.fault(in.at("shim"), problem, "impi-node native build -o FILE makes one")
		}
		return
	}
	if _, problem, _ := findCommand(s.dir, n.MPICC, s.shown(n.MPICC)); problem != "" {
		pos := in.pos
		if in.has("mpicc") {
			pos = in.at("mpicc")
		}
		s.fault(pos, "the compiler of the site's own MPI is not there: "+problem, `load its module before impi-node is started, or write mpicc = "/path/to/mpicc"`)
	}
}

// Compiler returns the compiler's path, absolute if it is on this machine.
func (n *Native) Compiler(dir string) string {
	if path, problem, _ := findCommand(dir, n.MPICC, n.MPICC); problem == "" {
		return path
	}
	return n.MPICC
}

// Beside returns the path of a program of the compiler's MPI, such as mpirun: beside
// /opt/bin/mpicc.openmpi that is /opt/bin/mpirun.openmpi or /opt/bin/mpirun. A name with a slash,
// or of a program that is not there, stays as it is.
func (n *Native) Beside(dir, name string) string {
	compiler := n.Compiler(dir)
	if strings.Contains(name, "/") || !filepath.IsAbs(compiler) {
		return name
	}
	folder, suffix := filepath.Dir(compiler), strings.TrimPrefix(filepath.Base(compiler), "mpicc")
	if suffix == filepath.Base(compiler) {
		suffix = ""
	}
	for _, suffix := range []string{suffix, ""} {
		path := filepath.Join(folder, name+suffix)
		if problem, _ := executableFault(path, path); problem == "" {
			return path
		}
	}
	return name
}
