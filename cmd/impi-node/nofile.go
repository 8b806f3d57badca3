package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/mpiexec"
)

// slowStart is how long procs may take to reach MPI_Init while somebody sits at a debugger.
const slowStart = 24 * time.Hour

func ofParts(o *options) (job *config.Job, err error) {
	parts, slow := []config.Part{{Procs: o.procs, Program: config.Program{Command: o.command}}}, false
	if o.programs != "" {
		if parts, slow, err = readParts(o.programs); err != nil {
			return nil, err
		}
	}
	if job, err = config.DefaultParts(parts, known()); err == nil && slow {
		job.Limits.Start = slowStart
	}
	if err != nil || o.on == "" {
		return job, err
	}
	m, err := readMachines(o.on)
	if err == nil {
		err = placeOn(m, job)
	}
	if err == nil {
		o.programs, err = everywhere(job)
	}
	return job, err
}

func decode(text string, v any) error {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

// readParts parses the value of -programs: a JSON list.
// slow reports whether a tool may hold up procs before MPI_Init.
func readParts(text string) (parts []config.Part, slow bool, err error) {
	var list []mpiexec.Program
	if err := decode(text, &list); err != nil {
		return nil, false, fmt.Errorf(`-programs: %w; it is a list like [{"procs": 2, "command": ["./prog"]}]`, err)
	}
	for _, p := range list {
		slow = slow || p.Slow
		parts = append(parts, config.Part{Procs: p.Procs, Program: config.Program{
			Command: p.Command, Env: p.Env, Dir: p.Dir, OutFile: p.Out, ErrFile: p.Err,
		}})
	}
	return parts, slow, nil
}

func readMachines(text string) (m mpiexec.Machines, err error) {
	if err := decode(text, &m); err != nil {
		return m, fmt.Errorf(`-on: %w; it is like {"engine": "ssh", "hosts": [{"name": "node1", "procs": 2}]}`, err)
	}
	engines := []string{config.LaunchSSH, config.LaunchSlurm, config.LaunchPBS}
	if !slices.Contains(engines, m.Engine) {
		return m, fmt.Errorf("-on: there is no engine %q; it can be %s", m.Engine, strings.Join(engines, ", "))
	}
	if len(m.Hosts) == 0 {
		return m, fmt.Errorf("-on: the list has no hosts")
	}
	for i, h := range m.Hosts {
		if h.Name == "" || h.Procs < 1 {
			return m, fmt.Errorf("-on: host %d of %d: name %q, %d procs", i+1, len(m.Hosts), h.Name, h.Procs)
		}
	}
	return m, nil
}

// placeOn places a job without a file on the machines of -on. Those whose addresses are not known
// yet keep their names.
func placeOn(m mpiexec.Machines, job *config.Job) error {
	l := config.Launch{Engine: m.Engine, Fanout: config.DefaultFanout, Users: map[string]string{}}
	var hosts []config.Host
	for _, x := range m.Hosts {
		at := cmp.Or(x.Address, x.Name)
		h := config.Host{Procs: x.Procs}
		var err error
		if h.Address, err = netip.ParseAddr(at); err != nil {
			h.Name = at
		} else if m.Engine == config.LaunchSlurm && x.Address != "" {
			h.Name = x.Name // as in a job with a file; Slurm identifies the node by this name
		}
		if x.User != "" {
			l.Users[h.String()] = x.User
		}
		hosts = append(hosts, h)
	}
	return job.On(hosts, l)
}

// resolve sets the addresses of the hosts of a job on machines, and returns what keeps it from
// starting.
func resolve(job *config.Job, addresses map[string]netip.Addr, isLocal func(netip.Addr) bool) error {
	s := &job.Sites[0]
	var loopback []string
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if !h.Address.IsValid() {
			h.Address = addresses[h.Name]
		}
		if h.Address.IsLoopback() {
			loopback = append(loopback, h.String())
		}
	}
	s.Server.Address = netip.AddrPortFrom(s.Hosts[0].Address, 0)
	switch {
	case len(loopback) > 0 && len(s.HostsHere(isLocal)) < len(s.Hosts):
		return fmt.Errorf("the other machines cannot reach %s, which has an address of the loopback network: write the name or address that they know", strings.Join(loopback, ", "))
	case s.Launch.Engine != config.LaunchSlurm && !isLocal(s.Hosts[0].Address):
		return fmt.Errorf("the first machine of the list, %s, is not this one: start the command there, as by ssh, or begin the list with this machine", s.Hosts[0])
	}
	return nil
}

// everywhere returns the programs of a job with absolute paths, as they are on all of its machines.
func everywhere(job *config.Job) (string, error) {
	s := &job.Sites[0]
	var list []mpiexec.Program
	for i := range s.Parts {
		p := &s.Parts[i].Program
		p.Command[0] = p.Path
		list = append(list, mpiexec.Program{Procs: s.Parts[i].Procs, Command: p.Command, Env: p.Env, Dir: p.Dir, Out: p.OutFile, Err: p.ErrFile, Slow: job.Limits.Start == slowStart})
	}
	s.Program.Command = s.Parts[0].Program.Command
	text, err := json.Marshal(list)
	return string(text), err
}

func folder(o *options) (string, error) {
	if o.on == "" {
		return "", nil
	}
	return os.Getwd()
}
