package mpi

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/wireup"
)

// fromNode is a job as a proc reads it from its node, with a table of procs. It is for tests that
// count memory: what the reader maps stays mapped.
func fromNode(tb testing.TB, job *wireup.Job, table startup.Procs) (open func() *wireup.Job) {
	tb.Helper()
	own, err := job.Share()
	if err != nil {
		tb.Fatal(err)
	}
	procs, err := wireup.ShareProcs(&table)
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

// manyHosts is a job of 4 sites, as its procs on the last host see it, and the table of its procs.
func manyHosts(tb testing.TB, hosts, each int) (j *wireup.Job, table startup.Procs) {
	tb.Helper()
	const sites = 4
	j = &wireup.Job{DataLen: 1 << 18, AckMark: 32, HiWater: 128, TagUB: 1<<31 - 1, XSize: 1024, MaxLinear: 4, Spin: "0"}
	d := dynamic.Description{World: dynamic.WorldID{1}, Limits: dynamic.Limits{DataLen: j.DataLen, AckMark: 32, HiWater: 128, TagUB: j.TagUB}}
	for h := range sites * hosts {
		card := dynamic.BusinessCard{
			Version: dynamic.CardVersion, Node: fmt.Sprintf("%032x", h), ByteOrder: dynamic.LittleEndian,
			Addresses: []dynamic.TransportAddress{{Transport: "tcp", Address: fmt.Sprintf("10.0.%d.%d:40000", h>>8, h&0xff)}, {Transport: "shm", Address: "local"}},
		}
		text, err := card.AppendText(nil)
		if err != nil {
			tb.Fatal(err)
		}
		j.Views = wireup.AddView(j.Views, wire.WorldRank(table.Len()), wireup.Proc{Path: wireup.PathDirect, Data: "native-le", Unexpected: 64 << 20})
		for i := range each {
			id := wire.Proc{Host: wire.HostID{12: 10, 14: byte(h >> 8), 15: byte(h)}, PID: 1<<62 | int64(h)<<20 | int64(i)}
			table.Add(startup.ProcInfo{ID: id, Client: wire.ClientRank(h / hosts), Host: wire.HostRank(h), Card: text})
		}
	}
	j.Rank = wire.WorldRank(table.Len() - 1)
	j.World = d.AppendHead(nil, sites*hosts)
	return j, table
}

// splitProcs converts a job's Procs to the form that a node sends: the table, and the job's Views.
// The cards in the table name the procs' machines and nothing else.
func splitProcs(job *wireup.Job) (table startup.Procs) {
	job.Views = nil
	for r, p := range job.Procs {
		x := startup.ProcInfo{ID: p.Identity(), Client: p.Client, Host: p.Node}
		if p.Machine != "" {
			x.Card = []byte("impi-card/1 node=" + p.Machine)
		}
		table.Add(x)
		job.Views = wireup.AddView(job.Views, wire.WorldRank(r), p)
	}
	return table
}

// widely is a job of wide, and the table of its procs.
func widely(each int) (*wireup.Job, startup.Procs) {
	j := wide(each)
	return j, splitProcs(j)
}

// costOfInit is how many bytes a proc allocates when it reads its job from its node.
func costOfInit(t *testing.T, job *wireup.Job, table startup.Procs) int {
	t.Helper()
	open := fromNode(t, job, table)
	least := math.MaxInt
	for range 5 { // the runtime's own goroutines allocate at times
		var p *Proc
		n := allocs.BytesExact(func() {
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

// TestPublishedInit: the sizes of docs/simulator.md of what a host shares with its procs, and of
// what a proc allocates in Init, are those of manyHosts.
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
		job, table := manyHosts(t, hosts, 128)
		shared, err := wireup.ShareProcs(&table)
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
		for i, got := range []int{int(st.Size()), costOfInit(t, job, table)} {
			if want := bytes(row[1+i]); math.Abs(float64(got)-want) > want*0.05 { // more than it is rounded, and than builds differ
				t.Errorf("%d hosts: %d bytes, and docs/simulator.md has %s", hosts, got, row[1+i])
			}
		}
	}
}

// TestProcKeepsNothingOfTheWorld: a proc that has read its job from its node has as much memory of
// its own in a job of 96 procs as in one of 100,000, and with 4 hosts as with 4,096. What it knows
// of them is in the table of its host.
func TestProcKeepsNothingOfTheWorld(t *testing.T) {
	costOf := func(job *wireup.Job, table startup.Procs) int { return costOfInit(t, job, table) }
	small, large := costOf(widely(3)), costOf(widely(3125))
	t.Logf("%d bytes in a job of 96 procs, %d in one of 100,000", small, large)
	if large > small+4<<10 || large > 32<<10 {
		t.Errorf("%d bytes in a job of 96 procs, %d in one of 100,000", small, large)
	}
	small, large = costOf(manyHosts(t, 4, 4)), costOf(manyHosts(t, 1024, 4))
	t.Logf("%d bytes in a job with 4 hosts of a site, %d in one with 1,024", small, large)
	if large > small+2<<10 {
		t.Errorf("%d bytes in a job with 4 hosts of a site, %d in one with 1,024", small, large)
	}
}

// BenchmarkInitOf4096 is what Init does with what the node has sent in a job of 4,096 procs of 32
// sites of one host.
func BenchmarkInitOf4096(b *testing.B) {
	job, table := widely(128)
	benchmarkInit(b, job, table)
}

// BenchmarkInitOfHosts is the same for 4 sites of hosts with 128 procs each.
func BenchmarkInitOfHosts(b *testing.B) {
	for _, hosts := range []int{1, 32, 256, 1024} {
		b.Run(strconv.Itoa(hosts), func(b *testing.B) {
			job, table := manyHosts(b, hosts, 128)
			benchmarkInit(b, job, table)
		})
	}
}

func benchmarkInit(b *testing.B, job *wireup.Job, table startup.Procs) {
	shared, err := wireup.ShareProcs(&table)
	if err != nil {
		b.Fatal(err)
	}
	st, err := shared.Stat()
	if err != nil {
		b.Fatal(err)
	}
	_ = shared.Close()
	open := fromNode(b, job, table)
	job.Procs = nil
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Join(open(), sink{}, still{}, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(st.Size()), "shared-B")
}
