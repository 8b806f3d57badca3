package distribution

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/pluginlock"
)

const statusBad = 1

const jobFile = "job.hcl"

type options struct {
	file, dir, platforms, key, oci string
	upgrade, unsigned, json        bool
}

// Commands returns the commands install, lock and publish, which the help of impi-node plugins
// describes.
func Commands() []*cmdline.Command {
	o := &options{}
	command := func(name string, run func(context.Context, []string, io.Writer, io.Writer) (int, error), flags ...func(*flag.FlagSet)) *cmdline.Command {
		c := &cmdline.Command{Name: name, Flags: cmdline.NewFlags()}
		c.Flags.BoolVar(&o.json, "json", false, "")
		for _, add := range flags {
			add(c.Flags)
		}
		c.Run = func(args []string, out, errs io.Writer) (int, error) {
			ctx, stop := cmdline.Interruptible()
			defer stop()
			return run(ctx, args, out, errs)
		}
		return c
	}
	file := func(f *flag.FlagSet) {
		f.StringVar(&o.file, "config", jobFile, cmdline.File)
		f.BoolVar(&o.upgrade, "upgrade", false, "")
	}
	publish := command("publish", o.publish, func(f *flag.FlagSet) {
		f.StringVar(&o.key, "key", "", "")
		f.BoolVar(&o.unsigned, "unsigned", false, "")
		f.StringVar(&o.oci, "oci", "", cmdline.Dir)
	})
	publish.Args, publish.Check = cmdline.Dir, cmdline.ExactArgs(1, "the folder that has the binaries")
	lock := command("lock", o.lock, file, func(f *flag.FlagSet) { f.StringVar(&o.platforms, "platform", "", "") })
	lock.Check = func([]string) error { return o.checkPlatforms() }
	return []*cmdline.Command{
		command("install", o.install, file, func(f *flag.FlagSet) { f.StringVar(&o.dir, "dir", "", cmdline.Dir) }),
		lock, publish,
	}
}

func (o *options) checkPlatforms() error {
	for _, p := range o.platformList() {
		if !pluginlock.ValidPlatform(p) {
			return fmt.Errorf("-platform %q: write it like %s, several with commas", p, pluginlock.Platform())
		}
	}
	return nil
}

func (o *options) platformList() (list []string) {
	for p := range strings.SplitSeq(o.platforms, ",") {
		if p = strings.TrimSpace(p); p != "" && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

func (o *options) installer(errs io.Writer) (*installer, error) {
	plugins, found := config.LoadPlugins(o.file)
	_ = found.WriteText(errs, false)
	if plugins == nil {
		return nil, cmdline.UsageError(fmt.Errorf("%s has faults", o.file))
	}
	if len(plugins.List) == 0 {
		return nil, cmdline.UsageError(fmt.Errorf("%s has no plugin block; write plugin \"NAME\" { source = \"...\" }", o.file))
	}
	if o.dir != "" {
		var err error
		if plugins.Dir, err = filepath.Abs(o.dir); err != nil {
			return nil, err
		}
	}
	p := progress{to: errs, terminal: isTerminal(errs)}
	return &installer{Plugins: plugins, upgrade: o.upgrade, platforms: o.platformList(), tell: p.tell}, nil
}

func (o *options) install(ctx context.Context, _ []string, out, errs io.Writer) (int, error) {
	in, err := o.installer(errs)
	if err != nil {
		return 0, err
	}
	list, err := in.do(ctx, in.install)
	return o.report(in, list, err, out, errs, "install")
}

func (o *options) lock(ctx context.Context, _ []string, out, errs io.Writer) (int, error) {
	in, err := o.installer(errs)
	if err != nil {
		return 0, err
	}
	list, err := in.do(ctx, in.lockAll)
	return o.report(in, list, err, out, errs, "lock")
}

func (o *options) report(in *installer, list []Result, err error, out, errs io.Writer, verb string) (int, error) {
	status := 0
	for _, r := range list {
		if r.Error != "" {
			status = statusBad
			fmt.Fprintf(errs, "impi-node plugins %s: %s: %s\n", verb, r.Name, strings.TrimPrefix(r.Error, r.Name+" "))
		} else if !o.json {
			fmt.Fprintln(out, r.line())
		}
	}
	if o.json {
		err = errors.Join(err, cmdline.WriteJSON(out, map[string]any{"plugins": list, "lock": in.Lock, "dir": in.Dir}))
	}
	return status, err
}

func (r *Result) line() string {
	text := r.Name + " " + r.Version
	if r.Was != "" {
		text += " (was " + r.Was + ")"
	}
	switch {
	case r.State == stateLocked && len(r.platforms) == 0:
		text += ": the lock file has all checksums already"
	case r.State == stateLocked:
		text += ": locked for " + strings.Join(r.platforms, ", ")
	default:
		text += ": " + r.State + ", " + r.Path
	}
	if r.SignedBy != "" {
		text += ", signed by the key " + r.SignedBy
	}
	return text
}

func (o *options) publish(ctx context.Context, args []string, out, errs io.Writer) (int, error) {
	p := publication{dir: args[0], unsigned: o.unsigned, oci: o.oci}
	if o.key != "" {
		p.keys = strings.Split(o.key, ",")
	}
	list, err := p.run(ctx)
	if err != nil {
		return statusBad, err
	}
	if o.json {
		return 0, cmdline.WriteJSON(out, map[string]any{"published": list})
	}
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tVERSION\tPLATFORM\tBYTES\tSHA256\tKEY")
	for _, b := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", b.Name, b.Version, b.Platform, b.Size, b.SHA256, cmp.Or(b.Key, "unsigned"))
	}
	if err := t.Flush(); err != nil {
		return statusBad, err
	}
	fmt.Fprintf(out, "\nIndex: %s\n", filepath.Join(p.dir, IndexName))
	if p.oci != "" {
		fmt.Fprintf(out, "OCI layout: %s\n", p.oci)
	}
	if len(p.keys) == 0 && !o.unsigned {
		fmt.Fprintln(errs, "impi-node plugins publish: signatures were not verified; -key with the second line of minisign.pub does that")
	}
	return 0, nil
}

// progress reports downloads that take longer than a few seconds: on a terminal in one line,
// otherwise in few lines.
type progress struct {
	to       io.Writer
	terminal bool
	begun    time.Time
	said     time.Time
	what     string
}

func (p *progress) tell(what string, done, of int64) {
	now := time.Now()
	if what != p.what {
		p.what, p.begun, p.said = what, now, time.Time{}
	}
	pause := 10 * time.Second
	if p.terminal {
		pause = time.Second / 2
	}
	shown := !p.said.IsZero()
	if now.Sub(p.begun) < 2*time.Second || now.Sub(p.said) < pause && (done < of || !shown) {
		return
	}
	p.said = now
	end := "\n"
	if p.terminal && done < of {
		end = "\r"
	}
	fmt.Fprintf(p.to, "%s: %.1f of %.1f MB%s", what, float64(done)/1e6, float64(of)/1e6, end)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
