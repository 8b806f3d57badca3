package agent

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// onDemandRig is host 0 of three that have two procs each. All channels are made on demand.
func onDemandRig(t *testing.T) *rig {
	c := job(0, 2, 2, 2)
	for h := range c.Hosts {
		c.Hosts[h].Own, c.Hosts[h].OnDemand = true, true
	}
	r := newRig(t, c)
	r.must(r.AttachProc(procLink(0), 0))
	r.must(r.AttachProc(procLink(1), 1))
	return r
}

// TestChannelOnDemand: the first packet asks for the channel, and goes through it; a host that
// nobody speaks to gets no end, and the agent finishes without it.
func TestChannelOnDemand(t *testing.T) {
	r := onDemandRig(t)
	first, second := r.packet(wire.PkData, 0, 2, 5, 1), r.packet(wire.PkData, 1, 3, 5, 2)
	r.must(r.feed(procLink(0), first, everything))
	if e := r.wantEvents("the first packet", HostWanted); e[0].Peer.Host != 1 {
		t.Errorf("it wants %v", e[0].Peer)
	}
	r.must(r.feed(procLink(1), second, everything))
	r.wantEvents("the second packet")
	r.must(r.AttachHost(hostLink(1), 1))
	if got := r.take(hostLink(1), everything); string(got) != string(first)+string(second) {
		t.Errorf("%d bytes came", len(got))
	}
	r.must(r.ProcDone(0))
	r.must(r.ProcDone(1))
	if got, _ := cut(r.take(hostLink(1), everything)); len(got) != 1 || r.name(got[0]) != "FINI" {
		t.Errorf("%d packets at the end", len(got))
	}
	r.must(r.feed(hostLink(1), r.packet(wire.PkFini, 0, 0, 0, 0), everything))
	r.wantEvents("the end of the channel", HostFinished, ChannelDone)
	r.Closed(hostLink(1), io.EOF)
	r.wantEvents("the end", Finished)
	if r.ExpectHost(2) {
		t.Error("a channel is expected when everything is over")
	}
}

// TestNothingOnDemand: an agent that has spoken to nobody finishes with its procs.
func TestNothingOnDemand(t *testing.T) {
	r := onDemandRig(t)
	r.must(r.ProcDone(0))
	r.must(r.ProcDone(1))
	r.wantEvents("the end", Finished)
	if err := r.AttachHost(hostLink(1), 1); !errors.Is(err, ErrLink) {
		t.Errorf("a channel comes afterwards: %v", err)
	}
}

// TestExpectedChannel: the agent does not finish before a channel that it expects has come and
// ended, or is lost.
func TestExpectedChannel(t *testing.T) {
	for _, lost := range []bool{false, true} {
		r := onDemandRig(t)
		if !r.ExpectHost(2) {
			t.Fatal("it expects no channel")
		}
		r.must(r.feed(procLink(0), r.packet(wire.PkData, 0, 4, 5, 1), everything))
		r.wantEvents("a packet while the channel is to come")
		r.must(r.ProcDone(0))
		r.must(r.ProcDone(1))
		r.wantEvents("its procs are done")
		if lost {
			r.UnexpectHost(2)
			r.wantEvents("a packet waits", HostWanted)
			r.NoChannel(2, nil)
			r.wantEvents("the end", Finished)
			continue
		}
		r.must(r.AttachHost(hostLink(2), 2))
		if got, _ := cut(r.take(hostLink(2), everything)); len(got) != 2 || r.name(got[1]) != "FINI" {
			t.Errorf("%d packets", len(got))
		}
	}
}

// TestLateChannel: a channel that comes when the procs are done ends as others do.
func TestLateChannel(t *testing.T) {
	r := onDemandRig(t)
	r.must(r.feed(procLink(0), r.packet(wire.PkData, 0, 2, 5, 1), everything))
	r.wantEvents("a packet", HostWanted)
	r.must(r.AttachHost(hostLink(1), 1))
	r.must(r.ProcDone(0))
	r.must(r.ProcDone(1))
	r.take(hostLink(1), everything)
	if !r.ExpectHost(2) {
		t.Fatal("it expects no channel although it has not finished")
	}
	r.must(r.AttachHost(hostLink(2), 2))
	if got, _ := cut(r.take(hostLink(2), everything)); len(got) != 1 || r.name(got[0]) != "FINI" {
		t.Errorf("%d packets", len(got))
	}
}

