package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecordsOfAJobWithoutAFile: flags do what blocks of a file do, and say what is wrong with them.
func TestRecordsOfAJobWithoutAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	job := func() *Job { return Default(2, []string{"./prog"}, nil) }
	j := job()
	r := Records{Metrics: "[::ffff:127.0.0.1]:9464", Report: filepath.Join(dir, "r-%j.html"), Calls: filepath.Join(dir, "c-%r.json")}
	if err := j.Record(r, true); err != nil || j.Sites[0].Metrics.Listen.String() != "127.0.0.1:9464" || j.Sites[0].Trace.Calls != r.Calls {
		t.Errorf("%v: %+v", err, j.Sites[0])
	}
	if got := j.Report.Name(j.Name(), "local", 1); got != filepath.Join(dir, "r-prog.html") {
		t.Error(got)
	}
	j = job()
	if err := j.Record(Records{}, true); err != nil || j.Report.Path != "" || j.Sites[0].Trace.Calls != "" || j.Sites[0].Metrics.Listen.IsValid() {
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
		{Records{Calls: dir + "/file/c-%r.json"}, "is not a folder"},
	} {
		if err := job().Record(c.r, true); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.r, err, c.want)
		}
	}
	if err := job().Record(Records{Report: "/none/r.html", Calls: "/none/c-%r.json"}, false); err != nil {
		t.Errorf("folders of another machine: %v", err)
	}
}
