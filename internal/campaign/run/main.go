// Command run searches for faults for as long as it is told, goes on where it stopped, and keeps
// the count: make campaign.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/campaign"
	"github.com/openimpi/impi/internal/campaign/inject"
	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/provenance"
)

//go:embed help.txt
var help string

func main() {
	inject.Shim()
	cmdline.Main(func(ctx context.Context) int { return run(ctx, os.Args[1:], os.Stderr) })
}

type options struct {
	kinds     []string
	budget    time.Duration
	bin       string
	data, out string
	only      *regexp.Regexp
	workers   int
	render    bool
	ended     string // the finding to end
	how       string // how it was fixed
}

func parse(args []string) (o *options, err error) {
	o = &options{}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	what := flags.String("what", "all", "")
	only := flags.String("only", "", "")
	flags.DurationVar(&o.budget, "budget", 10*time.Minute, "")
	flags.StringVar(&o.bin, "bin", "bin", "")
	flags.StringVar(&o.data, "data", "docs/campaign.json", "")
	flags.StringVar(&o.out, "out", "docs/campaign.md", "")
	flags.IntVar(&o.workers, "j", 1, "")
	flags.BoolVar(&o.render, "render", false, "")
	flags.StringVar(&o.ended, "ended", "", "")
	flags.StringVar(&o.how, "how", "", "")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	o.kinds = campaign.Kinds
	if *what != "all" {
		o.kinds = strings.Split(*what, ",")
	}
	for _, k := range o.kinds {
		if !slices.Contains(campaign.Kinds, k) {
			return nil, fmt.Errorf("-what %s: write some of %s, with commas, or all", k, strings.Join(campaign.Kinds, ","))
		}
	}
	o.only, err = regexp.Compile(*only)
	switch {
	case err != nil:
		return nil, fmt.Errorf("-only: %w", err)
	case *only != "" && !slices.Equal(o.kinds, []string{campaign.Calls}) && !slices.Equal(o.kinds, []string{campaign.Fuzz}):
		return nil, errors.New("-only is for -what calls or -what fuzz")
	case o.budget <= 0 || o.workers < 1 || flags.NArg() > 0:
		return nil, errors.New("-budget and -j must be positive, and there are no other words")
	case (o.ended == "") != (o.how == ""):
		return nil, errors.New("-ended wants -how, and -how wants -ended")
	}
	return o, nil
}

// run returns the exit status: 1 if something was found, 2 if nothing could be run.
func run(ctx context.Context, args []string, log io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(log, help)
		return 0
	}
	if err != nil {
		fmt.Fprintf(log, "campaign: %v\nTry: go run ./internal/campaign/run -help\n", err)
		return 2
	}
	unlock, err := campaign.Lock(o.data)
	if err != nil {
		fmt.Fprintln(log, "campaign:", err)
		return 2
	}
	defer unlock()
	r, err := campaign.Read(o.data)
	if err != nil {
		fmt.Fprintln(log, "campaign:", err)
		return 2
	}
	c := &searches{options: o, record: r, log: log, now: time.Now}
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(log, "campaign:", err)
		return 2
	}
	if c.found > 0 {
		return 1
	}
	return 0
}

type searches struct {
	*options
	record *campaign.Record
	made   provenance.Stamp
	log    io.Writer
	now    func() time.Time
	said   time.Time
	found  int
}

// search does a piece of a kind, of less than a minute if it can, and puts it into the record.
type search interface {
	piece(ctx context.Context, left time.Duration) error
	close()
}

func (c *searches) run(ctx context.Context) (err error) {
	if c.ended != "" {
		if err := c.record.End(c.ended, c.how); err != nil {
			return err
		}
		return c.save()
	}
	if c.render {
		return c.save()
	}
	if c.made, err = provenance.Now("."); err != nil {
		return err
	}
	if strings.HasSuffix(c.made.Commit, "-dirty") {
		fmt.Fprintln(c.log, "campaign: there are changes that are in no commit: the count will say so")
	}
	end := c.now().Add(c.budget)
	for i, kind := range c.kinds {
		share := end.Sub(c.now()) / time.Duration(len(c.kinds)-i)
		if err := c.one(ctx, kind, share); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		if ctx.Err() != nil {
			fmt.Fprintln(c.log, "interrupted; what was done before is kept")
			return nil
		}
	}
	open := len(c.record.Open())
	fmt.Fprintf(c.log, "%d new findings, %d open: %s\n", c.found, open, c.out)
	return nil
}

// one searches in one kind for the time share. A piece that was begun is finished.
func (c *searches) one(ctx context.Context, kind string, share time.Duration) error {
	s, err := c.open(ctx, kind)
	if err != nil {
		return err
	}
	defer s.close()
	for end := c.now().Add(share); ctx.Err() == nil; {
		left := end.Sub(c.now())
		if left <= 0 {
			break
		}
		err := s.piece(ctx, left)
		if errors.Is(err, errDone) || ctx.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		if err := c.save(); err != nil {
			return err
		}
		c.progress(kind, left)
	}
	return c.save()
}

var errDone = errors.New("all is done")

func (c *searches) progress(kind string, left time.Duration) {
	if c.now().Sub(c.said) < 10*time.Second {
		return
	}
	c.said = c.now()
	n, _ := c.record.Count(kind)
	fmt.Fprintf(c.log, "%s: %d in all, %d new findings, %v left\n", kind, n, c.found, left.Round(time.Second))
}

func (c *searches) find(kind, what, text, output string) {
	if c.record.Find(campaign.Finding{Kind: kind, What: what, Made: c.made, Text: text}) {
		c.found++
	}
	fmt.Fprintf(c.log, "FOUND %s: %s\n%s\n%s\n", kind, what, text, output)
}

func (c *searches) save() error {
	var page strings.Builder
	if err := c.record.WritePage(&page); err != nil {
		return err
	}
	if err := c.record.Write(c.data); err != nil {
		return err
	}
	return os.WriteFile(c.out, []byte(page.String()), 0o644)
}
