package job

import (
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// order lists the labels of IMPI 0.0, with what has one value of each: a client, a host or a proc.
var order = []struct {
	label wire.Label
	per   scope
	width int
}{
	{wire.LabelVersion, perClient, 0},
	{wire.LabelNHosts, perClient, 4},
	{wire.LabelNProcs, perClient, 4},
	{wire.LabelDataLen, perClient, 4},
	{wire.LabelTagUB, perClient, 4},
	{wire.LabelCollXSize, perClient, 4},
	{wire.LabelMaxLinear, perClient, 4},
	{wire.LabelHostIPv6, perHost, 16},
	{wire.LabelHostPort, perHost, 4},
	{wire.LabelHostNProcs, perHost, 4},
	{wire.LabelAckMark, perHost, 4},
	{wire.LabelHiWater, perHost, 4},
	{wire.LabelProcIPv6, perProc, 16},
	{wire.LabelProcPID, perProc, 8},
}

type scope uint8

const (
	perClient scope = iota
	perHost
	perProc
)

func (x *foreignClient) values(l wire.Label) (b []byte) {
	p := &x.cfg.Params
	switch l {
	case wire.LabelVersion:
		b = make([]byte, 8) // 0.0
		if x.f.Habits {
			b = append(b, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0, 1) // 0.7 and 3.1
		}
		return b
	case wire.LabelNHosts:
		return number(len(x.cfg.Hosts))
	case wire.LabelNProcs:
		n := 0
		for _, h := range x.cfg.Hosts {
			n += len(h.Procs)
		}
		return number(n)
	case wire.LabelDataLen:
		return number(int(p.DataLen))
	case wire.LabelTagUB:
		return number(int(p.TagUB))
	case wire.LabelCollXSize:
		return number(x.crossover(p.XSize, 1024))
	case wire.LabelMaxLinear:
		return number(x.crossover(p.MaxLinear, 4))
	}
	for i := range x.cfg.Hosts {
		b = x.hostValue(b, l, &x.cfg.Hosts[i])
	}
	return b
}

// crossover returns a client's value; clients with Habits send the standard value instead of -1,
// which means the same.
func (x *foreignClient) crossover(v, standard int32) int {
	if v == -1 && x.f.Habits {
		v = standard
	}
	return int(v)
}

func (x *foreignClient) hostValue(b []byte, l wire.Label, h *startup.HostConfig) []byte {
	switch l {
	case wire.LabelHostIPv6:
		a := h.Address
		if x.f.Habits {
			a[10], a[11] = 0xff, 0xff // the other way to write IPv4
		}
		return append(b, a[:]...)
	case wire.LabelHostPort:
		return append(b, number(h.Port)...)
	case wire.LabelHostNProcs:
		return append(b, number(len(h.Procs))...)
	case wire.LabelAckMark:
		return append(b, number(int(x.cfg.Params.AckMark))...)
	case wire.LabelHiWater:
		return append(b, number(int(x.cfg.Params.HiWater))...)
	}
	for _, p := range h.Procs {
		switch l {
		case wire.LabelProcIPv6:
			b = append(b, p.ID.Host[:]...)
		case wire.LabelProcPID:
			b = binary.BigEndian.AppendUint64(b, uint64(p.ID.PID))
		default: // a label of Extra: any value
			b = append(b, byte(p.ID.PID))
		}
	}
	return b
}

// table returns the values that each client has sent for a label; nil for clients that sent none.
func (x *foreignClient) table(j *startup.Job, label wire.Label, per scope, width int) ([][][]byte, error) {
	a := x.answers[label]
	all := make([][][]byte, x.size)
	for c := range all {
		if a.mask>>c&1 == 0 {
			continue
		}
		n := [...]int{1, j.Clients[c].NHosts, j.Clients[c].NProcs}[per]
		if len(a.data) < n*width {
			return nil, fmt.Errorf("label %x is too short", uint32(label))
		}
		for range n {
			all[c] = append(all[c], a.data[:width])
			a.data = a.data[width:]
		}
	}
	if len(a.data) > 0 {
		return nil, fmt.Errorf("label %x has %d bytes too many", uint32(label), len(a.data))
	}
	return all, nil
}

// derive computes the job from the answers. IMPI ch.2, Client labels, Host labels, Proc labels:
// ranks are in order of client, host, proc; of most values the lowest counts.
func (x *foreignClient) derive() (*startup.Job, error) {
	j := &startup.Job{
		Self: x.cfg.Rank, Clients: make([]startup.ClientInfo, x.size),
		DataLen: 1<<32 - 1, TagUB: 1<<31 - 1, XSize: 1024, MaxLinear: 4, AckMark: 1<<32 - 1, HiWater: 1<<32 - 1,
	}
	for c := range j.Clients {
		j.Clients[c].Rank = wire.ClientRank(c)
	}
	if err := x.deriveVersions(j); err != nil {
		return nil, err
	}
	var procs []startup.ProcInfo
	for _, l := range order[1:] {
		all, err := x.table(j, l.label, l.per, l.width)
		if err != nil {
			return nil, err
		}
		if l.label == wire.LabelHostIPv6 {
			enumerate(j)
		}
		at := 0 // index among all hosts, or procs
		for c := range all {
			for _, v := range all[c] {
				use(j, procs, l.label, c, at, v)
				at++
			}
		}
		if l.label == wire.LabelHostNProcs {
			procs = settle(j)
		}
	}
	j.Procs = startup.ListProcs(procs...)
	return j, nil
}

// deriveVersions separates the lists of versions: each begins with 0.0.
func (x *foreignClient) deriveVersions(j *startup.Job) error {
	a := x.answers[wire.LabelVersion]
	c := -1
	for ; len(a.data) >= 8; a.data = a.data[8:] {
		v := wire.Version{Major: binary.BigEndian.Uint32(a.data), Minor: binary.BigEndian.Uint32(a.data[4:])}
		if v == (wire.Version{}) {
			for c++; c < x.size && a.mask>>c&1 == 0; c++ {
			}
		}
		if c < 0 || c >= x.size {
			return fmt.Errorf("there is no client for version %v", v)
		}
		j.Clients[c].Versions = append(j.Clients[c].Versions, v)
		j.Clients[c].Own = j.Clients[c].Own || v == wire.PrivateVersion
	}
	for c := range j.Clients {
		if j.Clients[c].Versions == nil {
			j.Clients[c].Versions = []wire.Version{{}}
		}
	}
	return nil
}

// enumerate assigns ranks to hosts and procs, as far as they are known.
func enumerate(j *startup.Job) {
	procs := 0
	for c := range j.Clients {
		i := &j.Clients[c]
		i.FirstHost, i.FirstProc = wire.HostRank(len(j.Hosts)), wire.WorldRank(procs)
		procs += i.NProcs
		for range i.NHosts {
			j.Hosts = append(j.Hosts, startup.HostInfo{Client: i.Rank})
		}
	}
}

func settle(j *startup.Job) (procs []startup.ProcInfo) {
	for h := range j.Hosts {
		i := &j.Hosts[h]
		i.FirstProc = wire.WorldRank(len(procs))
		for range i.NProcs {
			procs = append(procs, startup.ProcInfo{Client: i.Client, Host: wire.HostRank(h)})
		}
	}
	return procs
}

// use stores one value: that of client c, at index at among all.
func use(j *startup.Job, procs []startup.ProcInfo, l wire.Label, c, at int, v []byte) {
	n := binary.BigEndian.Uint32(v)
	switch l {
	case wire.LabelNHosts:
		j.Clients[c].NHosts = int(n)
	case wire.LabelNProcs:
		j.Clients[c].NProcs = int(n)
	case wire.LabelDataLen:
		j.DataLen = min(j.DataLen, n)
	case wire.LabelTagUB:
		j.TagUB = min(j.TagUB, wire.Tag(n))
	case wire.LabelCollXSize:
		if int32(n) != -1 {
			j.XSize = int32(n)
		}
	case wire.LabelMaxLinear:
		if int32(n) != -1 {
			j.MaxLinear = int32(n)
		}
	case wire.LabelHostIPv6:
		j.Hosts[at].Address = wire.HostID(v)
	case wire.LabelHostPort:
		j.Hosts[at].Port = int(n)
	case wire.LabelHostNProcs:
		j.Hosts[at].NProcs = int(n)
	case wire.LabelAckMark:
		j.AckMark = min(j.AckMark, n)
	case wire.LabelHiWater:
		j.HiWater = min(j.HiWater, n)
	case wire.LabelProcIPv6:
		procs[at].ID.Host = wire.HostID(v)
	case wire.LabelProcPID:
		procs[at].ID.PID = int64(binary.BigEndian.Uint64(v))
	}
}