// TestLostExpectation: after a connection that was lost before it was used, packets that wait want
// another one, and a host that nothing waits for wants one when something does.
func TestLostExpectation(t *testing.T) {
	r := onDemandRig(t)
	r.ExpectHost(1)
	r.ExpectHost(2)
	r.must(r.feed(procLink(0), r.packet(wire.PkData, 0, 2, 5, 1), everything))
	r.UnexpectHost(1)
	if e := r.wantEvents("a packet waits", HostWanted); e[0].Peer.Host != 1 {
		t.Errorf("it wants %v", e[0].Peer)
	}
	r.UnexpectHost(2)
	r.wantEvents("nothing waits")
	r.must(r.feed(procLink(0), r.packet(wire.PkData, 0, 4, 5, 1), everything))
	r.wantEvents("something waits", HostWanted)
}

// TestNoChannel: a host that cannot be reached is dead while procs are at work or what they have
// sent waits for it. One that has finished is not.
func TestNoChannel(t *testing.T) {
	unreached := errors.New("no way")
	r := onDemandRig(t)
	r.must(r.feed(procLink(0), r.packet(wire.PkData, 0, 2, 5, 1), everything))
	r.must(r.feed(procLink(0), r.packet(wire.PkData, 0, 4, 5, 1), everything))
	r.wantEvents("packets", HostWanted, HostWanted)
	if !r.ChannelDialFailed(1) || !r.ChannelDialFailed(2) {
		t.Error("the channels are not wanted any more")
	}
	r.NoChannel(1, nil)
	r.wantEvents("a host that has finished")
	r.NoChannel(2, unreached)
	if e := r.wantEvents("a host that cannot be reached", HostDied); !errors.Is(e[0].Err, unreached) || !errors.Is(e[0].Err, ErrUnreached) || r.Counts().Queued > 0 {
		t.Errorf("%v, %+v", e[0].Err, r.Counts())
	}

	r = onDemandRig(t)
	r.must(r.feed(procLink(0), r.packet(wire.PkData, 0, 2, 5, 1), everything))
	r.must(r.ProcDone(0))
	r.must(r.ProcDone(1))
	r.wantEvents("a packet", HostWanted)
	if !r.ChannelDialFailed(1) {
		t.Error("what a proc has sent in the barrier of Finalize is thrown away")
	}
	r.UnexpectHost(1)
	r.wantEvents("it is wanted still", HostWanted)
	r.NoChannel(1, unreached)
	r.wantEvents("nobody gets it", HostDied)

	r = onDemandRig(t)
	r.ExpectHost(1)
	r.must(r.ProcDone(0))
	r.must(r.ProcDone(1))
	r.wantEvents("a channel is to come")
	if r.ChannelDialFailed(1) {
		t.Error("the channel is wanted for FINI alone")
	}
	r.wantEvents("the end", Finished)
	if r.ExpectHost(1) {
		t.Error("a channel that was given up is expected")
	}
}

// largeJob has so many hosts of ours, at two clients.
func largeJob(hosts int) *startup.Job {
	says := []wire.Version{wire.Version00, wire.PrivateVersion, wire.OnDemandVersion}
	j := &startup.Job{Clients: []startup.ClientInfo{{Own: true, Versions: says}, {Rank: 1, Own: true, Versions: says}}, Secret: [startup.TokenSize]byte{1}}
	for h := range hosts {
		j.Hosts = append(j.Hosts, startup.HostInfo{Client: wire.ClientRank(2 * h / hosts), Address: wire.HostID{14: byte(h >> 8), 15: byte(h)}, Port: 7})
	}
	return j
}

// TestWhichChannelsAreOnDemand: none of a small job; of a large one all but twice the logarithm of
// its hosts for each, and both ends know which.
func TestWhichChannelsAreOnDemand(t *testing.T) {
	for hosts, most := range map[int]int{MaxAllChannelsHosts: MaxAllChannelsHosts - 1, MaxAllChannelsHosts + 1: 14, 1000: 20} {
		c := NewChannels(ChannelsConfig{Job: largeJob(hosts)})
		for h := range wire.HostRank(hosts) {
			made := 0
			for peer := range wire.HostRank(hosts) {
				if c.OnDemand(h, peer) != c.OnDemand(peer, h) {
					t.Fatalf("hosts %d and %d differ", h, peer)
				}
				if h != peer && !c.OnDemand(h, peer) {
					made++
				}
			}
			if made > most || hosts == MaxAllChannelsHosts && made < most {
				t.Fatalf("%d hosts: host %d makes %d channels at the start", hosts, h, made)
			}
		}
	}
	j := largeJob(4)
	j.Clients[1].Own = false
	if c := NewChannels(ChannelsConfig{Job: j, OnDemand: Always}); !c.OnDemand(0, 1) || c.OnDemand(0, 2) || c.OnDemand(0, 0) {
		t.Error("channels to hosts of others, or of a host to itself, are made on demand")
	}
}

