package startup

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/openimpi/impi/core/wire"
)

// TestClientDialogues runs testdata/client: what the server says, and what a
// client does about it. Commands:
//
//	client rank=N [auth=...] [hosts=2,1] [foreign] [draft] [limit=S] [xsize=N] ...
//	start   recv (messages below)   close [cause=TEXT]   tick SECONDS
//	finish  fail                    deadline             job
func TestClientDialogues(t *testing.T) {
	datadriven.Walk(t, "testdata/client", func(t *testing.T, path string) {
		x := &clientScript{}
		datadriven.RunTest(t, path, x.run)
	})
}

type clientScript struct {
	c      *Client
	now    time.Time
	hadJob bool
	erred  bool
}

func (x *clientScript) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "client":
		*x = clientScript{now: scriptStart}
		var err error
		if x.c, err = NewClient(clientConfig(t, d)); err != nil {
			return err.Error()
		}
	case "start":
		x.c.Start(scriptStart)
	case "recv":
		x.c.Receive(encode(t, d.Input), x.now)
	case "close":
		var cause error
		if d.HasArg("cause") {
			var text string
			d.ScanArgs(t, "cause", &text)
			cause = errors.New(text)
		}
		x.c.Closed(cause)
	case "tick":
		x.now = scriptStart.Add(time.Duration(intFrom(t, d.CmdArgs[0].Key)) * time.Second)
		x.c.Tick(x.now)
	case "finish":
		x.c.Finish()
	case "fail":
		x.c.Fail(errors.New("rank 1 was killed by signal 9"))
	case "deadline":
		at, ok := x.c.Deadline()
		if !ok {
			return "none"
		}
		return at.Sub(scriptStart).String()
	case "job":
		job, _ := x.c.Job()
		return describe(job)
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	return x.outcome(t)
}

func (x *clientScript) outcome(t *testing.T) string {
	out := decode(t, x.c.Output(), false)
	for i := range out {
		out[i] = "-> " + out[i]
	}
	if _, ok := x.c.Job(); ok && !x.hadJob {
		x.hadJob = true
		out = append(out, "* running")
	}
	for said := x.c.TakeLostClient(); said != nil; said = x.c.TakeLostClient() {
		out = append(out, "* goes on: "+said.Error())
	}
	if err := x.c.Err(); err != nil && !x.erred {
		x.erred = true
		out = append(out, "error: "+err.Error())
	}
	if len(out) == 0 {
		return "ok"
	}
	return strings.Join(out, "\n")
}

func clientConfig(t *testing.T, d *datadriven.TestData) ClientConfig {
	var rank int
	d.ScanArgs(t, "rank", &rank)
	hosts := []int{1}
	if d.HasArg("hosts") {
		hosts = nil
		for _, a := range d.CmdArgs {
			for _, v := range a.Vals {
				if a.Key == "hosts" {
					hosts = append(hosts, int(intFrom(t, v)))
				}
			}
		}
	}
	cfg := testClient(wire.ClientRank(rank), hosts...)
	cfg.Foreign = d.HasArg("foreign")
	if d.HasArg("draft") {
		cfg.Dialect = wire.Draft
	}
	if d.HasArg("auth") {
		var s string
		d.ScanArgs(t, "auth", &s)
		cfg.Auth = testAuth(t, s)
	}
	var xsize int
	if d.MaybeScanArgs(t, "xsize", &xsize) {
		cfg.Params.XSize = int32(xsize)
	}
	var limit int
	d.MaybeScanArgs(t, "limit", &limit)
	cfg.Limit = time.Duration(limit) * time.Second
	return cfg
}

// testClient is a client at 10.0.RANK.(1+host) port 5000+host with the given
// numbers of procs, whose pids are 100 and up on each host.
func testClient(rank wire.ClientRank, procs ...int) ClientConfig {
	cfg := ClientConfig{Rank: rank, Auth: Auth{None: true}, Params: DefaultParams()}
	for h, n := range procs {
		host := HostConfig{
			Address: wire.HostIDFrom(netip.AddrFrom4([4]byte{10, 0, byte(rank), byte(1 + h)}), wire.IPv4Compatible),
			Port:    5000 + h,
		}
		for p := range n {
			host.Procs = append(host.Procs, ProcConfig{
				ID:   wire.Proc{Host: host.Address, PID: int64(100 + p)},
				Card: fmt.Appendf(nil, "card %d.%d.%d", rank, h, p),
			})
		}
		cfg.Hosts = append(cfg.Hosts, host)
	}
	for i := range cfg.Token {
		cfg.Token[i] = byte(rank) + 1
	}
	return cfg
}

// describe returns a job as text.
func describe(j *Job) string {
	if j == nil {
		return "none"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "self=%d datalen=%d tagub=%d xsize=%d maxlinear=%d ackmark=%d hiwater=%d allown=%v token=%x\n",
		j.Self, j.DataLen, j.TagUB, j.XSize, j.MaxLinear, j.AckMark, j.HiWater, j.AllOwn, j.Token[:2])
	for _, c := range j.Clients {
		fmt.Fprintf(&b, "client %d versions=%v hosts=%d@%d procs=%d@%d own=%v\n", c.Rank, c.Versions, c.NHosts, c.FirstHost, c.NProcs, c.FirstProc, c.Own)
	}
	for i, h := range j.Hosts {
		fmt.Fprintf(&b, "host %d client=%d at=%v:%d procs=%d@%d\n", i, h.Client, h.Address, h.Port, h.NProcs, h.FirstProc)
	}
	for i, p := range j.Procs.All() {
		fmt.Fprintf(&b, "proc %d %v client=%d host=%d card=%q\n", i, p.ID, p.Client, p.Host, p.Card)
	}
	return b.String()
}
