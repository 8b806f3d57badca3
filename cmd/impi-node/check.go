package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/measured"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/identity"
)

// checker finds what a node would refuse at its start, from the job file, this machine's
// files and the transports.
type checker struct {
	job   *config.Job
	local []config.Site // on this machine
	found config.Diagnostics

	// The properties of the links of transports, if known: not for plugins that were not
	// started, nor with wrong settings.
	links map[offered]transports.Capabilities
}

type offered struct{ site, transport string }

func (c *checker) here(s config.Site) bool {
	return slices.ContainsFunc(c.local, func(l config.Site) bool { return l.Name == s.Name })
}

func (c *checker) fault(pos config.Pos, problem, remedy string) {
	c.found = append(c.found, c.job.Fault(pos, problem, remedy))
}

// transports checks the settings of built-in transports and the files of plugins; with try
// it starts the plugins and asks them, those too that no route names, since a route may be all that
// is missing.
func (c *checker) transports(ctx context.Context, try bool) {
	for _, s := range c.job.All() {
		for _, t := range s.Transports {
			switch {
			case t.Builtin:
				c.settings(s, t)
				c.ports(s, t)
			case !c.here(s) || t.Path == "" || !try && !wanted(s, t.Name):
			case try:
				c.start(ctx, s, t)
			default:
				c.file(t)
			}
		}
	}
}

func wanted(s config.Site, name string) bool {
	routes := append(slices.Clone(s.Routes), s.RouteTo("*"))
	return slices.ContainsFunc(routes, func(r config.Route) bool { return slices.Contains(r.Prefer, name) })
}

// settings checks the config block of a built-in transport. Files must exist on the site's
// own machines only.
func (c *checker) settings(s config.Site, t config.Transport) {
	b, ok := findBuiltin(t.Name)
	if !ok {
		return
	}
	made := b.make()
	schema, given := made.Schema(), t.SettingMap()
	settings, err := host.Complete(schema, host.Absolute(schema, given, t.Dir))
	complete := err == nil && (c.here(s) || !namesFiles(schema, given))
	if complete {
		err = made.Configure(settings)
	}
	c.wrong(t, err)
	if err == nil {
		caps := made.Capabilities()
		if !complete && t.HasCertificates() && !caps.Has(transports.FeatureEncrypted) {
			return // the site encrypts, but its certificates are on another machine
		}
		caps.DataPlanes = sdk.Extended(caps.DataPlanes)
		c.links[offered{s.Name, t.Name}] = caps
	}
}

func (c *checker) wrong(t config.Transport, err error) {
	for _, e := range settingErrors(err) {
		f := c.job.TransportFault(t, e.Name, e.Problem, e.Remedy)
		f.Machine = slices.ContainsFunc(identity.Settings(false), func(s transports.Setting) bool { return s.Name == e.Name && s.Type == transports.TypePath })
		c.found = append(c.found, f)
	}
}

// file checks a plugin's file as a start does, without starting it.
func (c *checker) file(t config.Transport) {
	dir, file := filepath.Split(t.Path)
	_, err := host.Find(dir, file)
	if err == nil && t.SHA256 != "" {
		var sum string
		if sum, err = host.Digest(t.Path); err == nil && !strings.EqualFold(sum, t.SHA256) {
			err = fmt.Errorf("%s has sha256 %s, and %s says %s", t.Path, sum, whoTrusts(t), t.SHA256)
		}
	}
	c.plugin(t, err)
}

// whoTrusts returns the file that has the checksum of a plugin.
func whoTrusts(t config.Transport) string {
	if t.Version != "" {
		return "the lock file"
	}
	return "the file"
}

func (c *checker) start(ctx context.Context, s config.Site, t config.Transport) {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	p, err := host.Start(ctx, host.Config{
		Name: t.Name, Path: t.Path, SHA256: t.SHA256, Install: t.Install, NoMTLS: t.NoMTLS, Unconfined: t.Free, UserNamespace: t.Apart, Settings: t.SettingMap(), Dir: t.Dir, Env: t.Environment(), StartTimeout: loadTime,
	})
	if err != nil {
		c.plugin(t, err)
		return
	}
	c.links[offered{s.Name, t.Name}] = p.Transport().Capabilities()
	_ = p.Close() // its capabilities were read
}

func (c *checker) plugin(t config.Transport, err error) {
	var e *host.Error
	switch {
	case err == nil:
	case len(settingErrors(err)) > 0:
		c.wrong(t, err)
	case errors.As(err, &e):
		c.fault(t.Pos, fmt.Sprintf("plugin %s: %s", e.Path, e.Problem), cmp.Or(e.Remedy, "impi-node plugins test "+t.Path+" tells more"))
	default:
		c.fault(t.Pos, "plugin: "+err.Error(), cmp.Or(t.Install, "impi-node plugins test "+t.Path+" tells more"))
	}
}

// canMeet reports whether a site's transport may meet a demand; it returns true if its links
// are unknown.
func (c *checker) canMeet(s config.Site, name string, meets func(transports.Capabilities) bool) bool {
	caps, known := c.links[offered{s.Name, name}]
	return !known || meets(caps)
}

func (c *checker) measured() {
	for _, s := range c.local {
		p := s.Protocol
		var wrong *measured.FileError
		if p.Measured == "" || !errors.As(readable(p.Measured), &wrong) {
			continue
		}
		d := c.job.Fault(p.MeasuredPos, fmt.Sprintf("%s: %s: the job runs as though nothing had been measured", wrong.Where(), wrong.Problem), wrong.Remedy())
		d.Severity = config.Warning
		c.found = append(c.found, d)
	}
}

func readable(path string) error {
	_, err := measured.Read(path)
	return err
}

// pins checks that each route that pins data planes has a transport with one of them.
func (c *checker) pins() {
	for _, s := range c.job.All() {
		for _, r := range s.Routes {
			has := func(caps transports.Capabilities) bool {
				return slices.ContainsFunc(r.DataPlane, func(p string) bool { return slices.Contains(caps.DataPlanes, transports.DataPlane(p)) })
			}
			if len(r.DataPlane) == 0 || slices.ContainsFunc(r.Prefer, func(name string) bool { return c.canMeet(s, name, has) }) {
				continue
			}
			c.fault(r.Pos, fmt.Sprintf("route %q pins data_plane = %q, and no transport of %q has such links", r.Site, r.DataPlane, r.Prefer),
				"change data_plane or prefer; impi-node plugins list shows the data planes of each transport")
		}
	}
}
