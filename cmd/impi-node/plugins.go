package main

import (
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/distribution"
)

//go:embed help/plugins.txt
var pluginsHelp string

const statusBad = 1

type pluginOptions struct {
	dir, file            string
	json, full           bool
	noMTLS               bool
	plane                string
	module, vendor, impi string
	job, runDir          string
	force, all           bool
	args                 []string
}

// errBad is returned by a command whose output has described the problem.
var errBad = errors.New("something is wrong with a plugin")

func pluginsCommand(std streams) *cmdline.Command {
	const name = "`NAME`"
	o := &pluginOptions{}
	add := func(verb, kind string, does func(*pluginOptions, streams) error, flags ...func(*flag.FlagSet)) *cmdline.Command {
		c := &cmdline.Command{Name: verb, Args: kind, Flags: cmdline.NewFlags()}
		for _, add := range flags {
			add(c.Flags)
		}
		c.Check = func(args []string) error {
			o.args = args
			return o.check(verb)
		}
		c.Run = func([]string, io.Writer, io.Writer) (int, error) {
			err := does(o, std)
			if errors.Is(err, errBad) {
				return statusBad, nil
			}
			return 0, err
		}
		return c
	}
	asJSON := func(f *flag.FlagSet) { f.BoolVar(&o.json, "json", false, "") }
	dir := func(f *flag.FlagSet) { f.StringVar(&o.dir, "dir", "", cmdline.Dir) }
	file := func(f *flag.FlagSet) { f.StringVar(&o.file, "config", "", cmdline.File) }
	jobs := func(f *flag.FlagSet) {
		f.StringVar(&o.job, "job", "", cmdline.Job)
		f.StringVar(&o.runDir, "run-dir", "", cmdline.Dir)
		f.BoolVar(&o.all, "all", false, "")
	}
	return &cmdline.Command{Name: "plugins", Help: pluginsHelp, Commands: append(distribution.Commands(),
		add("list", name, pluginsList, asJSON, dir, file),
		add("info", cmdline.File, pluginsInfo, asJSON, dir),
		add("verify", cmdline.File, pluginsVerify, asJSON, dir, file, jobs),
		add("test", cmdline.File, pluginsTry, asJSON, dir, func(f *flag.FlagSet) {
			f.BoolVar(&o.full, "full", false, "")
			f.BoolVar(&o.noMTLS, "no-mtls", false, "")
			f.StringVar(&o.plane, "plane", "", "")
		}),
		add("reload", name, pluginsReload, asJSON, jobs, func(f *flag.FlagSet) { f.BoolVar(&o.force, "force", false, "") }),
		add("new", name, pluginsNew, func(f *flag.FlagSet) {
			f.StringVar(&o.module, "module", "", "")
			f.StringVar(&o.vendor, "vendor", "example", "")
			f.StringVar(&o.impi, "impi", "", cmdline.Dir)
		}),
	)}
}

func (o *pluginOptions) check(verb string) error {
	switch {
	case o.dir != "" && o.file != "":
		return errors.New("give either -dir or -config: the job file says where its plugins are")
	case verb == "list" && len(o.args) > 0:
		return fmt.Errorf("%q: list takes no names; see impi-node plugins info %s", o.args[0], o.args[0])
	case (verb == "info" || verb == "test") && len(o.args) != 1:
		return fmt.Errorf("give one plugin, by its transport's name or as a file with a slash in it, not %d", len(o.args))
	case verb == "reload" && len(o.args) != 1:
		return fmt.Errorf("give the name of one transport, not %d", len(o.args))
	case o.job != "" && o.all:
		return errors.New("give either -job or -all")
	case verb == "verify" && o.ofJobs() && (o.file != "" || o.dir != "" || len(o.args) > 0):
		return errors.New("-job and -all are about the plugins of running jobs: leave -dir, -config and names out")
	case verb == "new" && len(o.args) != 1:
		return fmt.Errorf("give one name for the transport, not %d", len(o.args))
	case o.file != "" && len(o.args) > 0:
		return fmt.Errorf("%s: leave the names out, or -config", strings.Join(o.args, " "))
	}
	o.dir = cmp.Or(o.dir, "plugins")
	return nil
}
