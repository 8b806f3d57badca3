package node

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

// checkedJob is a job of sites with that many procs which run all collective
// operations and check each result, or another of the built programs.
func checkedJob(t *testing.T, command []string, procs ...int) *config.Job {
	t.Helper()
	exampleJob(t, "ring", nil, config.Route{}) // builds
	job := testJob("", procs...)
	job.Limits.Start = 2 * time.Minute
	for i := range job.Sites {
		s := &job.Sites[i]
		s.Server.Timeout = job.Limits.Start
		s.Transports = s.Transports[1:] // tcp
		s.Program = config.Program{Command: command, Path: filepath.Join(built.dir, command[0]), Dir: t.TempDir(), PrefixOutput: true}
	}
	return job
}

const allRight = "matrix-check: every result of collectives was right"

var (
	collectives = []string{"check", "-what", "collectives"}
	someRounds  = []string{"ring", "-rounds", "200"}
)

// protocol changes what all sites announce.
func protocol(job *config.Job, change func(*config.Site)) *config.Job {
	for i := range job.Sites {
		change(&job.Sites[i])
	}
	return job
}

// runs wants a job to end well and rank 0 to have said the line. It gives what
// startup has agreed on.
func runs(t *testing.T, job *config.Job, line string, change ...func(*Options)) *startup.Job {
	t.Helper()
	all := start(t, job, change...)
	wantNone(t, all)
	if out := all[0].out.String(); !strings.Contains(out, line) {
		t.Errorf("rank 0 did not say %q:\n%s", line, out)
	}
	if t.Failed() {
		t.FailNow()
	}
	return all[0].n.job
}

func isDraft(s *config.Site) {
	s.Protocol.Dialect, s.Labels.Versions = config.Draft1999, []config.Version{{}}
}

// TestDraftSites: sites of the draft, one of them with two hosts, start, dance, run
// all collectives and end. What they say is traced: headers without pk_lsrank,
// collectives by negative tags on the context of the communicator, no FINI.
func TestDraftSites(t *testing.T) {
	job := protocol(checkedJob(t, collectives, 2, 3), isDraft)
	splitHosts(&job.Sites[1])
	trace := filepath.Join(t.TempDir(), "packets-%r.txt")
	job.Sites[0].Log.Trace = trace
	j := runs(t, job, allRight)
	if j.AllOwn || j.Clients[0].Own || len(j.Hosts) != 3 {
		t.Errorf("the job is not the draft's: %+v", j.Clients)
	}
	text, err := os.ReadFile(strings.ReplaceAll(trace, "%r", "0"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" tag=-110 cid=0", " tag=-120 cid=0", " tag=-190 cid=0"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no packet has%s", want)
		}
	}
	for _, no := range []string{"FINI", " tag=110 ", " cid=1\n"} {
		if strings.Contains(string(text), no) {
			t.Errorf("a packet has %q", no)
		}
	}
}

// splitHosts gives the last proc of a site a host of its own.
func splitHosts(s *config.Site) {
	h := s.Hosts[0]
	h.Procs--
	s.Hosts = []config.Host{h, {Address: netip.AddrFrom4([4]byte{127, 0, 1, byte(2 + s.Client)}), Procs: 1}}
}

// TestDraftSiteThatDies: the draft does not tell the end of a host from its death;
// the server does, and all sites hear the reason.
func TestDraftSiteThatDies(t *testing.T) {
	all := start(t, protocol(testJob("three", 1, 1), isDraft))
	wantAll(t, all, "rank 1 on site beta exited with status 3")
}

// TestForms: IPv4 in its two forms, in one job. Each site's addresses are sent as
// it has them, in H_IPV6 and P_IPV6, and all connect.
func TestForms(t *testing.T) {
	job := checkedJob(t, collectives, 2, 1, 2)
	job.Sites[1].Protocol.IPv4 = config.IPv4Mapped
	job.Sites[2].Protocol.IPv4 = config.IPv4Compatible
	protocol(job, func(s *config.Site) { s.Labels.Versions = []config.Version{{}} }) // no direct links
	j := runs(t, job, allRight)
	for i, h := range j.Hosts {
		mapped := h.Address[10] == 0xff && h.Address[11] == 0xff
		if mapped != (i == 1) || h.Address.Addr() != job.Sites[i].Hosts[0].Address {
			t.Errorf("host %d is at %x", i, h.Address[:])
		}
	}
	for r, p := range j.Procs.All() {
		if p.ID.Host != j.Hosts[p.Host].Address {
			t.Errorf("rank %d is at %x", r, p.ID.Host[:])
		}
	}
}

// TestSmallestPackets: one byte of data in a packet, and one packet in flight.
func TestSmallestPackets(t *testing.T) {
	for name, change := range map[string]func(*config.Site){
		"direct": func(*config.Site) {},
		"IMPI":   func(s *config.Site) { s.Labels.Versions = []config.Version{{}} },
		"draft":  isDraft,
	} {
		t.Run(name, func(t *testing.T) {
			job := protocol(checkedJob(t, []string{"ring", "-rounds", "40"}, 2, 1), change)
			p := &job.Sites[1].Protocol // one site's wish is everybody's
			p.DataLen, p.AckMark, p.HiWater = 1, 1, 1
			j := runs(t, job, "as it must be")
			if j.DataLen != 1 || j.AckMark != 1 || j.HiWater != 1 {
				t.Errorf("data length %d, ackmark %d, hiwater %d", j.DataLen, j.AckMark, j.HiWater)
			}
		})
	}
}

