package links

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/route"
)

// jobOf is a job of sites alpha (ranks 0, 1) and beta (2, 3).
func jobOf(pairs ...Pair) *Job {
	auto := Waiting{Setting: "auto", Budget: 200000, State: "polling"}
	j := &Job{Name: "ring", ID: "0123", Pairs: pairs}
	for i, name := range []string{"alpha", "beta"} {
		p := SiteState{Site: Site{Name: name, Client: i, Own: true, First: 2 * i, Procs: 2}, Here: true, PID: 100 + i}
		for r := range 2 {
			p.Ranks = append(p.Ranks, Proc{Rank: 2*i + r, PID: 200 + 2*i + r, Wait: auto})
		}
		j.Sites = append(j.Sites, p)
	}
	for i := range j.Pairs {
		p := &j.Pairs[i]
		p.SiteA, p.SiteB = j.siteOf(p.A), j.siteOf(p.B)
	}
	return j
}

func excluded(name, reach string, r route.Rule) Candidate {
	return Candidate{Transport: name, Reach: reach, Verdict: Excluded, Rule: r, Reason: "because"}
}

var (
	viaTCP   = Candidate{Transport: "tcp", Reach: "network", Verdict: Chosen, Address: "127.0.0.3:1"}
	star     = Route{Site: "*", Prefer: []string{"tcp"}, Direct: true}
	tcpFirst = Route{Site: "beta", Prefer: []string{"tcp", "shm"}, Direct: true}
	shmFirst = Route{Site: "alpha", Prefer: []string{"shm", "tcp"}, Direct: true}
)

func linkedPair(transport, plane string, views ...View) Pair {
	return Pair{A: 0, B: 2, State: StateLinked, Transport: transport, Plane: plane, Views: views}
}

func byAgents(v View) Pair { return Pair{A: 0, B: 2, State: StateAgents, Views: []View{v}} }

