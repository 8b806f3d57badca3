package distribution

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/hashicorp/go-version"
	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/pluginlock"
	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

// The actions on a plugin.
const (
	stateInstalled = "installed"
	statePresent   = "already installed"
	stateLocked    = "locked"
)

// Result describes the action on one plugin.
type Result struct {
	Name      string            `json:"name"`
	Source    string            `json:"source"`
	Version   string            `json:"version,omitempty"`
	Was       string            `json:"was,omitempty"` // the version in the lock file before, if it differs
	State     string            `json:"state,omitempty"`
	Path      string            `json:"path,omitempty"`
	SHA256    map[string]string `json:"sha256,omitempty"` // in the lock file, by platform
	SignedBy  string            `json:"signed_by,omitempty"`
	Error     string            `json:"error,omitempty"`
	platforms []string          // platforms that lock has added
}

type installer struct {
	*config.Plugins
	upgrade   bool
	platforms []string // platforms to lock; empty: all that the source has
	tell      func(what string, done, of int64)

	lock *pluginlock.Lock
}

// do has f install or lock each plugin, and writes the lock file. It excludes others that would
// change the lock file or the folder of the plugins at the same time.
func (in *installer) do(ctx context.Context, f func(context.Context, *config.Plugin, source) (*Result, error)) (list []Result, err error) {
	unlock, err := exclusive(filepath.Dir(in.Lock))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if in.lock, err = pluginlock.Read(in.Lock); err != nil {
		return nil, fmt.Errorf("%w; correct the lock file, or delete it to choose versions anew", err)
	}
	for i := range in.List {
		p := &in.List[i]
		r, err := in.one(ctx, p, f)
		if r == nil {
			r = &Result{}
		}
		r.Name, r.Source = p.Name, p.Source
		if err != nil {
			r.Error = err.Error()
		} else if err := in.lock.Write(in.Lock); err != nil { // written per plugin: later errors do not lose it
			return list, in.explain(err)
		}
		list = append(list, *r)
		if ctx.Err() != nil {
			return list, context.Cause(ctx)
		}
	}
	return list, nil
}

func (in *installer) one(ctx context.Context, p *config.Plugin, f func(context.Context, *config.Plugin, source) (*Result, error)) (*Result, error) {
	from := &lazy{text: p.Source, base: in.Base}
	defer from.Close()
	return f(ctx, p, from)
}

// lazy is a source that is opened only when it is needed: a plugin that is already installed needs
// none.
type lazy struct {
	text, base string
	source     source
	read       *Index
}

func (l *lazy) index(ctx context.Context) (x *Index, err error) {
	if l.read != nil {
		return l.read, nil
	}
	if l.source == nil {
		if l.source, err = newSource(l.text, l.base); err != nil {
			return nil, err
		}
	}
	l.read, err = l.source.index(ctx)
	return l.read, err
}

func (l *lazy) open(ctx context.Context, file string) (io.ReadCloser, error) {
	return l.source.open(ctx, file)
}

func (l *lazy) Close() error {
	if l.source == nil {
		return nil
	}
	return l.source.Close()
}

// locked returns the lock file's entry for a plugin; ok is false if there is none or it is to be
// upgraded.
func (in *installer) locked(p *config.Plugin) (e pluginlock.Entry, ok bool, err error) {
	if e, ok = in.lock.Plugins[p.Name]; !ok || in.upgrade {
		return pluginlock.Entry{}, false, nil
	}
	v, err := pluginlock.Version(e.Version)
	if err == nil && !p.Accepts(v) {
		err = fmt.Errorf("the job file wants %s, and %s has %s: add -upgrade to choose another version", p.Version, pluginlock.Name, e.Version)
	}
	return e, true, err
}

