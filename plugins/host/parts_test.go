package host

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

func TestRestartWaits(t *testing.T) {
	r := Restart{Delay: 100 * time.Millisecond, MaxDelay: 500 * time.Millisecond, Attempts: 7, Cooldown: time.Minute}
	want := []time.Duration{0, 0, 100e6, 200e6, 400e6, 500e6, 500e6, time.Minute, time.Minute}
	for failures, d := range want {
		got, open := r.wait(failures, 0)
		if got != d || open != (failures >= 7) {
			t.Errorf("%d failures: %v, %v, want %v", failures, got, open, d)
		}
	}
	if got, _ := r.wait(2, 0.5); got != 90*time.Millisecond {
		t.Errorf("with jitter: %v", got)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	outside := install(t, t.TempDir(), "x", "/bin/true")
	path := install(t, dir, "good", "/bin/true")
	os.Symlink(Prefix+"good", filepath.Join(dir, Prefix+"inside"))
	os.Symlink(outside, filepath.Join(dir, Prefix+"outside"))
	for _, name := range []string{"good", Prefix + "good"} {
		if got, err := Find(dir, name); err != nil || got != path {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if _, err := Find(dir, "inside"); err != nil {
		t.Errorf("a link inside the directory: %v", err)
	}
	if _, err := Find(dir, "outside"); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a link that leads out: %v", err)
	}
	if _, err := Find(dir, "../x"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a path as name: %v", err)
	}
	os.Chmod(dir, 0o777)
	if _, err := Find(dir, "good"); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a directory that others can write to: %v", err)
	}
	if names, err := List(dir); err != nil || !reflect.DeepEqual(names, []string{"good", "inside", "outside"}) {
		t.Errorf("List: %v, %v", names, err)
	}
	if names, err := List(dir + "/none"); err != nil || len(names) != 0 {
		t.Errorf("List of nothing: %v, %v", names, err)
	}
}

func TestDigest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	os.WriteFile(path, []byte("abc"), 0o600)
	got, err := Digest(path)
	if err != nil || got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestRunDirIsSweptAfterKill(t *testing.T) {
	base := t.TempDir()
	d, err := NewRunDir(base)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckRunDir(d.Path); err != nil {
		t.Error(err)
	}
	os.WriteFile(filepath.Join(d.Path, "socket"), nil, 0o600)
	e, err := NewRunDir(base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Path); err != nil {
		t.Errorf("a directory in use was swept: %v", err)
	}
	d.lock.Close() // as the kernel does for a process that was killed
	f, err := NewRunDir(base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a stale directory was not swept: %v", err)
	}
	for _, d := range []*RunDir{e, f} {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(d.Path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Close leaves it: %v", err)
		}
	}
}

func TestRunDirOfOthers(t *testing.T) {
	open := t.TempDir()
	os.Chmod(open, 0o755)
	link := filepath.Join(t.TempDir(), "link")
	os.Symlink(privateDir(t), link)
	for path, problem := range map[string]string{
		open: "mode 0755", link: "not a directory", open + "/none": "no such file", launchtest.Self(t): "not a directory",
	} {
		if err := CheckRunDir(path); !errors.Is(err, ErrRunDir) || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestComplete(t *testing.T) {
	schema := []transports.Setting{
		{Name: "s", Type: transports.TypeString, Required: true, Doc: "a word"},
		{Name: "n", Type: transports.TypeNumber, Default: 2.5},
		{Name: "b", Type: transports.TypeBool, Default: true},
		{Name: "l", Type: transports.TypeStrings},
	}
	got, err := Complete(schema, map[string]any{"s": "x", "n": 3, "l": []any{"a", "b"}})
	want := map[string]any{"s": "x", "n": 3.0, "b": true, "l": []string{"a", "b"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err = Complete(schema, map[string]any{"s": ""}); err != nil || len(got) != 3 {
		t.Errorf("%v, %v", got, err)
	}
	_, err = Complete(schema, map[string]any{"n": "3", "l": []any{1}, "b": 1, "zz": 1, "aa": 1})
	if !errors.Is(err, ErrSettings) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap()[1:] {
		var se *transports.SettingError
		if !errors.As(e, &se) || se.Remedy == "" {
			t.Errorf("%v is no SettingError with a remedy", e)
			continue
		}
		names = append(names, se.Name)
	}
	if !reflect.DeepEqual(names, []string{"s", "n", "b", "l", "aa", "zz"}) {
		t.Errorf("faults in %v", names)
	}
}

func TestLogLevelsOfOtherLibraries(t *testing.T) {
	for line, want := range map[string]string{
		`{"@level":"warn","@message":"m","@timestamp":"x","k":1}`:    `[WARN]  m: k=1`,
		`{"time":"x","level":"ERROR","msg":"slog","b":2,"a":1}`:      `[ERROR] slog: a=1 b=2`,
		`{"level":"info","ts":1.5,"msg":"zap"}`:                      `[INFO]  zap`,
		`{"level":"warning","message":"unknown level"}`:              `[DEBUG] {"level":"warning","message":"unknown level"}`,
		`{"@level":5,"@message":{"a":1}}`:                            `[DEBUG] {"@level":5,"@message":{"a":1}}`,
		`{"@level":"info","@message":5}`:                             `[INFO]  5`,
		`[WARN] text`:                                                `[WARN]  text`,
		`anything else`:                                              `[DEBUG] anything else`,
		`panic: oh no`:                                               `[ERROR] panic: oh no`,
		`{"@level":"info","@message":"m","@module":"x","n":{"y":1}}`: `[INFO]  m: module=x n=map[y:1]`,
	} {
		var out strings.Builder
		l := hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: &out, DisableTime: true})
		logLine(l, line, new(bool))
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("%s\nis logged as %s\nwant         %s", line, got, want)
		}
	}
}

func TestLineWriterJoinsPieces(t *testing.T) {
	var out strings.Builder
	w := &lineWriter{log: hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: &out, DisableTime: true})}
	for _, piece := range []string{"on", "e\ntw", "o\r\n", strings.Repeat("x", maxLine), "\n"} {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) < 3 || lines[0] != "[DEBUG] one" || lines[1] != "[DEBUG] two" || !strings.HasPrefix(lines[2], "[DEBUG] xxx") {
		t.Errorf("%.200q", lines)
	}
}

func TestTailIsShort(t *testing.T) {
	var said tail
	for range 100 {
		said.add(strings.Repeat("y", 10*tailWidth))
	}
	said.add("last")
	if s := said.String(); len(s) > tailLines*(tailWidth+10) || !strings.HasSuffix(s, "last") {
		t.Errorf("%d bytes", len(s))
	}
}

// A second answer to a request, and an answer to none, are refused.
func TestHandoversServeOnce(t *testing.T) {
	var d handovers
	c, err := d.expect(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.expect(1); err == nil {
		t.Error("one link is opened twice")
	}
	if d.serve(2, parcel{}) || !d.serve(1, parcel{}) || d.serve(1, parcel{}) {
		t.Error("not exactly the one that is waited for is served, once")
	}
	<-c
	d.forget(1)
	if d.serve(1, parcel{}) {
		t.Error("somebody who has left is served")
	}
}