// TestChannelsToAnotherRelease: to the hosts of a site that does not say which channels it makes on
// demand all are made, as it has it, and both sites know who is the other one.
func TestChannelsToAnotherRelease(t *testing.T) {
	for _, old := range []wire.ClientRank{0, 1} {
		for _, self := range []wire.ClientRank{0, 1} {
			j := largeJob(MaxAllChannelsHosts + 2)
			j.Self, j.Clients[old].Versions = self, []wire.Version{wire.Version00, wire.PrivateVersion}
			c := NewChannels(ChannelsConfig{Job: j})
			local := wire.HostRank(self) * (MaxAllChannelsHosts/2 + 1)
			for h := range wire.HostRank(len(j.Hosts)) {
				if j.Hosts[h].Client != self && c.OnDemand(local, h) {
					t.Errorf("client %d makes the channel to host %d on demand", self, h)
				}
			}
			if !c.OnDemand(local, local+3) {
				t.Error("channels within a site are all made at the start")
			}
			if got := c.OfOtherRelease(); len(got) != 1 || got[0] != 1-self {
				t.Errorf("client %d takes clients %d for those of another release", self, got)
			}
			j.Hosts = j.Hosts[:MaxAllChannelsHosts]
			if got := c.OfOtherRelease(); got != nil {
				t.Errorf("in a small job clients %d are named", got)
			}
		}
	}
}

// TestBothHostsAreOfTheSite: either of two hosts of a site dials the other one.
func TestBothHostsAreOfTheSite(t *testing.T) {
	c := NewChannels(ChannelsConfig{Job: largeJob(4), OnDemand: Always, Hosts: []wire.HostRank{0, 1}})
	for h := range wire.HostRank(2) {
		_, token, _ := c.Hello(1-h, h)
		if got, ok := c.Token(h, token.World()); !ok || got != token {
			t.Errorf("host %d does not know what the other one calls their channel", h)
		}
	}
}

// TestTieOfChannels: of two hosts that dial each other, the connection of the one of higher rank is
// used, and the other one waits for it.
func TestTieOfChannels(t *testing.T) {
	j := largeJob(2)
	var ends [2]*Channels
	var hello [2]dynamic.Hello
	for i := range ends {
		h := wire.HostRank(i)
		ends[i] = NewChannels(ChannelsConfig{Job: j, OnDemand: Always, Hosts: []wire.HostRank{h}, Resumes: func(_, _ wire.HostRank) bool { return false }})
		if _, err := ends[i].Begin(h, time.Time{}, time.Time{}); err != nil {
			t.Fatal(err)
		}
		ends[i].End(h)
		if ends[i].Request(h, 1-h, 1, 0) == nil || ends[i].Request(h, 1-h, 1, 0) != nil || !ends[i].KeepsListening(h) {
			t.Fatal("it does not dial once, or does not listen")
		}
		hello[i], _, _ = ends[i].Hello(h, 1-h)
		if v := ends[i].Admits(h, dynamic.Hello{Src: wire.WorldRank(1 - h), Dst: wire.WorldRank(h), Hosts: true, ResumableID: hello[i].ResumableID}, true); v != dynamic.Accepted {
			t.Errorf("host %d: %v", i, v)
		}
	}
	if target, v := ends[0].Arrive(hello[1]); target != Nowhere || v != dynamic.Busy {
		t.Errorf("before the switch runs: %v", target)
	}
	ends[0].Ready()
	ends[1].Ready()
	if target, v := ends[1].Arrive(hello[0]); target != Nowhere || v != dynamic.TieLost {
		t.Errorf("at the host of higher rank: %v, %v", target, v)
	}
	if target, v := ends[0].Arrive(hello[1]); target != ToHost || v != dynamic.Accepted {
		t.Errorf("at the host of lower rank: %v, %v", target, v)
	}
	ends[0].Drop(hello[1])
	if ends[0].Request(0, 1, 1, 0) != nil {
		t.Error("a second dial plan begins while the first one runs")
	}
	ends[0].Stop(0, 1)
	if ends[0].Request(0, 1, 1, 0) == nil {
		t.Error("it does not dial after the connection was lost and the plan has ended")
	}
	ends[1].Stop(1, 0)
	if target, _ := ends[1].Arrive(hello[0]); target != ToHost {
		t.Errorf("when its own dial plan is over: %v", target)
	}
}
