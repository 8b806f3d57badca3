package host

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/transports"
)

// Config says which plugin to run and how.
type Config struct {
	// Name of the transport, as in the config. The plugin must call itself so.
	Name string

	// Path of the plugin's binary, see Find; or Builtin, when this very program
	// serves the transport as its own plugin (sdk.IsPlugin). One of them.
	Path    string
	Builtin bool

	// SHA256 of the binary, in hex, see Digest. Empty: not checked.
	SHA256 string

	// Settings are the transport's config block: names of its schema to string,
	// float64 or any other number, bool, []string or []any of strings. Defaults
	// are filled in here.
	Settings map[string]any

	// Offers are settings that the transport gets if its schema has them and Settings
	// says nothing of them.
	Offers map[string]any

	// Dir is where relative paths among the settings start from. Empty: the working
	// folder of the plugin.
	Dir string

	// DeferConfigure leaves Configure to the caller, who wants to see the schema
	// before. Settings are not looked at.
	DeferConfigure bool

	// DataPlanes pins how links may leave the plugin. Empty: whatever this node
	// can do.
	DataPlanes []transports.DataPlane

	// RunDir is a directory of this process, mode 0700, for the control socket.
	// Empty: one is made, and removed by Close.
	RunDir string

	// Env are further variables, "NAME=value", of the plugin's environment, which
	// has little of the host's otherwise.
	Env []string

	// NoMTLS turns AutoMTLS off, for plugins whose language has no help for it.
	NoMTLS bool

	// StartTimeout bounds a start up to the answer to the first call. Zero: 10 s.
	StartTimeout time.Duration

	// Heartbeat is the time between health checks, and how long an answer may
	// take before the plugin is killed as hung. Zero: 15 s. Negative: none.
	Heartbeat time.Duration

	// Restart says how patient the supervisor is.
	Restart Restart

	// Logger gets the plugin's log and the supervisor's. Nil: none.
	Logger hclog.Logger

	// OnStatus, if any, is called after each change of state, one call at a time.
	// It must not block and not call the Plugin.
	OnStatus func(Status)
}

// DefaultStartTimeout and DefaultHeartbeat stand for zero in a Config.
const (
	DefaultStartTimeout = 10 * time.Second
	DefaultHeartbeat    = 15 * time.Second
)

var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// complete fills in what is left out and reports what is wrong, all of it.
func (c *Config) complete() error {
	var errs []error
	if !validName.MatchString(c.Name) {
		errs = append(errs, fmt.Errorf("name %q: use lower-case letters, digits and '-', beginning with a letter", c.Name))
	}
	if (c.Path == "") != c.Builtin {
		errs = append(errs, errors.New("exactly one of Path and Builtin must be given"))
	}
	if c.SHA256 != "" {
		if _, err := parseDigest(c.SHA256); err != nil {
			errs = append(errs, err)
		}
	}
	for _, p := range c.DataPlanes {
		if !slices.Contains(planes, p) {
			errs = append(errs, fmt.Errorf("data plane %q: this node can do %q", p, planes))
		}
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = DefaultStartTimeout
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	c.Restart.complete()
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	c.Logger = c.Logger.Named(c.Name)
	if len(errs) > 0 {
		return &Error{Plugin: c.Name, Path: c.Path, Kind: ErrConfig, Problem: errors.Join(errs...).Error(),
			Remedy: "correct the transport block"}
	}
	return nil
}

// planes are the data planes of this package, best first.
var planes = []transports.DataPlane{
	transports.PlaneFD, transports.PlanePeerSHM, transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC,
}

// modes are the data planes to ask a plugin for: those that are pinned, or all.
func modes(pinned []transports.DataPlane) (names []string) {
	if len(pinned) == 0 {
		pinned = planes
	}
	for _, p := range pinned {
		names = append(names, string(p))
	}
	return names
}
