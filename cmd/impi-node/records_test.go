package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/bootstrap"
	"github.com/openimpi/impi/internal/jobreport"
	"github.com/openimpi/impi/internal/loopback"
	"github.com/openimpi/impi/internal/telemetry/telemetrytest"
)

// TestRecordsWithoutAFile: a job without a file serves metrics while it runs, and leaves a report
// and the calls of its procs.
func TestRecordsWithoutAFile(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	at, err := loopback.Free()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	r := startJob(t, 2, "-n", "2", "-metrics", at.String(), "-report", "r-%j.html", "-trace-calls", "calls-%r.json", "--", self)
	answer, err := http.Get("http://" + at.String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || !strings.Contains(string(text), "impi_") {
		t.Errorf("%v: %s", err, text)
	}
	_, job := r.report(t)
	for _, p := range job.Sites[0].Ranks {
		if err := syscall.Kill(p.PID, syscall.SIGUSR1); err != nil { // it goes on to MPI_Finalize
			t.Fatal(err)
		}
	}
	if err := r.cmd.Wait(); err != nil {
		t.Error(err)
	}
	report, err := jobreport.Read("r-" + filepath.Base(self) + ".html")
	if err != nil || len(report.Ranks) != 2 {
		t.Errorf("%v: %+v", err, report)
	}
	for _, name := range []string{"calls-0.json", "calls-1.json"} {
		if b, err := os.ReadFile(name); err != nil || !strings.Contains(string(b), "mpi.Recv") && !strings.Contains(string(b), "MPI_Recv") {
			t.Errorf("%s: %v, %d bytes", name, err, len(b))
		}
	}
}

// TestRecordsOfJobsSideBySide: a job does not touch the files that another one writes, and says
// what to do.
func TestRecordsOfJobsSideBySide(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "100%p")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	first := startJob(t, 2, "-n", "2", "-report", "r.html", "-trace-calls", "calls-%r.json", "--", self)
	before, err := os.ReadFile("calls-1.json")
	if err != nil {
		t.Fatal(err)
	}
	_, job := first.report(t)
	status, _, errs := impiNode(t, "", "-n", "2", "-trace-calls", "calls-%r.json", "--", self)
	want := fmt.Sprintf("calls cannot be traced: %s/calls-0.json is written by process %d, of another job: wait for its end, or put %%p", dir, job.Sites[0].Ranks[0].PID)
	if status != ending.StatusConfig || !strings.Contains(errs, want) {
		t.Errorf("status %d, no %q: %s", status, want, errs)
	}
	if after, err := os.ReadFile("calls-1.json"); err != nil || !strings.HasPrefix(string(after), strings.TrimSuffix(string(before), "]\n")) {
		t.Errorf("%v: the other job's file has changed", err)
	}
	end := func(r *running) {
		_, job := r.report(t)
		for _, p := range job.Sites[0].Ranks {
			if err := syscall.Kill(p.PID, syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	var said bytes.Buffer
	at, err := loopback.Free()
	if err != nil {
		t.Fatal(err)
	}
	second := startProgramAs(t, func(c *exec.Cmd) { c.Stderr = &said }, runBase(t), "exchange", 2, "-n", "2", "-report", "r.html", "-trace-calls", "calls-%p-%r.json", "-metrics", at.String(), "--", self)
	end(first)
	end(second)
	reports, err := filepath.Glob("r*.html")
	if own := fmt.Sprintf("r-%d.html", second.cmd.Process.Pid); err != nil || !slices.Equal(reports, []string{own, "r.html"}) {
		t.Errorf("%v: %q, not %s and r.html", err, reports, own)
	}
	if text := said.String(); !strings.Contains(text, "the report of the job has another name") || !strings.Contains(text, "given_by=-report") {
		t.Errorf("nobody says why:\n%s", text)
	}
	if text := said.String(); !strings.Contains(text, "the metrics have no calls of MPI and no waits: write calls = true") {
		t.Errorf("nobody says what is not served:\n%s", text)
	}
}

// TestRecordsWithAFile: the file has blocks for that.
func TestRecordsWithAFile(t *testing.T) {
	path := file(t, twoSites)
	for flag, want := range map[string]string{
		"-metrics": `leave out -metrics, and write metrics { listen`, "-report": "leave out -report, and write report {", "-trace-calls": "leave out -trace-calls, and write trace {",
	} {
		if status, _, errs := impiNode(t, "", "-config", path, flag, "x"); status != statusUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d: %s", flag, status, errs)
		}
	}
	for _, flag := range []string{"-metrics", "-report", "-trace-calls"} {
		if status, _, errs := impiNode(t, "", "-n", "1", flag, "", "/bin/true"); status != statusUsage || !strings.Contains(errs, flag+": it is empty") {
			t.Errorf("%s: status %d: %s", flag, status, errs)
		}
	}
	if status, _, errs := impiNode(t, "", "-n", "1", "-metrics", "9464", "/bin/true"); status != statusUsage || !strings.Contains(errs, "127.0.0.1:9464") {
		t.Errorf("status %d: %s", status, errs)
	}
}

// rangeOf returns n ports in a row from one that nobody has, as a range and its first port.
func rangeOf(t *testing.T, n uint16) (text string, first uint16) {
	t.Helper()
	at, err := loopback.Free()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d-%d", at.Port(), at.Port()+n-1), at.Port()
}

// listensAt returns the ports at which processes listen.
func listensAt(pids []int) (ports []uint64, err error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, err
	}
	all, err := fs.NetTCP()
	for _, pid := range pids {
		p, err := fs.Proc(pid)
		if err != nil {
			return nil, err
		}
		open, err := p.FileDescriptorTargets()
		if err != nil {
			return nil, err
		}
		for _, l := range all {
			if l.St == 10 && slices.Contains(open, fmt.Sprintf("socket:[%d]", l.Inode)) {
				ports = append(ports, l.LocalPort)
			}
		}
	}
	return ports, err
}

// tellsRecords has each proc print the ports at which the node that it has started listens with its
// plugins, and the first one what the nodes serve at the ports from that of IMPI_METRICS on.
func tellsRecords(nodes string) error {
	world := mpi.World()
	if err := mpi.Barrier(world); err != nil {
		return err
	}
	ports, err := listensAt(treeOf(os.Getpid())[1:])
	if err != nil {
		return err
	}
	fmt.Println("listens", ports)
	if at, err := netip.ParseAddrPort(os.Getenv("IMPI_METRICS")); err == nil && world.Rank() == 0 {
		n, err := strconv.Atoi(nodes)
		if err != nil {
			return err
		}
		for i := range n {
			answer, err := http.Get(fmt.Sprintf("http://%v:%d/metrics", at.Addr(), int(at.Port())+i))
			if err != nil {
				return err
			}
			text, err := io.ReadAll(answer.Body)
			if err := errors.Join(err, answer.Body.Close()); err != nil {
				return err
			}
			fmt.Println("serves", i, bytes.Count(text, []byte(`impi_procs{`)))
		}
	}
	return mpi.Barrier(world)
}

// TestManagedRecords: variables have a job of a process manager's listen in a range of ports, serve
// metrics, send spans and leave a report and the calls of its procs, with one node or with several
// on one machine.
func TestManagedRecords(t *testing.T) {
	for mapping, nodes := range map[string]int{"(vector,(0,1,4))": 1, "(vector,(0,2,1))": 4} {
		t.Run(mapping, func(t *testing.T) {
			dir := t.TempDir()
			in, first := rangeOf(t, 40)
			collector := telemetrytest.New(t)
			served := netip.AddrPortFrom(loopback.Address(), first+50)
			m := &manager{t: t, size: 4, mapping: mapping}
			env := []string{fmt.Sprintf("%s=%d:records", managedEnd, nodes), "IMPI_METRICS=" + served.String(), "IMPI_PORTS=" + in, "IMPI_REPORT=" + dir + "/r.html", "IMPI_TRACE_CALLS=" + dir + "/calls-%r.json", "IMPI_OTLP=" + collector.URL}
			out, statuses := m.run(env...)
			if fmt.Sprint(statuses) != "[0 0 0 0]" {
				t.Errorf("statuses %v\n%s", statuses, out)
			}
			listeners, metrics := 0, 0
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "serves ") {
					metrics++
				}
				list, ok := strings.CutPrefix(strings.TrimSpace(line), "listens [")
				if !ok {
					continue
				}
				for _, word := range strings.Fields(strings.TrimSuffix(list, "]")) {
					port, err := strconv.Atoi(word)
					if listeners++; err != nil || port < int(first) || port >= int(first)+40 && (port < int(served.Port()) || port >= int(served.Port())+nodes) {
						t.Errorf("a node listens at port %s, not in %s", word, in)
					}
				}
			}
			if listeners < nodes || metrics != nodes {
				t.Errorf("%d listeners, %d nodes serve metrics\n%s", listeners, metrics, out)
			}
			report, err := jobreport.Read(dir + "/r.html")
			if err != nil || len(report.Ranks) != 4 {
				t.Errorf("%v: %+v\n%s", err, report, out)
			}
			for rank := range 4 {
				if b, err := os.ReadFile(fmt.Sprintf("%s/calls-%d.json", dir, rank)); err != nil || !strings.Contains(string(b), "MPI_Barrier") {
					t.Errorf("rank %d: %v, %d bytes", rank, err, len(b))
				}
			}
			collector.Await(t, func(spans []telemetrytest.Span) bool {
				n := 0
				for _, s := range spans {
					if s.Name == "node local" || strings.HasPrefix(s.Name, "node local 127.0.0.1") {
						n++
					}
				}
				return n == nodes
			})
		})
	}
}

