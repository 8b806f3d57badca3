package pmi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is a connection to a process manager. It is for one goroutine.
type Conn struct {
	m  *Machine
	rw io.ReadWriteCloser
}

// Started tells whether the environment says that a process manager has started this process.
func Started(environ func(string) string) bool {
	return environ("PMI_FD") != "" || environ("PMI_PORT") != "" && environ("PMI_ID") != ""
}

// dialTime bounds how long PMI_PORT is dialled.
const dialTime = 30 * time.Second

// Open connects to the process manager that the environment names, and learns who this process is.
// version is 1 or 2; hydra and Slurm's mpi/pmi2 both speak either. The descriptor of PMI_FD belongs to the connection then.
func Open(environ func(string) string, version int) (*Conn, error) {
	c, err := open(environ, version)
	if err != nil {
		return nil, fmt.Errorf("cannot speak PMI-%d to the process manager that has started this process: %w", version, err)
	}
	return c, nil
}

func open(environ func(string) string, version int) (*Conn, error) {
	me := Identity{Job: environ("PMI_JOBID")}
	text := environ("PMI_FD")
	if text == "" {
		port, id := environ("PMI_PORT"), environ("PMI_ID")
		if port == "" || id == "" {
			return nil, errors.New("neither PMI_FD nor PMI_PORT and PMI_ID are in the environment. Start it by srun --mpi=pmi2 or mpiexec.hydra")
		}
		rw, err := net.DialTimeout("tcp", port, dialTime)
		if err != nil {
			return nil, fmt.Errorf("PMI_PORT=%s: %w", port, err)
		}
		return begin(rw, version, id, me)
	}
	for name, into := range map[string]*int{"PMI_RANK": &me.Rank, "PMI_SIZE": &me.Size} {
		n, err := strconv.ParseUint(environ(name), 10, 31)
		if err != nil || n > maxProcs {
			return nil, fmt.Errorf("%s=%q in the environment is no number from 0 to %d", name, environ(name), maxProcs)
		}
		*into = int(n)
	}
	fd, err := strconv.ParseUint(text, 10, 20)
	if err != nil {
		return nil, fmt.Errorf("PMI_FD=%q in the environment is no number of a descriptor", text)
	}
	unix.CloseOnExec(int(fd)) // no process that we start is the manager's
	f := os.NewFile(uintptr(fd), "PMI_FD")
	if _, err := f.Stat(); err != nil {
		return nil, fmt.Errorf("PMI_FD=%d is not open. Something between the process manager and this process has closed it: %w", fd, err)
	}
	return begin(f, version, "", me)
}

func begin(rw io.ReadWriteCloser, version int, id string, me Identity) (*Conn, error) {
	m, err := NewMachine(version, id, me)
	if err == nil {
		c := &Conn{m, rw}
		if err = c.do(m.Begin()); err == nil {
			return c, nil
		}
	}
	_ = rw.Close()
	return nil, err
}

// do sends a request and waits for its end.
func (c *Conn) do(send []byte, err error) error {
	if err != nil {
		return err
	}
	buf := make([]byte, 4<<10)
	for {
		if len(send) > 0 {
			if _, err := c.rw.Write(send); err != nil {
				return fmt.Errorf("the process manager takes nothing any more: %w", err)
			}
		}
		n, err := c.rw.Read(buf)
		if n == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("the process manager does not answer: %w", err)
		}
		var done bool
		if send, done, err = c.m.Receive(buf[:n]); err != nil || done {
			return err
		}
	}
}

// Me is who this process is.
func (c *Conn) Me() Identity { return c.m.Me() }

// Put is Machine.Put.
func (c *Conn) Put(key, value string) error { return c.do(c.m.Put(key, value)) }

// Fence is Machine.Fence.
func (c *Conn) Fence() error { return c.do(c.m.Fence()) }

// Get gives a value that a rank has put before the last Fence.
func (c *Conn) Get(key string, rank int) (value string, found bool, err error) {
	err = c.do(c.m.Get(key, rank))
	value, found = c.m.Value()
	return value, found && err == nil, err
}

// Nodes gives the node of each rank, from 0, or nil if the process manager does not say.
func (c *Conn) Nodes() ([]int, error) {
	if err := c.do(c.m.Attribute("PMI_process_mapping")); err != nil {
		return nil, err
	}
	text, _ := c.m.Value()
	return ParseMapping(text, c.m.Me().Size)
}

// Abort has the process manager end all processes. It returns when that was sent.
func (c *Conn) Abort(status int, message string) error {
	send, err := c.m.Abort(status, message)
	if err == nil {
		_, err = c.rw.Write(send)
	}
	return err
}

// Close finalizes: the process may end then.
func (c *Conn) Close() error {
	err := c.do(c.m.Finalize())
	return errors.Join(err, c.rw.Close())
}
