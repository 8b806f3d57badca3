package measure

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/openimpi/impi/internal/peers"
	"github.com/openimpi/impi/internal/wan/area"
)

// seconds is a time for a command line.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) }

// whole is a time for iperf3, which takes a part of a second for none.
func whole(d time.Duration) string { return strconv.Itoa(int((d + time.Second - 1) / time.Second)) }

// arguments are those of the program pair.
func (o *Options) arguments(what string) []string {
	if what == Latency {
		return []string{Latency, seconds(o.Latency)}
	}
	return []string{Stream, seconds(o.Omit), seconds(o.Time)}
}

// said is how the program pair gives its figure.
var said = regexp.MustCompile(`pair: ([0-9.e+-]+) (?:ms|Mb/s)`)

// follow starts commands and waits for a figure in what they print. Then all that runs at the sites is
// killed: what is left of a stream is of no use.
func follow(ctx context.Context, a *area.Area, figure *regexp.Regexp, commands ...*exec.Cmd) (value float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &peers.Output{}
	ended := make(chan struct{}, len(commands))
	defer func() {
		for _, s := range a.Sites {
			s.Crash()
		}
		for range commands {
			<-ended
		}
	}()
	for i, cmd := range commands {
		cmd.Stdout, cmd.Stderr = out, out
		cmd.WaitDelay = 10 * time.Second
		if err := cmd.Start(); err != nil {
			for range commands[i:] {
				ended <- struct{}{}
			}
			return 0, err
		}
		go func() {
			if cmd.Wait() != nil {
				cancel() // the others wait for it
			}
			ended <- struct{}{}
		}()
	}
	if !out.Until(ctx, func(printed string) bool { return figure.MatchString(printed) }) {
		return 0, fmt.Errorf("no figure came: %w: %s", context.Cause(ctx), strings.ReplaceAll(out.Tail(), "\n", " / "))
	}
	return strconv.ParseFloat(figure.FindStringSubmatch(out.String())[1], 64)
}

var pinged = regexp.MustCompile(`rtt min/avg/max/mdev = [0-9.]+/([0-9.]+)/`)

// ping measures round trips without MPI: the mean, as ping gives no median.
func ping(ctx context.Context, o *Options, a *area.Area, _, _ string) (float64, error) {
	n := max(5, int(o.Latency/(100*time.Millisecond)))
	cmd := a.Sites[0].Command(ctx, "ping", "-n", "-q", "-i", "0.1", "-c", strconv.Itoa(n), a.Sites[1].Address)
	return follow(ctx, a, pinged, cmd)
}

// iperf measures TCP without MPI, by a number of connections.
func iperf(streams int) contender {
	return func(ctx context.Context, o *Options, a *area.Area, _, _ string) (float64, error) {
		out := &peers.Output{}
		server := a.Sites[1].Command(ctx, "iperf3", "-s", "-1", "--forceflush")
		server.Stdout, server.Stderr = out, out
		if err := server.Start(); err != nil {
			return 0, err
		}
		defer func() {
			a.Sites[1].Crash()
			_ = server.Wait()
		}()
		if err := out.Await(ctx, "listening"); err != nil {
			return 0, fmt.Errorf("iperf3 -s: %w", err)
		}
		client := a.Sites[0].Command(ctx, "iperf3", "-J", "-c", a.Sites[1].Address, "-P", strconv.Itoa(streams),
			"-O", whole(o.Omit), "-t", whole(o.Time))
		text, err := client.Output()
		var result struct {
			Error string
			End   struct {
				Received struct {
					Rate float64 `json:"bits_per_second"`
				} `json:"sum_received"`
			}
		}
		if wrong := json.Unmarshal(text, &result); err != nil || wrong != nil {
			return 0, fmt.Errorf("iperf3: %v: %s", err, result.Error)
		}
		return result.End.Received.Rate / 1e6, nil
	}
}

var jobFile = template.Must(template.New("job").Parse(`job {
  embedded_server { listen = "{{index .Addresses 0}}:7800" }
  auth "key" { file = "{{.Dir}}/job.key" }
}
program {
  command = [{{range .Command}}{{printf "%q" .}}, {{end}}]
}
route "*" {
  prefer = ["{{.Transport}}"]
  direct = true
}
{{range $i, $address := .Addresses}}site "{{index $.Names $i}}" {
  client = {{$i}}
  hosts  = "{{$address}}"
  procs  = 1
  transport "{{$.Transport}}" {
    config {
{{if eq $.Transport "quic"}}      cert = "{{$.Dir}}/certs/{{index $.Names $i}}.pem"
      key  = "{{$.Dir}}/certs/{{index $.Names $i}}.key"
      ca   = "{{$.Dir}}/certs/ca.pem"
{{end}}{{range $.Settings}}      {{.}}
{{end}}    }
  }
}
{{end}}`))

