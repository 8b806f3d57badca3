// Package reload changes what can change of a site while its job runs: a node reads its job file
// again, says what differs, and takes what both ends of a link need not agree on.
package reload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/loglimit"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/site/server"
	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

// ErrNoFile is wrapped by the error of a node that has no file to read again.
var ErrNoFile = errors.New("there is no job file")

// Source is where the settings of a node come from.
type Source struct {
	Job  *config.Job // as read at the start, before the command line, a launcher or a head changed it
	Site config.Site // the site in Job

	Level string // -log-level of the command line, which counts more than the file; empty: none

	// Given reports that the node was started by an engine, which passed it the text of the head's
	// file.
	Given bool
	// Read reads the file again, or parses the text of the head's file, and tries its plugins until
	// the context ends. Faults change nothing.
	Read func(ctx context.Context, text string) (*config.Job, config.Diagnostics)
}

// Settings are what a Reloader changes.
type Settings struct {
	Source     *Source // nil: the job has no file
	Routes     *routes.Table
	Log        hclog.Logger
	Identities func() []*rendezvous.Identity // in use: at the job's server, and between the hosts of the site
	Renew      func() (left []string)        // makes connections that use Identities again, and returns messages about those that failed; nil: none
	Applied    func()                        // called when changes were applied; may be nil
}

// Reloader applies new settings.
type Reloader struct {
	Settings
	mu    sync.Mutex
	file  config.Site       // the site of the file that was applied last
	limit config.Limits     // the limits of that file
	certs map[string]string // digests of the files that the settings of a transport name
}

// New makes a Reloader of what the node starts with. It reads the certificates as the plugins do.
func New(s Settings) *Reloader {
	r := &Reloader{Settings: s, certs: make(map[string]string)}
	if s.Source == nil {
		return r
	}
	r.file, r.limit = s.Source.Site, s.Source.Job.Limits
	for _, t := range r.file.Transports {
		r.certs[t.Name] = digestOf(t)
	}
	return r
}

// Text returns the present text of the job file, for nodes that have none.
func (r *Reloader) Text() (string, error) {
	if r.Source == nil || r.Source.Job.File == "" {
		return "", ErrNoFile
	}
	b, err := config.ReadText(r.Source.Job.File)
	return string(b), err
}

type plan struct {
	site       config.Site
	limits     config.Limits
	routes     *routing
	level      string // empty: as it is
	transports []config.Transport
	binaries   []config.Transport
	changes,
	restart []string
}

// Reload reads the file again, or the text of the head's. Unless check is set, it applies what can
// change.
func (r *Reloader) Reload(ctx context.Context, check bool, text string) (links.FileReload, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := links.FileReload{Site: r.Routes.Site.Name, PID: os.Getpid()}
	switch {
	case r.Source == nil || r.Source.Job.File == "":
		return a, fmt.Errorf("%w: the job was started by a command line, and nothing of it can change", ErrNoFile)
	case r.Source.Given && text == "":
		return a, fmt.Errorf("%w here: an engine has started this node, with the text of the head's; send the request to the head", ErrNoFile)
	}
	a.File = r.Source.Job.File
	job, found := r.Source.Read(ctx, text)
	if err := ctx.Err(); err != nil {
		return a, fmt.Errorf("%s and what it names were not read in time: %w", a.File, err)
	}
	if found.HasErrors() {
		for _, d := range found {
			if d.Severity == config.Error {
				a.Faults = append(a.Faults, d.Error())
			}
		}
		return a, nil
	}
	site, ok := job.Site(r.file.Name)
	if !ok {
		a.Faults = []string{fmt.Sprintf("%s: there is no site %q any more; its job runs: write it again", a.File, r.file.Name)}
		return a, nil
	}
	p := r.plan(job, site)
	a.Restart, a.Digest = p.restart, p.digest()
	if !check {
		r.apply(ctx, p, &a)
	} else {
		a.Changes = p.changes
	}
	return a, nil
}

