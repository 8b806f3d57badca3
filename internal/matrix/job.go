package matrix

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/peers"
)

var sites = []string{"alpha", "beta"}

// Runner runs cells.
type Runner struct {
	Bin        string // folder of the programs
	Repository string // for the examples' data
	Temp       string // a private folder
	Limit      time.Duration
	Transports []Transport
}

var jobFile = template.Must(template.New("job").Funcs(template.FuncMap{
	"add":    func(a, b int) int { return a + b },
	"inside": func(block, site string) string { return strings.ReplaceAll(block, "SITE", site) },
	"list":   func(names []string) string { return `["` + strings.Join(names, `", "`) + `"]` },
}).Parse(`{{if .Hosts}}job {
  embedded_server { listen = "{{.Server}}" }
  auth "key" { file = "job.key" }
}
{{else}}job { embedded_server {} }
{{end}}limits { start = "30s" }
program {
  command = [{{range .Command}}{{printf "%q" .}}, {{end}}]
  dir     = "{{.Dir}}"
}
route "*" {
  prefer     = {{list .Prefer}}
  direct     = {{.Direct}}
  data_plane = {{list .Planes}}
{{if .Resume}}  resume     = true
{{end}}}
{{range $i, $site := .Sites}}site "{{$site}}" {
  client = {{$i}}
{{if $.Hosts}}  hosts = "{{index $.Hosts $i}}"
  procs = {{$.Procs}}
{{else}}  host { address = "127.0.0.{{add $i 2}}"  procs = {{$.Procs}} }
{{end}}{{if $.Block}}  transport "{{$.Transport}}" { {{inside $.Block $site}} }
{{end}}{{if $.Natives}}  {{inside (index $.Natives $i) $site}}
{{end}}}
{{end}}`))

// Run runs the job of one cell, and judges it. A cell that cannot be run here is Unsupported.
func (r *Runner) Run(ctx context.Context, c Cell) Result {
	res := Result{Cell: c, Verdict: Unsupported}
	t, err := Find(r.Transports, c.Transport)
	if err == nil {
		if res.Reason = t.Missing; res.Reason == "" && c.Fault == LinkCut {
			res.Reason = t.NoCut
		}
		if res.Reason != "" {
			return res
		}
		begun := time.Now()
		err = r.run(ctx, c, t)
		res.Took = time.Since(begun)
	}
	switch {
	case err != nil:
		res.Verdict, res.Reason = Failed, err.Error()
	case c.final() != "":
		res.Verdict, res.Reason = Ended, c.final()
	default:
		res.Verdict = OK
	}
	return res
}

// lengths are the factors by which a program is made to run longer, one after the other,
// until it outlasts its fault.
var lengths = []int{1, 4, 16, 64}

func (r *Runner) run(ctx context.Context, c Cell, t Transport) (err error) {
	for _, length := range lengths {
		if err = r.try(ctx, c, t, length); !errors.Is(err, errTooShort) {
			break
		}
	}
	return err
}

