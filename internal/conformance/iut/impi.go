package iut

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

type impi struct {
	node, server string   // binaries
	program      []string // the interpreter
	version      string
}

// Impi returns our own implementation. dir has its binaries; if it is empty, they are in the folder
// of this program, or else in PATH. program is the command of our interpreter in Go.
func Impi(dir string, program []string) (Subject, error) {
	s := &impi{program: program}
	for name, path := range map[string]*string{"impi-node": &s.node, "impi-server": &s.server} {
		found, err := find(dir, name)
		if err != nil {
			return nil, err
		}
		*path = found
	}
	out, err := exec.Command(s.node, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s version: %w", s.node, err)
	}
	s.version, _, _ = strings.Cut(strings.TrimSpace(strings.TrimPrefix(string(out), "impi-node ")), "\n")
	return s, nil
}

func find(dir, name string) (string, error) {
	if dir != "" {
		return exec.LookPath(filepath.Join(dir, name))
	}
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w; it is looked for beside this program and in PATH", err)
	}
	return filepath.Abs(path)
}

func (s *impi) Name() string             { return "impi" }
func (s *impi) Version() string          { return s.version }
func (s *impi) Has(Needs) (bool, string) { return true, "" }
func (s *impi) Hosts() bool              { return true }

// Client writes a job file and returns the command that runs it.
func (s *impi) Client(ctx context.Context, c ClientSpec) (*exec.Cmd, error) {
	var b strings.Builder
	words := make([]string, len(s.program))
	for i, w := range s.program {
		words[i] = strconv.Quote(w)
	}
	// The tester's server uses IMPI only: our nodes begin with TLS otherwise.
	fmt.Fprintf(&b, "program { command = [%s] }\nsite \"iut\" {\n  client = %d\n  server = %q\n  server_foreign = true\n",
		strings.Join(words, ", "), c.Rank, c.Server)
	if c.Auth.Key != 0 {
		key := filepath.Join(c.Dir, "job.key")
		if err := os.WriteFile(key, fmt.Appendf(nil, "%d\n", c.Auth.Key), 0o600); err != nil {
			return nil, err
		}
		b.WriteString("  auth \"key\" { file = \"job.key\" }\n")
	}
	if c.Auth.None {
		b.WriteString("  auth \"none\" {}\n")
	}
	if c.MaxLinear != 0 {
		fmt.Fprintf(&b, "  protocol { maxlinear = %d }\n", c.MaxLinear)
	}
	for _, h := range c.Hosts {
		fmt.Fprintf(&b, "  host {\n    address = %q\n    procs   = %d\n  }\n", h.Address, h.Procs)
	}
	// One transport starts faster than all of them; foreign hosts see no difference.
	b.WriteString("}\nroute \"*\" { prefer = [\"tcp\"] }\n")
	file := filepath.Join(c.Dir, "job.hcl")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, s.node, "-config", file, "-site", "iut")
	cmd.Env = append(cleanEnviron(), "TMPDIR="+c.Dir)
	return cmd, nil
}

// Server returns the command that starts impi-server, not started yet.
func (s *impi) Server(ctx context.Context, c ServerSpec) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, s.server, "-clients", strconv.Itoa(c.Clients), "-host", c.Host)
	cmd.Env = append(cleanEnviron(), c.Auth.environ()...)
	return cmd, nil
}

// environ are the variables that enable mechanisms at a side.
func (a Auth) environ() (env []string) {
	if a.None {
		env = append(env, "IMPI_AUTH_NONE=1")
	}
	if a.Key != 0 {
		env = append(env, "IMPI_AUTH_KEY="+strconv.FormatUint(a.Key, 10))
	}
	return env
}

// cleanEnviron is this process's environment without the variables that enable mechanisms.
func cleanEnviron() (env []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "IMPI_AUTH_") {
			env = append(env, v)
		}
	}
	return env
}