func (in *installer) install(ctx context.Context, p *config.Plugin, from source) (*Result, error) {
	platform := pluginlock.Platform()
	e, ok, err := in.locked(p)
	if err != nil {
		return nil, err
	}
	r := &Result{Version: e.Version, State: statePresent}
	pin := p.Pinned(platform)
	if sum := e.SHA256[platform]; ok && sum != "" && (pin == "" || pin == sum) {
		r.Path = pluginlock.Path(in.Dir, p.Name, e.Version, platform)
		if have, err := fileSum(r.Path); err == nil && have == sum {
			r.SHA256 = e.SHA256
			e.Source = p.Source
			in.lock.Plugins[p.Name] = e
			return r, chmod(r.Path)
		}
	}
	was := in.lock.Plugins[p.Name].Version
	e, w, err := in.choose(ctx, p, from, platform)
	if err != nil {
		return nil, err
	}
	r.Version, r.State = e.Version, stateInstalled
	if was != e.Version {
		r.Was = was
	}
	r.Path = pluginlock.Path(in.Dir, p.Name, e.Version, platform)
	if have, err := fileSum(r.Path); err == nil && have == w.SHA256 && len(w.keys) == 0 {
		r.State = statePresent
	} else if r.SignedBy, err = in.place(ctx, from, w, r.Path); err != nil {
		return nil, err
	}
	e.SHA256[platform] = w.SHA256
	in.lock.Plugins[p.Name], r.SHA256 = e, e.SHA256
	return r, nil
}

// lockAll has the lock file name the checksums for all platforms. Each binary is read, as the index
// is not signed.
func (in *installer) lockAll(ctx context.Context, p *config.Plugin, from source) (*Result, error) {
	if _, _, err := in.locked(p); err != nil {
		return nil, err
	}
	x, err := from.index(ctx)
	if err != nil {
		return nil, err
	}
	was := in.lock.Plugins[p.Name].Version
	e, err := in.version(p, x, in.platforms)
	if err != nil {
		return nil, err
	}
	r := &Result{Version: e.Version, State: stateLocked}
	if was != e.Version {
		r.Was = was
	}
	platforms := in.platforms
	if len(platforms) == 0 {
		platforms = x.Plugins[p.Name][e.Version].platforms()
	}
	for _, platform := range platforms {
		w, err := in.wanted(p, x, &e, platform)
		if err != nil {
			return nil, err
		}
		if e.SHA256[platform] == w.SHA256 {
			continue
		}
		if r.SignedBy, err = fetch(ctx, from, w, io.Discard, in.progress(w)); err != nil {
			return nil, err
		}
		e.SHA256[platform] = w.SHA256
		r.platforms = append(r.platforms, platform)
	}
	in.lock.Plugins[p.Name], r.SHA256 = e, e.SHA256
	return r, nil
}

// choose returns what the lock file will say, without the platform's checksum if it is new, and the
// binary.
func (in *installer) choose(ctx context.Context, p *config.Plugin, from source, platform string) (e pluginlock.Entry, w *wanted, err error) {
	x, err := from.index(ctx)
	if err != nil {
		return e, nil, err
	}
	if e, err = in.version(p, x, []string{platform}); err != nil {
		return e, nil, err
	}
	w, err = in.wanted(p, x, &e, platform)
	return e, w, err
}

// version chooses that of the lock file, or the newest that the constraint and the checksums of the
// job file allow and that has the platforms.
func (in *installer) version(p *config.Plugin, x *Index, platforms []string) (pluginlock.Entry, error) {
	all, ok := x.Plugins[p.Name]
	if !ok {
		return pluginlock.Entry{}, fmt.Errorf("%s has no plugin %q; it has %s", p.Source, p.Name, orNone(slices.Sorted(maps.Keys(x.Plugins))))
	}
	e, ok, err := in.locked(p)
	if err != nil {
		return e, err
	}
	if ok {
		if _, there := all[e.Version]; !there {
			return e, fmt.Errorf("%s names version %s, which %s does not have; it has %s: add -upgrade to choose another one", pluginlock.Name, e.Version, p.Source, all.words())
		}
		e.Source, e.SHA256 = p.Source, maps.Clone(e.SHA256)
		return e, nil
	}
	var refused []string
	for _, v := range all.versions() {
		if !p.Accepts(v) {
			continue
		}
		if why := lacks(p, all[v.String()], v, platforms); why != "" {
			refused = append(refused, why)
			continue
		}
		e = pluginlock.Entry{Source: p.Source, Version: v.String(), SHA256: map[string]string{}}
		if before := in.lock.Plugins[p.Name]; before.Version == e.Version {
			e.SHA256 = maps.Clone(before.SHA256)
		}
		return e, nil
	}
	if len(refused) > 0 {
		return e, fmt.Errorf("no version of %s fits: %s", p.Name, strings.Join(refused[:min(len(refused), 4)], "; "))
	}
	return e, fmt.Errorf("no version of %s in %s meets %q; it has %s", p.Name, p.Source, p.Version, all.words())
}

