package measure

import (
	"bytes"
	"context"
	"embed"
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

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) }

// whole formats a time for iperf3, rounded up to seconds, as iperf3 drops a part of a second.
func whole(d time.Duration) string { return strconv.Itoa(int((d + time.Second - 1) / time.Second)) }

func (o *Options) arguments(what string) []string {
	if what == Latency {
		return []string{Latency, seconds(o.Latency)}
	}
	return []string{Stream, seconds(o.Omit), seconds(o.Time)}
}

var said = regexp.MustCompile(`pair: ([0-9.e+-]+) (?:ms|Mb/s)`)

func follow(ctx context.Context, a *area.Area, figure *regexp.Regexp, commands ...*exec.Cmd) (float64, error) {
	printed, err := await(ctx, a, figure, commands...)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(figure.FindStringSubmatch(printed)[1], 64)
}

// await starts commands, waits until what they print fits, and returns it. Then all that runs at
// the sites is killed: what is left of a stream is of no use.
func await(ctx context.Context, a *area.Area, figure *regexp.Regexp, commands ...*exec.Cmd) (printed string, err error) {
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
			return "", err
		}
		go func() {
			if cmd.Wait() != nil {
				cancel() // the others wait for it
			}
			ended <- struct{}{}
		}()
	}
	if !out.Until(ctx, func(printed string) bool { return figure.MatchString(printed) }) {
		return "", fmt.Errorf("no figure came: %w: %s", context.Cause(ctx), strings.ReplaceAll(out.Tail(), "\n", " / "))
	}
	return out.String(), nil
}

var pinged = regexp.MustCompile(`rtt min/avg/max/mdev = [0-9.]+/([0-9.]+)/`)

// ping measures round trips without MPI: the mean, as ping gives no median.
func ping(ctx context.Context, o *Options, a *area.Area, _, _ string) (float64, error) {
	n := max(5, int(o.Latency/(100*time.Millisecond)))
	cmd := a.Sites[0].Command(ctx, "ping", "-n", "-q", "-i", "0.1", "-c", strconv.Itoa(n), a.Sites[1].Address)
	return follow(ctx, a, pinged, cmd)
}

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
{{if .Progress}}wait { progress = "{{.Progress}}" }
{{end}}route "*" {
  prefer = ["{{.Transport}}"]
  direct = true
{{if .Compress}}  compress { {{.Compress}} }
{{end}}}
{{range $i, $address := .Addresses}}site "{{index $.Names $i}}" {
  client = {{$i}}
  hosts  = "{{$address}}"
  procs  = {{$.Procs}}
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

// ours runs a job of a pair of ours, whose procs have a direct link of a transport, with settings
// beside those given.
func ours(transport string, settings ...string) contender {
	return func(ctx context.Context, o *Options, a *area.Area, dir, what string) (float64, error) {
		command := append([]string{filepath.Join(o.Bin, "wan-pair")}, o.arguments(what)...)
		if what == Stream && o.Data != "" {
			command = append(command, o.Data)
		}
		nodes, err := o.job(ctx, a, dir, transport, settings, 1, command)
		if err != nil {
			return 0, err
		}
		return follow(ctx, a, said, nodes...)
	}
}

func (o *Options) job(ctx context.Context, a *area.Area, dir, transport string, settings []string, procs int, command []string) (nodes []*exec.Cmd, err error) {
	var names, addresses []string
	for i, s := range a.Sites {
		names, addresses = append(names, fmt.Sprintf("site%d", i+1)), append(addresses, s.Address)
	}
	var file bytes.Buffer
	node := filepath.Join(o.Bin, "impi-node")
	err = jobFile.Execute(&file, map[string]any{
		"Dir": dir, "Transport": transport, "Names": names, "Addresses": addresses, "Procs": procs,
		"Progress": o.Progress, "Compress": o.Compress, "Settings": slices.Concat(o.Settings[transport], settings), "Command": command,
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "job.hcl"), file.Bytes(), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "job.key"), []byte("4242\n"), 0o600)
	}
	if err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, node, "cert", "init", "-dir", filepath.Join(dir, "certs"), "-sites", strings.Join(names, ",")).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("impi-node cert init: %w: %s", err, out)
	}
	for i, s := range a.Sites {
		cmd := s.Command(ctx, node, "-config", filepath.Join(dir, "job.hcl"), "-site", names[i])
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir) // the usual one is another root's in a user namespace
		nodes = append(nodes, cmd)
	}
	return nodes, nil
}

//go:embed testdata
var sources embed.FS

// prepare compiles a program for another MPI and writes an ssh that goes to the sites.
func prepare(ctx context.Context, a *area.Area, dir, compiler, name string) (program, ssh string, err error) {
	program, ssh = filepath.Join(dir, name), filepath.Join(dir, "ssh")
	source, err := sources.ReadFile("testdata/" + name + ".c")
	if err == nil {
		err = os.WriteFile(program+".c", source, 0o600)
	}
	if err != nil {
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

// other returns the command that starts a program of testdata with another MPI, with some procs at
// each site.
type other func(ctx context.Context, a *area.Area, dir, name string, procs int, arguments []string) (*exec.Cmd, error)

func (start other) pair(ctx context.Context, o *Options, a *area.Area, dir, what string) (float64, error) {
	cmd, err := start(ctx, a, dir, "pair", 1, o.arguments(what))
	if err != nil {
		return 0, err
	}
	return follow(ctx, a, said, cmd)
}

// mpich is Debian's, which uses UCX.
func mpich(ctx context.Context, a *area.Area, dir, name string, procs int, arguments []string) (*exec.Cmd, error) {
	program, ssh, err := prepare(ctx, a, dir, "mpicc.mpich", name)
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, s := range a.Sites {
		hosts = append(hosts, s.Address)
	}
	args := append([]string{"-launcher", "ssh", "-launcher-exec", ssh, "-iface", area.Device(0), "-hosts", strings.Join(hosts, ","),
		"-ppn", strconv.Itoa(procs), "-n", strconv.Itoa(procs * len(hosts)), program}, arguments...)
	cmd := a.Sites[0].Command(ctx, "mpiexec.mpich", args...)
	cmd.Env = append(os.Environ(), "UCX_TLS=tcp", "UCX_NET_DEVICES="+area.Device(0))
	return cmd, nil
}

// openMPI is Debian's over its own TCP.
func openMPI(ctx context.Context, a *area.Area, dir, name string, procs int, arguments []string) (*exec.Cmd, error) {
	program, ssh, err := prepare(ctx, a, dir, "mpicc.openmpi", name)
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, s := range a.Sites {
		hosts = append(hosts, fmt.Sprintf("%s:%d", s.Address, procs))
	}
	args := append([]string{"--allow-run-as-root", "--mca", "plm_rsh_agent", ssh, "--mca", "pml", "ob1",
		"--mca", "btl", "tcp,self" + map[bool]string{true: ",vader"}[procs > 1], "--mca", "mpi_yield_when_idle", "1",
		"--mca", "btl_tcp_if_include", area.Device(0), "--mca", "oob_tcp_if_include", area.Device(0),
		"-H", strings.Join(hosts, ","), "-n", strconv.Itoa(procs * len(hosts)), program}, arguments...)
	return a.Sites[0].Command(ctx, "mpirun.openmpi", args...), nil
}
