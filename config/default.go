package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

// The defaults of attributes that the file does not set.
const (
	DefaultStart = 60 * time.Second // Limits.Start
	DefaultStop  = 10 * time.Second // Limits.Stop

	DefaultResume = 30 * time.Second // Limits.Resume

	DefaultSilence = 10 * time.Second // Limits.Silence

	DefaultDataLen = 262144
	DefaultAckMark = 32
	DefaultHiWater = 128
	DefaultTagUB   = 1<<31 - 1

	DefaultUnexpected = 64 << 20 // Protocol.Unexpected
)

func defaultProtocol() Protocol {
	return Protocol{
		DataLen:     DefaultDataLen,
		Collectives: "auto",
		AckMark:     DefaultAckMark,
		HiWater:     DefaultHiWater,
		TagUB:       DefaultTagUB,
		Unexpected:  DefaultUnexpected,
		XSize:       -1, MaxLinear: -1,
		Dialect: Published, IPv4: IPv4Compatible,
	}
}

func defaultLimits() Limits {
	return Limits{Start: DefaultStart, Stop: DefaultStop, Resume: DefaultResume, Silence: DefaultSilence}
}

func defaultCompress() *Compress { return &Compress{Algorithm: Zstd, Level: 1, Min: 4 << 10} }

func defaultLog() Log { return Log{Level: "info", Format: "text"} }

// Default returns the job of a command line without a file: one site called "local" on 127.0.0.1,
// with procs procs that run command, the server embedded, a random key and the built-in transports.
// A command that cannot be found has an empty Program.Path.
func Default(procs int, command []string, builtins []Builtin) *Job {
	dir, err := os.Getwd()
	if err != nil {
		dir = "." // the folder was removed; exec will report it
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	path, _, _ := findCommand(dir, command[0], command[0])
	site := Site{
		Name: "local",
		Server: Server{
			Embedded: true,
			Address:  netip.AddrPortFrom(loopback, 0),
			Clients:  1,
			Timeout:  DefaultStart,
		},
		Auth:     Auth{Random: true},
		Hosts:    []Host{{Address: loopback, Procs: procs}},
		Program:  Program{Command: command, Path: path, Dir: dir, PrefixOutput: true},
		Protocol: defaultProtocol(),
		Labels:   Labels{Versions: []Version{{}, OwnVersion}},
		Wait:     Wait{Auto: true},
		Log:      defaultLog(),
		Spawn:    Spawn{Slots: DefaultSlots},
	}
	for _, x := range builtins {
		if !x.NeedsBlock {
			site.Transports = append(site.Transports, Transport{Name: x.Name, Builtin: true, Known: x})
		}
	}
	return &Job{Dir: dir, Sites: []Site{site}, Complete: true, Limits: defaultLimits(), Builtins: builtins}
}

// findCommand returns the absolute path of a command whose relative form starts
// from dir, or what is wrong with it; shown is how messages call it.
func findCommand(dir, command, shown string) (path, problem, remedy string) {
	if !strings.Contains(command, "/") {
		path, err := exec.LookPath(command)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return "", "no program " + quote(command) + " is in PATH",
				"write a path with a slash, like " + quote("./"+command) + ", or install it"
		}
		return path, "", ""
	}
	path = absolute(dir, command)
	problem, remedy = executableFault(path, shown)
	if problem != "" {
		return "", problem, remedy
	}
	return path, "", ""
}

// executableFault says why the file at path cannot be run; shown is how the
// messages call it.
func executableFault(path, shown string) (problem, remedy string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "there is no program " + quote(shown), "build it, or correct the path"
	case info.IsDir():
		return quote(shown) + " is a folder", "name the program in it"
	case info.Mode()&0o111 == 0:
		return quote(shown) + " is not executable", "chmod +x " + shown
	}
	return "", ""
}

