package matrix

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"
	"time"
)

// sites are those of every job.
var sites = []string{"alpha", "beta"}

// Runner runs cells.
type Runner struct {
	Bin        string // folder of the programs
	Repository string // for the examples' data
	Temp       string // private folder
	Limit      time.Duration
	Transports []Transport
}

var jobFile = template.Must(template.New("job").Funcs(template.FuncMap{
	"add":    func(a, b int) int { return a + b },
	"inside": func(block, site string) string { return strings.ReplaceAll(block, "SITE", site) },
}).Parse(`job { embedded_server {} }
limits { start = "30s" }
program {
  command = [{{range .Command}}{{printf "%q" .}}, {{end}}]
  dir     = "{{.Dir}}"
}
route "*" {
  prefer     = ["{{.Transport}}"]
  direct     = {{.Direct}}
  data_plane = ["{{.Plane}}"]
{{if .Resume}}  resume     = true
{{end}}}
{{range $i, $site := .Sites}}site "{{$site}}" {
  client = {{$i}}
  host { address = "127.0.0.{{add $i 2}}"  procs = 2 }
{{if $.Block}}  transport "{{$.Transport}}" { {{inside $.Block $site}} }
{{end}}}
{{end}}`))

// Run runs one cell.
func (r *Runner) Run(ctx context.Context, c Cell) Result {
	res := Result{Cell: c, Verdict: Unsupported}
	t, err := Find(r.Transports, c.Transport)
	if err == nil {
		if res.Reason = c.unsupported(t); res.Reason != "" {
			return res
		}
		begun := time.Now()
		err = r.run(ctx, c, t)
		res.Took = time.Since(begun)
	}
	if res.Verdict = OK; err != nil {
		res.Verdict, res.Reason = Failed, err.Error()
	}
	return res
}

func (r *Runner) run(ctx context.Context, c Cell, t Transport) error {
	dir, err := os.MkdirTemp(r.Temp, "cell-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	file, err := r.write(dir, c, t)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(r.Bin, "impi-node"), "-log-level", "debug", "-config", file)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out := &output{marked: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	struck := make(chan error, 1)
	go func() { struck <- r.strike(ctx, c, t, cmd.Process.Pid, out, dir) }()
	err = cmd.Wait()
	cancel()
	fault := <-struck
	switch {
	case fault != nil:
		return fmt.Errorf("the fault could not be brought about: %w\n%s", fault, out.tail())
	case err != nil:
		return fmt.Errorf("%w\n%s", err, out.tail())
	}
	return c.prove(out.all(), t)
}

// strike brings about the cell's fault once the program runs, and lets it end.
func (r *Runner) strike(ctx context.Context, c Cell, t Transport, pid int, out *output, dir string) error {
	if c.Fault == NoFault {
		return nil
	}
	select {
	case <-out.marked:
	case <-ctx.Done():
		return fmt.Errorf("the program was never ready")
	}
	var err error
	if c.Fault == PluginKilled {
		err = killPlugins(pid)
	} else {
		err = cut(pid, c, t)
	}
	return firstError(err, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// write makes the job file.
func (r *Runner) write(dir string, c Cell, t Transport) (string, error) {
	var b bytes.Buffer
	err := jobFile.Execute(&b, map[string]any{
		"Command": r.command(c, dir), "Dir": r.Repository,
		"Transport": t.As, "Block": strings.ReplaceAll(t.Block, "DIR", r.Temp), "Sites": sites,
		"Direct": c.Mode == Direct, "Plane": c.Plane, "Resume": c.breaks(),
	})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "job.hcl")
	return file, os.WriteFile(file, b.Bytes(), 0o600)
}

// command is the program of a cell. Those that wait for a fault go on until
// there is a file.
func (r *Runner) command(c Cell, dir string) []string {
	bin := func(name string) string { return filepath.Join(r.Bin, name) }
	switch c.Program {
	case "ring":
		return []string{bin("ring"), "-rounds", "2000"}
	case "heat2d":
		return []string{bin("heat2d"), "-verify", "-out", filepath.Join(dir, "out")}
	case "wordcount":
		return []string{bin("wordcount")}
	}
	command := []string{bin("matrix-check"), "-what", c.Program}
	if c.Fault != NoFault {
		command = append(command, "-until", filepath.Join(dir, "go"), "-mark", mark)
	}
	return command
}
