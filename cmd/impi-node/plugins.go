package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

const pluginsHelp = `impi-node plugins looks after the transport plugins of a site, and helps those who
write them.

Usage:
  impi-node plugins list   [-dir FOLDER | -config JOB.HCL] [-json]
  impi-node plugins info   [-dir FOLDER] [-json] NAME|FILE
  impi-node plugins verify [-dir FOLDER | -config JOB.HCL] [-json] [NAME|FILE...]
  impi-node plugins test   [-dir FOLDER] [-full] [-plane NAME] [-no-mtls] [-json] NAME|FILE
  impi-node plugins reload [-job NAME | -all] [-force] [-json] NAME
  impi-node plugins new    [-module PATH] [-vendor NAME] [-impi CHECKOUT] NAME

Examples:
  What is installed, what is built in, and does it load?
      impi-node plugins list -dir plugins

  Its settings, data planes and reach, and its block for a job file:
      impi-node plugins info quic

  Lines with checksums to paste into a job file:
      impi-node plugins verify -dir plugins

  Are the files those that the job file trusts?
      impi-node plugins verify -config job.hcl

  Does it keep the contract? Half a minute; -full takes some minutes:
      impi-node plugins test ./impi-transport-mine

  The plugin of a running job was upgraded: its next process is the new file:
      impi-node plugins reload quic

  A transport of your own in the folder impi-transport-mine, working and tested:
      impi-node plugins new mine

Flags:
  -dir FOLDER      where plugins are (plugins)
  -config JOB.HCL  the plugins of this job file, with its checksums
  -json            for programs
  -full            everything that impi-conform tries
  -plane NAME      links of this data plane only
  -job NAME        the running job of that name, or whose ID begins so; needed where
                   several of yours have the transport
  -all             all of your running jobs that have it
  -run-dir DIR     where the nodes' run directories are, if not in the usual place
  -force           even where links that are not resumed are lost by it
  -no-mtls         the plugin comes without AutoMTLS
  -module PATH     the module's path in go.mod (example.com/impi-transport-NAME)
  -vendor NAME     what the plugin says of its maker
  -impi CHECKOUT   build against this source tree of impi, not a release

A NAME is that of the transport; its file is impi-transport-NAME in the folder, or
it is built in. A FILE has a slash in it. Plugins are started and asked, nothing
else: no job needs to run, but for reload. That one has each node of one job on this
machine that runs the plugin start it again: links made afterwards use the new
process, links that have left the plugin do not notice, and those whose bytes pass
through it are resumed if their routes say resume = true. What list, info and verify print as JSON is one object.

The exit status is 0; 1 if a plugin is unsafe, not the one that is trusted, does
not load or breaks a rule; 2 if the command line is wrong.
`

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

// plugins is the subcommand.
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
		fmt.Fprintf(std.err, "impi-node plugins: there is no %q; there are list, info, verify, test, reload and new\nTry: impi-node plugins help\n", args[0])
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
	if o.args, err = parseMixed(f, args); err != nil {
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
	case verb == "new" && len(o.args) != 1:
		return fmt.Errorf("give one name for the transport, not %d", len(o.args))
	case o.file != "" && len(o.args) > 0:
		return fmt.Errorf("%s: leave the names out, or -config", strings.Join(o.args, " "))
	}
	if o.dir == "" {
		o.dir = "plugins"
	}
	return nil
}