func (r *Reloader) plan(job *config.Job, site config.Site) *plan {
	p := &plan{site: site, limits: routes.CurrentLimits(r.Routes)}
	r.planLevel(p)
	r.planLimits(p, job.Limits)
	p.routes = newRoutes(r.Routes, job, &site)
	p.changes, p.restart = append(p.changes, p.routes.changes...), append(p.restart, p.routes.restart...)
	r.planTransports(p)
	if a, b := sitesOf(r.Source.Job), sitesOf(job); a != b {
		p.cannot(difference{"sites of the job", a, b})
	}
	for _, d := range fieldDifferences(r.Source.Job, job, jobElsewhere) {
		p.cannot(d)
	}
	for _, d := range fieldDifferences(&r.Source.Site, &site, siteElsewhere) {
		p.cannot(d)
	}
	return p
}

func (p *plan) cannot(d difference) { p.restart = append(p.restart, d.String()) }

func (r *Reloader) planLevel(p *plan) {
	was, now := r.file.Log, p.site.Log
	switch d := (difference{"log level", was.Level, now.Level}); {
	case was.Level == now.Level:
	case r.Source.Level != "":
		p.restart = append(p.restart, d.String()+": -log-level "+r.Source.Level+" of the command line counts more")
	default:
		p.level = now.Level
		p.changes = append(p.changes, d.String())
	}
	for _, d := range []difference{{"log format", was.Format, now.Format}, {"log trace", was.Trace, now.Trace}} {
		if d.from != d.to {
			p.cannot(d)
		}
	}
}

func (r *Reloader) planLimits(p *plan, file config.Limits) {
	was := r.limit
	if was.Start != file.Start {
		p.changes = append(p.changes, difference{"limits start", was.Start.String(), file.Start.String()}.String()+": for procs that are spawned from now on")
	}
	if was.Stop != file.Stop {
		p.changes = append(p.changes, difference{"limits stop", was.Stop.String(), file.Stop.String()}.String())
	}
	if was.Resume != file.Resume {
		p.changes = append(p.changes, difference{"limits resume", was.Resume.String(), file.Resume.String()}.String()+": for new links, and dials to resume one")
	}
	if was.Silence != file.Silence {
		p.cannot(difference{"limits silence", was.Silence.String(), file.Silence.String()})
	}
	p.limits.Start, p.limits.Stop, p.limits.Resume = file.Start, file.Stop, file.Resume
}

// planTransports compares transports. New certificates can be taken, other settings cannot.
func (r *Reloader) planTransports(p *plan) {
	for _, now := range p.site.Transports {
		i := slices.IndexFunc(r.file.Transports, func(t config.Transport) bool { return t.Name == now.Name })
		if i < 0 {
			p.cannot(difference{what: "transport " + now.Name, from: "none", to: "one"})
			continue
		}
		was := r.file.Transports[i]
		title := "transport " + now.Name
		for _, d := range []difference{
			{title + ": auto_mtls", fmt.Sprint(!was.NoMTLS), fmt.Sprint(!now.NoMTLS)},
			{title + ": confine", fmt.Sprint(!was.Free), fmt.Sprint(!now.Free)},
			{title + ": user_namespace", fmt.Sprint(was.Apart), fmt.Sprint(now.Apart)},
		} {
			if d.from != d.to {
				p.cannot(d)
			}
		}
		r.planBinary(p, title, was, now)
		for _, d := range append(envDifferences(title, was, now), settingDifferences(title, was, now)...) {
			p.cannot(d)
		}
		if r.Routes.Transport(now.Name) == nil || !now.HasCertificates() || !was.HasCertificates() {
			continue
		}
		if digestOf(now) != r.certs[now.Name] {
			p.transports = append(p.transports, now)
			p.changes = append(p.changes, title+": other certificates: for new links")
		}
	}
	for _, was := range r.file.Transports {
		if _, ok := p.site.Transport(was.Name); !ok {
			p.cannot(difference{"transport " + was.Name, "one", "none"})
		}
	}
}