// TestManagedRecordsWrong: what is wrong with a variable is said by the process that has it, and
// nobody waits.
func TestManagedRecordsWrong(t *testing.T) {
	for env, says := range map[string]string{
		"IMPI_PORTS=7800":                  `IMPI_PORTS "7800" is no range of ports`,
		"IMPI_METRICS=9464":                `IMPI_METRICS "9464" is no IP address with a port`,
		"IMPI_REPORT=/none/r.html":         `IMPI_REPORT: there is no folder "/none"`,
		"IMPI_TRACE_CALLS=/tmp/calls.json": `IMPI_TRACE_CALLS "/tmp/calls.json": several procs would write`,
		"IMPI_LOG_LEVEL=loud":              `IMPI_LOG_LEVEL "loud" is no level: write one of trace, debug`,
		"IMPI_OTLP=ftp://c":                `IMPI_OTLP "ftp://c" is no URL of a collector`,
	} {
		m := &manager{t: t, size: 2, mapping: "(vector,(0,1,2))", kills: true}
		if out, statuses := m.run(env); !strings.Contains(out, "mpi.Init: ") || !strings.Contains(out, says) || statuses[0] == 0 {
			t.Errorf("%s: statuses %v, want %q\n%s", env, statuses, says, out)
		}
	}
}

