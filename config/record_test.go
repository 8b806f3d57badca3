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
	r := Records{Metrics: "[::ffff:127.0.0.1]:9464", Report: filepath.Join(dir, "r-%j.html"), Calls: filepath.Join(dir, "c-%r.json")}
	if err := errors.Join(j.Record(r), j.CheckRecords(true)); err != nil || j.Sites[0].Metrics.Listen.String() != "127.0.0.1:9464" || j.Sites[0].Trace.Calls != r.Calls {
		t.Errorf("%v: %+v", err, j.Sites[0])
	}
	if got := j.Report.Name(j.Name(), "local", 1); got != filepath.Join(dir, "r-prog.html") {
		t.Error(got)
	}
	j = job()
	if err := errors.Join(j.Record(Records{}), j.CheckRecords(true)); err != nil || j.Report.Path != "" || j.Sites[0].Trace.Calls != "" || j.Sites[0].Metrics.Listen.IsValid() {
		t.Errorf("%v: %+v", err, j)
	}
	for _, c := range []struct {
		r    Records
		want string
	}{
		{Records{Metrics: "9464"}, `-metrics "9464" is no IP address with a port: write 127.0.0.1:9464`},
		{Records{Metrics: "localhost:9464"}, "-metrics"},
		{Records{Metrics: "224.0.0.1:9464"}, "-metrics"},
		{Records{Report: dir + "/r-%r.html"}, `-report`},
		{Records{Report: dir + "/"}, `it is a folder`},
		{Records{Report: dir}, "-report: " + dir + " is a folder and no regular file"},
		{Records{Report: dir + "/none/r.html"}, "there is no folder"},
		{Records{Calls: dir + "/c.json"}, "put %r, the rank, into the name"},
		{Records{Calls: dir + "/c%%r.json"}, "c%r.json\": several procs would write"},
		{Records{Calls: "/dev/full"}, "-trace-calls: /dev/full is a device and no regular file: write the name of a file that is not there yet"},
		{Records{Calls: dir + "/no%%p/c-%r.json"}, "there is no folder \"" + dir + "/no%p\""},
		{Records{Calls: dir + "/file/c-%r.json"}, "is not a folder"},
	} {
		j := job()
		if err := errors.Join(j.Record(c.r), j.CheckRecords(true)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.r, err, c.want)
		}
	}
	j = job()
	if err := errors.Join(j.Record(Records{Report: "/none/r.html", Calls: dir + "/c-%r.json"}), j.CheckRecords(false)); err != nil {
		t.Errorf("a report is written elsewhere: %v", err)
	}
	j = job()
	if err := errors.Join(j.Record(Records{Calls: "/none/c-%r.json"}), j.CheckRecords(false)); err == nil || !strings.Contains(err.Error(), "-trace-calls: there is no folder") {
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
