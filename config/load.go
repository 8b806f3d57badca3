package config

import (
	"net/netip"
	"strconv"
)

// Options tell Load what it cannot know by itself.
type Options struct {
	// Builtins are the names of the transports that need no block, best first.
	Builtins []string

	// Local limits the checks of this machine's files, programs and ports to sites
	// with a host whose address it accepts. Nil: check every site that is ours.
	Local func(netip.Addr) bool

	// CheckPort reports why a listener cannot be opened on an address that the file
	// gives to a site of ours, or nil. It is not asked about port 0. Nil: ports are
	// not checked.
	CheckPort func(netip.AddrPort) error

	// LookupEnv reads an environment variable. Nil: os.LookupEnv.
	LookupEnv func(name string) (value string, ok bool)
}

// Load reads the file at path. The job is nil if the diagnostics have errors.
func Load(path string, opt Options) (*Job, Diagnostics) {
	panic("config: Load is not built yet")
}

// TransportFault makes a diagnostic of what transport t's own schema found
// wrong with one of its settings: the place is that setting's, or the config
// block's, or the transport block's, whichever exists.
func (j *Job) TransportFault(t Transport, setting, problem, remedy string) Diagnostic {
	pos := t.Pos
	if !t.settings.IsZero() {
		pos = t.settings
	}
	for _, s := range t.Settings {
		if s.Name == setting {
			pos = s.Pos
		}
	}
	return j.Fault(pos, "transport "+quote(t.Name)+": "+setting+": "+problem, remedy)
}

// Fault makes an Error at a place of j's file.
func (j *Job) Fault(pos Pos, problem, remedy string) Diagnostic {
	d := Diagnostic{Severity: Error, Pos: pos, Problem: problem, Remedy: remedy}
	if pos.Line > 0 && pos.Line <= len(j.source) {
		d.Source = j.source[pos.Line-1]
	}
	return d
}

func quote(s string) string { return strconv.Quote(s) }
