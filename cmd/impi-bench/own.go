package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/openimpi/impi/config"
)

type own struct {
	o          *options
	node, self string
	dir        string
	inside     string // more text for the block of the only site; empty: none
}

func (o *options) newOwn(dir string) (*own, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &own{o: o, self: self, dir: dir, node: o.node}
	if w.node == "" {
		w.node = filepath.Join(filepath.Dir(self), "impi-node")
		if _, err := os.Stat(w.node); err != nil {
			if w.node, err = exec.LookPath("impi-node"); err != nil {
				return nil, fmt.Errorf("impi-node is neither beside impi-bench nor in PATH; \"make build\" puts both into bin/: %w", err)
			}
		}
	}
	return w, nil
}

func (w *own) run(ctx context.Context, bench string, sizes []int) ([]figure, error) {
	procs := w.o.procsOf(bench, sizes)
	file := filepath.Join(w.dir, "job.hcl")
	if err := os.WriteFile(file, []byte(w.job(bench, procs, sizes)), 0o600); err != nil {
		return nil, err
	}
	return timedRun(bench, exec.CommandContext(ctx, w.node, "-config", file))
}

// timedRun runs a command and returns its figures. For `start` the figure is the time of the
// command itself.
func timedRun(bench string, cmd *exec.Cmd) ([]figure, error) {
	start := time.Now()
	list, err := figures(cmd)
	if err == nil && bench == "start" {
		list[0].Seconds = time.Since(start).Seconds()
	}
	return list, err
}

// job is the job file of one run: one site with direct links, or two sites,
// whose procs talk through their agents if the path is "channel".
func (w *own) job(bench string, procs int, sizes []int) string {
	return w.jobOf(loopsOf(bench, w.o.seconds, sizes, w.self, workerWord), bench, procs)
}

// loopsOf is the command line of a program of the loops: what starts it, BENCHMARK SECONDS SIZE...
func loopsOf(bench string, seconds float64, sizes []int, start ...string) []string {
	command := append(slices.Clone(start), bench, fmt.Sprint(seconds))
	for _, s := range sizes {
		command = append(command, strconv.Itoa(s))
	}
	return command
}

// parseLoops reads BENCHMARK SECONDS SIZE...
func parseLoops(args []string) (bench string, seconds float64, sizes []int, err error) {
	seconds, err = strconv.ParseFloat(args[1], 64)
	for _, arg := range args[2:] {
		size, wrong := strconv.Atoi(arg)
		sizes, err = append(sizes, size), errors.Join(err, wrong)
	}
	return args[0], seconds, sizes, err
}

func (w *own) jobOf(command []string, bench string, procs int) string {
	if w.o.lent {
		command = append([]string{"env", lentVariable + "=1"}, command...)
	}
	quoted, err := json.Marshal(command) // a JSON list of strings is also valid HCL
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	direct := w.o.path == "direct"
	sites := 2
	if direct && bench != "start" && !w.o.twoSites() || bench == "plugins" {
		sites = 1
	}
	secure := w.o.transport
	prefer := ""
	if bench == "plugins" {
		prefer, secure = `prefer = ["`+strings.Join(pluginTransports(), `", "`)+`"]`, "quic"
	} else if w.o.transport != "auto" {
		prefer = fmt.Sprintf("prefer = [%q]", strings.TrimSuffix(w.o.transport, "+tls"))
	}
	if w.o.plane != "" {
		prefer += fmt.Sprintf("\n  data_plane = [%q]", w.o.plane)
	}
	if w.o.resume != "" {
		prefer += "\n  resume = " + w.o.resume
	}
	fmt.Fprintf(&b, "job {\n  embedded_server {}\n  survive = %v\n}\nprogram {\n  command = %s\n  prefix_output = false\n}\n", w.o.survive, quoted)
	fmt.Fprintf(&b, "route \"*\" {\n  %s\n  direct = %v\n}\nlog { level = \"warn\" }\n", prefer, direct)
	if w.o.calls {
		b.WriteString("metrics {\n  listen = \"127.0.0.1:0\"\n  calls  = true\n}\n")
	}
	if w.o.looks != "" {
		fmt.Fprintf(&b, "wait { progress = %q }\n", w.o.looks)
	}
	if w.o.timeline {
		short := config.ShortMerge
		if w.o.each {
			short = config.ShortEach
		}
		fmt.Fprintf(&b, "trace {\n  calls = %q\n  short = %q\n}\n", filepath.Join(w.dir, "calls-%r.json"), short)
	}
	b.WriteString(w.secure(secure))
	if sites == 1 {
		fmt.Fprintf(&b, "site \"bench\" {\n  client = 0\n  host {\n    address = \"127.0.0.1\"\n    procs = %d\n  }\n%s}\n", procs, w.inside)
		return b.String()
	}
	for i, n := range []int{procs / 2, procs - procs/2} {
		fmt.Fprintf(&b, "site \"bench%d\" {\n  client = %d\n  host {\n    address = \"127.0.0.%d\"\n    procs = %d\n  }\n}\n", i, i, i+2, n)
	}
	return b.String()
}

func figures(cmd *exec.Cmd) (list []figure, err error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	grouped(cmd)
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, errs.String())
	}
	lines := bufio.NewScanner(&out)
	for lines.Scan() {
		var f figure
		if json.Unmarshal(lines.Bytes(), &f) == nil && f.Iterations > 0 && f.Seconds > 0 {
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: no figures in its output:\n%s%s", strings.Join(cmd.Args, " "), out.String(), errs.String())
	}
	return list, lines.Err()
}

// grouped makes a command end together with all processes that it has started: children of
// launchers would otherwise live on and hold our pipes open.
func grouped(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
}
