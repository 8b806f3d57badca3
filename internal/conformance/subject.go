package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/pluginlock"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Subject is the plugin that is judged.
type Subject struct {
	// Path is the path of the binary. Empty: this program itself serves the transport Name.
	Path string

	// Name is the name of the transport. Empty: the name that the plugin reports.
	Name string

	// Settings are the attributes of its config block that differ from their defaults.
	Settings map[string]any

	// Env are additional variables of its environment, "NAME=value".
	Env []string

	// NoMTLS means that the plugin does not support AutoMTLS.
	NoMTLS bool

	// Unconfined means that the plugin needs all rights of its node.
	Unconfined bool

	// Host is the IP address at which the plugin listens. Empty: 127.0.0.1.
	Host string
}

func (s Subject) settled(ctx context.Context) (Subject, error) {
	s.Host = cmp.Or(s.Host, "127.0.0.1")
	if s.Path != "" {
		path, err := filepath.Abs(s.Path)
		if err != nil {
			return s, err
		}
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			return s, fmt.Errorf("%s is no program: give the path of a plugin's binary", s.Path)
		}
		s.Path = path
	}
	info, err := s.introduce(ctx)
	if err != nil {
		return s, err
	}
	if s.Name != "" && s.Name != info.GetName() {
		if s.Path == "" {
			return s, fmt.Errorf("it calls its transport %q, not %q: this program has no other one built in", info.GetName(), s.Name)
		}
		return s, fmt.Errorf("it calls its transport %q, not %q: call its file %s%s, or correct Info", info.GetName(), s.Name, host.Prefix, info.GetName())
	}
	s.Name = info.GetName()
	return s, nil
}

// introduce asks the plugin who it is, in a process of its own. One that does not
// even get that far is asked by the node's client, which knows best what was wrong.
func (s Subject) introduce(ctx context.Context) (*proto.InfoResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	dir, err := host.NewRunDir("")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	n, err := startNode(ctx, s, nodeOptions{dir: dir.Path})
	if err == nil {
		defer n.end()
		return n.rpc.Info(ctx, &proto.InfoRequest{Call: n.call(ctx)})
	}
	p, better := host.Start(ctx, s.config(""))
	if better == nil {
		_ = p.Close()
	}
	if better == nil || errors.Is(better, host.ErrName) { // the file's name may be another one
		return nil, err
	}
	return nil, better
}

func (s Subject) fileName() string { return host.Prefix + s.Name }

// misnamed says what is wrong with the name of the plugin's file; empty: nothing.
func (s Subject) misnamed() string {
	file := filepath.Base(s.Path)
	other, named := strings.CutPrefix(file, host.Prefix)
	switch {
	case !named:
		return fmt.Sprintf("its file is called %s: nodes find only files that are called %sNAME; rename it to %s", file, host.Prefix, s.fileName())
	case other != s.Name:
		return fmt.Sprintf("its file is called %s, and Info calls the transport %q: a node that looks for %q does not find it, and one that looks for %q refuses it; rename it to %s, or correct Info",
			file, s.Name, s.Name, other, s.fileName())
	}
	return ""
}

// config is how a node would start the plugin. The data plane is fixed, unless plane is empty.
func (s Subject) config(plane transports.DataPlane) host.Config {
	name := s.Name
	name = cmp.Or(name, strings.TrimPrefix(filepath.Base(s.Path), host.Prefix))
	if s.Name == "" && !pluginlock.ValidName(name) { // a file may be called anything
		name = "unnamed"
	}
	c := host.Config{
		Name: name, Path: s.Path, Builtin: s.Path == "", Settings: s.Settings, Env: s.Env, NoMTLS: s.NoMTLS, Unconfined: s.Unconfined,
		StartTimeout: startLimit,

		Restart: host.Restart{Delay: time.Millisecond, MaxDelay: 50 * time.Millisecond, Attempts: 1000},
	}
	if plane != "" {
		c.DataPlanes = []transports.DataPlane{plane}
	}
	return c
}

// startLimit is how long a plugin may take to start: interpreters do, on machines
// that are busy.
const startLimit = 20 * time.Second
