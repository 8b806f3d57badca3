package distribution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aead.dev/minisign"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/pluginlock"
)

var here = pluginlock.Platform()

// What is published is installed, from a folder, a web server and an OCI layout, with signature and
// lock file; a second time nothing is read.
func TestRoundTrip(t *testing.T) {
	m := newMaker(t)
	m.release("1.2.0", here, "plan9_arm")
	m.release("1.2.3", here, "plan9_arm")
	m.release("1.3.0-rc.1", here)
	m.release("2.0.0", here)
	layout := filepath.Join(t.TempDir(), "layout")
	m.publish("-oci", layout)
	for _, source := range []string{m.dir, serve(t, files(m.dir)) + "/", "oci:" + layout} {
		path := job(t, source, "~> 1.2", m.keys())
		status, out, errs := run(t, "install", "-config", path)
		if status != 0 || errs != "" || !strings.Contains(out, "ofi 1.2.3: installed, ") || !strings.Contains(out, "signed by the key "+idOf(m)) {
			t.Fatalf("%s: status %d\n%s%s", source, status, out, errs)
		}
		installed(t, path, "1.2.3")
		rewrite(t, path, "./gone", "~> 1.2", m.keys())
		if status, out, errs = run(t, "install", "-config", path); status != 0 || !strings.Contains(out, "already installed") {
			t.Errorf("%s, again: status %d\n%s%s", source, status, out, errs)
		}
	}
}

func idOf(m *maker) string { return keyID(m.key.ID()) }

// The lock file keeps a version until -upgrade, and the constraint decides which that is.
func TestUpgrade(t *testing.T) {
	m := newMaker(t)
	m.release("1.2.3", here)
	m.publish()
	path := job(t, m.dir, "~> 1.2", m.keys())
	step := func(want string, args ...string) {
		t.Helper()
		if status, out, errs := run(t, append(args, "-config", path)...); !strings.Contains(out+errs, want) || (status == 0) != (errs == "") {
			t.Errorf("%q: status %d, want %q in\n%s%s", args, status, want, out, errs)
		}
	}
	step("ofi 1.2.3: installed", "install")
	m.release("1.4.0", here)
	m.publish()
	step("ofi 1.2.3: already", "install")
	rewrite(t, path, m.dir, "~> 1.4", m.keys())
	step(`the job file wants ~> 1.4, and impi.lock.hcl has 1.2.3: add -upgrade`, "install")
	step("ofi 1.4.0 (was 1.2.3): installed", "install", "-upgrade")
	installed(t, path, "1.2.3")
	installed(t, path, "1.4.0")
	rewrite(t, path, m.dir, "> 1.4", m.keys())
	step(`meets "> 1.4"; it has 1.4.0, 1.2.3`, "install", "-upgrade")
	rewrite(t, path, m.dir, "1.2.3", m.keys())
	step("ofi 1.2.3 (was 1.4.0): installed", "install", "-upgrade")
}

// TestLock: the checksums of all platforms are those of files that were read and whose signatures
// hold.
func TestLock(t *testing.T) {
	m := newMaker(t)
	m.release("1.2.3", here, "plan9_arm", "aix_ppc64")
	m.publish()
	path := job(t, m.dir, "", m.keys())
	status, out, errs := run(t, "lock", "-platform", "plan9_arm,"+here, "-config", path)
	if status != 0 || !strings.Contains(out, "ofi 1.2.3: locked for plan9_arm, "+here) {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "plugins")); err == nil {
		t.Error("lock has installed something")
	}
	if status, out, errs = run(t, "install", "-config", path); status != 0 {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if status, out, _ = run(t, "lock", "-json", "-config", path); status != 0 {
		t.Errorf("status %d", status)
	}
	var got struct{ Plugins []Result }
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Plugins) != 1 || len(got.Plugins[0].SHA256) != 3 {
		t.Errorf("%v\n%s", err, out)
	}
	before, _ := os.ReadFile(filepath.Join(filepath.Dir(path), pluginlock.Name))
	if _, out, _ = run(t, "lock", "-config", path); !strings.Contains(out, "has all checksums already") {
		t.Error(out)
	}
	if after, _ := os.ReadFile(filepath.Join(filepath.Dir(path), pluginlock.Name)); string(before) != string(after) || len(after) == 0 {
		t.Errorf("the lock file differs\n%s\n%s", before, after)
	}
	if status, _, errs = run(t, "lock", "-platform", "linux", "-config", path); status == 0 || !strings.Contains(errs, "write it like") {
		t.Error(status, errs)
	}
	if status, _, errs = run(t, "lock", "-platform", "plan9_386", "-config", path); status == 0 || !strings.Contains(errs, "is not there for plan9_386, only for") {
		t.Error(status, errs)
	}
}