// ours runs a job of ours, whose procs have a direct link of a transport, with settings beside those given.
func ours(transport string, settings ...string) contender {
	return func(ctx context.Context, o *Options, a *area.Area, dir, what string) (float64, error) {
		var file bytes.Buffer
		names := []string{"alpha", "beta"}
		node := filepath.Join(o.Bin, "impi-node")
		err := jobFile.Execute(&file, map[string]any{
			"Dir": dir, "Transport": transport, "Names": names, "Addresses": []string{a.Sites[0].Address, a.Sites[1].Address},
			"Settings": slices.Concat(o.Settings[transport], settings),
			"Command":  append([]string{filepath.Join(o.Bin, "wan-pair")}, o.arguments(what)...),
		})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "job.hcl"), file.Bytes(), 0o600)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "job.key"), []byte("4242\n"), 0o600)
		}
		if err != nil {
			return 0, err
		}
		if out, err := exec.CommandContext(ctx, node, "cert", "init", "-dir", filepath.Join(dir, "certs"), "-sites", strings.Join(names, ",")).CombinedOutput(); err != nil {
			return 0, fmt.Errorf("impi-node cert init: %w: %s", err, out)
		}
		var nodes []*exec.Cmd
		for i, s := range a.Sites {
			cmd := s.Command(ctx, node, "-config", filepath.Join(dir, "job.hcl"), "-site", names[i])
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir) // the usual one is another root's in a user namespace
			nodes = append(nodes, cmd)
		}
		return follow(ctx, a, said, nodes...)
	}
}

//go:embed testdata/pair.c
var source []byte

// prepare compiles the program for another MPI and writes an ssh that goes to the sites.
func prepare(ctx context.Context, a *area.Area, dir, compiler string) (program, ssh string, err error) {
	program, ssh = filepath.Join(dir, "pair"), filepath.Join(dir, "ssh")
	if err := os.WriteFile(program+".c", source, 0o600); err != nil {
		return "", "", err
	}
	if out, err := exec.CommandContext(ctx, compiler, "-O2", "-o", program, program+".c").CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("%s: %w: %s", compiler, err, out)
	}
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# Instead of ssh: [-x] address command...\nwhile :; do case $1 in -*) shift;; *) break;; esac; done\nto=$1; shift\ncase $to in\n")
	for _, s := range a.Sites {
		enter := s.Command(ctx, "sh", "-c", `"$*"`)
		fmt.Fprintf(&b, "%s) exec %s;;\n", s.Address, strings.Join(enter.Args, " "))
	}
	b.WriteString("esac\necho \"there is no site $to\" >&2\nexit 1\n")
	return program, ssh, os.WriteFile(ssh, []byte(b.String()), 0o700) //nolint:gosec // a script
}

// mpich runs Debian's, which uses UCX.
func mpich(ctx context.Context, o *Options, a *area.Area, dir, what string) (float64, error) {
	program, ssh, err := prepare(ctx, a, dir, "mpicc.mpich")
	if err != nil {
		return 0, err
	}
	args := append([]string{"-launcher", "ssh", "-launcher-exec", ssh, "-iface", area.Device(0), "-hosts", a.Sites[0].Address + "," + a.Sites[1].Address,
		"-ppn", "1", "-n", "2", program}, o.arguments(what)...)
	cmd := a.Sites[0].Command(ctx, "mpiexec.mpich", args...)
	cmd.Env = append(os.Environ(), "UCX_TLS=tcp", "UCX_NET_DEVICES="+area.Device(0))
	return follow(ctx, a, said, cmd)
}

// openMPI runs Debian's over its own TCP.
func openMPI(ctx context.Context, o *Options, a *area.Area, dir, what string) (float64, error) {
	program, ssh, err := prepare(ctx, a, dir, "mpicc.openmpi")
	if err != nil {
		return 0, err
	}
	args := append([]string{"--allow-run-as-root", "--mca", "plm_rsh_agent", ssh, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
		"--mca", "btl_tcp_if_include", area.Device(0), "--mca", "oob_tcp_if_include", area.Device(0),
		"-H", a.Sites[0].Address + ":1," + a.Sites[1].Address + ":1", "-n", "2", program}, o.arguments(what)...)
	return follow(ctx, a, said, a.Sites[0].Command(ctx, "mpirun.openmpi", args...))
}
