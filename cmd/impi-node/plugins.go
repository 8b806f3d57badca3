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
)

//go:embed help/plugins.txt
var pluginsHelp string

// statusBad is the exit status if something is wrong with a plugin.
const statusBad = 1

// pluginOptions is the command line of plugins.
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

// plugins runs impi-node plugins.
func plugins(args []string, std streams) int {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "-help" || args[0] == "--help" {
		fmt.Fprint(std.out, pluginsHelp)
		return statusOK
	}
	verbs := map[string]func(*pluginOptions, streams) error{
		"list": pluginsList, "info": pluginsInfo, "verify": pluginsVerify, "test": pluginsTry, "new": pluginsNew, "reload": pluginsReload,
	}
	verb, ok := verbs[args[0]]
	if !ok {
		fmt.Fprintf(std.err, "impi-node plugins: unknown command %q; write list, info, verify, test, reload or new\nTry: impi-node plugins help\n", args[0])
		return statusUsage
	}
	o, err := parsePlugins(args[0], args[1:])
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(std.out, pluginsHelp)
		return statusOK
	}
	if err != nil {
		fmt.Fprintf(std.err, "impi-node plugins %s: %v\nTry: impi-node plugins help\n", args[0], err)
		return statusUsage
	}
	switch err := verb(o, std); {
	case errors.Is(err, errBad):
		return statusBad
	case errors.As(err, new(usageError)):
		fmt.Fprintf(std.err, "impi-node plugins %s: %v\n", args[0], err)
		return statusUsage
	case err != nil:
		fmt.Fprintf(std.err, "impi-node plugins %s: %v\n", args[0], err)
		return statusBad
	}
	return statusOK
}

func parsePlugins(verb string, args []string) (*pluginOptions, error) {
	o := &pluginOptions{}
	f := flag.NewFlagSet("plugins "+verb, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	if verb != "new" {
		f.BoolVar(&o.json, "json", false, "for programs")
	}
	if verb != "new" && verb != "reload" {
		f.StringVar(&o.dir, "dir", "", "folder")
	}
	switch verb {
	case "reload":
		f.StringVar(&o.job, "job", "", "job")
		f.StringVar(&o.runDir, "run-dir", "", "run directories")
		f.BoolVar(&o.force, "force", false, "lose links")
		f.BoolVar(&o.all, "all", false, "all jobs")
	case "list", "verify":
		f.StringVar(&o.file, "config", "", "job file")
		if verb == "verify" {
			f.StringVar(&o.job, "job", "", "job")
			f.StringVar(&o.runDir, "run-dir", "", "run directories")
			f.BoolVar(&o.all, "all", false, "all jobs")
		}
	case "test":
		f.BoolVar(&o.full, "full", false, "everything")
		f.BoolVar(&o.noMTLS, "no-mtls", false, "without AutoMTLS")
		f.StringVar(&o.plane, "plane", "", "data plane")
	case "new":
		f.StringVar(&o.module, "module", "", "module path")
		f.StringVar(&o.vendor, "vendor", "example", "vendor")
		f.StringVar(&o.impi, "impi", "", "checkout of impi")
	}
	var err error
	if o.args, err = cmdline.ParseMixed(f, args); err != nil {
		return nil, err
	}
	return o, o.check(verb)
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
