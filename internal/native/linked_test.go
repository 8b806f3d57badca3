package native

import (
	"fmt"
	"testing"
)

// TestLinked: the libraries of other MPIs are told from ours, and from what only sounds like one.
func TestLinked(t *testing.T) {
	const line = "7f1c2a000000-7f1c2a100000 r-xp 00000000 08:01 1234                       %s\n"
	for path, is := range map[string]bool{
		"/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4":                       true,
		"/usr/lib/x86_64-linux-gnu/libmpich.so.12.2.0":                      true,
		"/opt/intel/oneapi/mpi/2021.9.0/lib/release/libmpi.so.12.0":         true,
		"/opt/cray/pe/mpich/8.1.27/ofi/gnu/9.1/lib/libmpi_gnu_91.so.12.0.0": true,
		"/opt/cray/pe/lib64/libmpi_cray.so.12":                              true,
		"/opt/cray/pe/lib64/libmpi_amd.so.12":                               true,
		"/opt/cray/pe/lib64/libmpi_aocc.so.12":                              true,
		"/opt/cray/pe/lib64/libmpi_nvidia.so.12":                            true,
		"/opt/cray/pe/lib64/libmpi_intel.so.12":                             true,
		"/opt/ibm/spectrum_mpi/lib/libmpi_ibm.so.3":                         true,
		"/a folder/libmpi.so":                                               true,
		"/usr/lib/libmpi_abi.so.1":                                          false,
		"/usr/lib/libmpi_mpifh.so.40.30.0":                                  false,
		"/usr/lib/libmpi_usempif08.so.40":                                   false,
		"/usr/lib/libmpi_usempi_ignore_tkr.so.40":                           false,
		"/usr/lib/libmpir.so.3":                                             false,
		"/usr/lib/libmpifr.so.6":                                            false,
		"/usr/lib/libmpicalc.so":                                            false,
		"/srv/libmpi.sources/program":                                       false,
		"/usr/lib/notlibmpi.so.40":                                          false,
	} {
		text := fmt.Sprintf(line, "/usr/bin/ring") + "7ffd0-7ffd1 rw-p 00000000 00:00 0 \n" + fmt.Sprintf(line, path) + fmt.Sprintf(line, "/usr/lib/libc.so.6")
		want := ""
		if is {
			want = path
		}
		if got := linked(text); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if err := Alone(); err != nil { // this test is
		t.Error(err)
	}
}
