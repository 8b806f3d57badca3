package ui

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
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

// FileName is the name of the file in a node's run directory that holds the address of the page
// that the node serves.
const FileName = "ui"

const maxFile = 1 << 10

// Exit statuses of the command.
const (
	statusOK     = 0
	statusFailed = 1 // there is no job, or the page cannot be served
)

type options struct {
	*links.Selection
	listen netip.AddrPort // address at which the page is served; none: any loopback port
}

// Command returns impi-node ui.
func Command() *cmdline.Command {
	o := &options{Selection: links.NewSelection()}
	c := &cmdline.Command{Name: "ui", Help: Help, Flags: cmdline.NewFlags(), Run: o.run}
	o.AddFlags(c)
	c.Flags.Func("listen", "", func(text string) (err error) {
		if o.listen, err = netip.ParseAddrPort(text); err != nil {
			return errors.New("it is an IP address with a port, such as 127.0.0.1:9480")
		}
		return CheckListen(o.listen)
	})
	return c
}

func (o *options) run(_ []string, out, errs io.Writer) (int, error) {
	ctx, stop := cmdline.Interruptible()
	defer stop()
	look := o.look()
	first, cancel := context.WithTimeout(ctx, lookLimit)
	jobs := look(first)
	cancel()
	if len(jobs) == 0 {
		return statusFailed, links.NoJob(o.Job, o.RunDir)
	}
	if url := o.served(); url != "" && !o.listen.IsValid() && len(jobs) == 1 { // that page shows its own job only
		fmt.Fprintln(out, url)
		return statusOK, nil
	}
	if !o.listen.IsValid() {
		o.listen = netip.MustParseAddrPort("127.0.0.1:0")
	}
	s, err := Serve(o.listen, look, func(ctx context.Context, id string) *links.Ending {
		return links.AwaitEnding(ctx, host.RunDirs(o.RunDir, o.UID), id)
	})
	if err != nil {
		return statusFailed, err
	}
	defer s.Close()
	fmt.Fprintln(out, s.URL())
	fmt.Fprintf(errs, "impi-node ui: job %s; Ctrl-C ends it. Others need the address with its token.\n", jobs[0].Name)
	<-ctx.Done()
	return statusOK, nil
}

func (o *options) look() AskFunc {
	return func(ctx context.Context) (jobs []status.Job) {
		for _, j := range Ask(ctx, host.RunDirs(o.RunDir, o.UID)) {
			if o.Includes(&j.Job) {
				jobs = append(jobs, j)
			}
		}
		return jobs
	}
}

const askLimit = 2 * time.Second

// Ask asks the nodes of run directories for everything that the page shows.
func Ask(ctx context.Context, dirs []string) []status.Job {
	return status.AskNodes(ctx, dirs, askLimit, links.Request{Op: links.OpLinks, Sites: true, Calls: true, Log: true, ByHost: true})
}

// served returns the address of the page that a node of the job serves itself, or "".
func (o *options) served() string {
	for _, dir := range host.RunDirs(o.RunDir, o.UID) {
		f, err := os.Open(filepath.Join(dir, FileName))
		if err != nil {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(f, maxFile))
		_ = f.Close()
		if err != nil {
			continue
		}
		if jobs := Ask(context.Background(), []string{dir}); len(jobs) == 1 && o.Includes(&jobs[0].Job) {
			return strings.TrimSpace(string(b))
		}
	}
	return ""
}
