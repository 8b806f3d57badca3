package iut

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
)

// Commands is an implementation that is started by command lines, which the shell
// runs. Words in braces are filled in:
//
//	{server} {rank} {clients} {procs} {address} {key} {program} {dir}     of a client
//	{clients} {address} {key} {dir}                                       of a server
//
// The environment has IMPI_AUTH_NONE and IMPI_AUTH_KEY as a case wants them.
type Commands struct {
	Title         string // the subject's name
	Release       string // its version
	ClientCommand string // empty: there is none
	ServerCommand string
	Program       string // path of the interpreter
	ManyHosts     bool   // a client can have several, with {address} and {procs} being lists with commas
}

// Name returns the title that the reports have for the implementation.
func (s *Commands) Name() string { return s.Title }

// Version returns the implementation's release.
func (s *Commands) Version() string { return s.Release }

// Has reports whether there is a command for a part. reason is why there is none.
func (s *Commands) Has(n Needs) (ok bool, reason string) {
	if n == Server {
		return s.ServerCommand != "", "no -server was given"
	}
	return s.ClientCommand != "", "no -client was given"
}

// Hosts reports whether a client can have several hosts.
func (s *Commands) Hosts() bool { return s.ManyHosts }

// Client returns the client's command with its parameters filled in.
func (s *Commands) Client(ctx context.Context, c ClientSpec) (*exec.Cmd, error) {
	addresses, procs := []string{}, []string{}
	for _, h := range c.Hosts {
		addresses, procs = append(addresses, h.Address), append(procs, strconv.Itoa(h.Procs))
	}
	cmd := shell(ctx, s.ClientCommand, c.Dir, c.Auth,
		"{server}", c.Server, "{rank}", strconv.Itoa(c.Rank), "{clients}", strconv.Itoa(c.Clients),
		"{procs}", strings.Join(procs, ","), "{address}", strings.Join(addresses, ","), "{program}", s.Program)
	if c.MaxLinear != 0 {
		cmd.Env = append(cmd.Env, "IMPI_COLL_MAXLINEAR="+strconv.Itoa(int(c.MaxLinear)))
	}
	return cmd, nil
}

// Server returns the server's command with its parameters filled in.
func (s *Commands) Server(ctx context.Context, c ServerSpec) (*exec.Cmd, error) {
	return shell(ctx, s.ServerCommand, c.Dir, c.Auth, "{clients}", strconv.Itoa(c.Clients), "{address}", c.Host), nil
}

func shell(ctx context.Context, command, dir string, a Auth, words ...string) *exec.Cmd {
	words = append(words, "{dir}", dir, "{key}", strconv.FormatUint(a.Key, 10))
	cmd := exec.CommandContext(ctx, "sh", "-c", strings.NewReplacer(words...).Replace(command))
	cmd.Env = append(cleanEnviron(), a.environ()...)
	return cmd
}
