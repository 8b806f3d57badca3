package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Each way in which a start fails has its own error, with a remedy.
func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	other := install(t, dir, "other", launchtest.Self(t))
	garbage := filepath.Join(dir, "impi-transport-garbage")
	if err := os.WriteFile(garbage, []byte("\x7fELF of some other machine"), 0o755); err != nil {
		t.Fatal(err)
	}
	loose := script(t, dir, "loose", "#!/bin/sh\n")
	os.Chmod(loose, 0o777)
	plain := script(t, dir, "plain", "#!/bin/sh\n")
	os.Chmod(plain, 0o644)
	cases := []struct {
		name string
		cfg  Config
		kind error
		says []string
	}{
		{"no name", Config{Builtin: true}, ErrConfig, []string{"lower-case"}},
		{"path and builtin", Config{Name: "tcp", Builtin: true, Path: other}, ErrConfig, []string{"exactly one of"}},
		{"data plane", Config{Name: "tcp", Builtin: true, DataPlanes: []transports.DataPlane{"rings"}}, ErrConfig, []string{`"rings"`, `"fd"`}},
		{"digest", Config{Name: "tcp", Builtin: true, SHA256: "12"}, ErrConfig, []string{"64 hexadecimal digits"}},
		{"not there", Config{Name: "tcp", Path: dir + "/impi-transport-tcp"}, ErrNotFound, []string{"no such file", "plugin_dir"}},
		{"no such directory", Config{Name: "tcp", Path: "/nonexistent/impi-transport-tcp"}, ErrNotFound, []string{"no such file"}},
		{"a directory", Config{Name: "tcp", Path: filepath.Dir(dir) + "/" + filepath.Base(dir)}, ErrUnsafe, []string{"not a regular file"}},
		{"writable", Config{Name: "loose", Path: loose}, ErrUnsafe, []string{"writable by group or others", "chmod go-w"}},
		{"not executable", Config{Name: "plain", Path: plain}, ErrUnsafe, []string{"not executable", "chmod +x"}},
		{"checksum", Config{Name: "tcp", Builtin: true, SHA256: strings.Repeat("ab", 32)}, ErrChecksum, []string{strings.Repeat("ab", 32), "reinstall"}},
		{"another machine's", Config{Name: "garbage", Path: garbage}, ErrExec, []string{"no program for this machine"}},
		{"no interpreter", Config{Name: "x", Path: script(t, dir, "x", "#!/nonexistent/sh\n")}, ErrExec, []string{"interpreter"}},
		{"not a plugin", Config{Name: "true", Path: install(t, dir, "true", "/bin/true")}, ErrNotPlugin, []string{"exited with status 0 without a handshake", "by hand"}},
		{"prints something", Config{Name: "echo", Path: script(t, dir, "echo", "#!/bin/sh\necho usage: foo\n")}, ErrNotPlugin, []string{`"usage: foo" instead of a handshake`}},
		{"dies", Config{Name: "tcp", Builtin: true, Env: []string{envMode + "=exit"}}, ErrNotPlugin, []string{"exited with status 3", "the licence has expired"}},
		{"killed", Config{Name: "kill", Path: script(t, dir, "kill", "#!/bin/sh\nkill -11 $$\n")}, ErrNotPlugin, []string{"killed by signal 11"}},
		{"wrong cookie", Config{Name: "tcp", Builtin: true, Env: []string{envMode + "=othercookie"}}, ErrNotPlugin, []string{"plugin of another program", "cookie"}},
		{"wrong version", Config{Name: "tcp", Builtin: true, Env: []string{envMode + "=otherversion"}}, ErrVersion, []string{"version 99", "this node 1 and 2", "update impi-node"}},
		{"next version only", Config{Name: "other", Path: other, Env: []string{envMode + "=newerversion"}}, ErrVersion, []string{"version 3", "this node 1 and 2", "update impi-node"}},
		{"version after next", Config{Name: "tcp", Builtin: true, Env: []string{envMode + "=protocols 4"}}, ErrVersion, []string{"version 4", "this node 1 and 2", "update impi-node"}},
		{"version before all", Config{Name: "old", Path: script(t, dir, "old", "#!/bin/sh\necho '1|0|unix|/x|grpc|'\nexec sleep 100\n")}, ErrVersion, []string{"version 0", "this node 1 and 2", "too old", "rebuild it"}},
		{"no version", Config{Name: "odd", Path: script(t, dir, "odd", "#!/bin/sh\necho '1|x|unix|/x|grpc|'\nexec sleep 100\n")}, ErrVersion, []string{`version "x"`}},
		{"old go-plugin", Config{Name: "shake", Path: script(t, dir, "shake", "#!/bin/sh\necho '2|1|unix|/x|grpc|'\nexec sleep 100\n")}, ErrVersion, []string{"go-plugin's handshake"}},
		{"net/rpc", Config{Name: "rpc", Path: script(t, dir, "rpc", "#!/bin/sh\necho '1|1|unix|/x|netrpc|'\nexec sleep 100\n")}, ErrVersion, []string{"gRPC"}},
		{"no mTLS", Config{Name: "other", Path: other, Env: []string{envMode + "=nomtls"}}, ErrMTLS, []string{"PLUGIN_CLIENT_CERT"}},
		{"another transport", Config{Name: "other", Path: other, Env: []string{envMode + "="}}, ErrName, []string{`"tcp"`, `"other"`}},
		{"mute", Config{Name: "tcp", Builtin: true, NoMTLS: true, Env: []string{envMode + "=mute"}, StartTimeout: 3 * time.Second}, ErrHung, []string{"no answer to Info, the control connection is"}},
		{"unwell", Config{Name: "tcp", Builtin: true, Env: []string{envMode + "=unwell"}, StartTimeout: 3 * time.Second}, ErrHung, []string{"transport plugin tcp", "no answer to Health, the control connection is READY"}},
		{"silent", Config{Name: "silent", Path: script(t, dir, "silent", "#!/bin/sh\nexec sleep 100\n"), StartTimeout: 1}, ErrHung, []string{"no handshake within"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := Start(soon(t), c.cfg)
			if err == nil {
				p.Close()
				t.Fatal("no error")
			}
			if !errors.Is(err, c.kind) {
				t.Errorf("the kind is not %q", c.kind)
			}
			var e *Error
			if !errors.As(err, &e) || e.Remedy == "" {
				t.Errorf("no remedy")
			}
			for _, word := range c.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("does not say %q", word)
				}
			}
			if t.Failed() {
				t.Log(err)
			}
		})
	}
}

