package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/cmdline"
)

// fit is a machine with nothing wrong.
func fit(t *testing.T) *machine {
	t.Helper()
	m := &machine{
		proc:   t.TempDir(),
		groups: t.TempDir(),
		limit:  func(int) (soft, hard uint64, err error) { return 65536, 65536, nil },
		free:   func(string) (uint64, error) { return 1 << 40, nil },
		synced: func() (bool, error) { return true, nil },
		runDir: func() (string, error) { return "/run/user/1000/impi-1000/7", nil },
		memory: func() error { return nil },
		builtins: []config.Builtin{
			{Name: "shm", Machine: true, Memory: true}, {Name: "unix", Machine: true}, {Name: "tcp"}, {Name: "quic", NeedsBlock: true},
		},
	}
	for name, text := range map[string]string{
		"sys/kernel/osrelease": "6.1.0\n", "loadavg": "0.00 0.01 0.05 1/80 7\n", "sys/kernel/yama/ptrace_scope": "0\n",
		"meminfo":               "MemTotal:       16000000 kB\nMemFree:          100 kB\nMemAvailable:    9000000 kB\n",
		"sys/net/core/rmem_max": "8388608\n", "sys/net/core/wmem_max": "8388608\n",
	} {
		put(t, m, name, text)
	}
	return m
}

func put(t *testing.T, m *machine, name, text string) {
	t.Helper()
	path := filepath.Join(m.proc, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestFit(t *testing.T) {
	for _, c := range fit(t).checks(leastProcs) {
		if c.State != OK || c.Remedy != "" || c.Found == "" {
			t.Errorf("%+v", c)
		}
	}
	if !strings.Contains(fit(t).checks(leastProcs)[0].Found, "Linux 6.1.0") {
		t.Error("the kernel is not named")
	}
}

func TestUnfit(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*machine)
		check string
		want  State
		words string // in what was found or the remedy
	}{
		"busy":              {func(m *machine) { put(t, m, "loadavg", "99.50 1 1\n") }, "cores", Warn, "the load is 99.5"},
		"no load":           {func(m *machine) { put(t, m, "loadavg", "") }, "", OK, ""},
		"few files":         {func(m *machine) { m.limit = limited(unix.RLIMIT_NOFILE, 1024) }, "open files", Warn, "ulimit -Hn 4096"},
		"few processes":     {func(m *machine) { m.limit = limited(unix.RLIMIT_NPROC, 100) }, "processes", Warn, "ulimit -u 1024"},
		"too few files":     {func(m *machine) { m.limit = limited(unix.RLIMIT_NOFILE, 40) }, "open files", Fail, "a node of 2 procs needs about 50"},
		"too few processes": {func(m *machine) { m.limit = limited(unix.RLIMIT_NPROC, 20) }, "processes", Fail, "ulimit -u 1024"},
		"few, but for root": {func(m *machine) { m.limit, m.root = limited(unix.RLIMIT_NPROC, 20), true }, "processes", Warn, "ulimit -u 1024"},
		"no folder":         {func(m *machine) { m.runDir = func() (string, error) { return "", errors.New("read-only") } }, "run directory", Fail, "XDG_RUNTIME_DIR"},
		"full":              {func(m *machine) { m.free = func(string) (uint64, error) { return 5 << 20, nil } }, "run directory", Fail, "/run/user/1000/impi-1000 has 5.24 MB left"},
		"no memory":         {func(m *machine) { m.memory = func() error { return unix.ENOSPC } }, "shared memory", Fail, `prefer = ["unix", "tcp"]`},
		"Yama":              {func(m *machine) { put(t, m, "sys/kernel/yama/ptrace_scope", "1\n") }, "long messages within the machine", Warn, "ptrace_scope=0"},
		"small buffers":     {func(m *machine) { put(t, m, "sys/net/core/rmem_max", "212992\n") }, "QUIC", Warn, "sysctl -w net.core.rmem_max=7680000"},
		"no time":           {func(m *machine) { m.synced = func() (bool, error) { return false, nil } }, "clock", Warn, "chrony"},
		"time not known":    {func(m *machine) { m.synced = func() (bool, error) { return false, unix.EPERM } }, "clock", Warn, "not permitted"},
	} {
		m := fit(t)
		c.spoil(m)
		for _, got := range m.checks(leastProcs) {
			switch {
			case got.Name != c.check && got.State != OK:
				t.Errorf("%s: %+v", name, got)
			case got.Name == c.check && (got.State != c.want || got.Remedy == "" || !strings.Contains(got.Found+got.Remedy, c.words)):
				t.Errorf("%s: %+v, want %s with %q", name, got, c.want, c.words)
			}
		}
	}
}