// What a source has and does not fit together is refused, and nothing of it stays.
func TestRefused(t *testing.T) {
	other := newMaker(t)
	for name, c := range map[string]struct {
		change func(m *maker, file string) // after publishing
		want   string
		block  string
	}{
		"another key":          {func(m *maker, _ string) { m.newKey() }, "it is signed by the key ", ""},
		"changed file":         {func(m *maker, file string) { m.binary("1.2.3", here, "#!/bin/sh\necho 1.2.4 "+here+"\n") }, "was expected: it was changed", ""},
		"a short file":         {func(m *maker, file string) { write(m.T, file, "#!", 0o755) }, "ended after 2 of ", ""},
		"a long file":          {func(m *maker, file string) { write(m.T, file, strings.Repeat("x", 1000), 0o755) }, "has more than the ", ""},
		"no file":              {func(m *maker, file string) { os.Remove(file) }, "no such file", ""},
		"no signature file":    {func(m *maker, file string) { os.Remove(file + signatureSuffix) }, "no such file", ""},
		"a signature of prose": {func(m *maker, file string) { write(m.T, file+signatureSuffix, "signed, yours truly", 0o644) }, "it is not a signature of minisign", ""},
		"a huge signature":     {func(m *maker, file string) { write(m.T, file+signatureSuffix, strings.Repeat("x", 9999), 0o644) }, "has more than 4096 bytes", ""},
		"another release's signature": {func(m *maker, file string) {
			m.release("1.0.0", here)
			text, _ := os.ReadFile(filepath.Join(m.dir, FileName("ofi", "1.0.0", here)+signatureSuffix))
			write(m.T, file+signatureSuffix, string(text), 0o644)
		}, "must have file:" + FileName("ofi", "1.2.3", here), ""},
		"a signature of other contents": {func(m *maker, file string) {
			text, _ := os.ReadFile(file)
			m.binary("1.2.3", here, "other")
			m.sign(file)
			write(m.T, file, string(text), 0o755)
		}, "the file or the signature was changed", ""},
		"a changed comment": {func(m *maker, file string) {
			text, _ := os.ReadFile(file + signatureSuffix)
			write(m.T, file+signatureSuffix, strings.Replace(string(text), "timestamp:17", "timestamp:18", 1), 0o644)
		}, "the file or the signature was changed", ""},
		"a signature without hashing": {func(m *maker, file string) {
			text, _ := os.ReadFile(file)
			write(m.T, file+signatureSuffix, string(minisign.SignWithComments(m.key, text, "file:"+filepath.Base(file), "x")), 0o644)
		}, "the old format of minisign", ""},
		"a file that leads out": {func(m *maker, file string) {
			os.Remove(file)
			if err := os.Symlink(filepath.Join(other.dir, "x"), file); err != nil {
				m.Fatal(err)
			}
		}, "path escapes", ""},
		"a pipe":            {func(m *maker, file string) { os.Remove(file); _ = syscall.Mkfifo(file, 0o644) }, "not a regular file", ""},
		"an index of prose": {func(m *maker, _ string) { write(m.T, filepath.Join(m.dir, IndexName), "welcome", 0o644) }, "is not an index of plugins", ""},
		"a newer index":     {func(m *maker, _ string) { write(m.T, filepath.Join(m.dir, IndexName), `{"format": 2}`, 0o644) }, "update impi-node", ""},
		"a huge index": {func(m *maker, _ string) {
			write(m.T, filepath.Join(m.dir, IndexName), strings.Repeat(" ", maxIndex+1), 0o644)
		}, "too many", ""},
		"an index with a path": {func(m *maker, file string) {
			replaceText(m.T, filepath.Join(m.dir, IndexName), `"file": "`, `"file": "../`)
		}, "is not below the folder of the index", ""},
		"another checksum in the job file": {nil, "and the job file trusts 00000", `  sha256 = "` + strings.Repeat("0", 64) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMaker(t)
			m.release("1.2.3", here)
			m.publish()
			if c.change != nil {
				c.change(m, filepath.Join(m.dir, FileName("ofi", "1.2.3", here)))
			}
			refused(t, job(t, m.dir, "1.2.3", m.keys(), c.block), c.want)
		})
	}
}

