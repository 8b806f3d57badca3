package peers

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/template"
	"time"

	"github.com/openimpi/impi/internal/netns"
)

// Site is one client of a job.
type Site struct {
	LAM    bool // run by LAM/MPI; else by us
	Procs  int
	Native string // settings of an own site for an MPI of its own; {site} is its name; empty: none

	// Machines are where the site runs, one for LAM or one for each of our hosts; nil: this one.
	// All sites of a job have machines, or none has. The server is on the first machine of the
	// first site.
	Machines []*netns.Machine
}

// Job is one job with own sites and LAM sites at our server. Each host has an address of its own,
// because LAM identifies the hosts that connect to it by their addresses only.
type Job struct {
	Install *Install
	Bin     string // our programs: impi-node and impi-server
	Dir     string // private to write, readable for all
	Sites   []Site // by client rank
	Ours    []string
	LAMs    []string // the programs and their arguments
	Key     uint64   // by which clients prove themselves; 0: none
	DataLen int      // of own sites; 0: the default
	Habits  string   // HCL for the LAM sites; empty: implementation = "lam-7.1"
	First   string   // address of a server before the job's in the list of own sites; empty: none
	Trace   string   // file for the packets of our procs, with %r; empty: none
}

// The parties of a running job.
const (
	Server = "server"
	Node   = "node" // all sites of ours
)

// Client returns the name of a LAM site as a party.
func Client(rank int) string { return fmt.Sprintf("client %d", rank) }

// Ended is how a party ended.
type Ended struct {
	Err  error  // nil: with status 0
	Text string // its output
}

// Running is a job under way.
type Running struct {
	job       *Job
	server    *exec.Cmd
	nodes     []*exec.Cmd // one for all own sites, or for each machine
	universes map[int]*Universe
	outputs   map[string]*Output
	mu        sync.Mutex
	ended     map[string]Ended
	wg        sync.WaitGroup
}

var jobFile = template.Must(template.New("job").Parse(`job {
{{if .First}}  servers = ["{{.First}}", "{{.Server}}"]
{{else}}  server = "{{.Server}}"
{{end}}{{if .Key}}  auth "key" { file = "job.key" }
{{else}}  auth "none" {}
{{end}}}
limits { start = "60s" }
program { command = [{{range .Ours}}{{printf "%q" .}}, {{end}}] }
{{if .DataLen}}protocol { datalen = {{.DataLen}} }
{{end}}{{if .Trace}}log { trace = "{{.Trace}}" }
{{end}}{{range $i, $s := .Sites}}{{if $s.LAM}}site "lam{{$i}}" {
  client  = {{$i}}
  foreign = true
{{if not $s.Machines}}  channels_from = ["127.0.0.1"]
{{end}}  {{$.Habits}}
}
{{else}}site "ours{{$i}}" {
  client = {{$i}}
{{range $.Hosts $i}}  host { address = "{{.Address}}"  procs = {{.Procs}} }
{{end}}  {{$s.Inside (printf "ours%d" $i)}}
}
{{end}}{{end}}`))

// Address returns the address of a site's host. LAM dials without choosing a source
// address, which makes it 127.0.0.1. So a LAM site that dials another LAM site, which
// identifies it by that address, has to advertise 127.0.0.1. A machine can have only one
// such site.
func (j *Job) Address(client int) netip.Addr {
	if m := j.Sites[client].Machines; len(m) > 0 {
		return netip.MustParseAddr(m[0].Address)
	}
	isLAM := func(s Site) bool { return s.LAM }
	if j.Sites[client].LAM && slices.ContainsFunc(j.Sites[:client], isLAM) {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, byte(10 + client)})
}

// Host is a host of an own site.
type Host struct {
	Address string
	Procs   int
}

// Hosts returns the hosts of an own site.
func (j *Job) Hosts(client int) (hosts []Host) {
	s := j.Sites[client]
	if s.Machines == nil {
		return []Host{{j.Address(client).String(), s.Procs}}
	}
	for i, m := range s.Machines {
		hosts = append(hosts, Host{m.Address, (s.Procs + len(s.Machines) - 1 - i) / len(s.Machines)})
	}
	return hosts
}

// on returns a function that makes commands for the machine of that number, or for this one if the
// site has none.
func (s Site) on(machine int) func(ctx context.Context, name string, args ...string) *exec.Cmd {
	if s.Machines == nil {
		return exec.CommandContext
	}
	return s.Machines[machine].Command
}

// Inside returns the settings of an own site for its own MPI.
func (s Site) Inside(name string) string { return strings.ReplaceAll(s.Native, "{site}", name) }