// planBinary compares the files of plugins. A plugin that runs can get another file: its next
// process uses it.
func (r *Reloader) planBinary(p *plan, title string, was, now config.Transport) {
	x := r.Routes.Transport(now.Name)
	can := was.Plugin != "" && now.Plugin != "" && x != nil && x.Plugin != nil
	differs := false
	for _, d := range []difference{{title + ": plugin", was.Plugin, now.Plugin}, {title + ": sha256", was.SHA256, now.SHA256}} {
		switch {
		case d.from == d.to:
		case can:
			differs = true
			p.changes = append(p.changes, d.String()+": for its next process, which impi-node plugins reload "+now.Name+" starts")
		default:
			p.cannot(d)
		}
	}
	if differs {
		p.binaries = append(p.binaries, now)
	}
}

// envDifferences lists the variables of a plugin's environment that differ, without their values,
// which may be secrets.
func envDifferences(title string, was, now config.Transport) (list []difference) {
	names := slices.Concat(slices.Collect(maps.Keys(was.Env)), slices.Collect(maps.Keys(now.Env)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		from, before := was.Env[name]
		to, after := now.Env[name]
		d := difference{title + ": env " + name, "none", "none"}
		if before {
			d.from = "one value"
		}
		if after {
			d.to = "another"
		}
		if before != after || from != to {
			list = append(list, d)
		}
	}
	return list
}

// settingDifferences lists the settings of a transport that differ. Those of its certificates count
// only if one of the two has none.
func settingDifferences(title string, was, now config.Transport) (list []difference) {
	a, b := was.SettingMap(), now.SettingMap()
	both := was.HasCertificates() && now.HasCertificates()
	var names []string
	for _, t := range []config.Transport{was, now} {
		for _, s := range t.Settings {
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	for _, name := range names {
		from, to := fmt.Sprint(a[name]), fmt.Sprint(b[name])
		if from == to || both && config.IsCertificate(name) {
			continue
		}
		for _, x := range []*string{&from, &to} {
			if *x == "<nil>" {
				*x = "none"
			}
		}
		list = append(list, difference{title + ": " + name, from, to})
	}
	return list
}

// maxCertificate bounds a file of certificates, as package identity does.
const maxCertificate = 1 << 20

// digestOf is a digest of a transport's certificates: of what its settings say, and of their files.
func digestOf(t config.Transport) string {
	h := sha256.New()
	for _, s := range t.Settings {
		if !config.IsCertificate(s.Name) {
			continue
		}
		fmt.Fprintf(h, "%s %q\n", s.Name, s.Value)
		if path, ok := s.Value.(string); ok {
			b, err := plainfile.Read(rooted(t.Dir, path), maxCertificate)
			fmt.Fprintf(h, "%d %t\n%s", len(b), err == nil, b)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func rooted(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// digest is a digest of what all hosts of a site must have alike.
func (p *plan) digest() string {
	h := sha256.New()
	for _, r := range p.routes.next.Routes {
		fmt.Fprintf(h, "%q %q %t %q\n", r.Site, r.Prefer, r.Direct, r.DataPlane)
	}
	fmt.Fprintln(h, p.limits.Start, p.limits.Stop, p.limits.Resume, p.limits.Silence)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// apply takes what can change, certificates first, as only they can be refused.
func (r *Reloader) apply(ctx context.Context, p *plan, a *links.FileReload) {
	if len(p.transports) > 0 {
		if err := r.certificates(p); err != nil {
			a.Problem = err.Error()
			return
		}
	}
	for _, t := range p.binaries {
		r.Routes.Transport(t.Name).Plugin.Pin(t.Path, t.SHA256)
	}
	if len(p.routes.changes) > 0 || p.limits != routes.CurrentLimits(r.Routes) {
		site := *routes.CurrentSite(r.Routes)
		if len(p.routes.changes) > 0 {
			site = p.routes.next
		}
		routes.ApplyChange(r.Routes, routes.Change{Site: &site, Limits: p.limits})
	}
	level := r.Log.GetLevel()
	if p.level != "" {
		level = hclog.LevelFromString(p.level)
		r.file.Log.Level = p.level
	}
	r.file.Transports, r.limit = p.taken(&r.file), p.limits
	loglimit.SetLevel(r.Log, level, func() {
		for _, text := range p.changes {
			loglimit.ReportReload(r.Log, hclog.Info, "reloaded: "+text)
		}
		for _, text := range p.restart {
			loglimit.ReportReload(r.Log, hclog.Warn, "the job file differs, which needs a restart: "+text)
		}
	})
	if p.level != "" {
		r.tellLevel(ctx)
	}
	a.Changes, a.Applied = p.changes, true
	if r.Applied != nil {
		r.Applied()
	}
}

// taken returns the transports of the file before, with the certificates and files of those that
// have taken new ones.
func (p *plan) taken(before *config.Site) []config.Transport {
	list := slices.Clone(before.Transports)
	for _, t := range p.binaries {
		i := slices.IndexFunc(list, func(x config.Transport) bool { return x.Name == t.Name })
		list[i].Plugin, list[i].Path, list[i].SHA256 = t.Plugin, t.Path, t.SHA256
		list[i].Version, list[i].Install = t.Version, t.Install
	}
	for _, t := range p.transports {
		i := slices.IndexFunc(list, func(x config.Transport) bool { return x.Name == t.Name })
		list[i] = merged(list[i], t)
	}
	return list
}

// merged returns was with the certificates, and their folder, of now.
func merged(was, now config.Transport) config.Transport {
	was.Settings = slices.DeleteFunc(slices.Clone(was.Settings), func(s config.Setting) bool { return config.IsCertificate(s.Name) })
	for _, s := range now.Settings {
		if config.IsCertificate(s.Name) {
			was.Settings = append(was.Settings, s)
		}
	}
	was.Dir = now.Dir
	return was
}

// certificates gives the new certificates to plugins and to the connections that the node makes
// itself.
func (r *Reloader) certificates(p *plan) error {
	before := r.file
	before.Transports = p.taken(&r.file)
	fresh, err := server.Certificates(before)
	if err != nil {
		return fmt.Errorf("%w; the old certificates are used on", err)
	}
	for i, t := range p.transports {
		running := r.Routes.Transport(t.Name)
		now, _ := before.Transport(t.Name)
		if err := running.Configure(now.SettingMap()); err != nil {
			return fmt.Errorf("transport %s: %w; the old certificates are used on%s", t.Name, err, taken(p.transports[:i]))
		}
		r.certs[t.Name] = digestOf(t)
	}
	if fresh != nil {
		for _, id := range r.Identities() {
			id.Replace(fresh)
		}
		if r.Renew != nil {
			p.changes = append(p.changes, r.Renew()...)
		}
	}
	return nil
}

// taken says which transports have already changed when another one could not.
func taken(list []config.Transport) string {
	if len(list) == 0 {
		return ""
	}
	var names []string
	for _, t := range list {
		names = append(names, t.Name)
	}
	return ", but for those of " + strings.Join(names, ", ") + ", which are new"
}

func (r *Reloader) tellLevel(ctx context.Context) {
	for _, t := range r.Routes.Running() {
		if t.Plugin == nil { // a built-in transport
			continue
		}
		if err := t.Plugin.TellLogLevel(ctx); err != nil {
			r.Log.Warn("a plugin was not told of the log level", "transport", t.Name, "error", err)
		}
	}
}

// sitesOf says which sites a file has, and what a node of another site needs to know of them.
func sitesOf(job *config.Job) string {
	var list []string
	for _, s := range job.Sites {
		text := fmt.Sprintf("%s (client %d)", s.Name, s.Client)
		if s.Foreign {
			text = fmt.Sprintf("%s (client %d, foreign %v %v %v)", s.Name, s.Client, s.Implementation, s.Representation, s.ChannelsFrom)
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}