// lacks says why a version that the constraint allows cannot be used.
func lacks(p *config.Plugin, r Release, v *version.Version, platforms []string) string {
	for _, platform := range platforms {
		b, ok := r[platform]
		pin := p.Pinned(platform)
		switch {
		case !ok:
			return fmt.Sprintf("%v is not there for %s, only for %s", v, platform, strings.Join(r.platforms(), ", "))
		case pin != "" && pin != b.SHA256:
			return fmt.Sprintf("%v for %s has sha256 %s, and the job file trusts %s", v, platform, b.SHA256, pin)
		}
	}
	return ""
}

// wanted returns the binary for a platform, or an error if checksums contradict each other.
func (in *installer) wanted(p *config.Plugin, x *Index, e *pluginlock.Entry, platform string) (*wanted, error) {
	r := x.Plugins[p.Name][e.Version]
	v, err := pluginlock.Version(e.Version)
	if err != nil {
		return nil, err
	}
	if why := lacks(p, r, v, []string{platform}); why != "" {
		return nil, errors.New(p.Name + ": " + why)
	}
	b := r[platform]
	if e.SHA256[platform] == "" && p.Unproved(platform) {
		return nil, fmt.Errorf("the block of %s has no keys, and its sha256 does not name %s, so whoever can write to %s decides what runs there: "+
			"add keys = [\"RW...\"], the public key of its maker, or the checksum for %[2]s", p.Name, platform, p.Source)
	}
	if sum := e.SHA256[platform]; sum != "" && sum != b.SHA256 {
		return nil, fmt.Errorf("%s %s for %s has sha256 %s in %s, and %s has %s: that version was published again with another file; ask its maker, "+
			"and if that is right delete the block of %[1]s in the lock file", p.Name, e.Version, platform, b.SHA256, p.Source, pluginlock.Name, sum)
	}
	return &wanted{Binary: b, name: p.Name, version: e.Version, platform: platform, keys: p.Keys}, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (in *installer) progress(w *wanted) func(int64) {
	if in.tell == nil {
		return nil
	}
	return func(n int64) { in.tell(w.String(), n, w.Size) }
}

// place fetches a binary to its path. It is written next to it, and renamed once everything is
// checked and on the disk; what a killed process has left there is removed first.
func (in *installer) place(ctx context.Context, from source, w *wanted, path string) (signer string, err error) {
	dir := filepath.Dir(path)
	if err := makeFolders(in.Dir, dir); err != nil {
		return "", in.explain(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, pluginlock.Temporary+"*"))
	for _, file := range left {
		_ = os.Remove(file) // a file that cannot be removed does no harm
	}
	to, err := os.CreateTemp(dir, pluginlock.Temporary+"*")
	if err != nil {
		return "", in.explain(err)
	}
	defer os.Remove(to.Name()) // has no effect once it is renamed
	signer, err = fetch(ctx, from, w, to, in.progress(w))
	if err == nil {
		err = errors.Join(to.Chmod(0o755), to.Sync())
	}
	if err = errors.Join(err, to.Close()); err == nil {
		err = os.Rename(to.Name(), path)
	}
	return signer, in.explain(err)
}

// explain makes the error of a full file system say what to do.
func (in *installer) explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the file system of %s is full: nothing was installed; make room there, or choose another one with -dir (%w)", in.Dir, err)
	}
	return err
}

// makeFolders makes dir and the folders between it and top, in which nobody else may write whatever
// the umask is: a node would refuse the plugin.
func makeFolders(top, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for ; len(dir) > len(top); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil && !errors.Is(err, os.ErrPermission) { // of root, with root's mode
			return err
		}
	}
	return nil
}

func chmod(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() == 0o755 {
		return err
	}
	return os.Chmod(path, 0o755)
}

func fileSum(path string) (string, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, maxBinary+1)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// exclusive waits until no other impi-node installs plugins for job files in a folder. The kernel
// drops the lock when the process ends, however that happens.
func exclusive(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil && !errors.Is(err, unix.EBADF) && !errors.Is(err, unix.ENOLCK) && !errors.Is(err, unix.EOPNOTSUPP) { // some network file systems return these
		f.Close()
		return nil, fmt.Errorf("%s: lock: %w", dir, err)
	}
	return func() { f.Close() }, nil
}
