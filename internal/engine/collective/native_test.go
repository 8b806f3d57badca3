package collective

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// worldOf makes procs that are linked with each other by sockets.
func worldOf(t *testing.T, n int) (procs []*proc.Process) {
	t.Helper()
	for rank := range n {
		j := &wireup.Job{Name: "test", Rank: wire.WorldRank(rank), DataLen: 64 << 10, AckMark: 4, HiWater: 8, TagUB: 1<<31 - 1, XSize: 1024, MaxLinear: 4}
		for r := range n {
			j.Procs = append(j.Procs, wireup.Proc{Host: make([]byte, 16), PID: int64(r + 1), Path: wireup.PathDirect})
		}
		p, err := proc.NewProcess(j, nil, machine.Local{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		procs = append(procs, p)
	}
	add := func(p *proc.Process, fd, peer int) {
		l, err := socket.New(fd, nil)
		if err != nil {
			t.Fatal(err)
		}
		q, err := p.Endpoints.Add(l, message.Peer(peer))
		if err != nil {
			t.Fatal(err)
		}
		p.Eng.SetRoute(message.Peer(peer), q.ID)
	}
	for a := range procs {
		for b := range a {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			add(procs[a], fds[0], b)
			add(procs[b], fds[1], a)
		}
	}
	t.Cleanup(func() {
		for _, p := range procs {
			p.Lock()
			p.Endpoints.Close()
			p.Unlock()
		}
	})
	return procs
}

// TestTeamNeedsAll: a team is made if all members can use it. Whoever cannot, all hear the same, so
// that none begins an operation of the site's MPI that another one does by messages.
func TestTeamNeedsAll(t *testing.T) {
	procs := worldOf(t, 4)
	members := []int{0, 1, 3} // rank 2 is at another site
	for votes := range 1 << len(members) {
		heard := make(chan bool, len(members))
		for i, rank := range members {
			go func() { heard <- meetTeam(procs[rank].Comms.World, members, votes>>i&1 == 1) }()
		}
		want := votes == 1<<len(members)-1
		for range members {
			if got := <-heard; got != want {
				t.Errorf("votes %03b: a member hears %t", votes, got)
			}
		}
	}
}
