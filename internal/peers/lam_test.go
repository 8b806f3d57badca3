package peers

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/soak"
)

// ackTag is a tag whose four bytes read the same from both ends: LAM on
// little-endian machines completes synchronous sends with no others, see
// TestLAMLosesAcknowledgements.
const ackTag = 0x01000001

// all returns the tests that LAM passes in a shape, with so many messages in a flood.
// docs/peers.md lists the tests that LAM is not given, with the reasons.
func (s shape) all(messages int) []string {
	ours, lams := s.ranks(false), s.ranks(true)
	o, l, two := ours[0], lams[len(lams)-1], len(s.sites) == 2
	everybody := append(slices.Clone(ours), lams...)
	roots := ours // with three clients, LAM as the root forgets operands
	if two {
		roots = everybody
	}
	tests := []string{
		"ring 100", numbers("pingpong", o, l, datalen, 1<<20), numbers("pingpong", l, o, datalen, 1<<20),
		numbers("ssend", o, l, 50, 4), numbers("ssend", o, l, 60, 3*datalen+1), numbers("ssend", l, o, ackTag, 4),
		numbers("flood", o, l, messages), numbers("flood", l, o, messages), numbers("wild", append([]int{len(everybody)}, everybody...)...),
		numbers("pairs", 12, datalen), "barrier 20",
		numbers("bcast", append([]int{datalen, datalen / 4, len(everybody)}, everybody...)...),
		numbers("reduce", append([]int{len(roots)}, roots...)...),
		numbers("types", o, l), numbers("types", l, o), numbers("derived", o, l, datalen), numbers("derived", l, o, datalen),
	}
	if two { // long ones only from LAM: see docs/peers.md
		tests = append(tests, numbers("bcast", append([]int{datalen, datalen, len(lams)}, lams...)...))
	}
	if two || roots[0] == 0 {
		tests = append(tests, "allreduce 1", numbers("allreduce", datalen/8)) // rank 0 is the root
	}
	return append(tests, s.spawning()...)
}

// spawning has a rank of each site spawn that can: neither LAM's nor one with an MPI of its own.
func (s shape) spawning() (tests []string) {
	var by []int
	first := 0
	for _, site := range s.sites {
		if !site.LAM && site.Native == "" {
			by = append(by, first)
		}
		first += site.Procs
	}
	if len(by) == 0 {
		return nil
	}
	return []string{numbers("spawn", append([]int{3*datalen + 1, len(by)}, by...)...)}
}

// pass runs a job with some tests, which all ranks must pass.
func pass(t *testing.T, k *kit, s shape, tests []string, change func(*Job)) {
	t.Helper()
	var names []string
	for _, x := range tests {
		names = append(names, strings.Fields(x)[0])
	}
	j := k.job(t, s.sites, strings.Join(tests, " + "))
	if change != nil {
		change(j)
	}
	succeed(t, j, names...)
}

// TestLAM: jobs of ours and LAM/MPI in all shapes.
func TestLAM(t *testing.T) {
	k := needLAM(t)
	for i, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			if strings.HasSuffix(s.name, "one proc each") || strings.HasSuffix(s.name, "1 and 3 procs") || s.name == "LAM as clients 0 and 2" {
				soak.SkipUnlessSoak(t, "make test has two procs a site, and three sites with LAM first, between ours and last")
			}
			t.Parallel()
			messages := 300
			if i < 2 {
				messages = soak.Size(2000, 10000)
			}
			pass(t, k, s, s.all(messages), s.keyed)
		})
	}
}

// TestLAMBesideMachines: to LAM a site of ours on several machines is one with several hosts, of
// which it has a channel with each.
func TestLAMBesideMachines(t *testing.T) {
	k := needLAM(t)
	for i, order := range []struct {
		name  string
		sites []Site // Machines has how many there are
	}{
		{"LAM as client 1", []Site{{Procs: 4, Machines: make([]*netns.Machine, 3)}, {LAM: true, Procs: 2, Machines: make([]*netns.Machine, 1)}}},
		{"LAM as client 0", []Site{{LAM: true, Procs: 2, Machines: make([]*netns.Machine, 1)}, {Procs: 4, Machines: make([]*netns.Machine, 3)}}},
		{"LAM as client 1 between ours", []Site{{Procs: 2, Machines: make([]*netns.Machine, 2)}, {LAM: true, Procs: 2, Machines: make([]*netns.Machine, 1)}, {Procs: 3, Machines: make([]*netns.Machine, 3)}}},
	} {
		t.Run(order.name, func(t *testing.T) {
			if i > 1 {
				soak.SkipUnlessSoak(t, "make test has two sites")
			}
			t.Parallel()
			all := netns.New(t, 7)
			for _, s := range order.sites {
				all = all[copy(s.Machines, all):]
			}
			s := shape{order.name, order.sites}
			pass(t, k, s, s.all(300), func(j *Job) { j.Key = machinesKey })
		})
	}
}

