// Command run makes the matrix: real jobs over every transport, by every data
// plane, with faults.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/matrix"
	"github.com/openimpi/impi/internal/provenance"
	"github.com/openimpi/impi/internal/vendors"
)

//go:embed help.txt
var help string

func main() { cmdline.Main(run) }

func run(ctx context.Context) int {
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	bin := fs.String("bin", "bin", "")
	quick := fs.Bool("quick", false, "")
	only := fs.String("only", "", "")
	limit := fs.Duration("limit", 2*time.Minute, "")
	jobs := fs.Int("jobs", 1, "")
	out := fs.String("out", "", "")
	keep := fs.String("keep", "", "")
	var from []string
	fs.Func("from", "", func(file string) error { from = append(from, file); return nil })
	asJSON := fs.Bool("json", false, "")
	withPeers := fs.Bool("peers", false, "")
	if err := fs.Parse(os.Args[1:]); err != nil || *jobs < 1 {
		fmt.Fprint(os.Stderr, help)
		return 2
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix: -only:", err)
		return 2
	}
	if *withPeers {
		return runPeers(ctx, *bin, pattern, *limit, *out, *asJSON)
	}
	results, err := sweep(ctx, *bin, *quick, pattern, *limit, *jobs)
	if err == nil && *keep != "" {
		results, err = kept(*keep, results)
	}
	if err == nil {
		results, err = withThoseOf(from, results)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		return 1
	}
	return report(results, *out, *asJSON, *quick)
}

func newRunner(bin string, limit time.Duration) (r *matrix.Runner, err error) {
	r = &matrix.Runner{Limit: limit}
	if r.Bin, err = filepath.Abs(bin); err == nil {
		r.Repository, err = os.Getwd()
	}
	return r, err
}

func sweep(ctx context.Context, bin string, quick bool, only *regexp.Regexp, limit time.Duration, jobs int) ([]matrix.Result, error) {
	temp, err := os.MkdirTemp("", "impi-matrix-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	r, err := newRunner(bin, limit)
	if err != nil {
		return nil, err
	}
	r.Temp = temp
	now, err := provenance.Now(r.Repository)
	if err != nil {
		return nil, err
	}
	r.Transports = matrix.Known(r.Repository)
	if err := r.Prepare(); err != nil {
		return nil, err
	}
	var cells []matrix.Cell
	for _, c := range matrix.Select(r.Transports, quick) {
		if only.MatchString(c.String()) {
			cells = append(cells, c)
		}
	}
	results := make([]matrix.Result, len(cells))
	slots := make(chan struct{}, jobs)
	var wg sync.WaitGroup
	for i, c := range cells {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i] = r.Run(ctx, c)
			results[i].Made = now
			say(results[i], i+1, len(cells))
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return results, nil
}

func say(res matrix.Result, i, of int) {
	line := fmt.Sprintf("%d/%d %-50s %s %v\n", i, of, res.Cell, res.Verdict, res.Took.Round(10*time.Millisecond))
	switch res.Verdict {
	case matrix.Unsupported:
		return
	case matrix.Failed:
		line += "    " + strings.ReplaceAll(res.Reason, "\n", "\n    ") + "\n"
	case matrix.OK, matrix.Ended:
	}
	fmt.Fprint(os.Stderr, line)
}

func report(results []matrix.Result, out string, asJSON, quick bool) int {
	counts := make(map[matrix.Verdict]int)
	for _, r := range results {
		counts[r.Verdict]++
	}
	if asJSON {
		_ = cmdline.WriteJSON(os.Stdout, results) // an error means that the output was closed, which is the user's choice
	} else if err := write(results, counts, out, quick); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "%d ok, %d ended as they must, %d failed, %d unsupported\n",
		counts[matrix.OK], counts[matrix.Ended], counts[matrix.Failed], counts[matrix.Unsupported])
	if counts[matrix.Failed] > 0 {
		return 1
	}
	return 0
}

func write(results []matrix.Result, counts map[matrix.Verdict]int, out string, quick bool) error {
	var b strings.Builder
	dates := make([]provenance.Stamp, len(results))
	for i, r := range results {
		dates[i] = r.Made
	}
	fmt.Fprintf(&b, "# The matrix\n\nLook here whether programs run by the transport, data plane and mode that you mean to use, and what\n"+
		"a fault does to them.\n\nMade by `make matrix` on %s: jobs of 2+2 procs on two sites of one machine,\n"+
		"and of 6+6 procs on two sites of three machines each, which are network namespaces (\"2 x 3 machines\"),\n"+
		"and of 2+2 procs on two sites of one such machine each (\"wide area\"), joined by %s.\n"+
		"%d cells ran and are ok, %d ended as they must (\"ends\"), %d failed, %d cannot be run for the reasons given.\n\n"+
		"Faults are brought about while the program is in the middle of its work, with `resume = true` where they break links:\n"+
		"plugins are killed; of links, TCP connections are reset, Unix sockets shut down, and QUIC's datagrams dropped until the links are given up.\n"+
		"A cell is ok if the program still ends with the right result, and the log shows that the fault was felt and mended before,\n"+
		"and that the program went on.\n\n"+
		"Of the six machines each has two procs. With direct links these have one of shared memory between them, and those to other\n"+
		"machines are of the row's transport. The links of unix and shm cannot leave a machine: in their rows they are those within the\n"+
		"machines, and between these is tcp by fd. They have no rows by agents there, as channels are between hosts, and each machine is one.\n\n"+
		"Of plugins of examples/plugins that differ from others only in how they are written, or in how bytes get to the procs, there\n"+
		"are few programs, on one machine, and by agents those of the first data plane: %s. ofi, c and pretend-c are left out,\n"+
		"with the reason, where libfabric or a C compiler with libnghttp2 is missing. rdma is by hardware that a machine pretends to have.\n\n",
		provenance.Dates(dates), matrix.WideArea, counts[matrix.OK], counts[matrix.Ended], counts[matrix.Failed], counts[matrix.Unsupported], few())
	if quick {
		fmt.Fprint(&b, "This is the quick selection (`-quick`), which shows each data plane with each fault once; \"not run\"\nis what it leaves out.\n\n")
	}
	fmt.Fprintf(&b, "With %s.\n\n", versions())
	matrix.Table(&b, results)
	if out == "" {
		_, err := io.WriteString(os.Stdout, b.String())
		return err
	}
	return os.WriteFile(out, []byte(b.String()+peersOf(out)), 0o644)
}

// few lists the transports of which there are few cells.
func few() string {
	var names []string
	for _, g := range vendors.All {
		if g.Few {
			names = append(names, g.Name)
		}
	}
	return strings.Join(names, ", ")
}

func versions() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "an unknown build"
	}
	parts := []string{info.GoVersion}
	for _, d := range info.Deps {
		switch d.Path {
		case "github.com/hashicorp/go-plugin", "github.com/quic-go/quic-go", "google.golang.org/grpc":
			parts = append(parts, d.Path+" "+d.Version)
		}
	}
	return strings.Join(parts, ", ")
}
