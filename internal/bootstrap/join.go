package bootstrap

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/launch/pmi"
	"github.com/openimpi/impi/internal/launch/pmix"
	"github.com/openimpi/impi/internal/wireup"
)

// VersionVariable chooses the process manager's protocol: 1 or 2 for a version of PMI, x for PMIx.
// If it is not set, that is PMI-1 where the process manager supports PMI, else PMIx. Process
// managers that support one version of PMI support the other one, too; only version 1 passes the
// status of an abort on.
const VersionVariable = "IMPI_PMI"

// ofPMI are the variables that a process manager sets for one process.
var ofPMI = []string{"PMI_FD", "PMI_PORT", "PMI_ID", "PMI_RANK", "PMI_SIZE", "PMI_JOBID", "PMI_SPAWNED"}

// forOneProcess reports whether a variable is the process manager's for one process. Those that it
// starts itself, such as its node, do not have them.
func forOneProcess(variable string) bool {
	return slices.Contains(ofPMI, variable) || strings.HasPrefix(variable, pmix.Prefix)
}

// manager is the connection to a process manager: a pmi.Conn, or a pmix.Conn.
type manager interface {
	Me() pmi.Identity
	// Nodes returns the machine of each rank, or nil if the process manager does not report it.
	Nodes() ([]int, error)
	// Put publishes a value, which Get returns after the next Fence of all.
	Put(key, value string) error
	Fence() error
	Get(key string, rank int) (value string, found bool, err error)
	Abort(status int, message string) error
	Close() error
}

// Managed is a process that has joined a job by PMI.
type Managed struct {
	Control *wireup.Conn // to its node; nil: the process is alone, without a node
	node    *line        // to the node that the process has started; nil in other ranks

	survives bool     // the job continues without procs that are lost
	nodeEnd  *os.File // pidfd of the node in a job that survives; nil in the rank that has started it

	mu      sync.Mutex
	manager manager // nil after the manager got the message that the process is done
}

// ErrNoLibrary is the error of a process whose process manager supports only PMIx, which this
// process does not support.
var ErrNoLibrary = pmix.ErrNoLibrary

// Started reports whether a process manager has started this process.
func Started() bool { return pmi.Started(os.Getenv) || pmix.Started(os.Getenv) }

// Join makes this process take part in the job of the processes that its process manager has
// started. It returns when the node of the process is ready.
func Join() (*Managed, error) {
	manager, err := open(os.Getenv(VersionVariable))
	if err != nil {
		return nil, err
	}
	m := &Managed{manager: manager}
	if err = m.join(); err != nil {
		m.giveUp(err)
		return nil, err
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); forOneProcess(name) {
			_ = os.Unsetenv(name) // fails for no name
		}
	}
	return m, nil
}

// giveUp ends the job of a process that cannot join it. The others may wait for it without limit:
// srun does not mind that one ends without Finalize, and this one may live on. It says why itself,
// since it may be killed before its program does.
func (m *Managed) giveUp(why error) {
	me := m.manager.Me()
	if me.Size == 1 {
		return // no process waits
	}
	text := fmt.Sprintf("rank %d of %d cannot join the job, which ends: %v", me.Rank, me.Size, why)
	fmt.Fprintln(os.Stderr, "impi: mpi.Init:", text)
	AwaitReader(os.Stderr)
	_ = m.manager.Abort(1, text) // the process manager may be gone
}

func open(how string) (manager, error) {
	if how == "" {
		how = "1"
		if !pmi.Started(os.Getenv) {
			how = "x"
		}
	}
	if how == "x" {
		return pmix.Open(os.Getenv)
	}
	v, err := strconv.Atoi(how)
	if err != nil {
		return nil, fmt.Errorf("%s=%.40q: it can be 1, 2 or x", VersionVariable, how)
	}
	return pmi.Open(os.Getenv, v)
}

func (m *Managed) join() error {
	me := m.manager.Me()
	machines, err := m.manager.Nodes()
	if err == nil && machines == nil {
		machines, err = m.exchangeMachines()
	}
	if err != nil {
		return err
	}
	blocks := Blocks(machines)
	self := 0
	for blocks[self].First+blocks[self].Procs <= me.Rank {
		self++
	}
	if blocks[self].First == me.Rank {
		program, err := findNode()
		if err != nil && me.Size == 1 && needsNode() == "" {
			return m.Finalize()
		}
		if err == nil {
			err = m.start(program, Order{version, blocks, self, me.Machine})
		}
		if err != nil {
			return err
		}
	}
	if err := m.manager.Fence(); err != nil {
		return err
	}
	if m.node != nil {
		if err := m.tellAddresses(blocks); err != nil {
			return err
		}
	}
	address, err := m.addressOf(blocks, self)
	if err != nil {
		return err
	}
	m.survives = address.Survive
	var pid int
	if m.Control, pid, err = wireup.Attach(address.Socket); err != nil {
		return fmt.Errorf("the node of rank %d, which rank %d has started: %w", me.Rank, blocks[self].First, err)
	}
	if m.survives && m.node == nil {
		m.nodeEnd = watch(pid)
	}
	return m.Control.Send(wireup.Message{Kind: wireup.KindAttach, Version: wireup.Version, Peer: wire.WorldRank(me.Rank), Code: me.AppNum})
}

