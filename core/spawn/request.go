package spawn

import (
	"fmt"
	"strings"

	"github.com/openimpi/impi/core/mpierr"
)

// Bounds of a spawn.
const (
	MaxCommands = 1024    // commands of one spawn
	MaxProcs    = 1 << 13 // procs of one spawn: an answer has a number for each
	MaxClients  = 32      // clients of a world. IMPI ch.2: client_mask has 32 bits
)

// Command is one program of a spawn (MPI-4.1, 11.8.3), with its info keys (MPI-4.1, 11.8.4).
type Command struct {
	Number int               `json:"number"` // among all commands of the spawn
	Path   string            `json:"path"`
	Args   []string          `json:"args,omitempty"`
	Procs  int               `json:"procs"`
	Info   map[string]string `json:"info,omitempty"` // host, wdir, path, soft, env, arch, ...
}

// Refuse returns a refusal whose reason names the command c.
func (c *Command) Refuse(reason string) *Refusal {
	return Refuse(c.Number, "command %d (%s): %s", c.Number, c.Path, reason)
}

// Refusal is the reason why procs are not started, and the number of the command that it is about,
// or -1.
type Refusal struct {
	Command int    `json:"command"`
	Reason  string `json:"reason"`
}

func (r *Refusal) Error() string { return r.Reason }

// Refuse returns a refusal that is about a command, or about none if command is -1.
func Refuse(command int, format string, args ...any) *Refusal {
	return &Refusal{command, fmt.Sprintf(format, args...)}
}

// Check checks the arguments of a spawn (MPI-4.1, 11.8.2), except where its procs should run. able
// is true if the proc's job can connect to other worlds.
func Check(able bool, commands []Command) *Refusal {
	if !able {
		return Refuse(-1, "the job cannot meet others, nor spawn them: a site of it is run by another MPI, or has no transports for direct links")
	}
	if len(commands) == 0 || len(commands) > MaxCommands {
		return Refuse(-1, "a spawn has 1 to %d commands", MaxCommands)
	}
	total := 0
	for i, c := range commands {
		if c.Procs < 1 || c.Procs > MaxProcs {
			return Refuse(i, "command %d (%s): %d procs; 1 to %d are possible", i, c.Path, c.Procs, MaxProcs)
		}
		total += c.Procs
	}
	if total > MaxProcs {
		return Refuse(-1, "%d procs, at most %d are possible", total, MaxProcs)
	}
	return nil
}

// Codes returns the error class of each requested proc (MPI-4.1, 11.8.2, array_of_errcodes).
// granted is the number of procs of each command that run. If the spawn has failed with r, none
// runs: the procs of the command that is to blame have class Spawn, all others were not tried.
func Codes(commands []Command, granted []int, r *Refusal) (codes []int) {
	for i, c := range commands {
		for k := range c.Procs {
			class := mpierr.Success
			switch {
			case r != nil && r.Command >= 0 && r.Command != i:
				class = mpierr.Other
			case r != nil || k >= granted[i]:
				class = mpierr.Spawn
			}
			codes = append(codes, int(class))
		}
	}
	return codes
}

// Part is one site's share of a spawned world, which it is asked to start.
type Part struct {
	World    string    `json:"world"`          // name for messages
	Host     string    `json:"host,omitempty"` // address of the site's host; empty: any host, or several
	Commands []Command `json:"commands"`
}

// validWorld reports whether a spawned world may be named so: the name becomes part of the names of
// files.
func validWorld(name string) bool {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	return name != "" && len(name) <= 100 && strings.Trim(name, allowed) == ""
}

// Check checks a part that another site requests.
func (p *Part) Check() *Refusal {
	total := 0
	for _, c := range p.Commands {
		if c.Procs < 1 || c.Procs > MaxProcs {
			return Refuse(-1, "a command with %d procs", c.Procs)
		}
		total += c.Procs
	}
	if len(p.Commands) == 0 || len(p.Commands) > MaxCommands || total > MaxProcs || !validWorld(p.World) {
		return Refuse(-1, "%d commands, %d procs in world %q", len(p.Commands), total, p.World)
	}
	return nil
}

// Fits reports whether a site may grant that many procs of each command of the part.
func (p *Part) Fits(granted []int) bool {
	if len(granted) != len(p.Commands) {
		return false
	}
	for i, n := range granted {
		if n < 0 || n > p.Commands[i].Procs {
			return false
		}
	}
	return true
}
