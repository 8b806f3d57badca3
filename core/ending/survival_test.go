package ending

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// survivors are the nodes of a job of two sites: site 0 has hosts 0 and 1, site 1 hosts 2, 3 and 4,
// and each host two procs. The node runs nhosts hosts from first on.
func survivors(first wire.HostRank, nhosts int, together bool) *Survival {
	job := &startup.Job{}
	for h := range 5 {
		c := min(h/2, 1)
		job.Hosts = append(job.Hosts, startup.HostInfo{Client: wire.ClientRank(c), FirstProc: wire.WorldRank(2 * h), NProcs: 2})
		for i := range 2 {
			job.Procs.Add(startup.ProcInfo{ID: wire.Proc{PID: int64(2*h + i)}, Client: wire.ClientRank(c), Host: wire.HostRank(h)})
		}
	}
	job.Clients = []startup.ClientInfo{{NHosts: 2, NProcs: 4}, {FirstHost: 2, NHosts: 3, FirstProc: 4, NProcs: 6}}
	job.Self = job.Hosts[first].Client
	s := new(Survival)
	s.Begin(SurvivalNode{Job: job, FirstHost: first, NHosts: nhosts, Together: together, Name: func() string { return "this node" }})
	return s
}

// text writes steps down, one word each.
func text(steps []LossStep) string {
	var all []string
	span := func(l wire.Lost) string {
		host := ""
		if l.Host {
			host = "h"
		}
		return fmt.Sprintf("%d-%d%s", l.First, l.Last, host)
	}
	for _, x := range steps {
		switch x.Action {
		case TellLoss:
			all = append(all, "tell:"+span(x.Lost))
		case WarnOfLoss:
			all = append(all, "warn:"+span(x.Lost))
		case ProcGone:
			all = append(all, fmt.Sprint("gone:", x.Rank))
		case HostGone:
			all = append(all, fmt.Sprint("without:", x.Host))
		case NoteLoss:
			all = append(all, fmt.Sprintf("note:%d,%v", x.Failure.Status, x.Failure.Remote))
		case Excluded:
			all = append(all, fmt.Sprintf("excluded:%d", x.Failure.Status))
		case LossEndsJob:
			all = append(all, "ends")
		}
	}
	return strings.Join(all, " ")
}

var (
	noon  = time.Unix(1_000_000, 0)
	gone  = &Failure{Text: "gone", Status: StatusRemote, Precedence: Lost}
	said  = &Failure{Text: "said", Status: StatusRemote, Precedence: Decided}
	third = &Failure{Text: "rank 2 was killed", Status: 137, Precedence: Died}
)

// TestSurvival has nodes of hosts lose procs and hosts, one after the other.
func TestSurvival(t *testing.T) {
	for _, c := range []struct {
		what     string
		s        *Survival
		event    func(s *Survival) []LossStep
		want     string
		excluded bool
	}{
		{"an own proc", survivors(1, 1, false), func(s *Survival) []LossStep { return s.ProcEnded(noon, 2, "rank 2", third, false) },
			"warn:2-2 tell:2-2 gone:2 note:137,false", false},
		{"an own proc that left in order", survivors(1, 1, false), func(s *Survival) []LossStep { return s.ProcEnded(noon, 2, "rank 2", nil, false) },
			"warn:2-2 tell:2-2 gone:2 note:123,false", false},
		{"an own proc while the job ends", survivors(1, 1, false), func(s *Survival) []LossStep { return s.ProcEnded(noon, 2, "rank 2", third, true) }, "", false},
		{"an own proc with all of the site", survivors(2, 3, true), func(s *Survival) []LossStep { return s.ProcEnded(noon, 5, "rank 5", third, false) },
			"warn:4-9h tell:4-9h excluded:137", true},
		{"the launcher", survivors(2, 3, true), func(s *Survival) []LossStep { return s.LauncherFailed(noon, third) },
			"warn:4-9h tell:4-9h excluded:137", true},
		{"another host", survivors(0, 2, false), func(s *Survival) []LossStep { return s.ChannelLost(noon, 3, gone) },
			"without:3 warn:6-7h tell:6-7h without:3 note:123,true", false},
		{"the head of another site", survivors(0, 2, false), func(s *Survival) []LossStep { return s.ChannelLost(noon, 2, gone) },
			"without:2 warn:4-9h tell:4-9h without:2 without:3 without:4 note:123,true", false},
		{"another host by what its site says", survivors(0, 2, false), func(s *Survival) []LossStep { return s.ChannelLost(noon, 2, said) }, "ends", false},
		{"a host of this site", survivors(2, 1, false), func(s *Survival) []LossStep { return s.HostsLost(noon, []int{1, 2}, third) },
			"warn:6-7h tell:6-7h without:3 note:123,true warn:8-9h tell:8-9h without:4 note:123,true", false},
		{"the parent of this host", survivors(3, 1, false), func(s *Survival) []LossStep { return s.HostsLost(noon, []int{1}, gone) },
			"warn:6-7h tell:6-7h excluded:123", true},
		{"the own head, as another host says", survivors(4, 1, false), func(s *Survival) []LossStep { return s.Lost(noon, wire.Lost{First: 4, Last: 5, Host: true}) },
			"warn:4-9h tell:4-9h excluded:123", true},
		{"a proc of another host, as that says", survivors(0, 2, false), func(s *Survival) []LossStep { return s.Lost(noon, wire.Lost{First: 4, Last: 4, Status: 9}) },
			"warn:4-4 tell:4-4 note:123,true", false},
		{"a channel before the job has begun to go on", new(Survival), func(s *Survival) []LossStep { return s.ChannelLost(noon, 3, gone) }, "ends", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := text(c.event(c.s)); got != c.want || c.s.Excluded() != c.excluded {
				t.Errorf("%s, excluded %v\nwant %s", got, c.s.Excluded(), c.want)
			}
			if c.want == "" || c.want == "ends" {
				return
			}
			if again := text(c.event(c.s)); strings.Contains(again, "warn") {
				t.Errorf("once more: %s", again)
			}
		})
	}
}

