package config

import (
	"net/netip"
	"testing"
)

// TestProcsAuto: hosts with procs = "auto" have what a scheduler has given, or share the cores of
// this machine; how many procs those of other machines have, nobody knows here.
func TestProcsAuto(t *testing.T) {
	const text = `job {
  embedded_server { listen = "10.1.0.2:7800" }
  auth "key" { file = "job.key" }
}
program {
  command = ["bin/prog"]
  stdin = 99
}
site "a" {
  client = 0
  hosts  = "10.1.0.[2-3],10.0.0.1"
  procs  = "auto"
  host {
    address = "10.1.0.9"
    procs   = 2
  }
}
site "b" {
  client = 1
  host {
    address = "10.1.0.4"
    procs   = "auto"
  }
  host {
    address = "node7"
    procs   = env.HOW_MANY
  }
}
`
	opt := testOptions()
	opt.Environ = append(opt.Environ, "HOW_MANY=auto")
	opt.Local = netip.MustParsePrefix("10.1.0.0/16").Contains
	opt.Cores = 8
	opt.Tasks = func(h Host) (int, error) {
		if !h.Auto {
			t.Errorf("the scheduler is asked about %v, which the file has", h)
		}
		if h.Name == "node7" {
			return 5, nil
		}
		return 0, nil
	}
	privateKeys(t)
	load := func() (got [][]int, j *Job) {
		j, found := load(&faults{file: "testdata/job.hcl"}, []byte(text), "testdata", opt)
		if found.HasErrors() {
			t.Fatal(found)
		}
		for _, s := range j.Sites {
			var n []int
			for _, h := range s.Hosts {
				n = append(n, h.Procs)
				if h.Auto == (h.Address == netip.MustParseAddr("10.1.0.9")) {
					t.Errorf("%v: auto is %t", h, h.Auto)
				}
			}
			got = append(got, n)
		}
		return got, j
	}
	want := func(got [][]int, all ...[]int) {
		t.Helper()
		for i, n := range all {
			for k := range n {
				if got[i][k] != n[k] {
					t.Errorf("site %d: %v, want %v", i, got[i], n)
					break
				}
			}
		}
	}
	got, j := load()
	want(got, []int{3, 3, 0, 2}, []int{2, 5})
	if j.Sites[0].CountsKnown() || !j.Sites[1].CountsKnown() {
		t.Error("the site with a host of another machine is known, or that without is not")
	}
	opt.Cores = 1
	got, _ = load()
	want(got, []int{1, 1, 0, 2}, []int{1, 5})
	opt.Cores, opt.Tasks = 0, nil
	got, _ = load()
	want(got, []int{0, 0, 0, 2}, []int{0, 0})
}
