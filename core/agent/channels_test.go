package agent

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// channelJob has hosts 0 and 1 at client 0, host 2 at client 1, which are ours, and host 3 at
// client 2, which is not.
func channelJob() *startup.Job {
	return &startup.Job{
		Clients: []startup.ClientInfo{{Own: true}, {Rank: 1, Own: true}, {Rank: 2}},
		Hosts:   []startup.HostInfo{{}, {}, {Client: 1, Port: 7}, {Client: 2, Address: wire.HostID{12: 127, 15: 3}, Port: 9}},
	}
}

// channelsOf are those of hosts 0 and 1.
func channelsOf(j *startup.Job, own dynamic.Token) *Channels {
	return NewChannels(ChannelsConfig{
		Job: j, Own: own, Hosts: []wire.HostRank{0, 1},
		Resumes: func(local, peer wire.HostRank) bool { return peer == 2 },
		From: func(x wire.ClientRank) []netip.Prefix {
			return []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}
		},
	})
}

// Only at its own host's port is a channel's token known, and never in a job that has no
// secret: zeros are nobody's proof.
func TestChannelTokens(t *testing.T) {
	j := channelJob()
	proven := func(c *Channels) (n int) {
		for local := range wire.HostRank(2) {
			for peer := range wire.HostRank(4) {
				if _, _, ok := c.Hello(local, peer); ok {
					n++
				}
			}
		}
		return n
	}
	known := func(c *Channels) (n int) {
		for _, names := range c.names {
			for _, name := range names {
				if name != (dynamic.WorldID{}) {
					n++
				}
			}
		}
		return n
	}
	if c := channelsOf(j, dynamic.Token{}); proven(c) > 0 || len(c.names) > 0 {
		t.Errorf("without any secret: %d, %v", proven(c), c.names)
	}
	if c := channelsOf(j, dynamic.Token{9}); proven(c) != 2 || known(c) != 1 {
		t.Errorf("without a secret of the job: %d, %v", proven(c), c.names)
	}
	j.Secret[0] = 1
	c := channelsOf(j, dynamic.Token{})
	if proven(c) != 4 || known(c) != 3 {
		t.Fatalf("%d, %v", proven(c), c.names)
	}
	_, token, ok := c.Hello(1, 2)
	if got, known := c.Token(1, token.World()); !ok || !known || got != token {
		t.Error("it is not known at its own host")
	}
	if _, known := c.Token(0, token.World()); known {
		t.Error("it is known at another host")
	}
	if _, known := c.Token(1, dynamic.WorldID{}); known {
		t.Error("a host without a name is known")
	}
	if _, _, ok := c.Hello(0, 3); ok {
		t.Error("a host of others has a secret")
	}
	ours, foreign := c.Unproven()
	if len(ours) != 0 || len(foreign) != 1 || foreign[0] != 2 {
		t.Errorf("unproven: %v, %v", ours, foreign)
	}
}

