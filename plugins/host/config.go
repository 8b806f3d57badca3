package host

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Config says which plugin to run and how.
type Config struct {
	// Name of the transport, as in the config. The plugin must report the same name.
	Name string

	// Path of the plugin's binary, see Find. Or Builtin, if this program itself serves the
	// transport as a plugin (sdk.IsPlugin). Exactly one of them must be set.
	Path    string
	Builtin bool

	// SHA256 of the binary, in hex, see Digest. Empty: not checked.
	SHA256 string

	// Install is the command that puts the file with SHA256 in its place, if there is one.
	Install string

	// Settings are the transport's config block: names of its schema to string, float64 or
	// another number, bool, []string or []any of strings. Missing settings get their
	// defaults.
	Settings map[string]any

	// Offers are further settings, which the transport gets only if its schema has them and
	// Settings does not.
	Offers map[string]any

	// Dir is the folder from which relative paths in the settings start. Empty means the
	// working folder of the plugin.
	Dir string

	// DeferConfigure leaves Configure to a caller that wants to see the schema first.
	// Settings are ignored then.
	DeferConfigure bool

	// DataPlanes restricts how links may leave the plugin. Empty means all that this node
	// supports.
	DataPlanes []transports.DataPlane

	// RunDir is a directory of this process, mode 0700, for the control socket. If it is
	// empty, one is made, and removed by Close.
	RunDir string

	// Env are additional variables, "NAME=value", of the plugin's environment, which
	// otherwise has only a few of the host's.
	Env []string

	// NoMTLS turns AutoMTLS off, for plugins whose language does not support it. Built-in plugins
	// use TLS with a secret of this start instead of AutoMTLS, and no TLS if NoMTLS is set.
	NoMTLS bool

	// Unconfined leaves the plugin all rights of this process: see package rights.
	Unconfined bool

	// UserNamespace gives the plugin a user namespace of its own. Not together with Unconfined.
	UserNamespace bool

	// StartTimeout bounds a start up to the answer to the first call. Zero: 10 s.
	StartTimeout time.Duration

	// Heartbeat is the time between health checks, and the maximum time for an answer before the
	// plugin is killed as hung. Zero: 15 s. Negative: none.
	Heartbeat time.Duration

	// Restart says how often and after which waits a dead plugin is started again.
	Restart Restart

	// Logger receives the plugin's log and the supervisor's. Nil: none.
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

var validName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`) })

// sharesSecret reports whether node and plugin are one program, which need not exchange
// certificates.
func (c *Config) sharesSecret() bool { return c.Builtin && !c.NoMTLS }

// complete sets the defaults and returns all errors of the Config, joined.
func (c *Config) complete() error {
	var errs []error
	if !validName().MatchString(c.Name) {
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
	if c.Unconfined && c.UserNamespace {
		errs = append(errs, errors.New("an unconfined plugin has all rights of its node, and none of its own namespace"))
	}
	for _, p := range c.DataPlanes {
		if !slices.Contains(planes, p) {
			errs = append(errs, fmt.Errorf("data plane %q: this node can do %q", p, planes))
		}
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = DefaultStartTimeout
	}
	c.Heartbeat = cmp.Or(c.Heartbeat, DefaultHeartbeat)
	c.Restart.complete()
	c.Logger = cmp.Or(c.Logger, hclog.NewNullLogger())
	c.Logger = c.Logger.Named(c.Name)
	if len(errs) > 0 {
		return &Error{Plugin: c.Name, Path: c.Path, Kind: ErrConfig, Problem: errors.Join(errs...).Error(),
			Remedy: "correct the transport block"}
	}
	return nil
}

// planes are the data planes that this package supports, best first.
var planes = []transports.DataPlane{
	transports.PlaneFD, transports.PlanePeerSHM, transports.PlaneRDMA, transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC,
}

// modes are the data planes to ask a plugin for: pinned, or all if that is empty.
func modes(pinned []transports.DataPlane) (names []string) {
	if len(pinned) == 0 {
		pinned = planes
	}
	for _, p := range pinned {
		names = append(names, string(p))
	}
	return names
}
