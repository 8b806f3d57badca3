package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/loglimit"
	"github.com/openimpi/impi/internal/mpiexec"
	"github.com/openimpi/impi/internal/site/report"
)

type options struct {
	file     string
	site     string
	host     string
	procs    int
	command  []string
	programs string   // several programs, as JSON
	on       string   // machines to run on, as JSON
	typed    []string // programs and on, as they were given
	logLevel string
	logJSON  bool
	noPrefix bool
	bind     string
	progress string

	records config.Records // of a job without a file; paths are absolute

	container bool // site and host were chosen by this container's index
}

var levels = []string{"trace", "debug", "info", "warn", "error"}

func (o *options) flags() *flag.FlagSet {
	f := cmdline.NewFlags()
	f.StringVar(&o.file, "config", "", cmdline.File)
	f.StringVar(&o.site, "site", "", "")
	f.StringVar(&o.host, "host", "", cmdline.Host)
	f.IntVar(&o.procs, "n", 0, "")
	f.StringVar(&o.programs, "programs", "", "")
	f.StringVar(&o.on, "on", "", "")
	f.StringVar(&o.logLevel, "log-level", "", "`"+strings.Join(levels, "|")+"`")
	f.BoolVar(&o.logJSON, "log-json", false, "")
	f.BoolVar(&o.noPrefix, "no-prefix", false, "")
	f.StringVar(&o.bind, "bind", "", "`"+strings.Join(config.Bindings, "|")+"`")
	f.StringVar(&o.progress, "progress", "", "")
	for _, x := range recordFlags(&o.records) {
		usage := ""
		if x.file {
			usage = cmdline.File
		}
		f.Var(x, strings.TrimPrefix(x.name, "-"), usage)
	}
	return f
}

// recordFlag is a flag of a job without a file, and the variable that has its value if the flag is
// not given. A flag is never empty: without a value, what is asked for would be left out without a
// word.
type recordFlag struct {
	name, variable string
	said           *config.Said
	file           bool   // it is the path of a file
	inFile         string // why it is not for a job with a file, and what to write into that
}

func recordFlags(r *config.Records) []*recordFlag {
	return []*recordFlag{
		{"-ports", "IMPI_PORTS", &r.Ports, false, `bounds the ports: leave out -ports, and write ports = "7800-7899" there`},
		{"-metrics", "IMPI_METRICS", &r.Metrics, false, `says what serves metrics: leave out -metrics, and write metrics { listen = "127.0.0.1:9464" } there`},
		{"-report", "IMPI_REPORT", &r.Report, true, `says where a report goes: leave out -report, and write report { path = "job-%j.html" } there`},
		{"-trace-calls", "IMPI_TRACE_CALLS", &r.Calls, true, `says where calls are traced: leave out -trace-calls, and write trace { calls = "calls-%r.json" } there`},
		{"-otlp", "IMPI_OTLP", &r.OTLP, false, `names the collector: leave out -otlp, and write trace { otlp = "http://127.0.0.1:4318" } there`},
	}
}

func (v *recordFlag) String() string {
	if v.said == nil {
		return ""
	}
	return v.said.Value
}

// Set takes the value of the flag.
func (v *recordFlag) Set(text string) error {
	if text == "" {
		return errors.New("it is empty, as by a variable that is not set: give it a value, or leave it out")
	}
	*v.said = config.Said{Value: text, By: v.name}
	return nil
}

// completeRecords takes the variables of what no flag says, and makes paths absolute.
func completeRecords(r *config.Records) error {
	for _, x := range recordFlags(r) {
		if text := os.Getenv(x.variable); x.said.Value == "" && text != "" {
			*x.said = config.Said{Value: text, By: x.variable}
		}
		if !x.file {
			continue
		}
		if err := fromHere(&x.said.Value); err != nil {
			return err
		}
	}
	return nil
}

func parseFlags(args []string) (*options, error) {
	o := &options{}
	f := o.flags()
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	return o, o.complete(f.Args())
}

// complete takes what follows the flags, and checks all. Its errors say what to write.
func (o *options) complete(command []string) error {
	o.command = command
	for _, value := range []*string{&o.programs, &o.on} {
		var err error
		if *value, err = mpiexec.FlagFromEnviron(*value); err != nil {
			return err
		}
		o.typed = append(o.typed, *value)
	}
	if err := o.check(); err != nil || o.file != "" {
		return err
	}
	return completeRecords(&o.records)
}

