package meet

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/transports/support/trace"
)

// OpenPort opens a port and returns its name (MPI-4.1, 11.9.2). docs/dynamic.md has the info keys.
func OpenPort(p *proc.Process, info *proc.Info) (string, error) {
	hints, err := construct.Snapshot(info)
	if err != nil {
		return "", err
	}
	x, err := portHints(hints)
	if err != nil {
		return "", err
	}
	p.Lock()
	defer p.Unlock()
	return makePortAs(p, x)
}

const maxBacklog = 4096

func portHints(hints *proc.Info) (x wireup.OtherWorld, err error) {
	if x.Timeout, err = seconds(hints, "lifetime"); err != nil || hints == nil {
		return x, err
	}
	v, ok, err := hints.Value("backlog")
	if err != nil || !ok {
		return x, err
	}
	if x.Backlog, err = strconv.Atoi(v); err != nil || x.Backlog < 1 || x.Backlog > maxBacklog {
		return x, fmt.Errorf("%w: backlog %q is no number from 1 to %d", proc.ErrInfoValue, v, maxBacklog)
	}
	return x, nil
}

// makePort opens a port (MPI-4.1, 11.9.2) that lives for lifetime, or without end if that is 0. The
// process is locked.
func makePort(p *proc.Process, lifetime time.Duration) (string, error) {
	return makePortAs(p, wireup.OtherWorld{Timeout: lifetime})
}

// makePortAs is makePort with the hints of x. It is step 0 of connecting.
func makePortAs(p *proc.Process, x wireup.OtherWorld) (string, error) {
	if err := mayMeet(p); err != nil {
		return "", err
	}
	card, err := dynamic.ParseBusinessCard([]byte(p.Job.Card))
	if err != nil {
		return "", fmt.Errorf("%w: its own card: %w", proc.ErrAlone, err)
	}
	port := dynamic.Port{Opener: dynamic.WorldProc{World: p.Worlds.Description.World, Rank: p.Job.Rank}, Card: card}
	random(p, port.Key[:])
	name, err := port.AppendText(nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", proc.ErrAlone, err)
	}
	x.Key = port.Key[:]
	if _, err := p.Node.Ask(wireup.Message{Kind: wireup.KindPort, Meeting: &x}, dynamic.WorldID{}); err != nil {
		return "", err // no proc can connect to the port now, or ever
	}
	if p.Node.PortKeys == nil {
		p.Node.PortKeys = make(map[string]dynamic.Token)
	}
	p.Node.PortKeys[string(name)] = port.Key
	opened(p, port.Name())
	return string(name), nil
}

// random fills b with random bytes, which become secrets.
func random(p *proc.Process, b []byte) {
	if r, ok := p.Machine.(machine.Random); ok {
		r.Random(b)
		return
	}
	_, _ = rand.Read(b) // never fails
}

func mayMeet(p *proc.Process) error {
	switch {
	case p.Failure != nil:
		return p.Failure
	case proc.LifeState(p.State.Load()) >= proc.Finalizing:
		return proc.ErrFinalized
	case p.Worlds.Description == nil || p.Node.Control == nil:
		return proc.ErrAlone
	}
	return nil
}

// mayMeetTogether returns an error if the members of c cannot connect to other jobs as one: in a
// job with a site of another MPI, other worlds can reach the procs of one site alone. All members
// find the same.
func mayMeetTogether(c *proc.Comm) error {
	p := c.Process()
	if err := mayMeet(p); err != nil {
		return err
	}
	own, err := p.Worlds.Own()
	if err != nil {
		return err
	}
	alone := make([]bool, 0, len(own.Groups))
	last := make([]int, 0, len(own.Groups)) // last rank of each group, plus 1
	total := 0
	for i := range own.Groups {
		g := &own.Groups[i]
		total += g.Count
		alone, last = append(alone, len(g.Card.Addresses) == 0), append(last, total)
	}
	if !slices.Contains(alone, true) {
		return nil
	}
	for member, rank := range c.Comm.Group().All() {
		i, exact := slices.BinarySearch(last, int(member))
		if exact {
			i++
		}
		if i < len(alone) && alone[i] {
			return fmt.Errorf("%w together: rank %d of the communicator, rank %d of the job, is at another site, and with a site of another MPI in the job only procs of one site can meet others: call it on a communicator of one site's procs",
				proc.ErrAlone, rank, member)
		}
	}
	return nil
}

// ClosePort closes a port of this proc (MPI-4.1, 11.9.2). Accepts that wait there fail.
func ClosePort(p *proc.Process, name string) error {
	p.Lock()
	defer p.Unlock()
	return shutPort(p, name)
}

func shutPort(p *proc.Process, name string) error {
	key, err := portKey(p, name)
	if err != nil {
		return err
	}
	delete(p.Node.PortKeys, strings.TrimSpace(name))
	for number, q := range p.Node.Asking { // accepts that wait at the port
		if q.Port == key.World() && q.Answer == nil {
			m := wireup.Message{Kind: wireup.KindAccept, Meeting: &wireup.OtherWorld{Request: number, Cancel: true}}
			if err := p.Node.Control.Send(m); err != nil {
				return err
			}
		}
	}
	return p.Node.Control.Send(wireup.Message{Kind: wireup.KindClosePort, Meeting: &wireup.OtherWorld{Key: key[:]}})
}

func portKey(p *proc.Process, name string) (dynamic.Token, error) {
	if err := mayMeet(p); err != nil {
		return dynamic.Token{}, err
	}
	key, ok := p.Node.PortKeys[strings.TrimSpace(name)]
	if !ok {
		return key, fmt.Errorf("%w: this proc has no such port open", dynamic.ErrPort)
	}
	return key, nil
}

func opened(p *proc.Process, name dynamic.WorldID) {
	if t := p.Trace.Tracing(); t != nil {
		t.Step(trace.Step{Procedure: proc.ToAccept, Number: int(stepOpen), Text: proc.PortLabel(name) + " is open"})
	}
}
