// Command run makes a wide area on this machine and measures over it.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/wan/measure"
)

//go:embed help.txt
var help string

func main() { cmdline.Main(run) }

func run(ctx context.Context) int {
	o, out, data, err := parse(os.Args[1:])
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "wan:", err)
		}
		fmt.Fprintf(os.Stderr, help, strings.Join(measure.Columns(), ", "))
		return 2
	}
	if os.Geteuid() != 0 {
		return again(ctx)
	}
	r, err := o.Run(ctx)
	if err == nil {
		err = write(r, out, data)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "wan:", err)
		return 1
	}
	return 0
}

// again runs this program as the root of a user namespace, and returns its status.
func again(ctx context.Context) int {
	self, err := os.Executable()
	if err == nil {
		cmd := netns.AsRoot(ctx, self, os.Args[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err = cmd.Run()
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		fmt.Fprintln(os.Stderr, "wan: this ran in a user namespace, as you are not root")
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, "wan: without root it takes unshare, of util-linux:", err)
		fmt.Fprintln(os.Stderr, "wan: between programs of your own go run ./internal/wan/relay/run puts such a line without it")
		return 1
	}
	return 0
}

func parse(args []string) (o *measure.Options, out, data string, err error) {
	o = &measure.Options{Log: os.Stderr, Limit: time.Minute, Settings: map[string][]string{}}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	bin := flags.String("bin", "bin", "")
	rate := flags.Float64("rate", 1000, "")
	rtt := flags.String("rtt", "1ms,20ms,100ms,200ms", "")
	loss := flags.String("loss", "0,0.01,0.1,1", "")
	only := flags.String("only", "", "")
	quick := flags.Bool("quick", false, "")
	flags.DurationVar(&o.Time, "time", 5*time.Second, "")
	flags.DurationVar(&o.Omit, "omit", 2*time.Second, "")
	flags.DurationVar(&o.Across, "across", 100*time.Millisecond, "")
	flags.IntVar(&o.Repeats, "repeats", 7, "")
	of := flags.String("of", "", "")
	sites := flags.String("sites", "2,4,8", "")
	flags.IntVar(&o.Buffers, "buffers", 0, "")
	flags.Func("sysctl", "", func(set string) error {
		if !strings.HasPrefix(set, "net.") || !strings.Contains(set, "=") {
			return errors.New("write net.NAME=VALUE, which holds in the sites alone")
		}
		o.Sysctl = append(o.Sysctl, set)
		return nil
	})
	flags.StringVar(&o.Progress, "progress", "", "")
	flags.StringVar(&o.Compress, "compress", "", "")
	flags.StringVar(&o.Data, "data", "", "")
	flags.IntVar(&o.Times, "times", 1, "")
	flags.Uint64Var(&o.Seed, "seed", 1, "")
	for _, transport := range []string{"tcp", "quic"} {
		flags.Func(transport, "", func(setting string) error {
			if strings.ContainsAny(setting, "{}\n") {
				return errors.New("write a setting such as window = 65536")
			}
			o.Settings[transport] = append(o.Settings[transport], setting)
			return nil
		})
	}
	flags.StringVar(&out, "out", "", "")
	flags.StringVar(&data, "json", "", "")
	if err := flags.Parse(args); err != nil {
		return nil, "", "", err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if *quick {
		for name, value := range map[string]string{"rtt": "1ms,100ms", "loss": "0,0.1", "time": "2s", "omit": "1s", "sites": "2,4", "repeats": "3"} {
			if !given[name] {
				_ = flags.Set(name, value)
			}
		}
	}
	o.Latency = o.Time / 2
	o.Rate = int64(*rate * 1e6)
	err = choose(o, *only, *of, *sites)
	err = errors.Join(err, networks(o, *rtt, *loss))
	if o.Time <= 0 || o.Omit < 0 || o.Repeats < 1 || o.Repeats > 900 || flags.NArg() > 0 {
		err = errors.Join(err, errors.New("-time must be positive, -repeats 1 to 900, and there are no other words"))
	}
	var noBin error
	o.Bin, noBin = filepath.Abs(*bin)
	return o, out, data, errors.Join(err, noBin)
}

func choose(o *measure.Options, only, of, sites string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	for _, c := range measure.Columns() {
		if pattern.MatchString(c) {
			o.Columns = append(o.Columns, c)
		}
	}
	if len(o.Columns) == 0 {
		err = errors.New("-only must fit some columns")
	}
	var wrong error
	o.Operations, wrong = regexp.Compile(of)
	err = errors.Join(err, wrong)
	for word := range strings.SplitSeq(sites, ",") {
		n, wrong := strconv.Atoi(word)
		if wrong == nil && (n < 2 || n > 32) {
			wrong = fmt.Errorf("%d sites: write 2 to 32", n)
		}
		o.Sites, err = append(o.Sites, n), errors.Join(err, wrong)
	}
	return err
}

func networks(o *measure.Options, rtt, loss string) (err error) {
	for word := range strings.SplitSeq(rtt, ",") {
		d, wrong := time.ParseDuration(word)
		o.RTT, err = append(o.RTT, d), errors.Join(err, wrong)
	}
	for word := range strings.SplitSeq(loss, ",") {
		p, wrong := strconv.ParseFloat(word, 64)
		o.Loss, err = append(o.Loss, p/100), errors.Join(err, wrong)
	}
	for _, d := range o.RTT {
		for _, p := range o.Loss {
			err = errors.Join(err, o.Shape(measure.Row{RTT: d, Loss: p}).Check())
		}
	}
	return errors.Join(err, o.Shape(measure.Row{RTT: o.Across}).Check())
}

func write(r *measure.Report, out, data string) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err == nil && data != "" {
		err = os.WriteFile(data, append(b, '\n'), 0o644)
	}
	if err != nil {
		return err
	}
	if out == "" {
		r.Write(os.Stdout)
		return nil
	}
	return replace(out, r)
}

// begins is the line of a page after which the tables stand.
const begins = "<!-- made by make wan -->\n"

func replace(page string, r *measure.Report) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, _, found := strings.Cut(string(text), begins)
	if !found {
		return fmt.Errorf("%s has no line %q, behind which the tables belong", page, strings.TrimSpace(begins))
	}
	var b strings.Builder
	b.WriteString(before + begins + "\n")
	r.Write(&b)
	return os.WriteFile(page, []byte(b.String()), 0o644)
}
