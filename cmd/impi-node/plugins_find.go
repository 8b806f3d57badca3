package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/conformance"
	"github.com/openimpi/impi/plugins/host"
)

type installed struct {
	Name    string `json:"name"`
	Builtin bool   `json:"builtin"`
	Path    string `json:"path,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	Trusted string `json:"trusted,omitempty"` // the checksum in the job file
	Error   string `json:"error,omitempty"`   // why it is unsafe or does not load

	noMTLS           bool
	free             bool     // not confined
	ownUserNamespace bool     // has its own user namespace
	env              []string // environment of its transport block
}

func (p *installed) inspect() {
	if p.Builtin {
		return
	}
	var err error
	if p.Path, p.SHA256, err = host.Examine(p.Path, p.Trusted); err != nil {
		p.Error = err.Error()
	}
}

func builtinPlugins() (list []installed) {
	for _, b := range builtins {
		list = append(list, installed{Name: b.Name, Builtin: true})
	}
	return list
}

func inDir(dir string) ([]installed, error) {
	names, err := host.List(dir)
	if err != nil {
		return nil, err
	}
	var list []installed
	for _, name := range names {
		p := installed{Name: name, Path: filepath.Join(dir, host.Prefix+name)}
		p.inspect()
		list = append(list, p)
	}
	return list, nil
}

func inJob(file string, errOut io.Writer) (list []installed, err error) {
	isLocal, err := local()
	if err != nil {
		return nil, err
	}
	o := loadOptions()
	o.Local = isLocal
	job, found := config.Load(file, o)
	if job == nil || found.HasErrors() {
		_ = found.WriteText(errOut, false)
		return nil, fmt.Errorf("%s has faults", file)
	}
	seen := map[string]bool{}
	for _, s := range job.All() {
		for _, t := range s.Transports {
			if t.Builtin || seen[t.Path] || t.Path == "" {
				continue
			}
			seen[t.Path] = true
			p := installed{Name: t.Name, Path: t.Path, Trusted: t.SHA256, noMTLS: t.NoMTLS, free: t.Free, ownUserNamespace: t.Apart, env: t.Environment()}
			p.inspect()
			list = append(list, p)
		}
	}
	return list, nil
}

// find returns the plugin for an argument: a file, a name in the folder, or a built-in one.
func (o *pluginOptions) find(arg string) (installed, error) {
	p := installed{Name: strings.TrimPrefix(filepath.Base(arg), host.Prefix), Path: arg}
	if !strings.Contains(arg, "/") {
		p.Path = filepath.Join(o.dir, host.Prefix+p.Name)
	}
	p.inspect()
	if p.Error == "" {
		return p, nil
	}
	if _, ok := findBuiltin(arg); ok {
		return installed{Name: arg, Builtin: true}, nil
	}
	return p, errors.New(p.Error)
}

// loadTime bounds the start of a plugin that is only asked for its Info.
const loadTime = 15 * time.Second

// ask starts a plugin as a node does and asks for its Info. A plugin without AutoMTLS is
// started without it.
func ask(p installed) (*conformance.Site, error) {
	ctx, cancel := context.WithTimeout(context.Background(), loadTime)
	defer cancel()
	c := host.Config{Name: p.Name, Builtin: p.Builtin, SHA256: p.Trusted, NoMTLS: p.noMTLS, Unconfined: p.free, UserNamespace: p.ownUserNamespace, Env: p.env, DeferConfigure: true}
	if !p.Builtin {
		c.Path = p.Path
	}
	run, err := host.Start(ctx, c)
	if errors.Is(err, host.ErrMTLS) {
		c.NoMTLS = true
		run, err = host.Start(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	defer run.Close()
	site := conformance.NewSite(run.About())
	if u, err := run.Usage(); err == nil {
		site.SetUsage(u)
	}
	return site, nil
}

func words[S ~string](list []S) string {
	if len(list) == 0 {
		return "-"
	}
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = string(x)
	}
	return strings.Join(out, ",")
}