// TestLAMBesideSeveralServers: LAM knows one server, that of the job, and our sites come there too
// if the first one of their list is down, whoever decides where the sites meet.
func TestLAMBesideSeveralServers(t *testing.T) {
	k := needLAM(t)
	for name, sites := range map[string][]Site{
		"LAM as client 1": {{Procs: 2}, {LAM: true, Procs: 1}}, "LAM as client 0": {{LAM: true, Procs: 1}, {Procs: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shape{name, sites}
			pass(t, k, s, []string{"ring 100"}, func(j *Job) { j.First = "127.0.0.9:1" })
		})
	}
}

// TestServerLostBesideLAM: a job that runs outlives its server with LAM in it, too: LAM does not
// mind, and all sites end well.
func TestServerLostBesideLAM(t *testing.T) {
	k := needLAM(t)
	for name, sites := range map[string][]Site{
		"LAM as client 1": {{Procs: 2}, {LAM: true, Procs: 2}}, "LAM as client 0": {{LAM: true, Procs: 2}, {Procs: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lam := Client(slices.IndexFunc(sites, func(s Site) bool { return s.LAM }))
			for rounds := 500; ; rounds *= 4 {
				ctx, r := start(t, k.job(t, sites, numbers("ring", 1)+" + "+numbers("ring", rounds)))
				for _, party := range []string{Node, lam} { // LAM is not through with the server before
					if err := r.Output(party).Await(ctx, ": ok\n"); err != nil {
						t.Fatal(err)
					}
				}
				_ = r.server.Process.Kill() // it may have ended
				ended, left, err := r.Wait(ctx)
				if err != nil || len(left) > 0 {
					t.Errorf("%v, left over: %q", err, left)
				}
				for _, party := range []string{Node, lam} {
					if e := ended[party]; e.Err != nil || strings.Count(e.Text, ": finalized") != 2 {
						t.Errorf("%s ended with %v:\n%s", party, e.Err, e.Text)
					}
				}
				if ended[Server].Err != nil || t.Failed() {
					return
				} // the job was over before the server was killed
			}
		})
	}
}

// machinesKey is for jobs with sites on several machines, which need a key.
const machinesKey = 1<<62 + 5678

// TestMachineLostBesideLAM: the server is told which machine of ours is lost, by our site.
func TestMachineLostBesideLAM(t *testing.T) {
	k := needLAM(t)
	m := netns.New(t, 4)
	ctx, r := pumping(t, k, []Site{{Procs: 3, Machines: m[:3]}, {LAM: true, Procs: 1, Machines: m[3:]}}, "pump 0 3", machinesKey)
	m[2].Crash()
	for party, says := range map[string]string{
		Node: "impi-node: site ours0: host 10.77.0.3 is lost: ", Server: "client 0 (10.77.0.1:", Client(1): "Closing connection (good luck)",
	} {
		if err := r.Output(party).Await(ctx, says); err != nil {
			t.Error(err)
		}
	}
	if err := r.Universe(1).Kill(); err != nil {
		t.Fatal(err)
	}
	ended, _, _ := r.Wait(ctx)
	if e := ended[Server]; e.Err == nil || !strings.Contains(e.Text, "host 10.77.0.3 is lost") {
		t.Errorf("the server ended with %v and says %s", e.Err, e.Text)
	}
}

// keyed gives a key to a job in which sites of ours have channels with each other, so that
// these prove their identity although LAM takes part. Without a key they warn.
func (s shape) keyed(j *Job) {
	ours := 0
	for _, x := range s.sites {
		if !x.LAM {
			ours++
		}
	}
	if ours > 1 {
		j.Key = 1<<62 + 5678
	}
}

// TestUnexpectedBesideLAM: a site of ours bounds the unexpected messages that it keeps from
// another one, although a job with LAM has no business cards.
func TestUnexpectedBesideLAM(t *testing.T) {
	k := needLAM(t)
	s := shape{"ours as clients 0 and 2", []Site{{Procs: 1}, {LAM: true, Procs: 1}, {Procs: 1}}}
	pass(t, k, s, []string{numbers("backlog", 0, 2, 2000)}, s.keyed)
}

// TestLAMKey: startup with a key.
func TestLAMKey(t *testing.T) {
	k := needLAM(t)
	for _, s := range shapes[:2] {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			pass(t, k, s, []string{"ring 10"}, func(j *Job) { j.Key = 1<<62 + 5678 })
		})
	}
}

// TestLAMLong: messages up to 64 MiB, and packets as small as our site wants them.
func TestLAMLong(t *testing.T) {
	k := needLAM(t)
	for i, s := range shapes[2:4] {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			pass(t, k, s, []string{numbers("pingpong", i, 1-i, datalen, soak.Size(16<<20, 64<<20))}, nil)
		})
		t.Run(s.name+", packets of 1000 bytes", func(t *testing.T) {
			if i == 0 {
				soak.SkipUnlessSoak(t, "make test has LAM as client 1")
			}
			t.Parallel()
			tests := []string{numbers("pingpong", 0, 1, 1000, 1<<20), numbers("pairs", 30, 1000), numbers("derived", i, 1-i, 1000)}
			pass(t, k, s, tests, func(j *Job) { j.DataLen = 1000 })
		})
	}
}

