package ui

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/status"
	"github.com/openimpi/impi/plugins/host"
)

// Help is the text of its -h.
//
//go:embed help.txt
var Help string

// FileName is the file in a node's run directory with the address of the page that the node serves.
const FileName = "ui"

// maxFile bounds what is read of it.
const maxFile = 1 << 10

// Exit statuses of the command.
const (
	statusOK     = 0
	statusFailed = 1 // there is no job, or the page cannot be served
	statusUsage  = 2
)

type options struct {
	help         bool
	listen       netip.AddrPort
	own          bool // -listen is given
	job          string
	runDir, user string
	uid          int
}

func parse(args []string) (*options, error) {
	o := &options{uid: os.Geteuid()}
	f := flag.NewFlagSet("ui", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	listen := f.String("listen", "127.0.0.1:0", "")
	f.StringVar(&o.job, "job", "", "")
	f.StringVar(&o.runDir, "run-dir", "", "")
	f.StringVar(&o.user, "user", "", "")
	rest, err := cmdline.ParseMixed(f, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		o.help = true
		return o, nil
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return nil, fmt.Errorf("%q: this command takes only flags; name a job with -job %s", rest[0], rest[0])
	}
	f.Visit(func(x *flag.Flag) { o.own = o.own || x.Name == "listen" })
	if o.listen, err = netip.ParseAddrPort(*listen); err != nil {
		return nil, fmt.Errorf("-listen %s: it is an IP address with a port, such as 127.0.0.1:9480", *listen)
	}
	if err := CheckListen(o.listen); err != nil {
		return nil, fmt.Errorf("-listen: %w", err)
	}
	if o.user != "" {
		o.uid, err = links.UserID(o.user)
	}
	return o, err
}

// Run runs the command and returns its exit status.
func Run(args []string, out, errs io.Writer) int {
	o, err := parse(args)
	switch {
	case err != nil:
		fmt.Fprintf(errs, "impi-node ui: %v\nTry: impi-node help ui\n", err)
		return statusUsage
	case o.help:
		fmt.Fprint(out, Help)
		return statusOK
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	look := o.look()
	first, cancel := context.WithTimeout(ctx, lookLimit)
	jobs := look(first)
	cancel()
	if len(jobs) == 0 {
		fmt.Fprintf(errs, "impi-node ui: %s\n", status.Nothing)
		return statusFailed
	}
	if url := o.served(); url != "" && !o.own && len(jobs) == 1 { // that page has its own job alone
		fmt.Fprintln(out, url)
		return statusOK
	}
	s, err := Serve(o.listen, look)
	if err != nil {
		fmt.Fprintf(errs, "impi-node ui: %v\n", err)
		return statusFailed
	}
	defer s.Close()
	fmt.Fprintln(out, s.URL())
	fmt.Fprintf(errs, "impi-node ui: job %s; Ctrl-C ends it. Others need the address with its token.\n", jobs[0].Name)
	<-ctx.Done()
	return statusOK
}

// look returns what asks the jobs that are meant.
func (o *options) look() Look {
	return func(ctx context.Context) (jobs []status.Job) {
		for _, j := range Ask(ctx, host.RunDirs(o.runDir, o.uid)) {
			if links.IsCalled(o.job, j.Name, j.ID) {
				jobs = append(jobs, j)
			}
		}
		return jobs
	}
}

// askLimit is how long a node has to answer.
const askLimit = 2 * time.Second

// Ask asks the nodes of run directories for all that the page shows.
func Ask(ctx context.Context, dirs []string) []status.Job {
	return status.Look(ctx, dirs, askLimit, links.Request{Op: links.OpLinks, Sites: true, Calls: true, Log: true, ByHost: true})
}

// served returns the address of the page that a node of the job serves itself, or "".
func (o *options) served() string {
	for _, dir := range host.RunDirs(o.runDir, o.uid) {
		f, err := os.Open(filepath.Join(dir, FileName))
		if err != nil {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(f, maxFile))
		_ = f.Close()
		if err != nil {
			continue
		}
		if jobs := Ask(context.Background(), []string{dir}); len(jobs) == 1 && links.IsCalled(o.job, jobs[0].Name, jobs[0].ID) {
			return strings.TrimSpace(string(b))
		}
	}
	return ""
}
