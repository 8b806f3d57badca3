package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/plugins/sdk/support/keyfile"
	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

// Names of the environment variables that all implementations share.
const (
	envNone = "IMPI_AUTH_NONE" // set at all: no proof is asked for
	envKey  = "IMPI_AUTH_KEY"  // the key, decimal
)

// environment is os.LookupEnv, or a test's.
type environment func(name string) (value string, set bool)

type options struct {
	clients int
	spares  int  // spare sites that may join
	names   bool // run as a name service for several jobs, instead of as a job's server
	host    string
	port    uint16       // 0: any, or one of ports
	ports   config.Ports // range from which the first free port is taken
	auth    startup.Auth
	timeout time.Duration
	id      *rendezvous.Identity // nil: no certificates
	needTLS bool
	resume  time.Duration
	level   hclog.Level
	json    bool

	raw *raw // the options as read, for reload
}

type raw struct {
	port                 string
	auth, keyFile, level string
	levelFile            string
	cert, certKey, ca    string
	timed                bool            // -timeout was given
	given                map[string]bool // flags that were given
}

func newCommand(env environment) (*cmdline.Command, *options) {
	r := &raw{given: map[string]bool{}}
	o := &options{raw: r}
	c := cmdline.NewProgram("impi-server", help, "IMPI 0.0\n")
	fs := c.Flags
	fs.IntVar(&o.clients, "clients", 0, "")
	fs.IntVar(&o.spares, "spares", 0, "")
	fs.BoolVar(&o.names, "names", false, "")
	fs.StringVar(&o.host, "host", "", "")
	fs.StringVar(&r.port, "port", "0", "")
	fs.StringVar(&r.auth, "auth", "", "`none|key`")
	fs.StringVar(&r.keyFile, "key-file", "", cmdline.File)
	fs.DurationVar(&o.timeout, "timeout", startup.DefaultLimit, "")
	fs.StringVar(&r.cert, "cert", "", cmdline.File)
	fs.StringVar(&r.certKey, "key", "", cmdline.File)
	fs.StringVar(&r.ca, "ca", "", cmdline.File)
	fs.BoolVar(&o.needTLS, "require-tls", false, "")
	fs.DurationVar(&o.resume, "resume", rendezvous.MaxResume, "")
	fs.StringVar(&r.level, "log-level", "info", "`trace|debug|info|warn|error|off`")
	fs.StringVar(&r.levelFile, "log-level-file", "", cmdline.File)
	fs.BoolVar(&o.json, "log-json", false, "")
	c.Check = func([]string) error {
		fs.Visit(func(f *flag.Flag) { r.given[f.Name] = true })
		r.timed = r.given["timeout"]
		err := o.check(r)
		if err == nil {
			err = o.certificates(r)
		}
		if err == nil {
			o.auth, err = r.authentication(env)
		}
		return err
	}
	return c, o
}

func (o *options) check(r *raw) error {
	o.level = hclog.LevelFromString(r.level)
	switch {
	case o.names && o.clients != 0:
		return errors.New("-clients cannot be used with -names: such a server belongs to no job, and a job's own server keeps names anyway")
	case o.names && o.spares != 0:
		return errors.New("-spares cannot be used with -names: such a server belongs to no job")
	case o.spares < 0 || o.spares > startup.MaxSpares:
		return fmt.Errorf("-spares %d: a job has 0 to %d spare sites", o.spares, startup.MaxSpares)
	case o.names && r.timed:
		return errors.New("-timeout cannot be used with -names: such a server waits for no clients")
	case !o.names && !r.given["clients"]:
		return errors.New("-clients is missing: say how many sites the job has; or -names, for the names of several jobs' ports")
	case !o.names && (o.clients < 1 || o.clients > wire.MaxClients):
		return fmt.Errorf("-clients %d: a job has 1 to %d", o.clients, wire.MaxClients)
	case !o.readPort(r.port):
		return fmt.Errorf("-port %s: write a TCP port, 0 (any) to 65535, or a range of them, of which the first free one is taken: 7800-7899", r.port)
	case o.timeout <= 0:
		return fmt.Errorf("-timeout %v: write a time such as 60s or 10m", o.timeout)
	case o.level == hclog.NoLevel:
		return fmt.Errorf("-log-level %q: %s", r.level, knownLevels)
	case r.levelFile == "":
		return nil
	case r.given["log-level"]:
		return errors.New("-log-level cannot be used with -log-level-file: the file has the level")
	}
	var err error
	o.level, err = readLevel(r.levelFile)
	return err
}

