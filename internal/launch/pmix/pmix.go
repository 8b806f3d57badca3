package pmix

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/openimpi/impi/internal/launch/pmi"
)

// ErrNoLibrary means that a process manager that speaks PMIx has started this process, which cannot
// speak PMIx.
var ErrNoLibrary = errors.New("PMIx cannot be spoken")

// Prefix begins the names of the variables that tell a process's PMIx library where its server is.
const Prefix = "PMIX_"

// maxProcs bounds the procs of a job, and maxValue the bytes of a value.
const (
	maxProcs = 1 << 22
	maxValue = 64 << 10
)

// Started reports whether the environment says that a process manager that speaks PMIx has started
// this process.
func Started(environ func(string) string) bool {
	return environ("PMIX_NAMESPACE") != "" && environ("PMIX_RANK") != ""
}

type library interface {
	init() (space string, rank uint32, err error)
	// number and text return a value of a process, or of the job if rank is ofJob. found is false
	// if no process has put the value.
	number(rank uint32, key string) (n uint32, found bool, err error)
	text(rank uint32, key string) (text string, found bool, err error)
	nodes() ([]string, error)
	peers(node string) ([]uint32, error)
	put(key, value string) error
	fence() error
	abort(status int, message string) error
	finalize() error
}

const ofJob = 1<<32 - 2

// Conn is a process's connection to the PMIx server of its machine. It is for one goroutine.
type Conn struct {
	lib library
	me  pmi.Identity
}

// Open loads libpmix, connects to the server that the environment names, and gets the identity of
// this process.
func Open(environ func(string) string) (*Conn, error) {
	if !Started(environ) {
		return nil, errors.New("PMIX_NAMESPACE and PMIX_RANK are not both in the environment. Start it by srun --mpi=pmix or Open MPI's mpirun")
	}
	lib, err := load()
	if err != nil {
		return nil, err
	}
	c, err := begin(lib)
	if err != nil {
		return nil, fmt.Errorf("cannot speak PMIx to the process manager that has started this process: %w", err)
	}
	return c, nil
}

func begin(lib library) (*Conn, error) {
	space, rank, err := lib.init()
	if err != nil {
		return nil, err
	}
	size, found, err := lib.number(ofJob, "pmix.job.size")
	if err == nil && !found {
		err = errors.New("nothing is found")
	}
	if err != nil {
		return nil, fmt.Errorf("the server does not say how many processes there are: %w", err)
	}
	program, _, err := lib.number(rank, "pmix.appnum") // 0 if it is not found
	if err != nil {
		return nil, fmt.Errorf("the server does not say which program this is: %w", err)
	}
	machine, _, err := lib.text(rank, "pmix.hname")
	if err != nil {
		return nil, fmt.Errorf("the server does not say on which machine this is: %w", err)
	}
	if size > maxProcs || rank >= size || program > maxProcs {
		return nil, fmt.Errorf("the server says that this is rank %d of %d, of program %d. At most %d can be", rank, size, program, maxProcs)
	}
	return &Conn{lib, pmi.Identity{Rank: int(rank), Size: int(size), AppNum: int(program), Job: space, Machine: machine}}, nil
}

// Me returns who this process is, as the server said at Open.
func (c *Conn) Me() pmi.Identity { return c.me }

// Nodes returns the node of each rank, from 0, or nil if the process manager does not report it.
func (c *Conn) Nodes() ([]int, error) {
	names, err := c.lib.nodes()
	if err != nil {
		return nil, fmt.Errorf("the machines of the job: %w", err)
	}
	machines := make([]int, c.me.Size)
	known := 0
	for i, name := range names {
		ranks, err := c.lib.peers(name)
		if err != nil {
			return nil, fmt.Errorf("the processes on %.80q: %w", name, err)
		}
		for _, r := range ranks {
			if int64(r) >= int64(c.me.Size) || machines[r] != 0 {
				return nil, fmt.Errorf("the server says that rank %d of %d is on %.80q, and there is none, or it is elsewhere", r, c.me.Size, name)
			}
			machines[r] = i + 1
			known++
		}
	}
	if known < c.me.Size {
		return nil, nil
	}
	for i := range machines {
		machines[i]--
	}
	return machines, nil
}

// Put publishes a value under a key. Others get it after the next Fence of all.
func (c *Conn) Put(key, value string) error { return c.lib.put(key, value) }

// Fence waits until all processes have called it. After that Get returns what they have Put before.
func (c *Conn) Fence() error { return c.lib.fence() }

// Get returns a value that a rank has put before the last Fence.
func (c *Conn) Get(key string, rank int) (value string, found bool, err error) {
	if rank < 0 || rank >= c.me.Size {
		return "", false, fmt.Errorf("rank %d is none of %d", rank, c.me.Size)
	}
	value, found, err = c.lib.text(uint32(rank), key)
	if len(value) > maxValue {
		return "", false, fmt.Errorf("the value of %s has %d bytes, and may have %d", key, len(value), maxValue)
	}
	return value, found, err
}

// Abort makes the process manager end all processes.
func (c *Conn) Abort(status int, message string) error {
	return c.lib.abort(status, strings.ReplaceAll(message, "\x00", " "))
}

// Close finalizes: the process may end then.
func (c *Conn) Close() error { return c.lib.finalize() }

func refuse(why string) error {
	return fmt.Errorf("%w: a process manager that speaks PMIx has started this process (PMIX_NAMESPACE=%.80s), and %s; or start it by srun --mpi=pmi2, mpiexec.hydra or impiexec",
		ErrNoLibrary, os.Getenv("PMIX_NAMESPACE"), why)
}
