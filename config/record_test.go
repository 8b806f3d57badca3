package config

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestRecordsOfAJobWithoutAFile: flags do what blocks of a file do, and say what is wrong with
// them.
func TestRecordsOfAJobWithoutAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	job := func() *Job { return Default(2, []string{"./prog"}, nil) }
	j := job()
	r := Records{
		Ports: Said{"7800-7899", "-ports"}, Metrics: Said{"[::ffff:127.0.0.1]:9464", "-metrics"}, OTLP: Said{"https://c:4318/x", "-otlp"},
		Report: Said{filepath.Join(dir, "r-%j.html"), "-report"}, Calls: Said{filepath.Join(dir, "c-%r.json"), "-trace-calls"},
	}
	if err := errors.Join(j.Record(r), j.CheckRecords(true)); err != nil || j.Sites[0].Metrics.Listen.String() != "127.0.0.1:9464" || j.Sites[0].Trace.Calls != r.Calls.Value || j.Sites[0].Trace.OTLP != r.OTLP.Value || j.Sites[0].Ports.String() != "7800-7899" {
		t.Errorf("%v: %+v", err, j.Sites[0])
	}
	if got := j.Report.Name(j.Name(), "local", 1); got != filepath.Join(dir, "r-prog.html") {
		t.Error(got)
	}
	j = job()
	if err := errors.Join(j.Record(Records{}), j.CheckRecords(true)); err != nil || j.Report.Path != "" || j.Sites[0].Trace.Calls != "" || j.Sites[0].Metrics.Listen.IsValid() || j.Sites[0].Trace.OTLP != "" || !j.Sites[0].Ports.IsZero() {
		t.Errorf("%v: %+v", err, j)
	}
	for _, c := range []struct {
		r    Records
		want string
	}{
		{Records{Metrics: Said{"9464", "-metrics"}}, `-metrics "9464" is no IP address with a port: write 127.0.0.1:9464`},
		{Records{Metrics: Said{"localhost:9464", "-metrics"}}, "-metrics"},
		{Records{Metrics: Said{"224.0.0.1:9464", "-metrics"}}, "-metrics"},
		{Records{Report: Said{dir + "/r-%r.html", "-report"}}, `-report`},
		{Records{Report: Said{dir + "/", "-report"}}, `it is a folder`},
		{Records{Report: Said{dir, "-report"}}, "-report: " + dir + " is a folder and no regular file"},
		{Records{Report: Said{dir + "/none/r.html", "-report"}}, "there is no folder"},
		{Records{Calls: Said{dir + "/c.json", "-trace-calls"}}, "put %r, the rank, into the name"},
		{Records{Calls: Said{dir + "/c%%r.json", "-trace-calls"}}, "c%r.json\": several procs would write"},
		{Records{Calls: Said{"/dev/full", "-trace-calls"}}, "-trace-calls: /dev/full is a device and no regular file: write the name of a file that is not there yet"},
		{Records{Calls: Said{dir + "/no%%p/c-%r.json", "-trace-calls"}}, "there is no folder \"" + dir + "/no%p\""},
		{Records{Calls: Said{dir + "/file/c-%r.json", "-trace-calls"}}, "is not a folder"},
		{Records{Report: Said{dir + "/none/r.html", "IMPI_REPORT"}}, "IMPI_REPORT: there is no folder"},
		{Records{Calls: Said{dir + "/c.json", "IMPI_TRACE_CALLS"}}, "IMPI_TRACE_CALLS \"" + dir + "/c.json\": several procs"},
		{Records{Ports: Said{"7800", "-ports"}}, `-ports "7800" is no range of ports: write two numbers from 1 to 65535, such as 7800-7899`},
		{Records{Ports: Said{"0-7", "IMPI_PORTS"}}, `IMPI_PORTS "0-7"`},
		{Records{Ports: Said{"9000-8000", "IMPI_PORTS"}}, `IMPI_PORTS "9000-8000"`},
		{Records{Ports: Said{"1-65536", "-ports"}}, "65536"},
		{Records{Ports: Said{"9000-9999", "IMPI_PORTS"}, Metrics: Said{"0.0.0.0:9464", "-metrics"}}, `-metrics "0.0.0.0:9464" has a port of IMPI_PORTS 9000-9999`},
		{Records{OTLP: Said{"http://user:word@c:4318", "IMPI_OTLP"}}, "IMPI_OTLP \"http://user:word@c:4318\" is no URL of a collector"},
		{Records{OTLP: Said{"c:4318", "-otlp"}}, "-otlp"},
	} {
		j := job()
		if err := errors.Join(j.Record(c.r), j.CheckRecords(true)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.r, err, c.want)
		}
	}
	j = job()
	if err := errors.Join(j.Record(Records{Report: Said{"/none/r.html", "-report"}, Calls: Said{dir + "/c-%r.json", "-trace-calls"}}), j.CheckRecords(false)); err != nil {
		t.Errorf("a report is written elsewhere: %v", err)
	}
	j = job()
	if err := errors.Join(j.Record(Records{Calls: Said{"/none/c-%r.json", "-trace-calls"}}), j.CheckRecords(false)); err == nil || !strings.Contains(err.Error(), "-trace-calls: there is no folder") {
		t.Errorf("calls are written here: %v", err)
	}
}

// TestFolderWithPercent: what looks like a variable in the name of the job file's folder is none.
func TestFolderWithPercent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "50%r %p")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "job.hcl")
	text := "site \"a\" {\n  client = 0\n  embedded_server {}\n  auth \"none\" {}\n  host {\n    address = \"127.0.0.1\"\n    procs   = 2\n  }\n  program { command = [\"/bin/true\"] }\n  trace { calls = \"c-%r.json\" }\n  log { trace = \"p-%r.txt\" }\n}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	j, found := Load(file, Options{})
	if found.HasErrors() {
		t.Fatal(found.Err())
	}
	if got := TraceFile(j.Sites[0].Trace.Calls, 1); got != filepath.Join(dir, "c-1.json") {
		t.Error(got)
	}
	if got := TraceFile(j.Sites[0].Log.Trace, 1); got != filepath.Join(dir, "p-1.txt") {
		t.Error(got)
	}
	if got := TraceFile("/%%r-%r-%p", 1); got != "/%r-1-"+strconv.Itoa(os.Getpid()) {
		t.Error(got)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, "c-%r", "c-%%r", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, found := Load(file, Options{}); !found.HasErrors() || !strings.Contains(found.Err().Error(), "several procs would write their calls") {
		t.Error(found)
	}
}

// TestReportOfAWorld: a spawned world has a report of another name than the job, whatever its
// pattern is.
func TestReportOfAWorld(t *testing.T) {
	for path, want := range map[string]string{"": "/d", "r.html": "/d/r-a.spawn1.html", "r-%j.html": "/d/r-job_a.spawn1.html", "100%%j": "/d/100%j-a.spawn1"} {
		j := &Job{Report: Report{Path: path, Dir: "/d"}}
		w := j.ForWorld("a.spawn1")
		if got := w.Report.Name("job/a.spawn1", "a", 1); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
