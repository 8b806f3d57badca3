package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

//go:embed peers/bench.c
var peerSource []byte

// peer runs the same loops, in C, under another MPI implementation.
type peer struct {
	name, program, launcher string
	o                       *options
}

// newPeer compiles the loops with the peer's compiler.
func (o *options) newPeer(ctx context.Context, name, dir string) (*peer, error) {
	compiler, err := exec.LookPath("mpicc." + name)
	if err != nil {
		return nil, fmt.Errorf("%s is not installed (Debian: %s): %w", name, packages[name], err)
	}
	launcher, err := exec.LookPath("mpiexec." + name)
	if err != nil {
		return nil, fmt.Errorf("%s is not installed (Debian: %s): %w", name, packages[name], err)
	}
	program, err := compileLoops(ctx, compiler, dir, name)
	if err != nil {
		return nil, err
	}
	return &peer{name: name, program: program, launcher: launcher, o: o}, nil
}

var packages = map[string]string{
	"mpich":   "mpich libmpich-dev",
	"openmpi": "openmpi-bin libopenmpi-dev",
}

func (p *peer) run(ctx context.Context, bench string, sizes []int) ([]figure, error) {
	procs := p.o.procsOf(bench, sizes)
	args := append(p.medium(), "-n", strconv.Itoa(procs), p.program, bench, fmt.Sprint(p.o.seconds))
	for _, s := range sizes {
		args = append(args, strconv.Itoa(s))
	}
	cmd := exec.CommandContext(ctx, p.launcher, args...)
	cmd.Env = append(os.Environ(), p.environment()...)
	return timed(bench, cmd)
}

// medium are the launcher's flags that force the medium that we use. Unix
// sockets have no counterpart there: TCP is the nearest.
func (p *peer) medium() []string {
	if p.name != "openmpi" {
		return nil
	}
	args := []string{"--oversubscribe"}
	if os.Geteuid() == 0 {
		args = append(args, "--allow-run-as-root")
	}
	if p.o.transport == "shm" {
		return args
	}
	return append(args, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self")
}

func (p *peer) environment() []string {
	if p.name != "mpich" || p.o.transport == "shm" {
		return nil
	}
	return []string{"UCX_TLS=tcp", "UCX_NET_DEVICES=lo", "MPIR_CVAR_NOLOCAL=1"}
}
