package pluginlock

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var sum = strings.Repeat("0a", 32)

// What is written is read again, sorted and the same each time, whatever a source looks like.
func TestLockIsStable(t *testing.T) {
	l := &Lock{Plugins: map[string]Entry{
		"zeta": {Source: "https://example.org/p", Version: "1.10.0", SHA256: map[string]string{"linux_arm64": sum, "linux_amd64": sum}},
		"ofi":  {Source: `./odd "${name}" %{x}`, Version: "1.2.3-rc.1", SHA256: map[string]string{"linux_amd64": sum}},
	}}
	path := filepath.Join(t.TempDir(), Name)
	if err := l.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil || !reflect.DeepEqual(got, l) {
		t.Errorf("%v\n%+v\n%s", err, got, l.Text())
	}
	for range 20 {
		if string(got.Text()) != string(l.Text()) {
			t.Fatal("the text differs from time to time")
		}
	}
	text := string(l.Text())
	if a, z := strings.Index(text, `"ofi"`), strings.Index(text, `"zeta"`); a < 0 || z < a || strings.Index(text, "linux_arm64") < strings.LastIndex(text, "amd64") {
		t.Errorf("not sorted:\n%s", text)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestNoLock(t *testing.T) {
	if l, err := Read(filepath.Join(t.TempDir(), Name)); err != nil || len(l.Plugins) != 0 {
		t.Error(l, err)
	}
}

func TestBadLocks(t *testing.T) {
	block := func(version, sums string) string {
		return "plugin \"x\" {\n source = \"./m\"\n version = \"" + version + "\"\n sha256 = " + sums + "\n}\n"
	}
	good := block("1.2.3", `{ linux_amd64 = "`+sum+`" }`)
	for text, want := range map[string]string{
		"plugin {":                                "Name:1: ",
		"plugin \"x\" {\n version = env.X\n}":     "Name:",
		good + good:                               `plugin "x" is there twice`,
		block("1.2", "{}"):                        `"1.2" is not a version`,
		block("../../1.2.3", "{}"):                "is not a version",
		block("1.2.3+4", "{}"):                    "is not a version",
		block("01.2.3", "{}"):                     "is not a version",
		block("1.2.3", `{ "../x" = "`+sum+`" }`):  "not a platform",
		block("1.2.3", `{ linux_amd64 = "abc" }`): "64 hex digits",
		strings.Replace(good, `"x"`, `"../x"`, 1): "not a plugin's name",
		strings.Repeat("#", maxFile+1):            "it has more than 1024 KiB",
		"a = " + strings.Repeat("[", 1000):        "nested too deep",
	} {
		path := filepath.Join(t.TempDir(), Name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want = strings.Replace(want, "Name", path, 1)
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
	}
	if _, err := Read(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
}

func TestVersions(t *testing.T) {
	for _, good := range []string{"0.0.1", "1.2.3", "1.2.3-rc.1", "10.20.30"} {
		if _, err := Version(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "v1.2.3", "1", "1.2", "1.2.3.4", "1.2.3+x", "1.2.3/..", "1.02.3", strings.Repeat("1", 80)} {
		if v, err := Version(bad); err == nil {
			t.Errorf("%q is %v", bad, v)
		}
	}
}