// TestPlaceMetrics: each node of a machine serves metrics at a port of its own, which is none of
// those that others may take.
func TestPlaceMetrics(t *testing.T) {
	here := netip.MustParseAddr("10.0.0.1")
	addresses := []bootstrap.NodeAddress{{Address: here}, {Address: netip.MustParseAddr("10.0.0.2")}, {Address: here}, {Address: here}}
	for self, want := range map[int]string{0: "0.0.0.0:9464", 1: "0.0.0.0:9464", 2: "0.0.0.0:9465", 3: ""} {
		m := config.Metrics{Listen: netip.MustParseAddrPort("0.0.0.0:9464")}
		err := placeMetrics(&bootstrap.Node{Order: bootstrap.Order{Self: self}}, addresses, config.Ports{First: 9466, Last: 9500}, &m)
		if self == 3 {
			if err == nil || !strings.Contains(err.Error(), "9466 is one of") {
				t.Error(err)
			}
			continue
		}
		if err != nil || m.Listen.String() != want {
			t.Errorf("node %d: %v, %v", self, m.Listen, err)
		}
	}
}

// TestPortsWithoutAFile: all that a job without a file listens at is in the range of -ports, or of
// IMPI_PORTS; the flag wins.
func TestPortsWithoutAFile(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, first := rangeOf(t, 20)
	for name, c := range map[string]struct {
		env  string
		args []string
	}{"flag": {"1-2", []string{"-ports", in, "-metrics", "127.0.0.1:0"}}, "variable": {in, []string{"-metrics", "127.0.0.1:0"}}} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("IMPI_PORTS", c.env)
			r := startJob(t, 2, append(c.args, "-n", "2", "--", self)...)
			var ports []uint64
			for limit := time.After(5 * time.Minute); len(ports) < 3; { // the server, channels and metrics
				if ports, err = listensAt(treeOf(r.cmd.Process.Pid)); err != nil {
					t.Fatal(err)
				}
				select {
				case <-limit:
					t.Fatalf("it listens at %v", ports)
				default: // the kernel's table leaves out some sockets if those of other tests go meanwhile
				}
			}
			for _, port := range ports {
				if port < uint64(first) || port >= uint64(first)+20 {
					t.Errorf("it listens at port %d, not in %s", port, in)
				}
			}
			_, job := r.report(t)
			for _, p := range job.Sites[0].Ranks {
				if err := syscall.Kill(p.PID, syscall.SIGUSR1); err != nil { // it goes on to MPI_Finalize
					t.Fatal(err)
				}
			}
			if err := r.cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("too few", func(t *testing.T) {
		narrow := fmt.Sprintf("%d-%d", first, first)
		if status, _, errs := impiNode(t, "hello", "-ports", narrow, "-n", "1", "--", self); status == 0 || !strings.Contains(errs, "-ports "+narrow+": all of them are in use: widen it") {
			t.Errorf("status %d: %s", status, errs)
		}
	})
}