func replaceText(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), from) {
		t.Fatal(err, string(text))
	}
	write(t, path, strings.ReplaceAll(string(text), from, to), 0o644)
}

// A version that was published again with another file is not taken, though its signature holds.
func TestPublishedAgain(t *testing.T) {
	m := newMaker(t)
	m.release("1.2.3", here)
	m.publish()
	path := job(t, m.dir, "", m.keys())
	if status, _, errs := run(t, "install", "-config", path); status != 0 {
		t.Fatal(errs)
	}
	m.sign(m.binary("1.2.3", here, "another"))
	m.publish()
	if err := os.RemoveAll(filepath.Join(filepath.Dir(path), "plugins")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"install"}, {"install", "-upgrade"}, {"lock"}} {
		if status, _, errs := run(t, append(args, "-config", path)...); status != statusBad || !strings.Contains(errs, "published again with another file") {
			t.Errorf("%q: status %d\n%s", args, status, errs)
		}
	}
}

// Without keys the checksum of the job file decides, and which version that is of.
func TestChecksumInsteadOfKeys(t *testing.T) {
	m := newMaker(t)
	m.binary("1.2.3", here, "#!/bin/sh\necho 1.2.3 "+here+"\n")
	m.binary("1.2.4", here, "another")
	if status, _, errs := run(t, "publish", m.dir); status == 0 || !strings.Contains(errs, "has no signature: minisign -Sm") {
		t.Error(status, errs)
	}
	if status, _, errs := run(t, "publish", "-unsigned", m.dir); status != 0 {
		t.Fatal(errs)
	}
	sum, err := fileSum(filepath.Join(m.dir, FileName("ofi", "1.2.3", here)))
	if err != nil {
		t.Fatal(err)
	}
	path := job(t, m.dir, "~> 1.2", fmt.Sprintf("  sha256 = { %s = %q }", here, sum))
	if status, out, errs := run(t, "install", "-config", path); status != 0 || strings.Contains(out, "signed") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	installed(t, path, "1.2.3")
	refused(t, job(t, m.dir, "~> 1.2", m.keys()), "the source has no signature of it")

	url := serve(t, files(m.dir))
	refused(t, job(t, url, "~> 1.2", fmt.Sprintf("  sha256 = { plan9_arm = %q }", sum)), "its sha256 does not name "+here)
	path = job(t, url, "~> 1.2", fmt.Sprintf("  sha256 = { %s = %q }", here, sum))
	if status, out, errs := run(t, "install", "-config", path); status != 0 {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

// An installed file that was changed is replaced, and what an install that was killed has left
// goes.
func TestInstallRepairs(t *testing.T) {
	m := newMaker(t)
	m.release("1.2.3", here)
	m.publish()
	path := job(t, m.dir, "", m.keys())
	run(t, "install", "-config", path)
	binary := pluginlock.Path(filepath.Join(filepath.Dir(path), "plugins"), "ofi", "1.2.3", here)
	write(t, binary, "changed", 0o755)
	write(t, filepath.Join(filepath.Dir(binary), pluginlock.Temporary+"123"), "#!", 0o600)
	if status, out, errs := run(t, "install", "-config", path); status != 0 || !strings.Contains(out, "1.2.3: installed") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	installed(t, path, "1.2.3")
	if all, _ := os.ReadDir(filepath.Dir(binary)); len(all) != 1 {
		t.Errorf("there are %v", all)
	}
}

// Two installs at the same time wait for each other.
func TestInstallsTogether(t *testing.T) {
	m := newMaker(t)
	m.release("1.2.3", here)
	m.publish()
	path := job(t, m.dir, "", m.keys())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if status, out, errs := run(t, "install", "-config", path); status != 0 {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
		})
	}
	all.Wait()
	installed(t, path, "1.2.3")
}