// A script is run from the verified file too.
func TestScriptIsVerified(t *testing.T) {
	path := script(t, t.TempDir(), "script", "#!/bin/sh\necho I am $0\n")
	sum, err := Digest(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Start(soon(t), Config{Name: "script", Path: path, SHA256: sum})
	if !errors.Is(err, ErrNotPlugin) || !strings.Contains(err.Error(), "I am /proc/self/fd/4") {
		t.Errorf("got %v", err)
	}
}

// A plugin in a file of its own, pinned by its checksum.
func TestStartFromFile(t *testing.T) {
	dir := t.TempDir()
	install(t, dir, "tcp", launchtest.Self(t))
	path, err := Find(dir, "tcp")
	if err != nil {
		t.Fatal(err)
	}
	w := builtin("tcp", "")
	w.Builtin, w.Path, w.NoMTLS = false, path, false
	if w.SHA256, err = Digest(path); err != nil {
		t.Fatal(err)
	}
	p := w.start(t)
	if s := p.Status(); s.Path != path || s.Digest != w.SHA256 {
		t.Errorf("status %+v", s)
	}
	a, b := pair(t, p, listen(t, p))
	exchange(t, a, b)
}

func TestStartWithoutMTLS(t *testing.T) {
	w := builtin("tcp", "nomtls")
	p := w.start(t)
	a, b := pair(t, p, listen(t, p))
	exchange(t, a, b)
}

func TestStartIsGivenUp(t *testing.T) {
	path := script(t, t.TempDir(), "silent", "#!/bin/sh\nexec sleep 100\n")
	ctx, cancel := context.WithCancel(context.Background())
	w := builtin("silent", "")
	w.Builtin, w.Path = false, path
	w.OnStatus = func(s Status) {
		if s.State == StateStarting {
			cancel()
		}
	}
	_, err := Start(ctx, w.Config)
	if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("got %v", err)
	}
}

func TestSettingsReachThePlugin(t *testing.T) {
	w := builtin("tcp", "settings")
	w.Settings = map[string]any{"path": "x"}
	w.start(t) // the plugin checks it
}

func TestSettingsOfPluginAreRefused(t *testing.T) {
	w := builtin("tcp", "settings")
	w.Settings = map[string]any{"path": "bad"}
	_, err := Start(soon(t), w.Config)
	var se *transports.SettingError
	if !errors.Is(err, ErrSettings) || !errors.As(err, &se) || *se != (transports.SettingError{Name: "path", Problem: "is bad", Remedy: "make it good"}) {
		t.Errorf("got %v", err)
	}
}

func TestDeferConfigure(t *testing.T) {
	w := builtin("tcp", "settings")
	w.DeferConfigure = true
	p := w.start(t) // though path is required
	if n := len(p.Transport().Schema()); n != 4 {
		t.Errorf("%d settings", n)
	}
	if err := p.Transport().Configure(nil); !errors.Is(err, ErrSettings) {
		t.Errorf("without path: %v", err)
	}
	if err := p.Transport().Configure(map[string]any{"path": "x"}); err != nil {
		t.Error(err)
	}
}
