package mpi

import (
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// TestAttributesOfIMPI: six procs, of three clients, of which the second one has
// two hosts; and communicators whose ranks are in another order.
func TestAttributesOfIMPI(t *testing.T) {
	clients, hosts := []int{0, 0, 1, 1, 1, 2}, []wire.HostRank{0, 0, 1, 1, 2, 3}
	l := layout{procs: 6, client: func(r int) int { return clients[r] }}
	procs := l.start(t)
	for _, p := range procs {
		for r := range p.Job.Procs {
			p.Job.Procs[r].Node = hosts[r]
		}
	}
	all := func(c *Comm, clients, client, hosts, host int) error {
		return first(has(c, ClientSize, clients), has(c, ClientColor, client), has(c, HostSize, hosts), has(c, HostColor, host))
	}
	l.finish(t, procs, func(t *testing.T, c *Comm) error {
		r := c.Rank()
		if err := first(all(c, 3, clients[r], 4, int(hosts[r])), all((*Comm)(c.in().Process().Comms.Self), 1, 0, 1, 0)); err != nil {
			return err
		}
		back, err := c.Split(0, -r)
		if err != nil {
			return err
		}
		if err := all(back, 3, 2-clients[r], 4, 3-int(hosts[r])); err != nil {
			return err
		}
		color, _, err := back.Attr(HostColor)
		if err != nil {
			return err
		}
		host, err := c.Split(color.(int), 0) // what they are for
		if err != nil {
			return err
		}
		if err := first(expect("members", host.Size(), []int{2, 2, 1, 1}[hosts[r]]), all(host, 1, 0, 1, 0)); err != nil {
			return err
		}
		odd, err := c.Split(r%2, 0)
		if err != nil {
			return err
		}
		inter, err := odd.IntercommCreate(0, c, 1-r%2, 9)
		if err != nil {
			return err
		}
		// Ranks 0, 2 and 4 are of clients 0, 1, 1 and hosts 0, 1, 2; the others of 0, 1, 2 and 0, 1, 3.
		want := [][4]int{{2, 0, 3, 0}, {3, 0, 3, 0}, {2, 1, 3, 1}, {3, 1, 3, 1}, {2, 1, 3, 2}, {3, 2, 3, 2}}
		w := want[r]
		return all(inter, w[0], w[1], w[2], w[3])
	})
}