func readableFault(path, shown string) (problem, remedy string) {
	f, err := plainfile.Open(path)
	if err != nil {
		return "cannot read " + quote(shown) + ": " + reason(err), "correct the path"
	}
	_ = f.Close()
	return "", ""
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// inPattern is a path of a folder as it is in a path in which % has a meaning.
func inPattern(dir string) string { return strings.ReplaceAll(dir, "%", "%%") }

// TraceFile returns the path of a rank's trace: in a pattern %r stands for the rank, %p for the ID
// of this process, the node, and %% for %.
func TraceFile(pattern string, rank int) string {
	return strings.NewReplacer("%r", strconv.Itoa(rank), "%p", strconv.Itoa(os.Getpid()), "%%", "%").Replace(pattern)
}

// ofEachRank reports whether each rank has a trace of its own by a pattern.
func ofEachRank(pattern string) bool {
	return strings.Contains(strings.ReplaceAll(pattern, "%%", ""), "%r")
}

// RouteTo returns the route that leads from s to the site called name: the one with that name, or
// the one for "*", or the default, which prefers the transports in the order of s.Transports and
// allows direct links. name may be the site itself, which is handled like any other.
func (s Site) RouteTo(name string) Route {
	for _, want := range []string{name, "*"} {
		i := slices.IndexFunc(s.Routes, func(r Route) bool { return r.Site == want })
		if i >= 0 {
			return s.inside(name, s.Routes[i])
		}
	}
	r := s.defaultRoute()
	r.Closed = s.closes(r)
	return s.inside(name, r)
}

// inside makes the route of a site to itself prefer the site's own MPI, if it has one, unless the
// file has a block for that route.
func (s Site) inside(name string, r Route) Route {
	if s.Native != nil && name == s.Name && r.Site != name {
		s.preferNative(&r)
	}
	return r
}

// preferNative gives the site's own MPI its usual place in a route: after transports of shared
// memory, which are faster within a machine, and before all others.
func (s Site) preferNative(r *Route) {
	memory := func(name string) int {
		if t, _ := s.Transport(name); t.Known.Memory {
			return 0
		}
		return 1
	}
	r.Prefer = slices.Clone(r.Prefer)
	slices.SortStableFunc(r.Prefer, func(a, b string) int { return memory(a) - memory(b) })
	r.Native, r.NativeUsual = true, true
	for r.NativeAt = 0; r.NativeAt < len(r.Prefer) && memory(r.Prefer[r.NativeAt]) == 0; {
		r.NativeAt++
	}
}

// defaultRoute returns the route of a route block without attributes.
func (s Site) defaultRoute() Route {
	return Route{Site: "*", Prefer: s.usualTransports(), Direct: true}
}

// usualTransports returns the transports that a route without prefer prefers: all, except built-in
// ones without a block that only link procs which shared memory links already. A preferred
// transport costs a process.
func (s Site) usualTransports() []string {
	shared := slices.ContainsFunc(s.Transports, func(t Transport) bool { return t.Known.Memory })
	var names []string
	for _, t := range s.Transports {
		if !shared || !t.Known.Machine || t.Known.Memory || t.Pos != (Pos{}) {
			names = append(names, t.Name)
		}
	}
	return names
}

// Said is what a flag or a variable says of a job without a file. An empty value says nothing.
type Said struct {
	Value string
	By    string // the flag or the variable, which errors and warnings name
}

// Records are what a job without a file is told about the ports that it listens at, about metrics
// and traces, and about files that it leaves.
type Records struct {
	Ports   Said // a range, as ports of a job file
	Metrics Said // address with a port, as listen of a metrics block
	Report  Said // absolute path, as that of a report block
	Calls   Said // absolute path, as calls of a trace block
	OTLP    Said // URL, as otlp of a trace block
}

// Record makes a job without a file listen within ports, serve metrics, send traces and leave
// files. What is at the files' places is for CheckRecords, at the machines that write them.
func (j *Job) Record(r Records) error {
	s := &j.Sites[0]
	if in := r.Ports; in.Value != "" {
		ports, ok := ParsePorts(in.Value)
		if !ok {
			return fmt.Errorf("%s %.40q is no range of ports: write two numbers from 1 to 65535, such as 7800-7899", in.By, in.Value)
		}
		s.Ports, s.Ports.Pos = ports, Pos{File: in.By}
	}
	if at := r.Metrics; at.Value != "" {
		listen, ok := parseMetricsAt(at.Value)
		if !ok {
			return fmt.Errorf(`%s %q is no IP address with a port: write 127.0.0.1:9464, or 0.0.0.0:9464 for all addresses of the machine`, at.By, at.Value)
		}
		if s.Ports.Has(listen.Port()) {
			return fmt.Errorf("%s %q has a port of %s %v, which something else may have taken by then: write another one, or port 0 for one of the range", at.By, at.Value, s.Ports.Pos, s.Ports)
		}
		s.Metrics.Listen, s.Metrics.Pos = listen, Pos{File: at.By}
	}
	if to := r.Report; to.Value != "" {
		if problem, remedy := reportFault(to.Value); problem != "" {
			return fmt.Errorf("%s %q: %s: %s", to.By, to.Value, problem, remedy)
		}
		j.Report = Report{Path: to.Value, Pos: Pos{File: to.By}}
	}
	if to := r.OTLP; to.Value != "" && !isCollector(to.Value) {
		return fmt.Errorf("%s %q is no URL of a collector: write one such as http://127.0.0.1:4318, and put what it asks for into OTEL_EXPORTER_OTLP_HEADERS", to.By, to.Value)
	}
	s.Trace.OTLP, s.Trace.Calls, j.calls = r.OTLP.Value, r.Calls.Value, r.Calls
	return nil
}

// CheckRecords examines on this machine the places of the files that Record has named: those of
// calls, which each host of the site writes, and where its head is, that of the report.
func (j *Job) CheckRecords(head bool) error {
	s := &j.Sites[0]
	if r := &j.Report; head && r.Path != "" {
		if err := saidFile(Said{r.Path, r.Pos.File}, r.Name(j.Name(), s.Name, 1)); err != nil {
			return err
		}
	}
	calls := j.calls
	if calls.Value == "" {
		return nil
	}
	if err := saidFile(calls, TraceFile(calls.Value, 0)); err != nil {
		return err
	}
	if s.Procs() > 1 && !ofEachRank(calls.Value) {
		return fmt.Errorf("%s %q: several procs would write their calls to one file: put %%r, the rank, into the name, as in calls-%%r.json", calls.By, TraceFile(calls.Value, 0))
	}
	return nil
}

// saidFile says what is wrong with the place of a file.
func saidFile(said Said, path string) error {
	if err := NotRegular(path); err != nil {
		return fmt.Errorf("%s: %w: write the name of a file that is not there yet, or of a regular one", said.By, err)
	}
	if problem := folderFault(path, said.Value); problem != "" {
		return fmt.Errorf("%s: %s: make it, or write another path", said.By, problem)
	}
	return nil
}

// reportFault says what is wrong with the path of a report; the problem is empty if nothing is.
func reportFault(path string) (problem, remedy string) {
	rest := strings.NewReplacer("%j", "", "%s", "", "%p", "", "%%", "").Replace(path)
	if i := strings.IndexByte(rest, '%'); i >= 0 {
		return quote(rest[i:min(len(rest), i+2)]) + " means nothing in a path", "there are %j for the job's name, %s for the site's, %p for the process ID and %% for %, as in job-%j.html"
	}
	if strings.HasSuffix(path, "/") {
		return "it is a folder", "write a file's name, as " + path + "job-%j.html"
	}
	return "", ""
}

// folderFault says what is wrong with the folder of a file, of which pattern is the name with %. A
// folder that cannot be examined may belong to another user, and one that depends on the rank or
// the job may come.
func folderFault(path, pattern string) (problem string) {
	dir := filepath.Dir(path)
	if strings.Contains(strings.ReplaceAll(filepath.Dir(pattern), "%%", ""), "%") {
		return ""
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no folder " + quote(dir) + " for this file"
	case err == nil && !info.IsDir():
		return quote(dir) + " is not a folder"
	}
	return ""
}
