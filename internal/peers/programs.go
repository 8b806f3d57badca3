package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// Program is the source of C programs from elsewhere. The tests compile them with our library.
type Program struct{ origin }

// HPCC is the HPC Challenge: seven benchmarks that check their results, HPL among them.
var HPCC = Program{origin{
	"HPC Challenge", "hpcc", "hpcc_1.5.0.orig.tar.gz",
	"0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8",
}}

// NetPIPE measures latency and bandwidth of messages of every length, or checks the received data
// instead.
var NetPIPE = Program{origin{
	"NetPIPE", "netpipe", "netpipe_3.7.2.orig.tar.gz",
	"13dac884ff52951636f651c421f5ff4a853218a95aa28a4a852402ee385a2ab8",
}}

// P4est manages meshes of trees on many procs. Its tests check their results.
var P4est = Program{origin{
	"p4est", "p4est", "p4est_2.2.orig.tar.xz",
	"f09a799d99e541c8f06a9ad3f1e7dc74362ad96a7938a69c7fbd4103516f86c9",
}}

// MPICHTests has the test programs of MPICH, in the folder test/mpi.
var MPICHTests = Program{mpich.origin}

// HDF5 writes files of many arrays from many procs. Its tests of parallel files check what they
// read.
var HDF5 = Program{origin{
	"HDF5", "hdf5", "hdf5_1.10.8+repack1.orig.tar.gz",
	"7b38e58ff83b13fd8959a90b13bf896bc318ba096c940ab0847abf3ad41a0b31",
}}

// FFTW has Fourier transforms of arrays that are spread over procs, and a program that verifies
// them.
var FFTW = Program{origin{
	"FFTW", "fftw3", "fftw3_3.3.10.orig.tar.gz",
	"56c932549852cddcfafdab3820b0200c7742675be92179e59e6215b340e26467",
}}

// Hypre solves linear equations on grids that are spread over procs.
var Hypre = Program{origin{
	"hypre", "hypre", "hypre_2.26.0.orig.tar.gz",
	"c214084bddc61a06f3758d82947f7f831e76d7e3edeac2c78bb82d597686e05d",
}}

// PnetCDF writes and reads netCDF files from many procs. Its tests check what they read.
var PnetCDF = Program{origin{
	"PnetCDF", "pnetcdf", "pnetcdf_1.12.3.orig.tar.xz",
	"8f54023ffbbd3c8137e5422b44e32324113d5690f1da0cb7ecd5842c2de850a9",
}}

// SUNDIALS solves differential and algebraic equations whose vectors are spread over procs.
var SUNDIALS = Program{origin{
	"SUNDIALS", "sundials", "sundials_6.4.1+dfsg1.orig.tar.xz",
	"c61157f1d4be06c704bea40cb131eb63ba2dada161989071604d0a0959cdf04a",
}}

// Mpi4py calls MPI from Python. Its tests call nearly every function. Tests do without it where it
// cannot be had: Debian's mirror lists its source, but not every copy of the mirror has it.
var Mpi4py = Program{origin{
	"mpi4py", "mpi4py", "mpi4py_3.1.4.orig.tar.gz",
	"0ac7cc1fbd1d026b519c4f439ffc15d8776e5615c262dd233a418d73539c352b",
}}

// Programs lists the programs that make peers fetches, and without which it fails.
var Programs = []Program{HPCC, NetPIPE, P4est, MPICHTests, HDF5, FFTW, Hypre, PnetCDF, SUNDIALS}

// FetchPrograms gets the sources of all programs, unless they are there, and reports progress on
// out.
func FetchPrograms(ctx context.Context, out io.Writer) error {
	var all error
	for _, p := range Programs {
		all = errors.Join(all, p.fetch(ctx, out))
	}
	return all
}

// FetchOptional gets the sources of programs without which all else goes on, unless they are there,
// and says on out which cannot be had.
func FetchOptional(ctx context.Context, out io.Writer) {
	if err := Mpi4py.fetch(ctx, out); err != nil {
		fmt.Fprintf(out, "peers: going on without %s, whose test is not run: %v\n", Mpi4py.name, err)
	}
}

func (p Program) fetch(ctx context.Context, out io.Writer) error {
	return obtain(ctx, out, "the source of "+p.name, p.Find, func(b *builder) error { return b.fetch(ctx, p.origin) })
}

// Find returns the archive that FetchPrograms has fetched. The error wraps ErrMissing if
// it is not there.
func (p Program) Find() (archive string, err error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	archive = filepath.Join(dir, p.archive)
	if err := p.checkSum(archive); err != nil {
		return "", fmt.Errorf("%s: %w (%w)", p.name, ErrMissing, err)
	}
	return archive, nil
}
