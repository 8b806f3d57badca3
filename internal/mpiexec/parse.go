// Package mpiexec reads command lines as people write them for mpiexec and
// mpirun, and says the same to impi-node.
package mpiexec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/launch/engine"
)

// Run is what a command line asks for.
type Run struct {
	Programs []Program // in the order of their ranks
	Prefix   bool      // output is to begin with the rank
	Verbose  bool      // print what is done
	LogLevel string    // of impi-node; empty: its own
	Bind     string    // core or none; empty: not given
	Ports    string    // range of the ports that the job listens at; empty: any
	Metrics  string    // where metrics are served; empty: nowhere
	Report   string    // file of the report; empty: none
	Calls    string    // files of the calls of MPI; empty: none
	OTLP     string    // URL of an OpenTelemetry collector; empty: none
	Progress string    // how often procs make progress while they compute; empty: not given
	Engine   string    // by which Hosts are reached; empty: all runs on this machine
	Hosts    []Host    // in the order of the ranks, with the procs of all programs
	Help     bool
	Version  bool

	Tool      string // Valgrind, GDB, or empty; UnderTool puts it before the programs
	ToolRanks []int  // the procs that run under it, ascending; nil: all

	Notes []string // for the user: options that were ignored
}

// Program is one of the programs that colons separate, and an element of the value of impi-node's
// flag -programs.
type Program struct {
	Procs   int               `json:"procs"`
	Command []string          `json:"command"`
	Env     map[string]string `json:"env,omitempty"`
	Dir     string            `json:"dir,omitempty"` // empty: this one
	Out     string            `json:"out,omitempty"` // file for standard output, %r is the rank; empty: ours
	Err     string            `json:"err,omitempty"` // the same for standard error

	// Slow means that a person or a tool may hold up the procs before MPI_Init.
	Slow bool `json:"slow,omitempty"`
}

// Machine is what parsing has to know of this machine.
type Machine struct {
	Getenv func(name string) (value string, set bool)
	Read   func(file string) (string, error)
	Local  func(host string) bool // whether a host's name or address is this machine's
	Has    func(program string) bool

	// Library returns the path of a file in the folder lib of this installation.
	Library func(file string) (path string, err error)

	// Allocation returns the machines of the scheduler's job that this process is part of.
	// scheduler is BySlurm or ByPBS, or "" if there is none. Allocation may be nil: there is none.
	Allocation func() (scheduler string, machines []engine.Machine, err error)
}

// ErrUsage is wrapped by all errors of Parse.
var ErrUsage = errors.New("wrong command line")

type parser struct {
	machine Machine
	run     Run
	global  map[string]string // environment of all programs
	dir     string            // of all programs
	now     Program           // the program that is being read
	perHost int               // procs on each machine; 0: as many as it has slots
	lists   []list            // of machines, in the order of the programs

	launcher string // BySSH, ...; empty: what fits
}

// Parse reads a command line, without the command's own name.
func Parse(args []string, machine Machine) (*Run, error) {
	p := &parser{machine: machine, global: map[string]string{}}
	for {
		rest, err := p.options(args)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUsage, err)
		}
		if p.run.Help || p.run.Version {
			return &p.run, nil
		}
		colon := slices.Index(rest, ":")
		last := colon < 0
		if last {
			colon = len(rest)
		}
		if err := p.finish(rest[:colon]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUsage, err)
		}
		if last {
			break
		}
		args = rest[colon+1:]
	}
	if err := p.place(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	p.share()
	return &p.run, nil
}

func (p *parser) options(args []string) (rest []string, err error) {
	for len(args) > 0 {
		word := args[0]
		switch {
		case word == "--":
			return args[1:], nil
		case word == "-" || !strings.HasPrefix(word, "-"):
			return args, nil
		}
		name, value, joined := strings.Cut("-"+strings.TrimLeft(word, "-"), "=")
		o, known := find(name)
		if !known {
			return nil, unknown(word)
		}
		args = args[1:]
		var values []string
		if joined {
			values = []string{value}
		} else {
			k := min(len(o.args), len(args))
			values, args = args[:k], args[k:]
		}
		if len(values) != len(o.args) {
			return nil, fmt.Errorf("%s: it is written %s", word, o.usage(strings.TrimSuffix(word, "="+value)))
		}
		if err := o.set(p, values); err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(append([]string{word}, values...), " "), err)
		}
		if p.run.Help || p.run.Version {
			return nil, nil
		}
	}
	return nil, nil
}

func (p *parser) finish(command []string) error {
	if len(command) == 0 {
		if len(p.run.Programs) > 0 {
			return errors.New("there is no program after the last colon")
		}
		return errors.New("no program: write it after the options, as in impiexec -n 4 ./prog")
	}
	p.now.Command = command
	p.run.Programs = append(p.run.Programs, p.now)
	p.now = Program{Out: p.now.Out, Err: p.now.Err} // these are of the whole run
	return nil
}

func (p *parser) share() {
	for i := range p.run.Programs {
		program := &p.run.Programs[i]
		for name, value := range p.global {
			if _, own := program.Env[name]; !own {
				program.setEnv(name, value)
			}
		}
		program.Dir = cmp.Or(program.Dir, p.dir)
		program.Out, program.Err = p.now.Out, p.now.Err
	}
}

func (p *Program) setEnv(name, value string) {
	if p.Env == nil {
		p.Env = map[string]string{}
	}
	p.Env[name] = value
}

func number(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, errors.New("write a number of procs, 1 or more")
	}
	return n, nil
}

func variable(name string) error {
	if name == "" || strings.ContainsAny(name, "= \t") {
		return fmt.Errorf("%q cannot be the name of a variable", name)
	}
	return nil
}

func (p *parser) pass(names []string, set func(name, value string)) error {
	for _, name := range names {
		if err := variable(name); err != nil {
			return err
		}
		value, there := p.machine.Getenv(name)
		if !there {
			p.run.Notes = append(p.run.Notes, "the variable "+name+" is not set here, so it is not passed on")
			continue
		}
		set(name, value)
	}
	return nil
}