// Start starts the server, the universes and all sites.
func (j *Job) Start(ctx context.Context) (*Running, error) {
	r := &Running{job: j, universes: map[int]*Universe{}, outputs: map[string]*Output{}, ended: map[string]Ended{}}
	env := "IMPI_AUTH_NONE=1"
	if j.Key != 0 {
		env = "IMPI_AUTH_KEY=" + strconv.FormatUint(j.Key, 10)
	}
	at, err := r.serve(ctx, env)
	if err != nil {
		return nil, err
	}
	for i, s := range j.Sites {
		if !s.LAM {
			continue
		}
		if r.universes[i], err = j.Install.Boot(ctx, s.on(0), filepath.Join(j.Dir, fmt.Sprintf("lam%d", i)), j.Address(i), env); err != nil {
			r.KillAll()
			return nil, err
		}
	}
	if err := r.startNodes(ctx, at); err != nil {
		r.KillAll()
		return nil, err
	}
	for i, s := range r.universes {
		out := r.output(Client(i))
		r.wg.Go(func() { r.note(Client(i), out, s.Run(ctx, out, i, at, j.Sites[i].Procs, j.LAMs...)) })
	}
	return r, nil
}

func (r *Running) serve(ctx context.Context, env string) (netip.AddrPort, error) {
	host, first := "127.0.0.1", r.job.Sites[0]
	if first.Machines != nil {
		host = first.Machines[0].Address
	}
	r.server = first.on(0)(ctx, filepath.Join(r.job.Bin, "impi-server"), "-host", host, "-clients", strconv.Itoa(len(r.job.Sites)))
	r.server.Env = append(os.Environ(), env)
	out := r.output(Server)
	r.server.Stderr = out
	pipe, err := r.server.StdoutPipe()
	if err == nil {
		err = r.server.Start()
	}
	if err != nil {
		return netip.AddrPort{}, err
	}
	line, _ := bufio.NewReader(pipe).ReadString('\n')
	at, err := netip.ParseAddrPort(strings.TrimSpace(line))
	if err != nil {
		_ = r.server.Process.Kill()
		return at, errors.Join(err, r.server.Wait())
	}
	r.wg.Go(func() { r.note(Server, out, r.server.Wait()) })
	return at, nil
}

func (r *Running) startNodes(ctx context.Context, at netip.AddrPort) error {
	j := *r.job
	j.Habits = cmp.Or(j.Habits, `implementation = "lam-7.1"`)
	var text bytes.Buffer
	if err := jobFile.Execute(&text, struct {
		*Job
		Server netip.AddrPort
	}{&j, at}); err != nil {
		return err
	}
	file := filepath.Join(j.Dir, "job.hcl")
	key := []byte(strconv.FormatUint(j.Key, 10))
	if err := errors.Join(os.WriteFile(file, text.Bytes(), 0o600), os.WriteFile(filepath.Join(j.Dir, "job.key"), key, 0o600)); err != nil {
		return err
	}
	node, out := filepath.Join(j.Bin, "impi-node"), r.output(Node)
	var all []*exec.Cmd
	for _, s := range j.Sites {
		for i := range s.Machines {
			if !s.LAM {
				all = append(all, s.on(i)(ctx, node, "-config", file))
			}
		}
	}
	if all == nil {
		all = []*exec.Cmd{exec.CommandContext(ctx, node, "-config", file)}
	}
	for _, c := range all {
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
		c.WaitDelay = 20 * time.Second
		c.Stdout, c.Stderr = out, out
		if err := c.Start(); err != nil {
			return err
		}
		r.nodes = append(r.nodes, c)
		r.wg.Go(func() { r.note(Node, out, c.Wait()) })
	}
	return nil
}

func (r *Running) output(party string) *Output {
	o := &Output{}
	r.outputs[party] = o
	return o
}

func (r *Running) note(party string, out *Output, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[party] = Ended{Err: errors.Join(r.ended[party].Err, err), Text: out.String()} // output of all nodes
}

// Output returns the output of a party, while it runs.
func (r *Running) Output(party string) *Output { return r.outputs[party] }

// Universe returns the universe of a LAM site.
func (r *Running) Universe(client int) *Universe { return r.universes[client] }

// KillOurs kills the nodes of own sites.
func (r *Running) KillOurs() (err error) {
	for _, c := range r.nodes {
		err = errors.Join(err, syscall.Kill(-c.Process.Pid, syscall.SIGKILL))
	}
	return err
}

// KillAll ends everything that runs.
func (r *Running) KillAll() {
	_ = r.server.Process.Kill()
	_ = r.KillOurs()
	for _, s := range r.universes {
		_ = s.Kill()
	}
}

// Wait waits for all parties and halts the universes. It returns how each party ended, and
// the LAM processes that were left over.
func (r *Running) Wait(ctx context.Context) (ended map[string]Ended, left []string, err error) {
	r.wg.Wait()
	for _, s := range r.universes {
		more, failed := s.Halt(ctx)
		left, err = append(left, more...), errors.Join(err, failed)
	}
	return r.ended, left, err
}
