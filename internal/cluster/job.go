package cluster

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"

	pb "google.golang.org/protobuf/proto"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/rpc/proto"
)

// ErrJob means that bytes are not an encoded job or part of one.
var ErrJob = errors.New("malformed description of the job")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrJob, fmt.Sprintf(format, args...))
}

// EncodePart encodes a host's report to the head: where it listens, and its procs, which have the
// host's address and one business card.
func EncodePart(h startup.HostConfig) ([]byte, error) {
	p := &proto.HostPart{Address: h.Address[:], Port: int32(h.Port), Procs: int32(len(h.Procs))}
	for i, x := range h.Procs {
		if x.ID.Host != h.Address || i > 0 && !slices.Equal(x.Card, h.Procs[0].Card) {
			return nil, malformed("proc %d has another address or card than its host", i)
		}
		p.Pid, p.Card = append(p.Pid, x.ID.PID), x.Card
	}
	p.Pid = withoutNext(p.Pid)
	return pb.Marshal(p)
}

// withoutNext cuts off the trailing numbers that are each 1 above the one before. The numbers of
// our own procs all are.
func withoutNext(pids []int64) []int64 {
	n := len(pids)
	for n > 1 && pids[n-1] == pids[n-2]+1 {
		n--
	}
	return pids[:n]
}

// withNext yields the index and number of n procs; pids is what withoutNext returned for them.
func withNext(pids []int64, n int) iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		pid := int64(0)
		for i := range n {
			if pid++; i < len(pids) {
				pid = pids[i]
			}
			if !yield(i, pid) {
				return
			}
		}
	}
}

// goTogether reports whether pids, as withoutNext returns them, can be those of procs procs, and
// whether there may be so many in addition to others.
func goTogether(pids []int64, procs int32, others int) bool {
	return procs >= 0 && int(procs) <= startup.MaxProcs-others && len(pids) <= int(procs) && (len(pids) > 0) == (procs > 0)
}

// DecodePart decodes the bytes of EncodePart. procs is the number of procs that the host must have.
func DecodePart(b []byte, procs int) (h startup.HostConfig, err error) {
	var p proto.HostPart
	if err := pb.Unmarshal(b, &p); err != nil {
		return h, malformed("%v", err)
	}
	if len(p.GetAddress()) != len(h.Address) || p.GetPort() < 1 || p.GetPort() > 65535 || int(p.GetProcs()) != procs ||
		!goTogether(p.GetPid(), p.GetProcs(), 0) || len(p.GetCard()) > startup.MaxCard {
		return h, malformed("an address of %d bytes, port %d, %d procs of %d with %d numbers, a card of %d bytes",
			len(p.GetAddress()), p.GetPort(), p.GetProcs(), procs, len(p.GetPid()), len(p.GetCard()))
	}
	copy(h.Address[:], p.GetAddress())
	h.Port = int(p.GetPort())
	for _, pid := range withNext(p.GetPid(), procs) {
		h.Procs = append(h.Procs, startup.ProcConfig{ID: wire.Proc{Host: h.Address, PID: pid}, Card: p.GetCard()})
	}
	return h, nil
}

// EncodeJob encodes a job, and the secret that the head has drawn for its site. Procs of one host
// share their card's bytes.
func EncodeJob(j *startup.Job, site [startup.TokenSize]byte) ([]byte, error) {
	p := &proto.Job{
		Self: int32(j.Self), DataLen: j.DataLen, TagUb: int64(j.TagUB), XSize: j.XSize, MaxLinear: j.MaxLinear,
		AckMark: j.AckMark, HiWater: j.HiWater, AllOwn: j.AllOwn, Token: j.Token[:], Secret: j.Secret[:], Site: site[:], Server: j.Server,
	}
	for _, c := range j.Clients {
		x := &proto.JobClient{Own: c.Own}
		for _, v := range c.Versions {
			x.Version = append(x.Version, v.Major, v.Minor)
		}
		p.Client = append(p.Client, x)
	}
	cards := make(map[string]int32)
	for i, h := range j.Hosts {
		x := &proto.JobHost{Client: int32(h.Client), Address: h.Address[:], Port: int32(h.Port), Procs: int32(h.NProcs)}
		for k := range h.NProcs {
			r := int(h.FirstProc) + k
			if r >= j.Procs.Len() || j.Procs.At(wire.WorldRank(r)).Host != wire.HostRank(i) || j.Procs.At(wire.WorldRank(r)).ID.Host != j.Procs.At(h.FirstProc).ID.Host {
				return nil, malformed("proc %d is not one of host %d", r, i)
			}
			proc := j.Procs.At(wire.WorldRank(r))
			id := proc.ID
			if x.Pid = append(x.Pid, id.PID); id.Host != h.Address {
				x.Machine = id.Host[:]
			}
			n := int32(0)
			if c := proc.Card; len(c) > 0 {
				if n = cards[string(c)]; n == 0 {
					p.Card = append(p.Card, c)
					n = int32(len(p.Card))
					cards[string(c)] = n
				}
			}
			x.Card = append(x.Card, n)
		}
		if len(slices.Compact(slices.Clone(x.Card))) == 1 {
			x.Card = x.Card[:1]
		}
		x.Pid = withoutNext(x.Pid)
		p.Host = append(p.Host, x)
	}
	return pb.Marshal(p)
}

