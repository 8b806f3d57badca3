package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/peers"
)

//go:embed peers/bench.c
var peerSource []byte

// peer runs the same loops, in C, under another MPI implementation.
type peer struct {
	name    string
	title   string // of this site's MPI; empty: a peer of -peer
	o       *options
	usual   installed
	dynamic installed // for benchmarks that Debian's packages cannot run; no program: usual
}

type installed struct{ compiler, launcher, program string }

// newPeer compiles the loops with the peer's compiler. The word is its name, with
// =FOLDER if it is not one of Debian's packages.
func (o *options) newPeer(ctx context.Context, word, dir string) (*peer, error) {
	name, folder, _ := strings.Cut(word, "=")
	p := &peer{name: name, o: o}
	dynamic := ""
	if folder == "" && name == "mpich" && slices.ContainsFunc(o.benches, optional) {
		if in, err := peers.FindMPICH(); err == nil {
			dynamic = in.Prefix
			fmt.Fprintf(os.Stderr, "impi-bench: connect, spawn: mpich is %s (device %s)\n", in.Prefix, peers.MPICHDevice)
		}
	}
	if !slices.ContainsFunc(o.benches, func(b string) bool { return !optional(b) }) {
		folder = cmp.Or(folder, dynamic)
	}
	var err error
	if p.usual, err = install(ctx, name, folder, dir); err == nil && dynamic != "" {
		p.dynamic, err = install(ctx, name, dynamic, dir)
	}
	return p, err
}

func optional(bench string) bool { return benchmarks[bench].optional }

func install(ctx context.Context, name, folder, dir string) (in installed, err error) {
	compiler := filepath.Join(folder, "bin", "mpicc")
	in.launcher = filepath.Join(folder, "bin", "mpiexec")
	if folder == "" {
		compiler, in.launcher = "mpicc."+name, "mpiexec."+name
	}
	for _, tool := range []*string{&compiler, &in.launcher} {
		found, err := exec.LookPath(*tool)
		if err != nil {
			return in, fmt.Errorf("%s is not installed (Debian: %s; -peer %s=FOLDER is for one that is elsewhere): %w", name, packages[name], name, err)
		}
		*tool = found
	}
	in.compiler = compiler
	sum := fnv.New32a()
	sum.Write([]byte(folder))
	in.program, err = compileLoops(ctx, compiler, dir, fmt.Sprintf("%s-%x", name, sum.Sum32()))
	return in, err
}

var packages = map[string]string{
	"mpich":   "mpich libmpich-dev",
	"openmpi": "openmpi-bin libopenmpi-dev",
}

func (p *peer) run(ctx context.Context, bench string, sizes []int) ([]figure, error) {
	in := p.usual
	if optional(bench) && p.dynamic.program != "" {
		in = p.dynamic
	}
	procs := p.o.procsOf(bench, sizes)
	args := loopsOf(bench, p.o.seconds, sizes, append(p.medium(), "-n", strconv.Itoa(procs), in.program)...)
	cmd := exec.CommandContext(ctx, in.launcher, args...)
	cmd.Env = append(os.Environ(), p.environment()...)
	return timedRun(bench, cmd)
}

// medium returns the launcher's flags that select the medium that impi uses. The peers have
// no Unix sockets; TCP is the nearest.
func (p *peer) medium() []string {
	if p.name != "openmpi" {
		return nil
	}
	args := []string{"--oversubscribe"}
	if os.Geteuid() == 0 {
		args = append(args, "--allow-run-as-root")
	}
	if p.title != "" || p.o.transport == "shm" {
		return args
	}
	return append(args, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self")
}

func (p *peer) environment() []string {
	if p.title != "" || p.name != "mpich" || p.o.transport == "shm" {
		return nil
	}
	return []string{"UCX_TLS=tcp", "UCX_NET_DEVICES=lo", "MPIR_CVAR_NOLOCAL=1"}
}