// TestSharedMemory: the size and what is free are those of what limits it most.
func TestSharedMemory(t *testing.T) {
	m := fit(t)
	group := func(path, limit, used string) {
		dir := filepath.Join(m.groups, path)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "memory.max"), []byte(limit+"\n"), 0o644),
			os.WriteFile(filepath.Join(dir, "memory.current"), []byte(used+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(state State, text string) {
		t.Helper()
		if c := m.shared(); c.State != state || !strings.Contains(c.Found, text) {
			t.Errorf("%+v, want %q", c, text)
		}
	}
	want(OK, "9.22 GB free of 16.4 GB, the machine's memory (/dev/shm is not used)")
	put(t, m, "self/cgroup", "0::/a.slice/b.scope\n")
	group("a.slice/b.scope", "max", "1000")
	want(OK, "the machine's memory")
	group("a.slice", "2000000000", "1950000000")
	want(Warn, "50.0 MB free of 2.00 GB, the limit of the control group "+m.groups+"/a.slice")
	group("a.slice/b.scope", "4000000000", "1000")
	want(Warn, "a.slice")
	put(t, m, "meminfo", "")
	want(OK, "how much cannot be seen here")
}

// limited has one limit that is low.
func limited(which int, n uint64) func(int) (uint64, uint64, error) {
	return func(resource int) (soft, hard uint64, err error) {
		if resource == which {
			return n, n, nil
		}
		return 65536, 65536, nil
	}
}

func TestCommand(t *testing.T) {
	bad := fit(t)
	bad.memory = func() error { return unix.ENOSPC }
	few := fit(t)
	few.limit = limited(unix.RLIMIT_NOFILE, 100)
	with := func(procs int, found ...config.Diagnostic) Job {
		job := &config.Job{Sites: []config.Site{{Name: "alpha", Hosts: []config.Host{{Address: netip.MustParseAddr("127.0.0.1"), Procs: procs}}}}}
		if config.Diagnostics(found).HasErrors() {
			job = nil
		}
		return Job{Local: netip.Addr.IsLoopback, Load: func(string) (*config.Job, config.Diagnostics) { return job, found }}
	}
	bent := config.Diagnostic{Severity: config.Error, Pos: config.Pos{File: "job.hcl", Line: 3, Column: 5}, Problem: "no program", Remedy: "write one"}
	taken := config.Diagnostic{Severity: config.Warning, Problem: "a node listens there"}
	for _, c := range []struct {
		m      *machine
		line   string
		job    Job
		status int
		words  string
	}{
		{fit(t), "", Job{}, statusOK, "ok  software"},
		{bad, "", Job{}, statusFault, "fault  shared memory"},
		{fit(t), "a b", Job{}, cmdline.StatusUsage, "or none"},
		{fit(t), "-y", Job{}, cmdline.StatusUsage, "not defined"},
		{fit(t), "job.hcl", with(1, bent), cmdline.StatusUsage, "fault  job file  job.hcl:3:5: no program"},
		{fit(t), "job.hcl", with(1, bent), cmdline.StatusUsage, "ok  software"},
		{fit(t), "job.hcl", with(1, taken), statusOK, "warning  job file  a node listens there"},
		{fit(t), "job.hcl", with(1, taken), statusOK, "there are none with ports"},
		{fit(t), "job.hcl", with(1), statusOK, "there are none with ports"},
		{few, "job.hcl", with(2), statusOK, "warning  open files"},
		{few, "job.hcl", with(16), statusFault, "fault  open files"},
	} {
		var out, errs bytes.Buffer
		got := c.m.command(func() (Job, error) { return c.job, nil }).Execute(strings.Fields(c.line), &out, &errs)
		text := out.String() + errs.String()
		for strings.Contains(text, "   ") {
			text = strings.ReplaceAll(text, "   ", "  ")
		}
		if got != c.status || !strings.Contains(text, c.words) {
			t.Errorf("%q: status %d, want %d with %q:\n%s", c.line, got, c.status, c.words, text)
		}
	}
	var out bytes.Buffer
	var list []Check
	if s := fit(t).command(func() (Job, error) { return with(1, bent), nil }).Execute([]string{"-json", "job.hcl"}, &out, &out); s != cmdline.StatusUsage || json.Unmarshal(out.Bytes(), &list) != nil || len(list) != 10 {
		t.Errorf("a faulty file: status %d: %s", s, &out)
	}
	out.Reset()
	if s := bad.command(nil).Execute([]string{"-json"}, &out, &out); s != statusFault || json.Unmarshal(out.Bytes(), &list) != nil || len(list) != 9 {
		t.Errorf("status %d: %s", s, &out)
	}
}

// TestHere: this machine can be looked at.
func TestHere(t *testing.T) {
	for _, c := range here().checks(leastProcs) {
		if c.Found == "" || (c.State == OK) != (c.Remedy == "") {
			t.Errorf("%+v", c)
		}
	}
}