// A host of others may have further addresses, and no host of ours may.
func TestChannelsFrom(t *testing.T) {
	j := channelJob()
	j.Secret[0] = 1
	for from, want := range map[byte]bool{3: true, 9: true, 1: false} {
		d, err := channelsOf(j, dynamic.Token{}).Begin(0, time.Time{}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		d.Accepted(0, wire.HostID{12: 127, 15: from})
		d.Input(0, []byte{0, 0, 0, 3})
		if joined := len(d.Missing()) == 2; joined != want {
			t.Errorf("from 127.0.0.%d: %t", from, joined)
		}
		if len(d.c.Hosts[2].From) > 0 || !d.c.Hosts[2].Proves {
			t.Errorf("a host of ours: %+v", d.c.Hosts[2])
		}
	}
}

// A host that runs impi and does not answer is out of reach soon, later if it is at another site.
// One of others may not listen yet.
func TestChannelsOutOfReach(t *testing.T) {
	j := channelJob()
	j.Self = 3
	j.Clients = append(j.Clients, startup.ClientInfo{Rank: 3, Own: true})
	j.Hosts = append(j.Hosts, startup.HostInfo{Client: 3}, startup.HostInfo{Client: 3})
	began := time.Unix(5, 0)
	for h, want := range map[wire.HostRank]StepKind{4: Unreachable, 2: Unreachable, 3: TimedOut} {
		by := began.Add(ReachLimit)
		if h == 2 {
			by = began.Add(FarLimit)
		}
		c := NewChannels(ChannelsConfig{Job: j, Hosts: []wire.HostRank{5}, Resumes: func(_, _ wire.HostRank) bool { return false }})
		d, err := c.Begin(5, began, began.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		d.NoAnswer(h, errors.New("no way"))
		d.Tick(by.Add(-1))
		if s, ok := d.Next(); ok {
			t.Errorf("host %d: %+v before the time", h, s)
		}
		d.Tick(by)
		d.Tick(began.Add(time.Minute))
		if s, _ := d.Next(); s.Kind != want {
			t.Errorf("host %d: %v", h, s.Kind)
		}
	}
}

func TestChannelAdmits(t *testing.T) {
	j := channelJob()
	j.Secret[0] = 1
	c := channelsOf(j, dynamic.Token{})
	good := dynamic.Hello{Src: 2, Dst: 1, Hosts: true, Resumes: true}
	token, _ := c.token(channelEnds{1, 2})
	good.ResumableID = token.ChannelResumableID()
	with := func(f func(*dynamic.Hello)) dynamic.Hello {
		h := good
		f(&h)
		return h
	}
	for name, x := range map[string]struct {
		at      wire.HostRank
		hello   dynamic.Hello
		refused bool
		want    dynamic.Verdict
	}{
		"good":                        {1, good, false, dynamic.Accepted},
		"at another host":             {0, good, false, dynamic.UnknownRank},
		"from a host that is dialled": {1, with(func(h *dynamic.Hello) { h.Src = 0 }), false, dynamic.UnknownRank},
		"from a host without secret":  {1, with(func(h *dynamic.Hello) { h.Src = 3 }), false, dynamic.UnknownRank},
		"from nowhere":                {1, with(func(h *dynamic.Hello) { h.Src = 99 }), false, dynamic.UnknownRank},
		"a link of procs":             {1, with(func(h *dynamic.Hello) { h.Hosts = false }), false, dynamic.NotAllowed},
		"of another session":          {1, with(func(h *dynamic.Hello) { h.ResumableID[0]++ }), false, dynamic.UnknownLink},
		"against the routes":          {1, good, true, dynamic.NotAllowed},
	} {
		if got := c.Admits(x.at, x.hello, !x.refused); got != x.want {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
}

// A connection of a channel waits for its host's dance, goes to it, and after that is one for a
// channel that resumes and that its other end dials.
func TestChannelArrive(t *testing.T) {
	j := channelJob()
	j.Secret[0] = 1
	j.Hosts = append(j.Hosts, startup.HostInfo{Client: 1, Port: 8})
	c := channelsOf(j, dynamic.Token{})
	want := func(when string, src wire.WorldRank, want ArrivalTarget) {
		t.Helper()
		target, v := c.Arrive(dynamic.Hello{Src: src, Dst: 1, Hosts: true})
		if target != want || (v == dynamic.Accepted) != (want != Nowhere) {
			t.Errorf("%s: %d, %v, want %d", when, target, v, want)
		}
	}
	want("before the dance", 2, NotReady)
	if _, err := c.Begin(1, time.Time{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	want("in the dance", 2, ToDance)
	c.End(1)
	if s, resumes, dials := c.AddChannel(1, 2); !resumes || dials || s == (dynamic.ResumableID{}) {
		t.Errorf("channel 1 to 2: resumes %t, dials %t", resumes, dials)
	}
	if _, resumes, _ := c.AddChannel(1, 4); resumes {
		t.Error("channel 1 to 4 resumes")
	}
	want("while others of the site dance", 2, NotReady)
	c.Ready()
	want("of a channel that resumes", 2, ToChannel)
	want("of one that does not", 4, Nowhere)
	if !c.KeepsListening(1) {
		t.Error("host 1 does not listen for connections that resume")
	}
	alone := NewChannels(ChannelsConfig{Job: j, Hosts: []wire.HostRank{1}})
	alone.Ready()
	if target, v := alone.Arrive(dynamic.Hello{Src: 2, Dst: 1, Hosts: true}); target != Nowhere || v != dynamic.UnknownLink {
		t.Errorf("at a host that never danced: %d, %v", target, v)
	}
}

// Who dials a channel in its dance dials it again.
func TestChannelDialsAgain(t *testing.T) {
	j := channelJob()
	j.Secret[0] = 1
	c := NewChannels(ChannelsConfig{Job: j, Hosts: []wire.HostRank{2}, Resumes: func(_, _ wire.HostRank) bool { return true }})
	if _, resumes, dials := c.AddChannel(2, 0); !resumes || !dials {
		t.Errorf("resumes %t, dials %t", resumes, dials)
	}
	if c.KeepsListening(2) {
		t.Error("it listens for what it dials itself")
	}
}
