package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Without names it is what the page on native sites has, and with some what they say.
func TestSite(t *testing.T) {
	o := parsed(t, "-native")
	if !o.ofSite() || o.repeat != 7 || !slices.Equal(o.ranks, []int{2, 4}) || !slices.Equal(o.benches, siteBenches) || o.sizesOf("pingpong")[0] != 8 {
		t.Errorf("%+v", o)
	}
	o = parsed(t, "-native", "-procs", "2", "-repeat", "1", "-sizes", "64", "allgather", "pingpong")
	if o.repeat != 1 || !slices.Equal(o.ranks, []int{2}) || !slices.Equal(o.benches, []string{"allgather", "pingpong"}) || !slices.Equal(o.sizesOf("pingpong"), []int{64}) {
		t.Errorf("%+v", o)
	}
	if o = parsed(t, "-native", "-peer", "mpich", "pingpong"); o.ofSite() || o.repeat != 5 || o.sizesOf("pingpong")[1] != 64 {
		t.Errorf("%+v", o)
	}
}

// Ratios are to the MPI of the site, and say so: others are better, whether more or less is.
func TestRatiosToTheSite(t *testing.T) {
	o := parsed(t, "-native", "-repeat", "1", "-quiet", "-sizes", "1000", "-procs", "2")
	o.base = "Good MPI"
	of := func(name string, seconds float64) contender {
		return contender{name: name, run: func(context.Context, string, []int) ([]figure, error) {
			return []figure{{Size: 1000, Iterations: 1, Seconds: seconds}}, nil
		}}
	}
	for _, bench := range []string{"pingpong", "stream"} {
		r, err := o.measure(context.Background(), bench, []contender{of("Good MPI", 2), of("impi by Good MPI", 4), of("impi by default", 1)})
		if err != nil || r.Base != "Good MPI" || len(r.Rows[0].Ratios) != 2 || r.Rows[0].Ratios["impi by Good MPI"] != 0.5 || r.Rows[0].Ratios["impi by default"] != 2 {
			t.Errorf("%s: %+v, %v", bench, r, err)
		}
		var out bytes.Buffer
		if r.print(&out); !strings.HasSuffix(strings.SplitN(out.String(), "\n", 2)[0], "; above 1.00x is better than Good MPI alone") || !strings.Contains(out.String(), "2.00x") {
			t.Error(out.String())
		}
	}
}

// A site without an MPI is told what is missing.
func TestNoMPIOfTheSite(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	o := parsed(t, "-native", "-cc", filepath.Join(dir, "mpicc"))
	if _, err := o.sitesPeer(context.Background(), dir); err == nil || !strings.Contains(err.Error(), "no mpicc of the site's MPI") {
		t.Error(err)
	}
	t.Setenv("PATH", "")
	if err := os.WriteFile(o.cc, []byte("#!/bin/sh\n[ $1 != -E ] || echo '\"impi-vendor\" \"Good MPI\" \"1\"'\nshift $(($# - 1))\n[ $1 = probe.c ] || : >made\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if _, err := o.sitesPeer(context.Background(), dir); err == nil || !strings.Contains(err.Error(), "no mpirun beside "+o.cc) {
		t.Error(err)
	}
}