// An install that is interrupted while it reads leaves nothing.
func TestInterrupted(t *testing.T) {
	m := newMaker(t)
	m.release("1.2.3", here)
	m.publish()
	ctx, cancel := context.WithCancelCause(background)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, here) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte("#!"))
			w.(http.Flusher).Flush()
			cancel(errors.New("interrupted"))
			<-r.Context().Done()
			return
		}
		files(m.dir).ServeHTTP(w, r)
	}))
	path := job(t, url, "", m.keys())
	plugins, found := config.LoadPlugins(path)
	if found != nil {
		t.Fatal(found)
	}
	in := &installer{Plugins: plugins}
	list, err := in.do(ctx, in.install)
	if err == nil || err.Error() != "interrupted" || len(list) != 1 || !strings.Contains(list[0].Error, "interrupted") {
		t.Errorf("%v, %+v", err, list)
	}
	nothing(t, path)
}

// What servers do wrong.
func TestServers(t *testing.T) {
	m := newMaker(t)
	m.release("1.2.3", here)
	m.publish()
	mirror := serve(t, files(m.dir))
	redirect := func(to func(r *http.Request) string) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to(r), http.StatusFound) }))
	}
	good := redirect(func(r *http.Request) string { return mirror + r.URL.Path })
	path := job(t, good, "", m.keys())
	if status, out, errs := run(t, "install", "-config", path); status != 0 {
		t.Errorf("redirected to https: status %d\n%s%s", status, out, errs)
	}
	plain := httptest.NewServer(files(m.dir))
	t.Cleanup(plain.Close)
	path = job(t, plain.URL, "", m.keys())
	if status, out, errs := run(t, "install", "-config", path); status != 0 {
		t.Errorf("plain http on loopback: status %d\n%s%s", status, out, errs)
	}
	for name, c := range map[string]struct{ url, want string }{
		"to http":                {redirect(func(r *http.Request) string { return plain.URL + r.URL.Path }), "which is not https"},
		"to a file":              {redirect(func(r *http.Request) string { return "file:///etc/passwd" }), "which is not https"},
		"in a circle":            {redirect(func(r *http.Request) string { return r.URL.Path }), "more than 5 redirects"},
		"no index":               {mirror + "/nowhere", "404 Not Found; source is the folder that has this file"},
		"no server":              {"https://127.0.0.1:1", "connection refused"},
		"an unknown certificate": {strings.Replace(mirror, "127.0.0.1", "localhost", 1), "certificate"},
		"an endless index": {serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for range maxIndex/1024 + 2 {
				_, _ = w.Write(make([]byte, 1024))
			}
		})), "too many"},
		"a cut download": {serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, here) {
				w.Header().Set("Content-Length", strconv.Itoa(1000))
				_, _ = w.Write([]byte("#!"))
				panic(http.ErrAbortHandler)
			}
			files(m.dir).ServeHTTP(w, r)
		})), "EOF"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, job(t, c.url, "", m.keys()), c.want) })
	}
}

// A server that says nothing any more is given up.
func TestStall(t *testing.T) {
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("{"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	from, err := newWeb(url)
	if err != nil {
		t.Fatal(err)
	}
	w := from.(*web)
	w.stall = 20 * time.Millisecond
	if _, err := w.index(background); !errors.Is(err, errStall) {
		t.Error(err)
	}
}

func TestFullDisk(t *testing.T) {
	in := &installer{Plugins: &config.Plugins{Dir: "/site/plugins"}}
	err := in.explain(fmt.Errorf("write x: %w", syscall.ENOSPC))
	if err == nil || !strings.Contains(err.Error(), "the file system of /site/plugins is full: nothing was installed; make room") {
		t.Error(err)
	}
}

func TestJobFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "has no plugin block",
		"plugin \"x\" {":                   "has faults",
		"plugin \"x\" { sorce = \"./x\" }": "did you mean \"source\"?",
	} {
		path := filepath.Join(t.TempDir(), "job.hcl")
		write(t, path, text, 0o600)
		if status, _, errs := run(t, "install", "-config", path); status == 0 || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d, %s", text, status, errs)
		}
	}
	if status, _, errs := run(t, "install", "-config", filepath.Join(t.TempDir(), "job.hcl")); status == 0 || !strings.Contains(errs, "there is no such job file") {
		t.Error(status, errs)
	}
}