func (o *options) readPort(text string) bool {
	if n, err := strconv.ParseUint(text, 10, 16); err == nil {
		o.port = uint16(n)
		return true
	}
	var ok bool
	o.ports, ok = config.ParsePorts(text)
	return ok
}

const knownLevels = "write trace, debug, info, warn, error or off"

// maxSmallFile bounds the files with a key and with a log level, and leaves room for white space.
const maxSmallFile = 4 << 10

func readLevel(path string) (hclog.Level, error) {
	b, err := plainfile.Read(path, maxSmallFile)
	if err != nil {
		return hclog.NoLevel, fmt.Errorf("-log-level-file: %w", err)
	}
	text := strings.TrimSpace(string(b[:min(len(b), 64)]))
	level := hclog.LevelFromString(text)
	if level == hclog.NoLevel {
		return level, fmt.Errorf("-log-level-file %s has %q: %s", path, text, knownLevels)
	}
	return level, nil
}

func (r *raw) identity() (*rendezvous.Identity, error) {
	id, err := rendezvous.LoadIdentity(map[string]any{"cert": r.cert, "key": r.certKey, "ca": r.ca}, "")
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	return id, nil
}

func (o *options) certificates(r *raw) (err error) {
	files := r.cert != "" || r.certKey != "" || r.ca != ""
	switch {
	case o.names && (files || o.needTLS || r.given["resume"]):
		return errors.New("-cert, -key, -ca, -require-tls and -resume cannot be used with -names: names are always encrypted, and nothing is resumed")
	case o.resume < 0:
		return fmt.Errorf("-resume %v: write a time such as 30s or 5m, or 0 for none", o.resume)
	case files && (r.cert == "" || r.certKey == "" || r.ca == ""):
		return errors.New("-cert, -key and -ca belong together: impi-node cert init -sites server,... makes all files")
	case files:
		o.id, err = r.identity()
	}
	return err
}

// authentication settles which mechanisms are available: what -auth says, or
// what the environment has. A key is never taken from the command line, where
// every user of the machine could read it.
func (r *raw) authentication(env environment) (startup.Auth, error) {
	switch r.auth {
	case "none":
		if r.keyFile != "" {
			return startup.Auth{}, errors.New("-key-file cannot be used with -auth none")
		}
		return startup.Auth{None: true}, nil
	case "key", "":
	default:
		return startup.Auth{}, fmt.Errorf("-auth %q: write none or key", r.auth)
	}
	_, none := env(envNone)
	a := startup.Auth{None: none && r.auth == "" && r.keyFile == ""}
	text, from, err := r.key(env)
	if err != nil {
		return a, err
	}
	if from != "" {
		if a.Key, err = startup.ParseKey(text); err != nil {
			return a, fmt.Errorf("%s: %w", from, err)
		}
		a.HasKey = true
	}
	switch {
	case r.auth == "key" && !a.HasKey:
		return a, fmt.Errorf("-auth key: give the key by -key-file, or in %s", envKey)
	case a.Mask() == 0:
		return a, fmt.Errorf("say how clients prove that they belong to the job: -auth none, -key-file FILE, or set %s or %s", envKey, envNone)
	}
	return a, nil
}

// openKey returns the mode of the key's file if others than its owner can read it, or "".
func (r *raw) openKey() string {
	if r.keyFile == "" {
		return ""
	}
	info, err := os.Stat(r.keyFile)
	if err != nil || keyfile.Private(info) {
		return "" // it was read, but may be gone since
	}
	return fmt.Sprintf("%04o", info.Mode().Perm())
}

func (r *raw) key(env environment) (text, from string, err error) {
	if r.keyFile != "" {
		b, err := plainfile.ReadPipe(r.keyFile, maxSmallFile) // a secret may come from a program: -key-file <(...)
		if err != nil {
			return "", "", fmt.Errorf("-key-file: %w", err)
		}
		return string(b), "-key-file " + r.keyFile, nil
	}
	if text, ok := env(envKey); ok {
		return text, envKey, nil
	}
	return "", "", nil
}