// fromHere makes a path absolute, as nodes on other machines may start elsewhere.
func fromHere(path *string) error {
	if *path == "" || filepath.IsAbs(*path) {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	*path = strings.ReplaceAll(dir, "%", "%%") + "/" + *path
	return nil
}

func (o *options) check() error {
	for _, x := range recordFlags(&o.records) {
		if o.file != "" && x.said.Value != "" {
			return errors.New("the job file " + x.inFile)
		}
	}
	switch {
	case o.programs != "" && (o.file != "" || o.procs != 0 || len(o.command) > 0):
		return errors.New("-programs says what to run: leave out -config, -n and what follows the flags")
	case o.on != "" && o.file != "":
		return errors.New("the job file names the hosts: leave out -on")
	case o.programs != "" && o.site != "":
		return errors.New("-site needs a job file (-config job.hcl)")
	case o.programs != "":
		return o.checkWords()
	case o.file == "" && o.procs == 0 && len(o.command) == 0:
		return errors.New("nothing to run: give a job file (-config job.hcl), or a number of procs and a program (-n 4 ./prog)")
	case o.file == "" && len(o.command) == 0:
		return errors.New("no program: write it after the flags, as in impi-node -n 4 ./prog")
	case o.file != "" && (o.procs != 0 || len(o.command) > 0):
		return errors.New("the job file names the program and the number of procs: leave out -n and what follows the flags, or leave out -config")
	case o.file == "" && o.site != "":
		return errors.New("-site needs a job file (-config job.hcl)")
	case o.host != "" && o.site == "":
		return errors.New("-host needs the site (-site alpha -host 192.0.2.1)")
	case o.file == "" && o.procs < 1:
		return fmt.Errorf("-n %d: at least one proc is needed", o.procs)
	}
	return o.checkWords()
}

func (o *options) checkWords() error {
	if o.bind != "" && !slices.Contains(config.Bindings, o.bind) {
		return fmt.Errorf("-bind %q: write core or none", o.bind)
	}
	if _, ok := config.ParseProgress(o.progress); o.progress != "" && !ok {
		return fmt.Errorf("-progress %q: write 0, or a time from 50us to 1s such as 1ms", o.progress)
	}
	if o.logLevel != "" && !slices.Contains(levels, o.logLevel) {
		return fmt.Errorf("-log-level %q: write trace, debug, info, warn or error", o.logLevel)
	}
	return nil
}

func (o *options) apply(s *config.Site) {
	if o.logLevel != "" {
		s.Log.Level = o.logLevel
	}
	if o.logJSON {
		s.Log.Format = "json"
	}
	if o.bind != "" {
		s.Program.Bind = config.Bind(o.bind) // applies to all parts: they use the site's binding
	}
	if d, ok := config.ParseProgress(o.progress); ok {
		s.Progress = d
	}
	if o.noPrefix {
		s.Program.PrefixOutput = false
		for i := range s.Parts {
			s.Parts[i].Program.PrefixOutput = false
		}
	}
}

// args returns the flags with which to start a node. mpiexec.FlagsToEnviron keeps them off the
// command line.
func (o *options) args(p nodeSpec) []string {
	args := []string{"-config", o.file, "-site", p.site.Name}
	if o.file == "" {
		args = []string{"-programs", o.programs, "-on", o.on}
	}
	if p.host != allHosts && !p.launches {
		args = append(args, "-host", p.site.Hosts[p.host].String())
	}
	if o.logLevel != "" {
		args = append(args, "-log-level", o.logLevel)
	}
	if o.logJSON {
		args = append(args, "-log-json")
	}
	if o.noPrefix {
		args = append(args, "-no-prefix")
	}
	if o.bind != "" {
		args = append(args, "-bind", o.bind)
	}
	if o.progress != "" {
		args = append(args, "-progress", o.progress)
	}
	for _, x := range recordFlags(&o.records) {
		if x.said.Value != "" {
			args = append(args, x.name, x.said.Value)
		}
	}
	return args
}

// asTyped returns this process's own arguments; values that mpiexec.FlagsToEnviron has moved into
// the environment are back in their places.
func (o *options) asTyped() (args, environ []string) {
	args = slices.Clone(os.Args[1:])
	for i := 0; i+1 < len(args) && args[i] != "--"; i++ {
		switch args[i] {
		case "-programs":
			args[i+1] = o.typed[0]
		case "-on":
			args[i+1] = o.typed[1]
		}
	}
	return mpiexec.FlagsToEnviron(args)
}

// logger makes the log of a launcher, with the settings of its first site. The caller closes the
// limiter.
func (o *options) logger(site config.Site, w io.Writer) (hclog.Logger, *loglimit.Limiter) {
	o.apply(&site)
	return report.NewLogger(site.Log, w)
}