func (r *Runner) try(ctx context.Context, c Cell, t Transport, length int) error {
	dir, err := os.MkdirTemp(r.Temp, "cell-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	file, err := r.write(dir, c, t, length)
	if err != nil {
		return err
	}
	node, args := filepath.Join(r.Bin, "impi-node"), []string{"-log-level", "debug", "-config", file}
	cmd := exec.CommandContext(ctx, node, args...)
	if c.onMachines() {
		list, remove, err := newMachines(c)
		if err != nil {
			return err
		}
		defer remove()
		cmd = netns.CommandOnEach(ctx, list, node, func(i int) []string {
			return append(slices.Clone(args), "-site", sites[i*len(sites)/len(list)])
		})
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out := &peers.Output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	struck := make(chan blow, 1)
	go func() { struck <- r.strike(ctx, c, t, cmd.Process.Pid, out, dir) }()
	err = cmd.Wait()
	cancel()
	fault := <-struck
	switch {
	case c.final() != "":
		if err = c.ended(out.String(), fault, err); err != nil {
			return fmt.Errorf("%w\n%s", err, out.Tail())
		}
		return nil
	case err != nil:
		return fmt.Errorf("%w\n%s", err, out.Tail())
	case errors.Is(fault.err, errNothing):
		return fmt.Errorf("%w: %w", errTooShort, fault.err)
	case fault.err != nil:
		return fmt.Errorf("the fault could not be brought about: %w\n%s", fault.err, out.Tail())
	}
	return cmp.Or(c.prove(out.String(), t), c.outlasted(out.String(), fault))
}

func (r *Runner) write(dir string, c Cell, t Transport, length int) (string, error) {
	var b bytes.Buffer
	var prefer, planes []string
	for _, k := range c.kinds(t) {
		prefer, planes = append(prefer, k.transport), append(planes, k.plane)
	}
	err := jobFile.Execute(&b, map[string]any{
		"Command": r.command(c, dir, length), "Dir": r.Repository,
		"Transport": t.ConfigName, "Block": strings.ReplaceAll(t.Block, "DIR", r.Temp), "Sites": sites,
		"Prefer": slices.Compact(prefer), "Planes": slices.Compact(planes), "Procs": procsPerMachine,
		"Direct": !c.byAgents(), "Resume": c.breaks(), "Hosts": c.hosts(), "Server": fmt.Sprint(c.serverHost(), ":", serverPort), "Natives": t.Natives,
	})
	if err == nil && c.onMachines() {
		err = os.WriteFile(filepath.Join(dir, "job.key"), []byte("4242\n"), 0o600)
	}
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "job.hcl")
	return file, os.WriteFile(file, b.Bytes(), 0o600)
}

const mark = "matrix: at work"

// workload says how much a program does: without a fault, with one that breaks its links and so
// stops it for a while, and with one that it has to outlast at its own speed.
type workload struct{ whole, broken, unbroken int }

var workloads = map[string]workload{
	"ring":      {2000, 3000, 16000}, // rounds
	"heat2d":    {5000, 1000, 3000},  // steps
	"wordcount": {1, 20, 60},         // times
}

func (w workload) amount(c Cell, length int) int {
	switch {
	case c.Mode == DirectWide && c.Program != "wordcount": // each step takes a round trip or two
		w.whole, w.broken, w.unbroken = w.whole/20, w.broken/20, w.unbroken/20
	case c.onMachines():
		// Three times as many procs wait for each other, and on each machine two procs behave as if
		// they had all cores.
		w.whole = max(1, w.whole/5)
		if c.Program == "ring" {
			w.broken, w.unbroken = w.broken/4, w.unbroken/8
		}
	}
	switch {
	case c.Fault == NoFault:
		return w.whole
	case c.breaks():
		return w.broken * length
	}
	return w.unbroken * length
}

// command returns the program of a cell. Programs that wait for a fault run until a file
// exists; the others do as much as length says.
func (r *Runner) command(c Cell, dir string, length int) []string {
	n := workloads[c.Program].amount(c, length)
	command := []string{filepath.Join(r.Bin, c.Program)}
	add := func(args ...string) { command = append(command, args...) }
	switch c.Program {
	case "ring":
		add("-rounds", strconv.Itoa(n), "-progress", strconv.Itoa(n/20))
	case "heat2d":
		add("-verify", "-out", filepath.Join(dir, "out"), "-steps", strconv.Itoa(n))
		if c.Fault != NoFault {
			add("-tolerance", "-1") // it must not stop early
		}
	case "wordcount":
		add("-repeat", strconv.Itoa(n), "-progress", strconv.Itoa(max(1, n/20)))
	default:
		command = []string{filepath.Join(r.Bin, "matrix-check"), "-what", c.Program}
		if c.Fault != NoFault {
			add("-until", filepath.Join(dir, "go"), "-mark", mark)
		}
	}
	return command
}
