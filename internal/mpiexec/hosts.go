package mpiexec

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/hostlist"
	"github.com/openimpi/impi/internal/launch/engine"
	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

// Host is a machine that the programs run on.
type Host struct {
	Name    string `json:"name"`              // by which the engine knows it
	Address string `json:"address,omitempty"` // of IP or DNS; empty: Name
	User    string `json:"user,omitempty"`    // to log in as; empty: the engine's default
	Procs   int    `json:"procs"`
}

// The engines by which machines are reached, as a job file's launch block names them.
const (
	BySSH   = "ssh"
	BySlurm = "slurm"
	ByPBS   = "pbs"
	ByFork  = "fork" // on this machine only
)

// list is a list of machines that some of the programs run on: those from first on, up to the next
// list.
type list struct {
	first    int
	machines []engine.Machine
}

func (p *parser) hostFile(name string) error {
	text, err := p.machine.Read(name)
	if err != nil {
		return err
	}
	machines, err := engine.ParseHostFile(name, strings.NewReader(text))
	if err != nil {
		return err
	}
	return p.on(machines)
}

func (p *parser) on(machines []engine.Machine) error {
	program := len(p.run.Programs)
	if n := len(p.lists); n > 0 && p.lists[n-1].first == program {
		return errors.New("the program's machines are named twice: leave one of the lists out")
	}
	p.lists = append(p.lists, list{program, machines})
	return nil
}

func (p *parser) place() error {
	scheduler, machines, err := p.allocation()
	if err != nil {
		return fmt.Errorf("%w; -launcher fork runs the procs on this machine alone", err)
	}
	if len(p.lists) == 0 && scheduler != "" {
		p.lists = []list{{0, machines}}
	}
	if p.launcher == BySSH {
		scheduler = "" // it has only named the machines
	}
	if scheduler != "" {
		if err := p.within(machines); err != nil {
			return err
		}
	}
	if len(p.lists) == 0 {
		p.count(nil)
		return nil
	}
	p.lists[0].first = 0 // the first list is also for programs before it
	local := true
	for i, l := range p.lists {
		end := len(p.run.Programs)
		if i+1 < len(p.lists) {
			end = p.lists[i+1].first
		}
		programs := p.run.Programs[l.first:end]
		slots := p.slots(l.machines)
		p.count(slots, programs...)
		procs := 0
		for _, x := range programs {
			procs += x.Procs
		}
		for k, n := range deal(procs, slots) {
			m := l.machines[k]
			local = local && p.machine.Local(m.Name)
			p.run.put(Host{Name: m.Name, Address: m.Address, User: m.User, Procs: n})
		}
	}
	return p.reach(scheduler, local)
}

func (p *parser) within(job []engine.Machine) error {
	for _, l := range p.lists {
		for i := range l.machines {
			m := &l.machines[i]
			k := slices.IndexFunc(job, func(x engine.Machine) bool { return x.Name == m.Name || x.Address == m.Name })
			if k < 0 {
				var names []string
				for _, x := range job {
					names = append(names, x.Name)
				}
				return fmt.Errorf("%s is not one of the machines that the scheduler gave to this job: %s", m.Name, hostlist.Compress(names))
			}
			m.Name, m.Address = job[k].Name, job[k].Address
		}
	}
	return nil
}

func (p *parser) allocation() (scheduler string, machines []engine.Machine, err error) {
	if p.launcher == ByFork || p.launcher == BySSH && len(p.lists) > 0 {
		return "", nil, nil
	}
	if p.machine.Allocation != nil {
		scheduler, machines, err = p.machine.Allocation()
	}
	if err == nil && p.launcher != "" && p.launcher != BySSH && p.launcher != scheduler {
		err = fmt.Errorf("-launcher %s: this is not inside of a job of it", p.launcher)
	}
	return scheduler, machines, err
}

// count sets the number of procs of programs that do not say it: a single program has all the slots
// of its machines.
func (p *parser) count(slots []int, programs ...Program) {
	all := 0
	for _, n := range slots {
		all += n
	}
	if slots == nil {
		programs = p.run.Programs
	}
	for i := range programs {
		switch x := &programs[i]; {
		case x.Procs > 0:
		case len(programs) == 1 && all > 0:
			x.Procs = all
		default:
			x.Procs = max(p.perHost, 1)
		}
	}
}

func (p *parser) slots(machines []engine.Machine) []int {
	slots := make([]int, len(machines))
	for i, m := range machines {
		slots[i] = max(m.Tasks, 1)
		if p.perHost > 0 {
			slots[i] = p.perHost
		}
	}
	return slots
}

// deal distributes procs over machines in their order, to each as many as it has slots. When all
// are full, each gets as many again; its procs are numbered in a row. Machines after the last one
// that gets any are left out.
func deal(procs int, slots []int) (each []int) {
	all := 0
	for _, n := range slots {
		all += n
	}
	rounds, rest := procs/all, procs%all
	for _, n := range slots {
		last := min(n, rest)
		rest -= last
		if rounds*n+last == 0 {
			break
		}
		each = append(each, rounds*n+last)
	}
	return each
}

// put adds procs on a machine. Procs that follow others on the same machine belong to the same
// node.
func (r *Run) put(h Host) {
	if n := len(r.Hosts); n > 0 {
		last := &r.Hosts[n-1]
		if same := (Host{last.Name, last.Address, last.User, h.Procs}); same == h {
			last.Procs += h.Procs
			return
		}
	}
	r.Hosts = append(r.Hosts, h)
}

func (p *parser) reach(scheduler string, local bool) error {
	switch {
	case local && p.launcher != BySSH:
		p.run.Hosts = nil
	case p.launcher == ByFork:
		return errors.New("-launcher fork runs the procs on this machine, and there are others in the list of hosts: leave one of the two out")
	case scheduler != "":
		p.run.Engine = scheduler
	default:
		p.run.Engine = BySSH
	}
	return nil
}

const askScheduler = time.Minute

func allocated() (scheduler string, machines []engine.Machine, err error) {
	var e engine.Engine
	switch environ := os.Environ(); {
	case engine.InSlurm(environ):
		scheduler, e = BySlurm, engine.Slurm{}
	case engine.InPBS(environ):
		scheduler, e = ByPBS, engine.PBS{}
	default:
		return "", nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), askScheduler)
	defer cancel()
	machines, err = e.Allocation(ctx)
	return scheduler, machines, err
}

// ThisMachine returns the machine that the process runs on. Names are compared, not looked up.
func ThisMachine() Machine {
	return Machine{
		Getenv: os.LookupEnv,
		Read: func(file string) (string, error) {
			b, err := plainfile.ReadPipe(file, engine.MaxHostFile)
			return string(b), err
		},
		Allocation: allocated,
		Has: func(program string) bool {
			_, err := exec.LookPath(program)
			return err == nil
		},
		Library: besides,
		Local: func(host string) bool {
			if a, err := netip.ParseAddr(host); err == nil {
				return hasAddress(a)
			}
			name, err := os.Hostname()
			short, _, _ := strings.Cut(name, ".")
			return host == "localhost" || host == "localhost.localdomain" || err == nil && (host == name || host == short)
		},
	}
}

// besides finds a file of the folder lib that is beside the folder of this program, as impicc finds
// the library.
func besides(file string) (path string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("the folder of this program is not known: %w", err)
	}
	path = filepath.Join(filepath.Dir(filepath.Dir(self)), "lib", file)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w; make install puts it there, or make build", err)
	}
	return path, nil
}

func hasAddress(want netip.Addr) bool {
	if want.IsLoopback() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == want.Unmap()
	})
}
