package peers

import (
	"context"
	"io"
)

// mpich is MPICH with the device that can open ports and spawn. Debian's binary
// package has the one for UCX, which cannot.
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
