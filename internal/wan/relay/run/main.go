// Command run puts a wide area between two programs of this machine, without network namespaces.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/wan"
	"github.com/openimpi/impi/internal/wan/relay"
)

//go:embed help.txt
var help string

func main() {
	cmdline.Main(func(ctx context.Context) int { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

type options struct {
	network, listen, to string
	shape               wan.Shape
	seed                uint64
}

// run relays until ctx ends, and returns the exit status.
func run(ctx context.Context, args []string, out, log io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, help)
		return 0
	}
	if err != nil {
		fmt.Fprintf(log, "relay: %v\nTry: go run ./internal/wan/relay/run -help\n", err)
		return 2
	}
	start := relay.UDP
	if o.network == "tcp" {
		start = relay.TCP
	}
	r, err := start(o.listen, o.to, o.shape, o.shape, o.seed)
	if err != nil {
		fmt.Fprintln(log, "relay:", err)
		return 1
	}
	fmt.Fprintf(out, "%s at %s goes to %s\n", o.network, r.Address(), o.to)
	<-ctx.Done()
	there, back := r.Counts()
	err = r.Close()
	fmt.Fprintf(out, "to %s: %s\nfrom it: %s\n", o.to, summary(there), summary(back))
	if err != nil {
		fmt.Fprintln(log, "relay:", err)
		return 1
	}
	return 0
}

func summary(c wan.Counts) string {
	return fmt.Sprintf("%d packets of %d bytes; %d found the queue full, %d were lost, %d more in outages, %d came twice, %d were overtaken",
		c.Offered, c.Bytes, c.Dropped, c.Lost, c.LostInOutage, c.Duplicated, c.Reordered)
}

func parse(args []string) (o *options, err error) {
	o = &options{}
	s := &o.shape
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "")
	rate := flags.Float64("rate", 0, "")
	flags.DurationVar(&s.Delay, "delay", 0, "")
	flags.DurationVar(&s.Jitter, "jitter", 0, "")
	flags.IntVar(&s.Queue, "queue", 1<<20, "")
	for name, p := range map[string]*float64{"loss": &s.Loss, "duplicate": &s.Duplicate, "reorder": &s.Reorder} {
		flags.Float64Var(p, name, 0, "")
	}
	flags.DurationVar(&s.ReorderDelay, "reorder-delay", 5*time.Millisecond, "")
	flags.DurationVar(&s.OutageInterval, "outage-interval", 0, "")
	flags.DurationVar(&s.OutageLength, "outage-length", time.Second, "")
	flags.Uint64Var(&o.seed, "seed", 1, "")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() != 2 || flags.Arg(0) != "tcp" && flags.Arg(0) != "udp" {
		return nil, errors.New("write tcp or udp, and the address to which it goes")
	}
	o.network, o.to = flags.Arg(0), flags.Arg(1)
	s.Rate = int64(*rate * 1e6)
	s.Loss, s.Duplicate, s.Reorder = s.Loss/100, s.Duplicate/100, s.Reorder/100
	return o, s.Check()
}
