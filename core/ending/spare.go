package ending

import (
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// Spare decides when the job is over for a spare site, which has no procs in it: when the job's
// server reports it or, once the server is lost, when all hosts that have procs have reported it,
// each for itself. In the zero value there are no hosts.
type Spare struct {
	hosts  []wire.HostRank // hosts that may still report
	lost   string          // reason why the server is lost; empty: it is not
	well   bool            // a host has reported success
	failed string          // failure that a host has reported; if none has, why the last host is lost
	told   bool            // failed was reported by a host
	over   bool
	why    *Failure
}

// AddHost records that a host of the job may report how the job ends.
func (s *Spare) AddHost(h wire.HostRank) {
	if !slices.Contains(s.hosts, h) {
		s.hosts = append(s.hosts, h)
	}
}

// ServerReported records the server's report that the job is over. f is nil for success.
func (s *Spare) ServerReported(f *Failure) { s.end(f) }

// ServerLost records that the server is lost. The job may continue without it.
func (s *Spare) ServerLost(why string) {
	s.lost = why
	s.decide()
}

// WithoutServer reports whether the server is lost, so that the site has to reach hosts to learn how the
// job ends.
func (s *Spare) WithoutServer() bool { return s.lost != "" }

// HostOver records a host's report that its part of the job is over. failure is empty for success.
func (s *Spare) HostOver(h wire.HostRank, failure string) {
	if s.forget(h) {
		switch {
		case failure == "":
			s.well = true
		case !s.told:
			s.failed, s.told = failure, true
		}
		s.decide()
	}
}

// HostLost records that a host is lost: it cannot be reached any more.
func (s *Spare) HostLost(h wire.HostRank, why string) {
	if s.forget(h) {
		if !s.told {
			s.failed = why
		}
		s.decide()
	}
}

func (s *Spare) forget(h wire.HostRank) bool {
	i := slices.Index(s.hosts, h)
	if i >= 0 {
		s.hosts = slices.Delete(s.hosts, i, i+1)
	}
	return i >= 0
}

// decide ends the job once nobody is left who could say more.
func (s *Spare) decide() {
	switch {
	case s.lost == "" || len(s.hosts) > 0:
	case s.told:
		s.end(RemoteFailure(s.failed))
	case s.well:
		s.end(nil)
	default:
		text := "the job's server is lost (" + s.lost + ")"
		if s.failed != "" {
			text += ", and so are all hosts of the job, the last one as " + s.failed
		}
		s.end(ConnectionLost(text, nil))
	}
}

func (s *Spare) end(f *Failure) {
	if !s.over {
		s.over, s.why = true, f
	}
}

// Over reports whether the job is over, and why it failed, if it did.
func (s *Spare) Over() (f *Failure, over bool) { return s.why, s.over }
