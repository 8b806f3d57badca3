package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/internal/cmdline/terminal"
	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/plugins/sdk/support/pki"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports/identity"
)

// rewrite changes a job file.
func rewrite(t *testing.T, path string, change ...string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.NewReplacer(change...).Replace(string(b))), 0o644); err != nil {
		t.Fatal(err)
	}
}

// reload runs impi-node reload for the job.
func (r *running) reload(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	return impiNode(t, "", append([]string{"reload", "-run-dir", r.base}, args...)...)
}

// TestReload: what can change changes, what cannot is said, and a file with a fault changes
// nothing.
func TestReload(t *testing.T) {
	path := file(t, twoSites+"log { level = \"warn\" }\nroute \"*\" { prefer = [\"unix\", \"tcp\"] }\n")
	r := startJob(t, 2, "-config", path)
	if status, out, errs := r.reload(t); status != statusOK || strings.Count(out, "says what it said before") != 2 || errs != "" {
		t.Errorf("the same file: status %d\n%s%s", status, out, errs)
	}
	rewrite(t, path, `level = "warn"`, `level = "debug"`, `start = "5m"`, "start = \"5m\"\nstop = \"7s\"", `["unix", "tcp"]`, `["tcp", "unix"]`,
		`127.0.0.3"  procs = 1`, `127.0.0.3"  procs = 8`)
	status, out, errs := r.reload(t)
	for _, want := range []string{
		"site alpha: log level: warn -> debug\n", "site beta: log level: warn -> debug\n", "site beta: limits stop: 10s -> 7s\n",
		`site alpha: routes to alpha, beta, any other site: prefer: ["unix", "tcp"] -> ["tcp", "unix"]: for new links` + "\n",
		"site beta: procs of host 127.0.0.3: 1 -> 8: needs a restart\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
	if status != statusOK || errs != "" || strings.Contains(out, "site alpha: procs") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if _, job := r.report(t); job.Pairs[0].Transport != "unix" {
		t.Errorf("a link that was there is %s", job.Pairs[0].Transport)
	}
	if _, out, _ := r.links(t, "-explain"); !strings.Contains(out, `prefer ["tcp", "unix"]`) || strings.Contains(out, `prefer ["unix", "tcp"]`) {
		t.Errorf("links -explain:\n%s", out)
	}
	if status, out, _ := r.reload(t); status != statusOK || strings.Contains(out, "log level") || !strings.Contains(out, "procs of host 127.0.0.3: 1 -> 8: needs a restart") {
		t.Errorf("again: status %d\n%s", status, out)
	}

	rewrite(t, path, `level = "debug"`, `level = "loud"`, `stop = "7s"`, `stop = "8s"`)
	status, out, errs = r.reload(t)
	if status != statusBad || out != "" || !strings.Contains(errs, "site alpha: "+path+":") || !strings.Contains(errs, `"loud"`) || !strings.Contains(errs, "site beta: nothing has changed") {
		t.Errorf("a fault: status %d\n%s%s", status, out, errs)
	}
	status, out, errs = r.reload(t, "-json")
	var got struct {
		Reloads []struct {
			Job, Site string
			Hosts     []links.FileReload
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != statusBad || len(got.Reloads) != 2 || len(got.Reloads[1].Hosts) != 1 ||
		got.Reloads[1].Hosts[0].Applied || len(got.Reloads[1].Hosts[0].Faults) != 1 {
		t.Errorf("status %d, %v\n%s%s", status, err, out, errs)
	}
	rewrite(t, path, `level = "loud"`, `level = "warn"`)
	if status, out, errs := r.reload(t); status != statusOK || !strings.Contains(out, "stop: 7s -> 8s") || !strings.Contains(out, "debug -> warn") {
		t.Errorf("corrected: status %d\n%s%s", status, out, errs)
	}
}

// TestReloadOfWhat: the command says which jobs there are, and what has no file.
func TestReloadOfWhat(t *testing.T) {
	r := startJob(t, 2, "-n", "2", this(t))
	if status, out, errs := r.reload(t); status != statusBad || out != "" || !strings.Contains(errs, "there is no job file") {
		t.Errorf("without a file: status %d\n%s%s", status, out, errs)
	}
	startProgramAt(t, r.base, "exchange", 2, "-config", file(t, twoSites))
	if status, _, errs := r.reload(t); status != statusUsage || !strings.Contains(errs, "2 jobs run here") {
		t.Errorf("two jobs: status %d\n%s", status, errs)
	}
	for args, want := range map[string]string{
		"-job another":  `no running job here is called "another"`,
		"-job job -all": "either -job or -all",
		"job":           "this command takes only flags",
	} {
		if status, out, errs := r.reload(t, strings.Fields(args)...); status == statusOK || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
	}
	if status, _, errs := impiNode(t, "", "reload", "-run-dir", filepath.Join(r.base, "none")); status != statusBad || !strings.Contains(errs, "no job of this user runs") {
		t.Errorf("nothing runs: status %d\n%s", status, errs)
	}
}

// TestHangupReloads: SIGHUP to a node, or to the launcher of nodes, without a terminal has them
// read their file again; their jobs go on.
func TestHangupReloads(t *testing.T) {
	for _, how := range []string{"service", "nohup"} {
		t.Run(how, func(t *testing.T) {
			path := file(t, twoSites+"log { level = \"info\" }\n")
			log, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			r := startProgramAs(t, func(cmd *exec.Cmd) {
				cmd.Stderr = w
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
				if how == "nohup" {
					cmd.Args = append([]string{"nohup", cmd.Path}, cmd.Args[1:]...)
					cmd.Path, _ = exec.LookPath("nohup")
					terminal.Attach(t, cmd)
				}
			}, launchtest.ShortDir(t), "exchange", 2, "-config", path)
			w.Close()
			lines := bufio.NewScanner(log)
			reload := func(want string, times int) {
				t.Helper()
				if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
				for times > 0 {
					if !lines.Scan() {
						t.Fatalf("it never said %q %d times more", want, times)
					}
					if strings.Contains(lines.Text(), want) {
						times--
					}
				}
			}
			reload("says what it said before", 2)
			rewrite(t, path, `"info"`, `"loud"`)
			reload("the job file is not taken", 2)
			rewrite(t, path, `"loud"`, `"debug"`)
			reload("reloaded: log level", 3) // of two nodes and their launcher
			rewrite(t, path, `"debug"`, `"error"`)
			reload("reloaded: log level", 3)
			rewrite(t, path, `start = "5m"`, "start = \"5m\"\nstop = \"3s\"\n")
			reload("reloaded: limits stop", 2) // of the nodes, whose logs have errors only
			go func() { _, _ = io.Copy(io.Discard, log) }()
			if _, job := r.report(t); len(job.Pairs) != 1 || job.Pairs[0].State != links.StateLinked {
				t.Errorf("%+v", job.Pairs)
			}
		})
	}
}

// TestReloadOfTheLauncher: a launcher of several sites, which runs the job's server, takes the
// level of its log and the server's certificates when its nodes do.
func TestReloadOfTheLauncher(t *testing.T) {
	before, after := pkitest.Authority(t), pkitest.Authority(t)
	certs := t.TempDir()
	renew := func(ca *pki.Authority) *identity.Identity {
		t.Helper()
		from := certificatesOn(t, ca, time.Now())
		given := make(map[string]any)
		for setting, name := range map[string]string{"cert": "site.pem", "key": "site.key", "ca": "ca.pem"} {
			b, err := os.ReadFile(filepath.Join(from, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(certs, name), b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			given[setting] = filepath.Join(from, name) // which stay as they are
		}
		id, err := identity.Load(given)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	old := renew(before)
	path := file(t, twoSites+strings.ReplaceAll(withCertificates, "${env.CERTS}", certs)+"log { level = \"info\" }\n")
	job, found := load(t.Context(), path, func(netip.Addr) bool { return true }, nil, nil, "", false)
	if job == nil || found.HasErrors() {
		t.Fatal(found)
	}
	var said bytes.Buffer
	log := hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: &said})
	nodes := []nodeSpec{{site: job.Sites[0], host: allHosts}, {site: job.Sites[1], host: allHosts}}
	s, err := newServing(job, nodes, order{}, log)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r := &relauncher{serving: s, job: job, first: "alpha", log: log}
	accepts := func(id *identity.Identity) bool { return s.server.Identity().Accepts(id) == nil }
	if !accepts(old) {
		t.Error("the server does not accept its own certificate")
	}
	fresh := renew(after)
	rewrite(t, path, `"info"`, `"debug"`)
	r.reload("beta")
	if accepts(fresh) || log.GetLevel() != hclog.Info {
		t.Errorf("another site than that of the server: level %v\n%s", log.GetLevel(), &said)
	}
	r.reload("alpha")
	if !accepts(fresh) || accepts(old) || log.GetLevel() != hclog.Debug || strings.Count(said.String(), "reloaded: ") != 2 {
		t.Errorf("level %v\n%s", log.GetLevel(), &said)
	}
	rewrite(t, path, `"debug"`, `"loud"`)
	r.reload("alpha")
	if !accepts(fresh) || log.GetLevel() != hclog.Debug || !strings.Contains(said.String(), "[ERROR] the launcher goes on as it was") {
		t.Errorf("a file with a fault: level %v\n%s", log.GetLevel(), &said)
	}
}
