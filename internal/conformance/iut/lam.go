package iut

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lam is LAM/MPI, built with IMPI. It has no server.
type lam struct {
	prefix  string // where it is installed
	program string // the interpreter in C, compiled
	version string
}

// LAM returns the LAM/MPI that is installed at prefix. source is our interpreter in C, which is
// compiled into dir. If this process is root, every user may read dir afterwards: LAM runs the
// program as nobody.
func LAM(prefix, source, dir string) (Subject, error) {
	s := &lam{prefix: prefix, program: filepath.Join(dir, "interpreter")}
	if os.Geteuid() == 0 {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // as said above
			return nil, err
		}
	}
	file := s.program + ".c"
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil { //nolint:gosec // no secret
		return nil, err
	}
	compile := exec.Command(filepath.Join(prefix, "bin", "mpicc"), "-o", s.program, file)
	compile.Env = append(os.Environ(), s.path())
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", compile, err, out)
	}
	info := exec.Command(filepath.Join(prefix, "bin", "laminfo"), "-version", "lam", "full", "-parsable")
	info.Env = append(os.Environ(), s.path())
	out, _ := info.CombinedOutput() // fails if it does not have the flag
	for _, line := range strings.Split(string(out), "\n") {
		if i := strings.LastIndex(line, ":"); strings.Contains(line, "version") && i >= 0 {
			s.version = strings.TrimSpace(line[i+1:])
			break
		}
	}
	if s.version == "" {
		return nil, errors.New("laminfo does not say which LAM/MPI this is: " + string(out))
	}
	return s, nil
}

func (s *lam) path() string {
	return "PATH=" + filepath.Join(s.prefix, "bin") + ":" + os.Getenv("PATH")
}

func (s *lam) Name() string    { return "LAM/MPI" }
func (s *lam) Version() string { return s.version }
func (s *lam) Hosts() bool     { return false }

func (s *lam) Has(n Needs) (ok bool, reason string) {
	return n != Server, "LAM/MPI has no server"
}

func (s *lam) Server(context.Context, ServerSpec) (*exec.Cmd, error) {
	return nil, errors.New("LAM/MPI has no server")
}

// lamScript boots a LAM universe of one node and runs the job in it. The universe ends
// with the case (see sweep): lamhalt takes four seconds, and does not end what hangs.
const lamScript = `
cd "$DIR"
echo 127.0.0.1 > hosts
lamboot hosts >lamboot.log 2>&1 || { cat lamboot.log; exit 99; }
exec impirun -client $RANK $SERVER -np $PROCS "$PROGRAM"
`

// nobody is the user that LAM/MPI runs as if this is root, which it refuses.
const nobody = 65534

// Client returns a command that boots LAM and runs the program. Its procs use TCP among each other:
// in the module for shared memory, which is LAM's choice otherwise, receives from MPI_ANY_SOURCE
// crash (lam_ssi_rpi_usysv_start), and little could be judged.
func (s *lam) Client(ctx context.Context, c ClientSpec) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", lamScript)
	cmd.Env = append(cleanEnviron(), s.path(), "LAM_MPI_SSI_rpi=tcp", "HOME="+c.Dir, "TMPDIR="+c.Dir, "DIR="+c.Dir, "LAM_MPI_SESSION_SUFFIX="+filepath.Base(c.Dir),
		"IMPI_HOST_NAME="+c.Hosts[0].Address, "RANK="+strconv.Itoa(c.Rank), "SERVER="+c.Server,
		"PROCS="+strconv.Itoa(c.Procs()), "PROGRAM="+s.program)
	cmd.Env = append(cmd.Env, c.Auth.environ()...)
	if c.MaxLinear != 0 {
		cmd.Env = append(cmd.Env, "LAM_IMPI_COLL_MAXLINEAR="+strconv.Itoa(int(c.MaxLinear)))
	}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return cmd, nil
}
