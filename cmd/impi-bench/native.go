package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/native"
)

// With -native and no -peer the loops in C are measured at this site in three ways: by its own MPI,
// by impi that uses this MPI for messages inside the site, and by impi as its routes choose.

// siteBenches are the benchmarks and sizes measured with -native if the command line names none.
var (
	siteBenches = []string{"pingpong", "stream", "allreduce", "bcast", "alltoall"}
	siteSizes   = map[string][]int{
		"pingpong": {8, 1 << 10, 16 << 10, 128 << 10, 1 << 20}, "stream": benchmarks["stream"].sizes,
		"allreduce": sizesInSite, "bcast": sizesInSite, "alltoall": sizesInSite,
	}
	sizesInSite = []int{8, 1 << 10, 16 << 10, 128 << 10, 1 << 20}
)

// ofSite reports whether -native was given without -peer: the site's own MPI is measured.
func (o *options) ofSite() bool { return o.native && len(o.peers) == 0 }

func (o *options) siteDefaults(f *flag.FlagSet) error {
	if o.transport != "auto" || len(o.beside) > 0 || o.floor || o.vendor.library != "" || o.resume != "" || o.plane != "" || o.machines != nil || len(o.on) > 0 {
		return errors.New("-native without -peer measures the site's MPI alone, impi by it, and impi by its routes: leave out -transport, -plane, -resume, -beside, -floor, -library and what is for machines")
	}
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["procs"] {
		o.ranks = []int{2, 4}
	}
	if !given["repeat"] {
		o.repeat = 7
	}
	if len(o.benches) == 0 {
		o.benches = siteBenches
	}
	return nil
}

// siteContenders returns the contenders of a site: its own MPI first, with which the others are
// compared.
func (o *options) siteContenders(ctx context.Context, own *own) (list []contender, err error) {
	p, err := o.sitesPeer(ctx, own.dir)
	if err != nil {
		return nil, err
	}
	o.base = p.title
	list = []contender{{name: p.title, run: p.run}}
	for _, c := range []struct{ name, route string }{{"impi by " + p.title, preferNative}, {"impi by default", ""}} {
		n, err := own.newNative(ctx, p, c.route)
		if err != nil {
			return nil, err
		}
		list = append(list, contender{name: c.name, run: n.run, skips: func(bench string) bool { return !benchmarks[bench].ranks }})
	}
	return list, nil
}

// sitesPeer compiles the loops with the mpicc of the site's MPI, and has the mpirun beside it start
// them.
func (o *options) sitesPeer(ctx context.Context, dir string) (*peer, error) {
	_, info, err := native.Build(ctx, o.cc, func(what string) { o.progress("%s", what) })
	if err != nil {
		return nil, err
	}
	cc, err := exec.LookPath(o.cc)
	if err != nil {
		return nil, err
	}
	if cc, err = filepath.Abs(cc); err != nil {
		return nil, err
	}
	n := config.Native{MPICC: cc}
	launcher, err := exec.LookPath(n.Beside(".", "mpirun"))
	if err != nil {
		return nil, fmt.Errorf("there is no mpirun beside %s or in PATH: %w", cc, err)
	}
	p := &peer{name: strings.ToLower(strings.ReplaceAll(info.Vendor, " ", "")), title: info.Vendor, o: o}
	p.usual = installed{compiler: cc, launcher: launcher}
	p.usual.program, err = compileLoops(ctx, cc, dir, "site")
	return p, err
}

// oversubscribed warns on standard error if there are fewer cores than ranks: most MPIs keep a core
// busy while they wait.
func (o *options) oversubscribed(cores int) {
	if most := slices.Max(o.ranks); most > cores {
		fmt.Fprintf(os.Stderr, "impi-bench: %d procs on %d cores take turns on them: their figures say little of a cluster\n", most, cores)
	}
}

// preferNative has procs use the MPI of their site within a machine, too.
const preferNative = "  route \"bench\" { prefer = [\"native\"] }\n"

// origin returns the contender that ratios are relative to.
func origin(base string) string { return cmp.Or(base, ours) }
