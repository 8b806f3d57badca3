package peers

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

type product struct {
	origin
	version string
	options []string // of configure
	flags   []string // variables of the environment of configure
	program string   // exists if it is installed
}

// lam is built with options for old code. It depends on what compilers stopped doing: with
// strict aliasing it fails in MPI_Init, and its headers expect C++ headers to include
// others that newer ones do not. MPI_Init also hands the kernel the address of a message of no
// bytes without having set it, which Linux 6.18 refuses (EFAULT) if the stack had a wrong one
// there.
var lam = product{
	origin: lamOrigin, version: "7.1.4", program: "mpirun",
	options: []string{
		"--with-impi", "--without-fc", "--without-romio", "--without-mpi2cpp", "--with-rsh=/bin/false",
		"--disable-dependency-tracking",
	},
	flags: []string{
		"CFLAGS=-O1 -fno-strict-aliasing -fcommon -std=gnu89 " + zeroed,
		"CXXFLAGS=-O1 -fno-strict-aliasing -fpermissive -std=gnu++98 -include cstring -include cstdlib -include cstdio",
	},
}

// zeroed has local variables begin as zeros. Compilers older than GCC 12 do not know it.
const zeroed = "-ftrivial-auto-var-init=zero"

// mpich is MPICH with the device that can open ports and spawn. Debian's binary package has the
// device UCX, which cannot.
var mpich = product{
	origin: origin{
		"MPICH", "mpich", "mpich_4.0.2.orig.tar.xz",
		"b27039f964afeb6b8a3e009c56b441cbe368c26d6d6476ad3bb7190996875860",
	},
	version: "4.0.2", program: "mpiexec",
	options: []string{
		"-C", "--with-device=" + MPICHDevice, "--enable-fast=O2", "--with-hwloc=embedded",
		"--disable-fortran", "--disable-cxx", "--disable-romio", "--disable-static", "--disable-dependency-tracking",
	},
}

// MPICHDevice is the device of the MPICH that BuildMPICH builds: its procs use shared
// memory, and TCP between worlds.
const MPICHDevice = "ch3:nemesis"

// BuildMPICH is Build for MPICH, which the benchmarks of ports and of spawned worlds
// compare with. It takes a quarter of an hour on two cores.
func BuildMPICH(ctx context.Context, out io.Writer) (*Install, error) { return mpich.make(ctx, out) }

// FindMPICH returns the MPICH that BuildMPICH has built. The error wraps ErrMissing if
// there is none, or one that was built in another way.
func FindMPICH() (*Install, error) { return mpich.find() }

// recipe names what is built and how, so that a change of either causes a new build.
func (p product) recipe() string {
	h := sha256.Sum256([]byte(strings.Join(append(append([]string{p.sha256}, p.options...), p.flags...), "\n")))
	return hex.EncodeToString(h[:8])
}

func (p product) String() string { return p.name + " " + p.version }

type builder struct {
	dir     string    // of all peers
	out     io.Writer // progress
	log     io.Writer // output of the tools
	began   time.Time
	lastLog string
}

// Build builds LAM/MPI unless it is built already, and reports progress on out. It
// continues where an earlier build has stopped, and waits for one that is running. The
// error wraps ErrImpossible if this machine lacks something.
func Build(ctx context.Context, out io.Writer) (*Install, error) { return lam.make(ctx, out) }

func (p product) make(ctx context.Context, out io.Writer) (in *Install, err error) {
	return in, obtain(ctx, out, p.String(), func() (where string, err error) {
		if in, err = p.find(); err == nil {
			where = in.Prefix
		}
		return where, err
	}, func(b *builder) error { return b.build(ctx, p) })
}

