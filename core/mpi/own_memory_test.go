package mpi

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/wireup"
)

// fromNode is a job as a proc reads it from its node. It is for tests that count memory: what the
// reader maps stays mapped.
func fromNode(tb testing.TB, job *wireup.Job) (open func() *wireup.Job) {
	tb.Helper()
	own, err := job.Share()
	if err != nil {
		tb.Fatal(err)
	}
	procs, err := wireup.ShareProcs(slices.Values(job.Procs), job.World)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = own.Close(); _ = procs.Close() })
	return func() *wireup.Job {
		a, err := unix.Dup(int(own.Fd()))
		if err != nil {
			tb.Fatal(err)
		}
		b, err := unix.Dup(int(procs.Fd()))
		if err != nil {
			tb.Fatal(err)
		}
		j, err := wireup.OpenJob(a, b)
		if err != nil {
			tb.Fatal(err)
		}
		return j
	}
}

// manyHosts is a job of 4 sites, as its procs on the last host see it.
func manyHosts(tb testing.TB, hosts, each int) *wireup.Job {
	tb.Helper()
	const sites = 4
	j := &wireup.Job{DataLen: 1 << 18, AckMark: 32, HiWater: 128, TagUB: 1<<31 - 1, XSize: 1024, MaxLinear: 4, Spin: "0"}
	d := dynamic.Description{World: dynamic.World{1}, Limits: dynamic.Limits{DataLen: j.DataLen, AckMark: 32, HiWater: 128, TagUB: j.TagUB}}
	for h := range sites * hosts {
		card := dynamic.Card{
			Version: dynamic.CardVersion, Node: fmt.Sprintf("%032x", h), ByteOrder: dynamic.LittleEndian,
			Offers: []dynamic.Offer{{Transport: "tcp", Address: fmt.Sprintf("10.0.%d.%d:40000", h>>8, h&0xff)}, {Transport: "shm", Address: "local"}},
		}
		d.Groups = append(d.Groups, dynamic.Group{Count: each, Site: h / hosts, Card: card})
		p := wireup.Proc{
			Host: []byte{12: 10, 14: byte(h >> 8), 15: byte(h)}, PID: 1<<62 | int64(h)<<20, Client: wire.ClientRank(h / hosts), Node: wire.HostRank(h),
			Path: wireup.PathDirect, Data: "native-le", Machine: card.Node, Unexpected: 64 << 20,
		}
		for range each {
			j.Procs = append(j.Procs, p)
			p.PID++
		}
	}
	j.Rank = wire.WorldRank(len(j.Procs) - 1)
	var err error
	if j.World, err = d.Append(nil); err != nil {
		tb.Fatal(err)
	}
	return j
}

// costOfInit is how many bytes a proc allocates when it reads its job from its node.
func costOfInit(t *testing.T, job *wireup.Job) int {
	t.Helper()
	open := fromNode(t, job)
	least := math.MaxInt
	for range 5 { // the runtime's own goroutines allocate at times
		var p *Proc
		n := allocs.Exactly(func() {
			var err error
			if p, err = Join(open(), sink{}, still{}, nil); err != nil {
				t.Fatal(err)
			}
		})
		runtime.KeepAlive(p)
		least = min(least, int(n))
	}
	return least
}

// TestPublishedInit: the sizes of docs/simulator.md of what a host shares with its procs, and of what a proc allocates
// in Init, are those of manyHosts.
func TestPublishedInit(t *testing.T) {
	skips.Short(t)
	text, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	bytes := func(cell string) float64 {
		number, unit, _ := strings.Cut(cell, " ")
		value, err := strconv.ParseFloat(number, 64)
		if err != nil {
			t.Fatal(err)
		}
		return value * map[string]float64{"KB": 1e3, "MB": 1e6}[unit]
	}
	for hosts, number := range map[int]string{1: "1", 32: "32", 256: "256", 1024: "1,024"} {
		job := manyHosts(t, hosts, 128)
		shared, err := wireup.ShareProcs(slices.Values(job.Procs), job.World)
		if err != nil {
			t.Fatal(err)
		}
		st, err := shared.Stat()
		if err != nil {
			t.Fatal(err)
		}
		_ = shared.Close()
		row := regexp.MustCompile(`(?m)^\| ` + number + ` \| ([\d.]+ .B) \| ([\d.]+ .B) \|`).FindStringSubmatch(string(text))
		if row == nil {
			t.Fatalf("docs/simulator.md has no such row for %d hosts", hosts)
		}
		for i, got := range []int{int(st.Size()), costOfInit(t, job)} {
			if want := bytes(row[1+i]); math.Abs(float64(got)-want) > want*0.05 { // more than it is rounded, and than builds differ
				t.Errorf("%d hosts: %d bytes, and docs/simulator.md has %s", hosts, got, row[1+i])
			}
		}
	}
}

// TestProcKeepsNothingOfTheWorld: a proc that has read its job from its node has as much memory of
// its own in a job of 96 procs as in one of 100,000, and with 4 hosts as with 4,096. What it knows of them
// is in the table of its host.
func TestProcKeepsNothingOfTheWorld(t *testing.T) {
	small, large := costOfInit(t, wide(3)), costOfInit(t, wide(3125))
	t.Logf("%d bytes in a job of 96 procs, %d in one of 100,000", small, large)
	if large > small+4<<10 || large > 32<<10 {
		t.Errorf("%d bytes in a job of 96 procs, %d in one of 100,000", small, large)
	}
	small, large = costOfInit(t, manyHosts(t, 4, 4)), costOfInit(t, manyHosts(t, 1024, 4))
	t.Logf("%d bytes in a job with 4 hosts of a site, %d in one with 1,024", small, large)
	if large > small+2<<10 {
		t.Errorf("%d bytes in a job with 4 hosts of a site, %d in one with 1,024", small, large)
	}
}

// BenchmarkInitOf4096 is what Init does with what the node has sent in a job of 4,096 procs of 32
// sites of one host.
func BenchmarkInitOf4096(b *testing.B) { benchmarkInit(b, wide(128)) }

// BenchmarkInitOfHosts is the same for 4 sites of hosts with 128 procs each.
func BenchmarkInitOfHosts(b *testing.B) {
	for _, hosts := range []int{1, 32, 256, 1024} {
		b.Run(strconv.Itoa(hosts), func(b *testing.B) { benchmarkInit(b, manyHosts(b, hosts, 128)) })
	}
}

func benchmarkInit(b *testing.B, job *wireup.Job) {
	shared, err := wireup.ShareProcs(slices.Values(job.Procs), job.World)
	if err != nil {
		b.Fatal(err)
	}
	st, err := shared.Stat()
	if err != nil {
		b.Fatal(err)
	}
	_ = shared.Close()
	open := fromNode(b, job)
	job.Procs = nil
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Join(open(), sink{}, still{}, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(st.Size()), "shared-B")
}