func TestAdvice(t *testing.T) {
	for _, c := range []struct {
		name string
		pair Pair
		want []string
	}{
		{"shared memory: nothing is faster",
			linkedPair("shm", "peer-shm", View{Local: 0, Peer: 2, SameMachine: true, Route: shmFirst, Dialled: true,
				Candidates: []Candidate{{Transport: "shm", Reach: "machine", Verdict: Chosen}, {Transport: "unix", Reach: "machine", Verdict: Possible}}}), nil},
		{"unused", Pair{A: 0, B: 2, State: StateUnused, Views: []View{{Local: 0, Peer: 2, SameMachine: true, Route: star, Candidates: []Candidate{viaTCP}}}}, nil},
		{"two machines by tcp",
			linkedPair("tcp", "fd", View{Local: 0, Peer: 2, Route: star, Dialled: true, Candidates: []Candidate{viaTCP, excluded("shm", "machine", route.OtherMachine)}}), nil},
		{"one machine, shm not in prefer",
			linkedPair("tcp", "fd", View{Local: 0, Peer: 2, SameMachine: true, Route: star, Dialled: true, Candidates: []Candidate{viaTCP, excluded("shm", "machine", route.NotPreferred)}}),
			[]string{`both are on one machine: "shm" in prefer of route "*" of site alpha`}},
		{"one machine, no route block",
			linkedPair("tcp", "fd", View{Local: 0, Peer: 2, SameMachine: true, Route: Route{Direct: true, Prefer: []string{"tcp"}}, Dialled: true, Candidates: []Candidate{viaTCP, excluded("shm", "machine", route.NotPreferred)}}),
			[]string{`both are on one machine: "shm" in prefer of a route "beta" block of site alpha`}},
		{"one machine, shm behind tcp",
			linkedPair("tcp", "fd", View{Local: 0, Peer: 2, SameMachine: true, Route: tcpFirst, Dialled: true, Candidates: []Candidate{viaTCP, {Transport: "shm", Reach: "machine", Verdict: Possible}}}),
			[]string{`both are on one machine: "shm" before "tcp" in prefer of route "beta" of site alpha`}},
		{"one machine, and only the dialler's order is wrong",
			linkedPair("tcp", "fd", View{Local: 2, Peer: 0, SameMachine: true, Route: shmFirst, Candidates: []Candidate{{Transport: "shm", Reach: "machine", Verdict: Possible}, viaTCP}}), nil},
		{"one machine, the peer does not offer shm",
			linkedPair("tcp", "fd", View{Local: 0, Peer: 2, SameMachine: true, Route: shmFirst, Dialled: true, Candidates: []Candidate{excluded("shm", "machine", route.NotOffered), viaTCP}}),
			[]string{`both are on one machine: "shm" in prefer of a route of site beta, which does not listen by it`}},
		{"one machine, the peer's routes refused shm",
			linkedPair("tcp", "fd", View{Local: 0, Peer: 2, SameMachine: true, Route: shmFirst, Dialled: true, Candidates: []Candidate{{Transport: "shm", Reach: "machine", Verdict: Failed, Rule: route.PeerRoutes}, viaTCP}}),
			[]string{`both are on one machine: "shm" in prefer of a route of site beta, which does not allow it`}},
		{"one machine, shm broke",
			linkedPair("tcp", "fd", View{Local: 0, Peer: 2, SameMachine: true, Route: shmFirst, Dialled: true, Candidates: []Candidate{{Transport: "shm", Reach: "machine", Verdict: Failed, Reason: "no memory"}, viaTCP}}),
			[]string{`both are on one machine: make shm work, which failed: no memory`}},
		{"one machine, require_tls",
			linkedPair("quic", "fd", View{Local: 0, Peer: 2, SameMachine: true, Route: shmFirst, Dialled: true, Candidates: []Candidate{excluded("shm", "machine", route.NotEncrypted), {Transport: "quic", Reach: "network", Verdict: Chosen}}}),
			[]string{`both are on one machine: route "alpha" of site alpha without require_tls: shm is not encrypted`}},
		{"one machine, pinned to another plane",
			linkedPair("tcp", "fd", View{Local: 0, Peer: 2, SameMachine: true, Route: Route{Site: "*", Direct: true, DataPlane: []string{"fd"}}, Dialled: true, Candidates: []Candidate{excluded("shm", "machine", route.WrongPlane), viaTCP}}),
			[]string{`both are on one machine: route "*" of site alpha without data_plane: shm has none of ["fd"]`}},
		{"unix instead of shm",
			linkedPair("unix", "fd", View{Local: 0, Peer: 2, SameMachine: true, Route: star, Dialled: true, Candidates: []Candidate{{Transport: "unix", Reach: "machine", Verdict: Chosen}, {Transport: "shm", Reach: "machine", Planes: []string{"peer-shm"}, Verdict: Excluded, Rule: route.NotPreferred, Reason: "because"}}}),
			[]string{`shared memory needs no system call: "shm" in prefer of route "*" of site alpha`}},
		{"grpc, pinned",
			linkedPair("quic", "grpc", View{Local: 0, Peer: 2, Route: Route{Site: "*", Direct: true, DataPlane: []string{"grpc"}}, Candidates: []Candidate{{Transport: "quic", Reach: "network", Verdict: Chosen}}}),
			[]string{`no data_plane in route "*" of site alpha: it pins grpc, which copies every byte through the plugin`}},
		{"grpc, as the plugin can do no more",
			Pair{A: 0, B: 2, State: StateLinked, Transport: "web", Plane: "grpc", PlaneReason: "it cannot pass descriptors", Views: []View{{Local: 0, Peer: 2, Route: star, Candidates: []Candidate{{Transport: "web", Reach: "network", Verdict: Chosen}}}}},
			[]string{`a plugin web that can do better than grpc (it cannot pass descriptors)`}},
		{"ring is no fault",
			linkedPair("quic", "ring", View{Local: 0, Peer: 2, Route: star, Candidates: []Candidate{{Transport: "quic", Reach: "network", Verdict: Chosen}}}), nil},
		{"direct = false",
			byAgents(View{Local: 0, Peer: 2, Route: Route{Site: "*"}, Candidates: []Candidate{excluded("tcp", "network", route.DirectOff)}}),
			[]string{`direct = true in route "*" of site alpha: packets go through the agents now`}},
		{"a foreign site: nobody can help",
			byAgents(View{Local: 0, Peer: 2, Route: Route{Site: "*"}, Candidates: []Candidate{excluded("tcp", "network", route.NoCards)}}), nil},
		{"every transport failed",
			byAgents(View{Local: 0, Peer: 2, Route: star, Candidates: []Candidate{{Transport: "tcp", Verdict: Failed, Reason: "no route to host"}}}),
			[]string{`make tcp work, which failed: no route to host`}},
		{"no transport in common",
			byAgents(View{Local: 0, Peer: 2, Route: star, Candidates: []Candidate{excluded("quic", "network", route.NotOffered), excluded("shm", "machine", route.OtherMachine), excluded("tcp", "network", route.NotPreferred)}}),
			[]string{`"quic" in prefer of a route of site beta, which does not listen by it`, `"tcp" in prefer of route "*" of site alpha`}},
		{"one machine, two users",
			linkedPair("tcp", "fd", View{Local: 0, Peer: 2, Route: star, Candidates: []Candidate{viaTCP}}, View{Local: 2, Peer: 0, Route: star, Candidates: []Candidate{viaTCP}}),
			[]string{"both nodes run on this machine, but under different users or network namespaces: with the same ones they could share memory"}},
	} {
		j := jobOf(c.pair)
		Advise(j)
		if got := j.Pairs[0].Faster; !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// TestAdviceOnWhatWasMeasured: a transport that was measured to be twice as quick,
// and no less, is worth a change.
func TestAdviceOnWhatWasMeasured(t *testing.T) {
	for trip, want := range map[time.Duration]string{
		10 * time.Microsecond: `"tcp" before "quic" in prefer of route "*" of site alpha: 10.0 us instead of 40.0 us`,
		30 * time.Microsecond: "",
		0:                     "",
	} {
		p := linkedPair("quic", "ring", View{Local: 0, Peer: 2, Route: Route{Site: "*", Prefer: []string{"quic", "tcp"}, Direct: true}, Dialled: true, Candidates: []Candidate{
			{Transport: "quic", Reach: "network", Verdict: Chosen},
			{Transport: "tcp", Reach: "network", Verdict: Possible, Probe: &Speed{How: HowProbe, Measure: Measure{HalfTrip: trip}}},
		}})
		p.Speed = &Speed{How: HowProbe, Measure: Measure{HalfTrip: 40 * time.Microsecond}}
		j := jobOf(p)
		Advise(j)
		if got := strings.Join(j.Pairs[0].Faster, "; "); got != want {
			t.Errorf("%v: %q, want %q", trip, got, want)
		}
	}
}

func TestAdviceOnWaiting(t *testing.T) {
	best := linkedPair("shm", "peer-shm", View{Local: 0, Peer: 2, SameMachine: true, Route: shmFirst, Candidates: []Candidate{{Transport: "shm", Reach: "machine", Verdict: Chosen}}})
	for _, c := range []struct {
		name   string
		change func(*Proc)
		want   string
	}{
		{"polling", func(*Proc) {}, ""},
		{"never polls", func(p *Proc) { p.Wait = Waiting{Setting: "0s"} }, `wait { spin = "auto" } at site beta`},
		{"crowded", func(p *Proc) { p.Wait.Oversubscribed = true }, "a core for rank 2"},
		{"silent: nothing is known", func(p *Proc) { p.Wait, p.Silent = Waiting{Setting: "0s"}, "no answer" }, ""},
	} {
		j := jobOf(best)
		c.change(&j.Sites[1].Ranks[0])
		Advise(j)
		got := strings.Join(j.Pairs[0].Faster, "; ")
		if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestAdviceIsGivenOnce: two ends that say the same are one piece of advice.
func TestAdviceIsGivenOnce(t *testing.T) {
	v := View{Local: 0, Peer: 1, SameMachine: true, Route: star, Dialled: true, Candidates: []Candidate{viaTCP, excluded("shm", "machine", route.NotPreferred)}}
	w := v
	w.Local, w.Peer, w.Dialled = 1, 0, false
	j := jobOf(Pair{A: 0, B: 1, State: StateLinked, Transport: "tcp", Plane: "fd", Views: []View{v, w}})
	Advise(j)
	if got := j.Pairs[0].Faster; len(got) != 1 {
		t.Errorf("%q", got)
	}
}