// TestVariablesOfRecords: what no flag says comes from variables, which a job with a file does not
// have; nodes on other machines are told by flags.
func TestVariablesOfRecords(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("IMPI_REPORT", "r.html")
	t.Setenv("IMPI_OTLP", "http://127.0.0.1:4318")
	t.Setenv("IMPI_METRICS", "127.0.0.1:9464")
	o, err := parseFlags([]string{"-metrics", "127.0.0.1:9999", "-n", "2", "./prog"})
	if err != nil {
		t.Fatal(err)
	}
	here, _ := os.Getwd()
	want := config.Records{
		Metrics: config.Said{Value: "127.0.0.1:9999", By: "-metrics"}, Report: config.Said{Value: here + "/r.html", By: "IMPI_REPORT"},
		OTLP: config.Said{Value: "http://127.0.0.1:4318", By: "IMPI_OTLP"},
	}
	if o.records != want {
		t.Errorf("%+v, want %+v", o.records, want)
	}
	if args := strings.Join(o.args(nodeSpec{host: allHosts}), " "); !strings.HasSuffix(args, "-metrics 127.0.0.1:9999 -report "+here+"/r.html -otlp http://127.0.0.1:4318") {
		t.Error(args)
	}
	if o, err = parseFlags([]string{"-config", "job.hcl"}); err != nil || o.records != (config.Records{}) {
		t.Errorf("%v: %+v", err, o.records)
	}
	for _, flag := range []string{"-ports", "-otlp", "-metrics", "-report", "-trace-calls"} {
		if _, err = parseFlags([]string{"-config", "job.hcl", flag, "x"}); err == nil || !strings.Contains(err.Error(), "leave out "+flag+", and write ") {
			t.Errorf("%s: %v", flag, err)
		}
		if _, err = parseFlags([]string{flag, "", "-n", "1", "./prog"}); err == nil || !strings.Contains(err.Error(), "it is empty") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