// TestLAMLosesAcknowledgements: a synchronous send of LAM completes only if the four bytes
// of its tag read the same from both ends, although our SYNCACK does not differ otherwise
// and LAM has read the packets after it.
func TestLAMLosesAcknowledgements(t *testing.T) {
	k := needLAM(t)
	for _, c := range []struct{ tag, want string }{{"0", "complete"}, {"16777217", "complete"}, {"5", "never acknowledged"}, {"16777216", "never acknowledged"}} {
		t.Run("tag "+c.tag, func(t *testing.T) {
			t.Parallel()
			j := k.job(t, []Site{{Procs: 1}, {LAM: true, Procs: 1}}, "lostack 1 0 "+c.tag)
			j.Trace = filepath.Join(j.Dir, "packets-%r.txt")
			ctx, r := start(t, j)
			if err := r.Output(Client(1)).Await(ctx, "exchange: tag "+c.tag+": "); err != nil {
				t.Fatal(err)
			}
			if said := r.Output(Client(1)).String(); !strings.Contains(said, "tag "+c.tag+": "+c.want) {
				t.Errorf("LAM says %s", said)
			}
			if err := r.Output(Node).Await(ctx, "exchange: lostack: rank 0 of 2: ok"); err != nil {
				t.Fatal(err)
			}
			if c.want == "complete" {
				if ended, _, err := r.Wait(ctx); err != nil || ended[Node].Err != nil || ended[Client(1)].Err != nil {
					t.Errorf("the job ended with %v, %v", ended, err)
				}
			} else {
				r.KillAll()
				_, _, _ = r.Wait(ctx)
			}
			trace, err := os.ReadFile(filepath.Join(j.Dir, "packets-0.txt"))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(trace), "SYNCACK"); n != 1 {
				t.Errorf("%d SYNCACK packets, want 1:\n%.3000s", n, trace)
			}
		})
	}
}

// wantLost checks that our side failed, and that its error names the site that was lost.
func wantLost(t *testing.T, ended map[string]Ended) {
	t.Helper()
	if e := ended[Node]; e.Err == nil || !strings.Contains(e.Text, "impi-node: site lam1 (client 1)") {
		t.Errorf("our node ended with %v and says %s", e.Err, e.Text)
	}
	if e := ended[Server]; e.Err == nil || !strings.Contains(e.Text, "client 1 (") {
		t.Errorf("the server ended with %v and says %s", e.Err, e.Text)
	}
}

// pumping starts a job that goes on for ever, and waits until it does. A key of 0 is none.
func pumping(t *testing.T, k *kit, sites []Site, tests string, key uint64) (context.Context, *Running) {
	t.Helper()
	j := k.job(t, sites, tests)
	j.Key = key
	ctx, r := start(t, j)
	for i, s := range sites {
		party := Node
		if s.LAM {
			party = Client(i)
		}
		if err := r.Output(party).Await(ctx, " runs\n"); err != nil {
			t.Fatal(err)
		}
	}
	return ctx, r
}

// TestLAMKilled: all of LAM is killed in the middle. Our side ends, and says who left.
func TestLAMKilled(t *testing.T) {
	k := needLAM(t)
	ctx, r := pumping(t, k, []Site{{Procs: 2}, {LAM: true, Procs: 2}}, "pump 0 3", 0)
	if err := r.Universe(1).Kill(); err != nil {
		t.Fatal(err)
	}
	ended, _, err := r.Wait(ctx)
	if err != nil {
		t.Error(err)
	}
	wantLost(t, ended)
}

// TestKilledBesideLAM: all of ours is killed in the middle. The server says so; LAM says
// so, and goes on waiting for what cannot come.
func TestKilledBesideLAM(t *testing.T) {
	k := needLAM(t)
	for _, sites := range [][]Site{{{Procs: 2}, {LAM: true, Procs: 2}}, {{LAM: true, Procs: 2}, {Procs: 2}}} {
		lam := slices.IndexFunc(sites, func(s Site) bool { return s.LAM })
		t.Run("LAM as "+Client(lam), func(t *testing.T) {
			t.Parallel()
			ctx, r := pumping(t, k, sites, "pump 0 3", 0)
			if err := r.KillOurs(); err != nil {
				t.Fatal(err)
			}
			if err := r.Output(Client(lam)).Await(ctx, "Closing connection (good luck)"); err != nil {
				t.Fatal(err)
			}
			if err := r.Output(Server).Await(ctx, "connection was lost before FINI"); err != nil {
				t.Fatal(err)
			}
			if err := r.Universe(lam).Kill(); err != nil {
				t.Fatal(err)
			}
			if ended, _, _ := r.Wait(ctx); ended[Server].Err == nil {
				t.Errorf("the server ended well: %s", ended[Server].Text)
			}
		})
	}
}
