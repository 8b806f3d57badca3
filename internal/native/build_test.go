package native

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// TestBuild builds the shim for the MPIs of this machine, once each.
func TestBuild(t *testing.T) {
	for cc, vendor := range map[string]string{"mpicc.openmpi": "Open MPI", "mpicc.mpich": "MPICH"} {
		t.Run(cc, func(t *testing.T) {
			if _, err := exec.LookPath(cc); err != nil {
				skips.NotRun(t, "there is no "+cc, "apt-get install libopenmpi-dev libmpich-dev")
			}
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			told := 0
			for i := range 3 {
				path, info, err := Build(t.Context(), cc, func(string) { told++ })
				if err != nil {
					t.Fatal(err)
				}
				if i == 1 { // a full disk, say
					if err := os.Truncate(path, 5000); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := os.Stat(path); err != nil || info.Vendor != vendor || !strings.Contains(info.Version, ".") {
					t.Errorf("%s: %+v, %v", path, info, err)
				}
			}
			if told != 2 { // the second time it is there, the third time no more
				t.Errorf("it is compiled %d times", told)
			}
		})
	}
}

// TestBuildFails: what stands where mpicc should be is said, with what it said.
func TestBuildFails(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "mpicc")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for cc, says := range map[string]string{
		"/nowhere/mpicc": "name the one of the module",
		script("echo mpi.h: No such file >&2; exit 1"):             "mpi.h: No such file",
		script("echo nothing"):                                     "older than MPI-3",
		script(`echo '"impi-vendor" "MPI" ""'; echo '"impi-abi"'`): "as our own impicc",
	} {
		if path, _, err := Build(t.Context(), cc, nil); !errors.Is(err, ErrNoLibrary) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %s, %v, want %q", cc, path, err, says)
		}
	}
}

// TestReadProbe: whose MPI it is and which version is told by the macros of its mpi.h, some of
// which are numbers and some texts.
func TestReadProbe(t *testing.T) {
	skips.Programs(t, "cc")
	for _, v := range []struct {
		want   Info
		good   bool
		header string
	}{
		{Info{"Open MPI", "5.0.3"}, true, "#define OMPI_MAJOR_VERSION 5\n#define OMPI_MINOR_VERSION 0\n#define OMPI_RELEASE_VERSION 3\n#define MPI_VERSION 3\n"},
		{Info{"MPICH", "4.0.2"}, true, "#define MPICH_VERSION \"4.0.2\"\n#define MPI_VERSION 4\n"},
		{Info{"Intel MPI", "2021.9.0"}, true, "#define I_MPI_VERSION \"2021.9.0\"\n#define I_MPI_NUMVERSION 20210900300\n#define MPICH_VERSION \"3.4a2\"\n#define MPI_VERSION 3\n"},
		{Info{"MVAPICH", "2.3.7"}, true, "#define MVAPICH2_VERSION \"2.3.7\"\n#define MPICH_VERSION \"3.2.1\"\n#define MPI_VERSION 3\n"},
		{Info{"MVAPICH", "3.0"}, true, "#define MVAPICH_VERSION \"3.0\"\n#define MPICH_VERSION \"3.4.3\"\n#define MPI_VERSION 3\n"},
		{Info{"Cray MPICH", "8.1.27.26"}, true, "#define CRAY_MPICH_VERSION 8.1.27.26\n#define MPICH_VERSION \"3.4a2\"\n#define MPI_VERSION 3\n"},
		{Info{"Cray MPICH", "9.0.1"}, true, "#define CRAY_MPICH_VERSION \"9.0.1\"\n#define MPICH_VERSION \"4.1\"\n#define MPI_VERSION 4\n"},
		{Info{"MPI", ""}, true, "#define MPI_VERSION 3\n"},
		{Info{"Open MPI", "6.0.0"}, true, "#define OMPI_MAJOR_VERSION 6\n#define OMPI_MINOR_VERSION 0\n#define OMPI_RELEASE_VERSION 0\n#define MPI_VERSION 5\n#define MPI_ABI_VERSION -1\n"},
		{Info{}, false, "#define MPI_VERSION 5\n#define MPI_ABI_VERSION 1\n"},
		{Info{}, false, "#define MPI_VERSION 2\n"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"mpi.h": v.header, "probe.c": probe} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		seen, err := exec.CommandContext(t.Context(), "cc", "-I", dir, "-E", "-P", filepath.Join(dir, "probe.c")).Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := readProbe("mpicc", string(seen))
		if got != v.want || (err == nil) != v.good {
			t.Errorf("%+v, %v, want %+v of\n%s", got, err, v.want, seen)
		}
	}
}

func TestPlace(t *testing.T) {
	in := Environment{Socket: "impi-X", Shim: "/a/b.so", Site: "alpha", Procs: 4}
	text, err := in.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for value, says := range map[string]string{
		text:                                  "",
		"{":                                   "cannot be read",
		"{}":                                  "lacks a socket",
		strings.Repeat("x", maxEnvironment+1): "more than 4096",
	} {
		p, found, err := ReadEnvironment(func(string) string { return value })
		if says == "" && (err != nil || !found || p != in) || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%.40q: %+v, %v, want %q", value, p, err, says)
		}
	}
	if _, found, err := ReadEnvironment(func(string) string { return "" }); found || err != nil {
		t.Error(found, err)
	}
}
