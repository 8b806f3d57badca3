package ending

import (
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// Spare decides when the job is over for a spare site, which has no procs in it: the job's server says
// so or, once that is lost, the hosts that have procs do, each for itself. The zero value knows of no
// host.
type Spare struct {
	hosts  []wire.HostRank // that may say something yet
	lost   string          // why the server is; empty: it is not
	well   bool            // a host has said that its part went well
	failed string          // what a host has said or, if none has, why the last one is lost
	told   bool            // failed is a host's word
	over   bool
	why    *Failure
}

// Knows says that a host of the job may say how it ends.
func (s *Spare) Knows(h wire.HostRank) {
	if !slices.Contains(s.hosts, h) {
		s.hosts = append(s.hosts, h)
	}
}

// ServerSaid is the server's word that the job is over. f is nil if it went well.
func (s *Spare) ServerSaid(f *Failure) { s.end(f) }

// ServerLost says that the server is lost. The job may go on without it.
func (s *Spare) ServerLost(why string) {
	s.lost = why
	s.decide()
}

// HostOver is a host's word that its part of the job is over. The failure is empty if it went well.
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

// HostLost says that a host is lost: it cannot be reached any more.
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
		s.end(ToldBy(s.failed))
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