// exchangeMachines asks all ranks where they are, where the process manager does not say it.
func (m *Managed) exchangeMachines() (machines []int, err error) {
	me := m.manager.Me()
	key := func(rank int) string { return "impi-machine-" + strconv.Itoa(rank) }
	if err := errors.Join(m.manager.Put(key(me.Rank), machine()), m.manager.Fence()); err != nil {
		return nil, err
	}
	known := map[string]int{}
	for rank := range me.Size {
		name, found, err := m.manager.Get(key(rank), rank)
		if err != nil || !found {
			return nil, fmt.Errorf("rank %d has not said on which machine it is: %w", rank, err)
		}
		if _, old := known[name]; !old {
			known[name] = len(known)
		}
		machines = append(machines, known[name])
	}
	return machines, nil
}

// machine names the kernel and the network namespace of this process.
func machine() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	network, _ := os.Readlink("/proc/self/ns/net")
	host, _ := os.Hostname()
	sum := sha256.Sum256([]byte(strings.Join([]string{string(boot), network, host}, "\n")))
	return hex.EncodeToString(sum[:16])
}

// start starts the node of a block and publishes where it is.
func (m *Managed) start(program string, o Order) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket to the node: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "order"), os.NewFile(uintptr(fds[1]), "order")
	cmd := exec.Command(program, Verb)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return forOneProcess(name)
	})
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdout, os.Stderr, []*os.File{theirs}
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return errors.Join(fmt.Errorf("cannot start %s: %w", program, err), ours.Close())
	}
	go func() { _ = cmd.Wait() }() // the node reports itself how it ended
	m.node = newLine(ours)
	var p NodeAddress
	if err = m.node.send(o); err == nil {
		err = m.node.receive(&p, maxAddress)
	}
	if err != nil {
		return fmt.Errorf("%s does not say where it is; is it of the same release as the program? %w", program, err)
	}
	if p.Problem != "" {
		return errors.New(p.Problem)
	}
	text, err := p.Encode()
	if err != nil {
		return err
	}
	return m.manager.Put(keyOf(o.Self), text)
}

func keyOf(block int) string { return "impi-node-" + strconv.Itoa(block) }

func (m *Managed) addressOf(blocks []Block, block int) (p NodeAddress, err error) {
	text, found, err := m.manager.Get(keyOf(block), blocks[block].First)
	if err == nil && !found {
		err = errors.New("it is not in PMI's key-value space")
	}
	if err != nil {
		return p, fmt.Errorf("rank %d has not published where its node is: %w", blocks[block].First, err)
	}
	return DecodeNodeAddress(text, block, len(blocks))
}

func (m *Managed) tellAddresses(blocks []Block) error {
	addresses := make([]NodeAddress, len(blocks))
	for i := range blocks {
		var err error
		if addresses[i], err = m.addressOf(blocks, i); err != nil {
			return err
		}
		if addresses[i].Survive != addresses[0].Survive {
			return fmt.Errorf("%s is not the same at ranks %d and %d: give it to all ranks", SurviveVariable, blocks[0].First, blocks[i].First)
		}
	}
	if err := m.node.send(addresses); err != nil {
		return fmt.Errorf("the node is gone: %w", err)
	}
	return nil
}

// watch returns a file that is readable when a process has ended, or nil where the system has none.
func watch(pid int) *os.File {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "process")
}

// awaitNode waits for the end of a node that another process has started.
func (m *Managed) awaitNode() {
	if m.nodeEnd == nil {
		return
	}
	fds := []unix.PollFd{{Fd: int32(m.nodeEnd.Fd()), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = m.nodeEnd.Close()
	m.nodeEnd = nil
}

// Finalize leaves the job, once the process has told its node that it is done: the process that has
// started the node waits for its end, so that nothing is left when all processes have ended. In a
// job that survives losses all processes wait for the ends of their nodes: that process may be
// lost, and the last words of its node with it, as a process manager may end a step when its
// processes have ended.
func (m *Managed) Finalize() error {
	m.awaitNode()
	var o outcome
	if m.node != nil {
		if err := m.node.receive(&o, maxAddress); err != nil {
			return fmt.Errorf("the node is gone: %w", err)
		}
		if o.Status != 0 {
			return fmt.Errorf("the job has failed; its node has said why, and ended with status %d", o.Status)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.manager == nil {
		return nil
	}
	err := m.manager.Close()
	m.manager = nil
	return err
}

// Abort makes the process manager end all processes of the job with a status. The caller ends at
// once. In a job that continues without lost procs Abort does nothing: the nodes end the procs of a
// job that fails, and a process that ends because its node is gone must not end the others.
func (m *Managed) Abort(status int) {
	if m.survives || !m.mu.TryLock() { // locked: the process ends in order already
		return
	}
	defer m.mu.Unlock()
	if m.manager != nil {
		_ = m.manager.Abort(status, "the job has failed") // it may be gone
	}
}
