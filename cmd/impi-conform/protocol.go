package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/conformance/iut"
	"github.com/openimpi/impi/internal/conformance/play"
	"github.com/openimpi/impi/internal/conformance/protocol"
	"github.com/openimpi/impi/internal/conformance/report"
	"github.com/openimpi/impi/internal/interpreter"
	"github.com/openimpi/impi/internal/peers"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

type trial struct {
	iut      string // name of a preset; empty: commands are given
	prefix   string // where the preset is installed
	commands iut.Commands
	options  protocol.Options
	list     bool
	strict   bool
	markdown string
	flagSet  *flag.FlagSet
	words    []string // the arguments after the flags
	shown
}

func protocolCommand() *cmdline.Command { c, _ := newTrial(); return c }

func newTrial() (*cmdline.Command, *trial) {
	f := cmdline.NewFlags()
	r := &trial{flagSet: f}
	c := &cmdline.Command{Name: "protocol", Help: helpProtocol, Args: "`PATTERN`", Flags: f, Run: r.try}
	f.StringVar(&r.iut, "iut", "", "`impi|lam`")
	f.StringVar(&r.prefix, "prefix", "", cmdline.Dir)
	f.StringVar(&r.commands.ClientCommand, "client", "", "")
	f.StringVar(&r.commands.ServerCommand, "server", "", "")
	f.StringVar(&r.commands.Program, "program", "", cmdline.File)
	f.StringVar(&r.commands.Title, "name", "the IUT", "")
	f.StringVar(&r.commands.Release, "release", "", "")
	f.BoolVar(&r.commands.ManyHosts, "many-hosts", false, "")
	f.DurationVar(&r.options.Patience, "patience", 10*time.Second, "")
	f.IntVar(&r.options.Parallel, "parallel", 1, "")
	f.BoolVar(&r.options.Quick, "quick", false, "")
	f.BoolVar(&r.options.Trace, "trace", false, "")
	f.BoolVar(&r.list, "list", false, "")
	f.BoolVar(&r.strict, "strict", false, "")
	r.flags(f)
	f.StringVar(&r.markdown, "markdown", "", cmdline.File)
	f.StringVar((*string)(&r.options.Level), "level", "", fmt.Sprintf("`%s|%s`", play.Must, play.Should))
	f.StringVar((*string)(&r.options.Data), "data", "", fmt.Sprintf("`%s|%s`", play.External32, play.NativeLittle))
	c.Check = func(rest []string) (err error) {
		r.words = rest
		switch {
		case len(rest) > 1 || len(rest) == 1 && r.pattern != "":
			return fmt.Errorf("give one pattern, not %q", rest)
		case len(rest) == 1:
			r.pattern = rest[0]
		}
		if r.options.Run, err = r.cases(); err != nil {
			return err
		}
		return r.complete()
	}
	return c, r
}

func (r *trial) complete() error {
	own := r.commands.ClientCommand != "" || r.commands.ServerCommand != ""
	switch {
	case r.options.Level != "" && r.options.Level != play.Must && r.options.Level != play.Should:
		return errors.New("-level: it is MUST or SHOULD")
	case r.options.Data != "" && r.options.Data != play.External32 && r.options.Data != play.NativeLittle:
		return errors.New("-data: it is external32 or native-le")
	case r.list:
	case r.iut == "" && !own:
		return errors.New("say what to test: -iut impi, -iut lam, or -client and -server")
	case r.iut != "" && own:
		return errors.New("-iut has its own commands: give either -iut, or -client and -server")
	case r.iut != "" && r.iut != "impi" && r.iut != "lam":
		return fmt.Errorf("-iut %q is not known; it can be impi or lam", r.iut)
	case r.commands.ClientCommand != "" && r.commands.Program == "":
		return errors.New("-client: give -program, the interpreter that you have compiled (impi-conform program prints its source)")
	}
	return nil
}

func (r *trial) subject(dir string) (iut.Subject, error) {
	switch r.iut {
	case "impi":
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return iut.Impi(r.prefix, []string{self, "interpreter"})
	case "lam":
		if r.prefix == "" {
			in, err := peers.Find()
			if err != nil {
				return nil, fmt.Errorf("%w; or give -prefix, the folder where LAM/MPI is installed", err)
			}
			r.prefix = in.Prefix
		}
		return iut.LAM(r.prefix, interpreter.C, dir)
	}
	return &r.commands, nil
}

func (r *trial) try(_ []string, out, errOut io.Writer) (int, error) {
	if r.list {
		return listProtocol(r.options, out), nil
	}
	ctx, stop := cmdline.Interruptible()
	defer stop()
	found, err := r.run(ctx, out, errOut)
	switch {
	case errors.Is(err, protocol.ErrNothing):
		return 0, cmdline.UsageError(err)
	case err != nil:
		return statusNone, err
	}
	return r.status(found), nil
}

func (r *trial) status(found *protocol.Report) int {
	if found.Verdict != transporttest.Pass || r.strict && found.Failed > 0 {
		return statusFail
	}
	return statusPass
}

func (r *trial) run(ctx context.Context, out, errOut io.Writer) (*protocol.Report, error) {
	dir, err := os.MkdirTemp("", "impi-conform-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the IUT may run as another user
		return nil, err
	}
	subject, err := r.subject(dir)
	if err != nil {
		return nil, err
	}
	table := r.table(out, errOut)
	if !r.quiet {
		r.options.Progress = progress(table, protocol.Line, func(r protocol.Result) (string, bool) { return r.ID, r.Verdict == "" })
	}
	found, err := protocol.Run(ctx, subject, r.options)
	if err != nil {
		return nil, err
	}
	page := func(w io.Writer) error {
		found.WriteMarkdown(w, "impi-conform protocol "+strings.Join(r.published(), " "))
		return nil
	}
	return found, errors.Join(toFile(r.markdown, page), r.write(found, out, table))
}

// published returns the arguments as a published page shows them: without flags for output and
// local folders.
func (r *trial) published() (words []string) {
	r.flagSet.Visit(func(f *flag.Flag) {
		switch value := f.Value.String(); f.Name {
		case "markdown", "junit", "q", "json":
		case "prefix":
			words = append(words, "-prefix", "DIR")
		case "run":
			words = append(words, value)
		default:
			if words = append(words, "-"+f.Name); value != "true" {
				words = append(words, value)
			}
		}
	})
	return append(words, r.words...)
}

func listProtocol(o protocol.Options, out io.Writer) int {
	p := report.Printer{W: out}
	chapter := ""
	for _, c := range o.Chosen() {
		if c.Chapter != chapter {
			chapter = c.Chapter
			p.Line("\n%s", chapter)
		}
		p.Line("  %-18s %-6s %-7s %s", c.ID, c.Level, c.Needs, c.Expect)
	}
	return statusPass
}