// DecodeJob decodes the bytes that the head has encoded with EncodeJob.
func DecodeJob(b []byte) (j *startup.Job, site [startup.TokenSize]byte, err error) {
	var p proto.Job
	if err := pb.Unmarshal(b, &p); err != nil {
		return nil, site, malformed("%v", err)
	}
	j = &startup.Job{
		Self: wire.ClientRank(p.GetSelf()), DataLen: p.GetDataLen(), TagUB: wire.Tag(p.GetTagUb()), XSize: p.GetXSize(), MaxLinear: p.GetMaxLinear(),
		AckMark: p.GetAckMark(), HiWater: p.GetHiWater(), AllOwn: p.GetAllOwn(), Server: p.GetServer(),
	}
	if _, err := netip.ParseAddrPort(j.Server); j.Server != "" && err != nil {
		return nil, site, malformed("the server %.40q: %v", j.Server, err)
	}
	if len(p.GetToken()) != len(j.Token) || len(p.GetSite()) != len(site) || len(p.GetSecret()) != len(j.Secret) || p.GetSelf() < 0 || int(p.GetSelf()) >= len(p.GetClient()) {
		return nil, site, malformed("a token of %d bytes, a secret of %d, client %d of %d", len(p.GetToken()), len(p.GetSecret()), p.GetSelf(), len(p.GetClient()))
	}
	copy(j.Token[:], p.GetToken())
	copy(j.Secret[:], p.GetSecret())
	copy(site[:], p.GetSite())
	for i, c := range p.GetClient() {
		x := startup.ClientInfo{Rank: wire.ClientRank(i), Own: c.GetOwn()}
		for v := c.GetVersion(); len(v) > 1; v = v[2:] {
			x.Versions = append(x.Versions, wire.Version{Major: v[0], Minor: v[1]})
		}
		j.Clients = append(j.Clients, x)
	}
	j.Hosts = make([]startup.HostInfo, 0, len(p.GetHost()))
	for i, h := range p.GetHost() {
		if err := addHost(j, i, h, p.GetCard()); err != nil {
			return nil, site, err
		}
	}
	for i := range j.Clients {
		if j.Clients[i].NHosts == 0 {
			return nil, site, malformed("client %d has no hosts", i)
		}
	}
	return j, site, nil
}

func addHost(j *startup.Job, i int, h *proto.JobHost, cards [][]byte) error {
	x := startup.HostInfo{Client: wire.ClientRank(h.GetClient()), Port: int(h.GetPort()), NProcs: int(h.GetProcs()), FirstProc: wire.WorldRank(j.Procs.Len())}
	last := len(j.Hosts) - 1
	if h.GetClient() < 0 || int(h.GetClient()) >= len(j.Clients) || last >= 0 && j.Hosts[last].Client > x.Client ||
		len(h.GetAddress()) != len(x.Address) || len(h.GetMachine()) > 0 && len(h.GetMachine()) != len(x.Address) ||
		!goTogether(h.GetPid(), h.GetProcs(), j.Procs.Len()) || len(h.GetCard()) > 1 && len(h.GetCard()) != x.NProcs {
		return malformed("host %d of client %d, with %d procs, %d numbers of them and %d cards", i, h.GetClient(), h.GetProcs(), len(h.GetPid()), len(h.GetCard()))
	}
	copy(x.Address[:], h.GetAddress())
	machine := x.Address
	copy(machine[:], h.GetMachine())
	c := &j.Clients[x.Client]
	if c.NHosts == 0 {
		c.FirstHost, c.FirstProc = wire.HostRank(i), x.FirstProc
	}
	c.NHosts++
	c.NProcs += x.NProcs
	j.Hosts = append(j.Hosts, x)
	for k, pid := range withNext(h.GetPid(), x.NProcs) {
		n := 0
		if all := h.GetCard(); len(all) > 0 {
			n = int(all[min(k, len(all)-1)])
		}
		if n < 0 || n > len(cards) {
			return malformed("host %d has card %d of %d", i, n, len(cards))
		}
		y := startup.ProcInfo{ID: wire.Proc{Host: machine, PID: pid}, Client: x.Client, Host: wire.HostRank(i)}
		if n > 0 {
			y.Card = cards[n-1]
		} else if j.AllOwn {
			y.Card = []byte{}
		}
		j.Procs.Add(y)
	}
	return nil
}