// TestManySites is as many as there can be, each with its own node, over IMPI's channels:
// 496 of them. make test has eight.
func TestManySites(t *testing.T) {
	skips.Short(t)
	sites := soak.Size(8, wire.MaxClients)
	procs := slices.Repeat([]int{1}, sites)
	job := protocol(checkedJob(t, []string{"ring", "-rounds", "5"}, procs...), func(s *config.Site) {
		s.Labels.Versions = []config.Version{{}}
		s.Server.Timeout = 5 * time.Minute // all plugins for IMPI's channels start at once
	})
	job.Limits.Start = 5 * time.Minute
	j := runs(t, job, fmt.Sprintf("ring: %d ranks, 5 rounds", sites))
	if j.Size() != sites || j.Procs.Len() != sites || j.Procs.At(wire.WorldRank(sites-1)).Client != wire.ClientRank(sites-1) {
		t.Errorf("%d clients, %d procs", j.Size(), j.Procs.Len())
	}
}

// TestSitesThatOmit: the sites of a job leave out what MetaMPICH does, and more; the
// rest of them decides, and collectives and flow control agree everywhere.
func TestSitesThatOmit(t *testing.T) {
	job := checkedJob(t, collectives, 1, 2, 1)
	job.Sites[0].Protocol.TagUB, job.Sites[0].Protocol.AckMark, job.Sites[0].Protocol.HiWater = 40000, 4, 9
	job.Sites[1].Labels.Omit = []string{"C_TAGUB", "H_ACKMARK", "H_HIWATER"}
	job.Sites[1].Protocol.TagUB, job.Sites[1].Protocol.AckMark, job.Sites[1].Protocol.HiWater = 32767, 1, 1
	job.Sites[2].Labels.Omit = []string{"C_VERSION", "C_DATALEN", "C_COLL_XSIZE", "C_COLL_MAXLINEAR"}
	all := start(t, job)
	wantNone(t, all)
	if out := all[0].out.String(); !strings.Contains(out, allRight) {
		t.Error(out)
	}
	for i, r := range all {
		j := r.n.job
		if j.TagUB != 40000 || j.AckMark != 4 || j.HiWater != 9 || j.DataLen != 65536 || j.XSize != 1024 || j.MaxLinear != 4 || j.AllOwn {
			t.Errorf("site %d: %+v", i, j)
		}
	}
}

// TestNobodySaysAnything: without any optional label packets have one byte of data.
func TestNobodySaysAnything(t *testing.T) {
	job := protocol(checkedJob(t, someRounds, 1, 2), func(s *config.Site) {
		s.Labels.Omit = []string{"C_VERSION", "C_DATALEN", "C_TAGUB", "C_COLL_XSIZE", "C_COLL_MAXLINEAR", "H_ACKMARK", "H_HIWATER"}
	})
	if j := runs(t, job, "as it must be"); j.DataLen != 1 || j.TagUB != 32767 || j.AckMark != startup.DefaultAckMark || j.HiWater != startup.DefaultHiWater {
		t.Errorf("%+v", j)
	}
}

// TestSitesWithSeveralVersions: lists of different lengths do not run into each
// other, and do not keep sites of ours from their extensions.
func TestSitesWithSeveralVersions(t *testing.T) {
	job := checkedJob(t, collectives, 1, 2, 1)
	lists := [][]config.Version{
		{{}, {Minor: 3}, config.OwnVersion},
		{{}, config.OwnVersion, {Major: 1}, {Major: 1, Minor: 2}},
		{{}, {Minor: 3}, config.OwnVersion, {Major: 1}},
	}
	for i := range job.Sites {
		job.Sites[i].Labels.Versions = lists[i]
	}
	j := runs(t, job, allRight)
	for i, list := range lists {
		want := slices.Insert(slices.Clone(list), slices.Index(list, config.OwnVersion)+1, config.Version(wire.OnDemandVersion), config.Version(wire.FailVersion), config.Version(wire.LostVersion), config.Version(wire.AskVersion))
		if have := fmt.Sprint(j.Clients[i].Versions); have != fmt.Sprint(want) {
			t.Errorf("site %d lists %s, want %v", i, have, want)
		}
	}
	var pairs []string // the highest version that both list
	for a := range j.Clients {
		for _, v := range slices.Backward(j.Clients[a].Versions) {
			if slices.Contains(j.Clients[(a+1)%3].Versions, v) {
				pairs = append(pairs, v.String())
				break
			}
		}
	}
	if !j.AllOwn || !slices.Equal(pairs, []string{"0.65543", "1.0", "0.65543"}) {
		t.Errorf("all own: %v, pairs speak %v", j.AllOwn, pairs)
	}
}

// TestSeveralHosts: sites with several hosts each, with addresses of their own, over
// IMPI's channels only: every host has one to every other.
func TestSeveralHosts(t *testing.T) {
	for name, change := range map[string]func(*config.Site){
		"IMPI":  func(s *config.Site) { s.Labels.Versions = []config.Version{{}} },
		"draft": isDraft,
	} {
		t.Run(name, func(t *testing.T) {
			job := protocol(checkedJob(t, collectives, 1, 3, 2), change)
			splitHosts(&job.Sites[1])
			splitHosts(&job.Sites[2])
			j := runs(t, job, allRight)
			var at []string
			for _, h := range j.Hosts {
				at = append(at, fmt.Sprintf("%d %v %d", h.Client, h.Address, h.NProcs))
			}
			want := []string{"0 127.0.0.2 1", "1 127.0.0.3 2", "1 127.0.1.3 1", "2 127.0.0.4 1", "2 127.0.1.4 1"}
			if !slices.Equal(at, want) {
				t.Errorf("hosts %q, want %q", at, want)
			}
		})
	}
}