// TestExcludedNode: a node without which the others go on says so, and nothing about others.
func TestExcludedNode(t *testing.T) {
	s := survivors(3, 1, false)
	steps := s.HostsLost(noon, []int{1}, gone)
	if f := steps[len(steps)-1].Failure; f.Text != "the others go on without this node: gone" || !f.Remote || f.Precedence != Decided {
		t.Errorf("%+v", f)
	}
	if steps := s.ChannelLost(noon, 0, gone); text(steps) != "without:0" {
		t.Errorf("then it does %s", text(steps))
	}
}

// TestKnownLosses: what is known is not told again, and what a lost host's channel says is not
// believed.
func TestKnownLosses(t *testing.T) {
	s := survivors(0, 1, false)
	if got := text(s.Lost(noon, wire.Lost{First: 7, Last: 7})); got != "warn:7-7 tell:7-7 note:123,true" {
		t.Fatal(got)
	}
	if got, want := text(s.ChannelLost(noon.Add(time.Second), 3, gone)), "without:3 warn:6-7h tell:6-6h without:3 note:123,true"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := text(s.ChannelLost(noon, 3, said)); got != "" {
		t.Errorf("it does %s", got)
	}
	if !s.Has(6) || s.Has(4) || !s.LinkExplained(6, 0) || !s.LinkExplained(0, 7) || s.LinkExplained(0, 1) {
		t.Error("other procs are lost")
	}
	want := []wire.Lost{{First: 7, Last: 7}, {First: 6, Last: 6, Host: true, Status: StatusRemote, Text: "gone"}}
	if !slices.Equal(s.All(), want) || !s.HeardAt(0).Equal(noon) || !s.HeardAt(1).Equal(noon.Add(time.Second)) {
		t.Errorf("%+v", s.All())
	}
}

// TestLostSite: a site is lost if all its hosts are.
func TestLostSite(t *testing.T) {
	s := survivors(0, 1, false)
	for host, want := range map[wire.HostRank]bool{4: false, 2: true} { // host 2 is the head of its site
		s := survivors(0, 1, false)
		_ = s.ChannelLost(noon, host, gone)
		if got := s.HasSite(&s.node.Job.Clients[1]); got != want {
			t.Errorf("without host %d: %v", host, got)
		}
	}
	_ = s.Lost(noon, wire.Lost{First: 4, Last: 9})
	if s.HasSite(&s.node.Job.Clients[1]) {
		t.Error("the hosts of lost procs are there")
	}
}

// TestSumOfLosses: the loss of procs is the failure of a job that has no other but a late one.
func TestSumOfLosses(t *testing.T) {
	for _, c := range []struct {
		lost bool
		o    Outcome
		want string
	}{
		{false, Outcome{}, ""},
		{true, Outcome{}, "rank 4 was killed; the job went on without it (9, false)"},
		{true, Outcome{Failure: said}, "said (123, false)"},
		{true, Outcome{Failure: &Failure{Text: "late", Status: 5, Proc: 3, Remote: true}, Late: true}, "rank 4 was killed; the job went on without it (5, true)"},
	} {
		s := survivors(0, 1, false)
		if c.lost {
			_ = s.Lost(noon, wire.Lost{First: 4, Last: 4, Status: 9, Text: "rank 4 was killed"})
		}
		got := ""
		if s.Sum(&c.o); c.o.Failure != nil {
			got = fmt.Sprintf("%s (%d, %v)", c.o.Failure.Text, c.o.Failure.Status, c.o.Failure.Remote)
		}
		if got != c.want || c.lost && c.o.Late != (c.want != "said (123, false)") {
			t.Errorf("%q, late %v; want %q", got, c.o.Late, c.want)
		}
	}
}
