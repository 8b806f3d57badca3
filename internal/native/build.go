package native

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed shim/shim.c
var shimSource []byte

//go:embed shim/shim.h
var shimHeader []byte

//go:embed shim/alone.c
var aloneSource []byte

type product struct {
	what           string // for people
	prefix, suffix string // of its file's name
	source         []byte
	options        []string
	symbol         string // that a complete file contains
}

var (
	shimProduct  = product{"the shim", "shim-", ".so", shimSource, []string{"-shared", "-fPIC"}, "impi_native"}
	aloneProduct = product{"a program", "alone-", "", aloneSource, nil, "MPI_Init"}
)

// Info is what is known of a site's MPI by its mpicc.
type Info struct {
	Vendor  string // "Open MPI", "MPICH", "Intel MPI", "MVAPICH", "Cray MPICH", or "MPI"
	Version string // "4.1.4"; empty: not known
}

// probe is a source whose preprocessed text names the MPI that mpi.h belongs to, and its version.
const probe = `#include <mpi.h>
#define TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x
#if defined(OMPI_MAJOR_VERSION)
"impi-vendor" "Open MPI" TEXT(OMPI_MAJOR_VERSION) "." TEXT(OMPI_MINOR_VERSION) "." TEXT(OMPI_RELEASE_VERSION)
#elif defined(I_MPI_VERSION)
"impi-vendor" "Intel MPI" I_MPI_VERSION
#elif defined(CRAY_MPICH_VERSION)
"impi-vendor" "Cray MPICH" CRAY_MPICH_VERSION
#elif defined(MVAPICH2_VERSION)
"impi-vendor" "MVAPICH" MVAPICH2_VERSION
#elif defined(MVAPICH_VERSION)
"impi-vendor" "MVAPICH" MVAPICH_VERSION
#elif defined(MPICH_VERSION)
"impi-vendor" "MPICH" MPICH_VERSION
#elif MPI_VERSION >= 3
"impi-vendor" "MPI" ""
#endif
#if defined(MPI_ABI_VERSION) && MPI_ABI_VERSION > 0 /* MPI-5.0, chapter 20: -1 if it has another ABI */
"impi-abi"
#endif
`

// Build compiles the shim by the site's mpicc into a file of the user's cache, unless it is there
// already. progress, if not nil, is called with a message before what takes a while.
func Build(ctx context.Context, mpicc string, progress func(string)) (path string, info Info, err error) {
	return shimProduct.build(ctx, mpicc, progress)
}

// BuildMeasurement is Build for the program that measures the site's MPI alone.
func BuildMeasurement(ctx context.Context, mpicc string, progress func(string)) (path string, err error) {
	path, _, err = aloneProduct.build(ctx, mpicc, progress)
	return path, err
}

func (p *product) build(ctx context.Context, mpicc string, progress func(string)) (path string, info Info, err error) {
	cc, err := exec.LookPath(mpicc)
	if err != nil {
		return "", info, fmt.Errorf("%w: no mpicc of the site's MPI: %w; name the one of the module that you have loaded, such as /opt/openmpi/bin/mpicc", ErrNoLibrary, err)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", info, fmt.Errorf("where the shim for %s could be kept is not known: %w", cc, err)
	}
	dir = filepath.Join(dir, "impi", "native")
	var work string
	if err = os.MkdirAll(dir, 0o700); err == nil {
		work, err = os.MkdirTemp(dir, "build-")
	}
	if err != nil {
		return "", info, notKept(err)
	}
	defer os.RemoveAll(work)
	for name, text := range map[string][]byte{"source.c": p.source, "shim.h": shimHeader, "probe.c": []byte(probe)} {
		if err := os.WriteFile(filepath.Join(work, name), text, 0o600); err != nil {
			return "", info, notKept(err)
		}
	}
	seen, err := compile(ctx, work, cc, "-E", "-P", "probe.c")
	if err != nil {
		return "", info, err
	}
	if info, err = readProbe(cc, seen); err != nil {
		return "", info, err
	}
	if path, err = p.cached(dir, cc, info); err != nil {
		return "", info, err
	}
	if p.sound(path) {
		return path, info, nil
	}
	if progress != nil {
		progress(fmt.Sprintf("compiling %s for %s %s by %s", p.what, info.Vendor, info.Version, cc))
	}
	if _, err := compile(ctx, work, cc, slices.Concat(p.options, []string{"-O2", "-o", "made", "source.c"})...); err != nil {
		return "", info, err
	}
	if err := os.Rename(filepath.Join(work, "made"), path); err != nil {
		return "", info, notKept(err)
	}
	return path, info, nil
}

func notKept(err error) error {
	return fmt.Errorf("the shim for the site's MPI cannot be kept in the user's cache: %w; set XDG_CACHE_HOME to a folder with room that can be written, or name a file by shim in the native block", err)
}

// sound reports whether a file is there and complete: a full disk may have cut it off. Otherwise it
// is made again.
func (p *product) sound(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	return err == nil && slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == p.symbol })
}

// cached is the path at which what a mpicc has made is kept. Another compiler, another MPI under
// the same name or another release of ours has another path.
func (p *product) cached(dir, cc string, info Info) (string, error) {
	real, err := filepath.EvalSymlinks(cc)
	if err != nil {
		return "", err
	}
	st, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, x := range []any{cc, real, st.Size(), st.ModTime().UnixNano(), info, os.Getenv("OMPI_CC"), os.Getenv("MPICH_CC")} {
		fmt.Fprintln(h, x)
	}
	h.Write(p.source)
	h.Write(shimHeader)
	return filepath.Join(dir, p.prefix+hex.EncodeToString(h.Sum(nil)[:12])+p.suffix), nil
}

func compile(ctx context.Context, dir, cc string, args ...string) (output string, err error) {
	cmd := exec.CommandContext(ctx, cc, args...)
	cmd.Dir = dir
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(complaints.String())
		return "", fmt.Errorf("%w: %s %s: %w\n%.2000s", ErrNoLibrary, cc, strings.Join(args, " "), err, said)
	}
	return out.String(), nil
}

func readProbe(cc, seen string) (info Info, err error) {
	if strings.Contains(seen, `"impi-abi"`) {
		return info, fmt.Errorf("%w: %s is for the standard ABI, as our own impicc: name the mpicc of the site's MPI", ErrNoLibrary, cc)
	}
	for l := range strings.Lines(seen) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(l), `"impi-vendor" "`)
		if !ok {
			continue
		}
		var version string
		info.Vendor, version, _ = strings.Cut(rest, `"`)
		info.Version = strings.NewReplacer(`"`, "", " ", "").Replace(version)
		return info, nil
	}
	return info, fmt.Errorf("%w: the mpi.h of %s is older than MPI-3", ErrNoLibrary, cc)
}
