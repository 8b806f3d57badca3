package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/campaign"
	"github.com/openimpi/impi/internal/campaign/calls"
	"github.com/openimpi/impi/internal/campaign/job"
	"github.com/openimpi/impi/internal/campaign/kills"
	"github.com/openimpi/impi/internal/sim"
)

func (c *searches) open(ctx context.Context, kind string) (search, error) {
	switch kind {
	case campaign.Seeds, campaign.Worlds, campaign.Survive:
		return &seeds{c, kind}, nil
	case campaign.Fuzz:
		return newFuzzing(ctx, c)
	}
	b, err := job.NewWorkspace(c.bin)
	if err != nil {
		return nil, err
	}
	if kind == campaign.Kills {
		return &killing{c, b}, nil
	}
	fmt.Fprintln(c.log, "calls: counting the calls of jobs in which nothing is failed")
	points, err := calls.Points(ctx, b)
	if err != nil {
		b.Close()
		return nil, err
	}
	return &failing{searches: c, stand: b, points: points}, nil
}

type seeds struct {
	*searches
	kind string
}

// atOnce is how many seeds a piece has; they take half a minute.
const atOnce = 500

func (s *seeds) piece(ctx context.Context, left time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, left)
	defer stop()
	first := s.record.Next(s.kind)
	limits := sim.Limits{Worlds: s.kind == campaign.Worlds, Survive: s.kind == campaign.Survive}
	t := sim.Sweep{First: first, Count: atOnce, Workers: s.workers, Limits: limits, Twice: 16}.Run(ctx)
	for _, f := range t.Findings {
		what := fmt.Sprintf("impi-sim -seed %d", f.Seed)
		if s.kind != campaign.Seeds {
			what = fmt.Sprintf("impi-sim -%s -seed %d", s.kind, f.Seed) // the kinds are called as its flags
		}
		s.find(s.kind, what, f.Failure.Error(), "")
	}
	// A sweep that is stopped has done the first seeds.
	s.record.Add(campaign.Piece{Kind: s.kind, Made: s.made, From: first, To: first + t.Seeds, Seconds: whole(t.Took), Found: len(t.Findings)})
	return nil
}

func (*seeds) close() {}

func whole(d time.Duration) uint64 { return uint64(d.Round(time.Second) / time.Second) }

type failing struct {
	*searches
	stand  *job.Workspace
	points []calls.Point
	tried  uint64 // the key of the last point tried, if only some were
}

// several is how long a piece of jobs takes.
const several = 20 * time.Second

func (f *failing) piece(ctx context.Context, left time.Duration) error {
	begun, next := f.now(), f.record.Next(campaign.Calls)
	p := campaign.Piece{Kind: campaign.Calls, Made: f.made, From: next, To: next, Of: uint64(len(f.points))}
	done := error(errDone)
	for _, x := range f.points {
		behind := f.record.Position
		if f.only.String() != "" {
			behind = f.tried
		}
		if !f.only.MatchString(x.String()) || x.Key() <= behind {
			continue
		}
		if f.now().Sub(begun) > min(several, left) {
			done = nil
			break
		}
		r, err := calls.Run(ctx, f.stand, x)
		if err != nil {
			done = err
			break
		}
		p.To++
		if !r.Reached {
			p.Missed++
		}
		if wrong := r.Wrong(); wrong != "" {
			p.Found++
			f.find(campaign.Calls, x.String(), wrong, r.Output)
		}
		if f.tried = x.Key(); f.only.String() == "" {
			f.record.Position = x.Key()
		}
	}
	p.Seconds = whole(f.now().Sub(begun))
	f.record.Add(p)
	if errors.Is(done, errDone) && f.only.String() == "" {
		f.record.Position = 0
	}
	return done
}

func (f *failing) close() { f.stand.Close() }

type killing struct {
	*searches
	stand *job.Workspace
}

func (k *killing) piece(ctx context.Context, left time.Duration) error {
	begun, seed := k.now(), k.record.Next(campaign.Kills)
	p := campaign.Piece{Kind: campaign.Kills, Made: k.made, From: seed, To: seed}
	defer func() { k.record.Add(p) }()
	for k.now().Sub(begun) <= min(several, left) {
		r, err := kills.Run(ctx, k.stand, p.To)
		if err != nil {
			return err
		}
		if wrong := r.Wrong(); wrong != "" {
			p.Found++
			what := fmt.Sprintf("job %d: %s, killed: %s", p.To, r.Kind, strings.Join(r.Kills, ", "))
			k.find(campaign.Kills, what, wrong, r.Output)
		}
		p.To++
		p.Seconds = whole(k.now().Sub(begun))
	}
	return nil
}

func (k *killing) close() { k.stand.Close() }

type fuzzing struct {
	*searches
	dir, program string
	targets      []string
}

// turn is how long a fuzz target runs before another one does.
const turn = 30 * time.Second

func newFuzzing(ctx context.Context, c *searches) (f *fuzzing, err error) {
	f = &fuzzing{searches: c}
	if f.dir, err = os.MkdirTemp("", "impi-campaign-"); err != nil {
		return nil, err
	}
	f.program = filepath.Join(f.dir, "fuzz")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", f.program, "./internal/fuzz").CombinedOutput()
	if err == nil {
		out, err = exec.CommandContext(ctx, f.program, "-list").Output()
	}
	if err != nil {
		f.close()
		return nil, fmt.Errorf("the list of fuzz targets: %w: %s", err, bytes.TrimSpace(out))
	}
	for name := range strings.FieldsSeq(string(out)) {
		if c.only.MatchString(name) {
			f.targets = append(f.targets, name)
		}
	}
	return f, nil
}

func (f *fuzzing) close() { _ = os.RemoveAll(f.dir) }

var inputs = regexp.MustCompile(`execs: (\d+)`)

func (f *fuzzing) piece(ctx context.Context, left time.Duration) error {
	if len(f.targets) == 0 {
		return errDone
	}
	least := f.targets[0]
	for _, t := range f.targets {
		if f.record.Targets[t].Seconds < f.record.Targets[least].Seconds {
			least = t
		}
	}
	d := max(min(turn, left), time.Second).Round(time.Second)
	cmd := exec.CommandContext(ctx, f.program, "-each", d.String(), "-only", "^"+regexp.QuoteMeta(least)+"$")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	failed := errors.As(err, &exit) && exit.ExitCode() == 1
	if err != nil && !failed {
		return fmt.Errorf("%s: %w: %s", least, err, bytes.TrimSpace(out))
	}
	done := f.record.Next(campaign.Fuzz)
	p := campaign.Piece{Kind: campaign.Fuzz, Made: f.made, From: done, To: done + whole(d), Seconds: whole(d)}
	if failed {
		p.Found = 1
		f.find(campaign.Fuzz, least, "it fails; the input is below testdata/fuzz", string(out))
	}
	if f.record.Targets == nil {
		f.record.Targets = map[string]campaign.Total{}
	}
	t := f.record.Targets[least]
	t.Seconds += whole(d)
	if m := inputs.FindSubmatch(out); m != nil {
		n, _ := strconv.ParseUint(string(m[1]), 10, 64) // the expression matches only digits
		t.Inputs += n
	}
	f.record.Targets[least] = t
	f.record.Add(p)
	return nil
}
