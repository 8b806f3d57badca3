package startup

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// home is a host ID that consecutive ranks share. Jobs have many procs and few host IDs, so storing
// P_IPV6, the first half of the identities, in this form takes little memory until P_PID, the
// second half, comes.
type home struct {
	id    wire.HostID
	first int // rank of the first proc
	end   int
}

// takeProcValue handles one half of a proc's identity (IMPI ch.2, Proc labels). Any value
// is valid.
func (d *derivation) takeProcValue(l wire.Label, rank int, data []byte) {
	switch {
	case l == wire.LabelProcIPv6:
		id := wire.HostID(data)
		if n := len(d.homes); n > 0 && d.homes[n-1].id == id {
			d.homes[n-1].end = rank + 1
			return
		}
		d.homes = append(d.homes, home{id, rank, rank + 1})
	case len(data) == 4:
		d.pids[rank] = int64(binary.BigEndian.Uint32(data))
	default:
		d.pids[rank] = int64(binary.BigEndian.Uint64(data))
	}
}

// nprocs counts the procs of all clients. checkTotal has bounded them.
func (d *derivation) nprocs() (n int) {
	for c := range d.job.Clients {
		n += d.job.Clients[c].NProcs
	}
	return n
}

// settleProcs fills Job.Procs, without cards. It runs at the end because nothing needs the result
// earlier.
func (d *derivation) settleProcs() {
	if d.job.Procs.Len() > 0 {
		return
	}
	homes := d.homes
	for i := range d.job.Hosts {
		h := &d.job.Hosts[i]
		for range h.NProcs {
			x, r := ProcInfo{Client: h.Client, Host: wire.HostRank(i)}, d.job.Procs.Len()
			for len(homes) > 0 && homes[0].end <= r {
				homes = homes[1:]
			}
			if len(homes) > 0 && homes[0].first <= r {
				x.ID = wire.Proc{Host: homes[0].id, PID: d.pids[r]}
			}
			d.job.Procs.Add(x)
		}
	}
	d.homes, d.pids = nil, nil
}

// checkIdentities refuses two procs with the same identity, whose packets could not be told
// apart (IMPI ch.2, Proc labels). If pids ascend, as they mostly do, one comparison per
// proc is enough.
func (d *derivation) checkIdentities() error {
	homes := slices.Clone(d.homes)
	slices.SortFunc(homes, func(a, b home) int {
		return cmp.Or(slices.Compare(a.id[:], b.id[:]), cmp.Compare(a.first, b.first))
	})
	for len(homes) > 0 {
		n := 1
		for n < len(homes) && homes[n].id == homes[0].id {
			n++
		}
		if err := d.checkPIDs(homes[:n]); err != nil {
			return err
		}
		homes = homes[n:]
	}
	return nil
}

func (d *derivation) checkPIDs(homes []home) error {
	ascending, n := true, 0
	last := int64(0)
	for _, h := range homes {
		for r := h.first; r < h.end; r++ {
			pid := d.pids[r]
			ascending = ascending && (n == 0 || pid > last)
			last = pid
			n++
		}
	}
	if ascending {
		return nil
	}
	order := make([]int32, 0, n)
	for _, h := range homes {
		for r := h.first; r < h.end; r++ {
			order = append(order, int32(r))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(d.pids[a], d.pids[b]), cmp.Compare(a, b))
	})
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; d.pids[a] == d.pids[b] {
			return fmt.Errorf("%w: ranks %d (client %d) and %d (client %d) are both %v", ErrValue,
				a, d.clientOf(a), b, d.clientOf(b), wire.Proc{Host: homes[0].id, PID: d.pids[a]})
		}
	}
	return nil
}

func (d *derivation) clientOf(rank int32) wire.ClientRank {
	c := len(d.job.Clients) - 1
	for c > 0 && int32(d.job.Clients[c].FirstProc) > rank {
		c--
	}
	return wire.ClientRank(c)
}
