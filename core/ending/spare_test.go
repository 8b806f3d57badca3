package ending

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
)

func TestSpareSiteEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		do     func(s *Spare)
		over   bool
		says   string // of the failure; empty: it went well
		status int
	}{
		{"nothing", func(*Spare) {}, false, "", 0},
		{"the server says so", func(s *Spare) { s.ServerReported(nil) }, true, "", 0},
		{"the job failed", func(s *Spare) { s.ServerReported(RemoteFailure("rank 1 was killed")) }, true, "rank 1 was killed", StatusRemote},
		{"hosts leave before the server speaks", func(s *Spare) { s.HostOver(0, ""); s.HostLost(1, "x") }, false, "", 0},
		{"the server is lost and hosts go on", func(s *Spare) { s.ServerLost("reset"); s.HostLost(0, "x") }, false, "", 0},
		{"hosts end well without the server", func(s *Spare) { s.ServerLost("reset"); s.HostLost(0, "x"); s.HostOver(1, "") }, true, "", 0},
		{"a host says why", func(s *Spare) { s.HostOver(0, "rank 1 was killed"); s.HostOver(1, ""); s.ServerLost("reset") }, true, "rank 1 was killed", StatusRemote},
		{"all is lost", func(s *Spare) { s.ServerLost("reset"); s.HostLost(0, "x"); s.HostLost(1, "host 1 is gone") }, true, "server is lost (reset), and so are all hosts of the job, the last one as host 1 is gone", StatusRemote},
		{"a host that came back", func(s *Spare) { s.HostLost(0, "x"); s.HostLost(1, "y"); s.AddHost(1); s.ServerLost("reset") }, false, "", 0},
		{"the first word counts", func(s *Spare) {
			s.ServerReported(nil)
			s.ServerReported(RemoteFailure("late"))
			s.ServerLost("reset")
			s.HostLost(0, "x")
		}, true, "", 0},
	} {
		var s Spare
		s.AddHost(0)
		s.AddHost(1)
		c.do(&s)
		f, over := s.Over()
		switch {
		case over != c.over:
			t.Errorf("%s: over %t", c.name, over)
		case (f != nil) != (c.says != ""):
			t.Errorf("%s: %v", c.name, f)
		case f != nil && (!strings.Contains(f.Text, c.says) || f.Status != c.status):
			t.Errorf("%s: %q, status %d", c.name, f.Text, f.Status)
		}
	}
}

// TestSpareSiteAlwaysEnds: once the server is gone and each host has said its word or is lost,
// whatever the order.
func TestSpareSiteAlwaysEnds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var s Spare
		n := rapid.IntRange(0, 5).Draw(r, "hosts")
		events := []int{-1}
		for h := range n {
			s.AddHost(wire.HostRank(h))
			events = append(events, h)
		}
		well := false
		failed := false
		for i, e := range rapid.Permutation(events).Draw(r, "order") {
			if _, over := s.Over(); over {
				r.Fatalf("over after %d of %d events", i, len(events))
			}
			switch how := rapid.IntRange(0, 2).Draw(r, "how"); {
			case e < 0:
				s.ServerLost("reset")
			case how == 0:
				s.HostLost(wire.HostRank(e), "it is gone")
			case how == 1:
				s.HostOver(wire.HostRank(e), "")
				well = true
			default:
				s.HostOver(wire.HostRank(e), "rank 0 failed")
				failed = true
			}
		}
		f, over := s.Over()
		if !over || (f == nil) != (well && !failed) {
			r.Fatalf("over %t, %v; well %t, failed %t", over, f, well, failed)
		}
	})
}
