package startup

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/openimpi/impi/core/wire"
)

func (d *derivation) makeHosts() []HostInfo {
	var hosts []HostInfo
	for c := range d.job.Clients {
		for range d.job.Clients[c].NHosts {
			hosts = append(hosts, HostInfo{Client: wire.ClientRank(c)})
		}
	}
	return hosts
}

// takeHostValue handles a value of which each host has one (IMPI ch.2, Host labels).
func (d *derivation) takeHostValue(l wire.Label, host int, data []byte) error {
	h := &d.job.Hosts[host]
	if l == wire.LabelHostIPv6 {
		h.Address = wire.HostID(data[:16])
		return nil
	}
	v := binary.BigEndian.Uint32(data)
	switch l {
	case wire.LabelHostPort:
		if v > 65535 {
			return fmt.Errorf("%w: %d is no TCP port", ErrValue, v)
		}
		h.Port = int(v)
	case wire.LabelHostNProcs:
		if v > MaxProcs {
			return fmt.Errorf("%w: %d is more than %d", ErrValue, v, MaxProcs)
		}
		h.NProcs = int(v)
	case wire.LabelAckMark:
		if v < 1 {
			return fmt.Errorf("%w: an ackmark of 0", ErrValue)
		}
		d.hostMarks[host] = v
		d.job.AckMark = min(d.job.AckMark, v)
	case wire.LabelHiWater:
		if v < max(1, d.hostMarks[host]) {
			return fmt.Errorf("%w: hiwater %d is below ackmark %d", ErrValue, v, max(1, d.hostMarks[host]))
		}
		d.job.HiWater = min(d.job.HiWater, v)
	}
	return nil
}

// checkPorts refuses a port of 0 for a host to which a host of another client will connect,
// which those of higher rank do (IMPI ch.2, Host-to-host connections).
func (d *derivation) checkPorts() error {
	for i := range d.job.Hosts {
		h := &d.job.Hosts[i]
		if h.Port == 0 && int(h.Client) < d.size-1 {
			return fmt.Errorf("client %d: host %d: %w: port 0, but higher clients must connect to it",
				h.Client, i-int(d.job.Clients[h.Client].FirstHost), ErrValue)
		}
	}
	return nil
}

// rankHostProcs checks that the hosts of each client together have its procs, and gives
// these world ranks in host order (IMPI ch.2, H_NPROCS).
func (d *derivation) rankHostProcs() error {
	for c := range d.job.Clients {
		ci := &d.job.Clients[c]
		next := 0
		for i := range ci.NHosts {
			h := &d.job.Hosts[int(ci.FirstHost)+i]
			h.FirstProc = ci.FirstProc + wire.WorldRank(next)
			next = min(next+h.NProcs, MaxProcs+1)
		}
		if next != ci.NProcs {
			return fmt.Errorf("client %d: %w: its hosts have %d procs together, C_NPROCS said %d", c, ErrValue, next, ci.NProcs)
		}
	}
	return nil
}

// checkMarks checks that the smallest ackmark is not above the smallest hiwater: they may come from
// different hosts if some left out one of the labels (IMPI ch.3, Packet Protocol: a window of
// hiwater packets must not be smaller than ackmark).
func (d *derivation) checkMarks() error {
	d.hostMarks = nil
	if j := d.job; j.AckMark > j.HiWater && j.AckMark != math.MaxUint32 {
		return fmt.Errorf("%w: the least ackmark is %d, the least hiwater %d: PROTOACKs would come too late", ErrValue, j.AckMark, j.HiWater)
	}
	return nil
}

// unsaid sets the values of labels that no client has sent, and that were therefore not answered.
// For the data length and the tag bound it takes values that every implementation can use. For the
// window no value is safe with peers that use another one; it takes our default.
func (d *derivation) unsaid() {
	j := d.job
	if !d.said[wire.LabelDataLen] {
		j.DataLen = 1
	}
	if !d.said[wire.LabelTagUB] {
		j.TagUB = MinTagUB
	}
	if !d.said[wire.LabelHiWater] {
		j.HiWater = DefaultHiWater
		if d.said[wire.LabelAckMark] {
			j.HiWater = max(j.HiWater, j.AckMark)
		}
	}
	if !d.said[wire.LabelAckMark] {
		j.AckMark = min(DefaultAckMark, j.HiWater)
	}
}
