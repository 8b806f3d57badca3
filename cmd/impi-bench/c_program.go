package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// cName is the peer that is impi's own C library: the peers' C loops, compiled with impicc
// and run by impi-node like the Go loops.
const cName = "c"

type cProgram struct {
	w       *own
	program string
}

// newCProgram compiles the loops with the impicc beside impi-node.
func (w *own) newCProgram(ctx context.Context) (*cProgram, error) {
	compiler := filepath.Join(filepath.Dir(w.node), "impicc")
	if _, err := os.Stat(compiler); err != nil {
		return nil, fmt.Errorf("-peer %s: impicc is not beside impi-node; make build puts both into bin/: %w", cName, err)
	}
	program, err := compileLoops(ctx, compiler, w.dir, cName)
	return &cProgram{w, program}, err
}

func (p *cProgram) run(ctx context.Context, bench string, sizes []int) ([]figure, error) {
	procs := p.w.o.procsOf(bench, sizes)
	command := loopsOf(bench, p.w.o.seconds, sizes, p.program)
	file := filepath.Join(p.w.dir, "c.hcl")
	if err := os.WriteFile(file, []byte(p.w.jobOf(command, bench, procs)), 0o600); err != nil {
		return nil, err
	}
	return timedRun(bench, exec.CommandContext(ctx, p.w.node, "-config", file))
}

// newNative is newCProgram for a site whose own MPI is p. route is appended to the site's block.
func (w *own) newNative(ctx context.Context, p *peer, route string) (*cProgram, error) {
	launch, err := json.Marshal(append(append([]string{p.usual.launcher}, p.medium()...), "-n", "{procs}"))
	if err != nil {
		return nil, err
	}
	at := *w
	at.inside = fmt.Sprintf("  native {\n    mpicc = %q\n    launch = %s\n  }\n%s", p.usual.compiler, launch, route)
	return at.newCProgram(ctx)
}

// compileLoops compiles the peers' loops and returns the path of the program.
func compileLoops(ctx context.Context, compiler, dir, name string) (string, error) {
	source, program := filepath.Join(dir, "bench.c"), filepath.Join(dir, "bench-"+name)
	if err := os.WriteFile(source, peerSource, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, compiler, "-O2", "-o", program, source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", compiler, err, out)
	}
	return program, nil
}