// obtain has work get something into the folder of the peers, unless find finds it there.
func obtain(ctx context.Context, out io.Writer, what string, find func() (where string, err error), work func(*builder) error) error {
	dir, err := Dir()
	if err != nil {
		return err
	}
	b := &builder{dir: dir, out: out, log: io.Discard, began: time.Now()}
	if where, err := find(); err == nil {
		b.say("%s is in %s", what, where)
		return nil
	}
	if err := b.tools(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("peers: %w; set %s to another folder", err, DirVariable)
	}
	unlock, err := lock(ctx, dir, func() { b.say("waiting for another one that is building in %s", dir) })
	if err != nil {
		return fmt.Errorf("peers: %w", err)
	}
	defer unlock()
	if _, err := find(); err == nil {
		return nil // another process has fetched it meanwhile
	}
	if err := work(b); err != nil {
		return fmt.Errorf("peers: %s: %w", what, err)
	}
	where, err := find()
	if err == nil {
		b.say("%s is in %s", what, where)
	}
	return err
}

func (b *builder) tools() error {
	for _, t := range []struct{ name, of string }{
		{"apt-get", "Debian's package tool"}, {"tar", "to unpack the source"}, {"make", "to build it"},
		{"gcc", "a C compiler"}, {"g++", "a C++ compiler, as LAM's IMPI daemon is C++"},
	} {
		if _, err := exec.LookPath(t.name); err != nil {
			return fmt.Errorf("peers: %w: no %s (%s)", ErrImpossible, t.name, t.of)
		}
	}
	return nil
}

func (b *builder) build(ctx context.Context, p product) error {
	log, err := os.OpenFile(filepath.Join(b.dir, "build.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	b.log, b.lastLog = log, log.Name()
	if err := b.fetch(ctx, p.origin); err != nil {
		return err
	}
	src := filepath.Join(b.dir, p.source+"-src-"+p.recipe())
	if err := b.configure(ctx, p, src); err != nil {
		return err
	}
	b.say("compiling, which takes some minutes (%s)", b.lastLog)
	if err := b.run(ctx, src, nil, "make", "-s", fmt.Sprintf("-j%d", runtime.NumCPU())); err != nil {
		return err
	}
	b.say("installing")
	if err := os.RemoveAll(p.prefix(b.dir)); err != nil {
		return err
	}
	if err := b.run(ctx, src, nil, "make", "-s", "install"); err != nil {
		return err
	}
	in := &Install{Prefix: p.prefix(b.dir), Recipe: p.recipe()}
	return errors.Join(in.write(), os.RemoveAll(src))
}

// configure unpacks the source and configures it, unless that has been done.
func (b *builder) configure(ctx context.Context, p product, src string) error {
	done := filepath.Join(src, "impi-configured")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	if err := os.RemoveAll(src); err != nil {
		return err
	}
	if err := os.MkdirAll(src, 0o755); err != nil {
		return err
	}
	if err := b.run(ctx, src, nil, "tar", "-xf", filepath.Join(b.dir, p.archive), "--strip-components=1", "--no-same-owner"); err != nil {
		return err
	}
	b.say("configuring, which takes some minutes (%s)", b.lastLog)
	args := append([]string{"--prefix=" + p.prefix(b.dir)}, p.options...)
	flags := slices.Clone(p.flags)
	if cc := cmp.Or(os.Getenv("CC"), "cc"); exec.CommandContext(ctx, cc, zeroed, "-x", "c", "-fsyntax-only", os.DevNull).Run() != nil {
		for i, f := range flags {
			flags[i] = strings.ReplaceAll(f, zeroed, "")
		}
	}
	if err := b.run(ctx, src, flags, "./configure", args...); err != nil {
		return err
	}
	return os.WriteFile(done, nil, 0o644)
}

func (b *builder) run(ctx context.Context, dir string, env []string, name string, args ...string) error {
	last := &tail{}
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = dir, append(append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"), env...)
	c.Stdout = io.MultiWriter(b.log, last)
	c.Stderr = c.Stdout
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, last)
	}
	return nil
}

func (b *builder) say(format string, args ...any) {
	fmt.Fprintf(b.out, "peers: %3.0f s: %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

type tail struct{ b []byte }

const tailBytes = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 2*tailBytes {
		t.b = bytes.Clone(t.b[len(t.b)-tailBytes:])
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.b[max(0, len(t.b)-tailBytes):]) }
