package matrix

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/internal/vendors"
	"github.com/openimpi/impi/internal/wan/tun"
)

func TestEveryCellRunsOrSaysWhyNot(t *testing.T) {
	all := Known(t.TempDir()) // nothing can be built there
	cells := Select(all, false)
	seen := make(map[Cell]bool)
	for _, c := range cells {
		if seen[c] {
			t.Errorf("%s twice", c)
		}
		seen[c] = true
		x, err := Find(all, c.Transport)
		if err != nil {
			t.Fatal(err)
		}
		_, err = vendors.Find(x.Name)
		if guest := err == nil; x.Natives == nil && guest != (x.Missing != "") {
			t.Errorf("%s: %q", c, x.Missing)
		}
	}
	// On several machines: tcp by fd and ring, tcp+tls, quic, websocket, python; unix and shm without
	// agents. Over a wide area: those that leave a machine and have rings.
	want := (6*2 + 2 + 4) * len(Programs) * len(Faults)
	for _, x := range all {
		if x.Natives != nil {
			want += len(Programs) * len(Faults)
			continue
		}
		if x.Few { // direct by each plane, and by agents by the first
			want += (len(x.Planes) + 1) * len(FewPrograms) * len(Faults)
			continue
		}
		want += len(x.Planes) * 2 * len(Programs) * len(Faults)
	}
	if len(cells) != want {
		t.Errorf("%d cells, not %d", len(cells), want)
	}
}

// A cell whose fault cannot be brought about is not run, and says why.
func TestLinksThatCannotBeCut(t *testing.T) {
	r := &Runner{Transports: []Transport{{Name: "x", NoCut: "nobody can"}}}
	if res := r.Run(t.Context(), Cell{"x", "ring", Direct, "ring", LinkCut}); res.Verdict != Unsupported || res.Reason != "nobody can" {
		t.Errorf("%+v", res)
	}
}

func TestTableSaysWhatDidNotRun(t *testing.T) {
	c := Cell{"tcp", "fd", Direct, "ring", NoFault}
	d := c
	d.Program = "large"
	e := c
	e.Fault = LinkCut
	f := e
	f.Program = "heat2d"
	var b strings.Builder
	Table(&b, []Result{
		{Cell: c, Verdict: OK}, {Cell: d, Verdict: Failed, Reason: "it\nbroke"}, {Cell: e, Verdict: Unsupported, Reason: "nobody can"},
		{Cell: f, Verdict: Ended, Reason: "it must"},
	})
	for _, want := range []string{
		"| tcp | fd | direct | none | ok | not run | not run | not run | **failed** (1) |",
		"| tcp | fd | direct | link cut | – (2) | ends (3) |",
		"1. tcp/fd/direct/large/none: it broke\n2. nobody can\n3. it must\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestQuickMatrix runs the quick selection of the built-in transports.
func TestQuickMatrix(t *testing.T) {
	skips.Short(t)
	soak.SkipUnlessSoak(t, "make test has a cell that fails, and jobs by every transport elsewhere")
	bin := t.TempDir()
	build(t, bin)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{Bin: bin, Repository: root, Temp: t.TempDir(), Limit: 10 * time.Minute, Transports: Known(root)}
	if err := r.Prepare(); err != nil {
		t.Fatal(err)
	}
	var ran atomic.Int32
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2) // a cell waits for processes to start, most of its time
	for _, c := range Select(r.Transports, true) {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			switch res := r.Run(context.Background(), c); res.Verdict {
			case OK:
				ran.Add(1)
			case Ended:
				ran.Add(1)
			case Failed:
				t.Errorf("%s: %s", c, res.Reason)
			case Unsupported:
				t.Logf("%s: %s", c, res.Reason)
			}
		})
	}
	wg.Wait()
	if ran.Load() < 20 {
		t.Errorf("only %d cells ran", ran.Load())
	}
}

// TestWideArea runs jobs over lines that are long, lose packets and are down from time to time, by
// tcp and by quic, whose links are cut meanwhile.
func TestWideArea(t *testing.T) {
	skips.Short(t)
	bin := t.TempDir()
	build(t, bin)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{Bin: bin, Repository: root, Temp: t.TempDir(), Limit: 10 * time.Minute, Transports: Known(root)}
	if err := r.Prepare(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Cell{
		{"tcp", "ring", DirectWide, "collectives", NoFault},
		{"quic", "ring", DirectWide, "ring", LinkCut},
	} {
		t.Run(c.Transport, func(t *testing.T) {
			switch res := r.Run(t.Context(), c); {
			case strings.Contains(res.Reason, errNoMachines.Error()):
				skips.NotRun(t, res.Reason, tun.Remedy)
			case res.Verdict != OK:
				t.Errorf("%s: %s", res.Verdict, res.Reason)
			}
		})
	}
}

// TestFailingCell: a job that fails makes no green cell.
func TestFailingCell(t *testing.T) {
	bin := t.TempDir()
	build(t, bin)
	replace(t, bin, "matrix-check", "#!/bin/sh\nexit 3\n")
	r := &Runner{Bin: bin, Temp: t.TempDir(), Limit: 10 * time.Minute, Transports: Known(bin), Repository: bin}
	for _, fault := range []string{NoFault, PluginKilled} {
		res := r.Run(context.Background(), Cell{"tcp", "fd", Direct, "collectives", fault})
		if res.Verdict != Failed || res.Reason == "" {
			t.Errorf("%s: %s %s", fault, res.Verdict, res.Reason)
		}
	}
}

// TestSilentCell: a program that ends well and says nothing makes no green cell.
func TestSilentCell(t *testing.T) {
	bin := t.TempDir()
	build(t, bin)
	replace(t, bin, "ring", "#!/bin/sh\nexec "+filepath.Join(built.dir, "ring")+" -rounds 2 >/dev/null\n")
	r := &Runner{Bin: bin, Temp: t.TempDir(), Limit: 10 * time.Minute, Transports: Known(bin), Repository: bin}
	res := r.Run(context.Background(), Cell{"tcp", "fd", Direct, "ring", NoFault})
	if res.Verdict != Failed || !strings.Contains(res.Reason, "did not print") {
		t.Errorf("%s %s", res.Verdict, res.Reason)
	}
}
