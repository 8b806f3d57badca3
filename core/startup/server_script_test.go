package startup

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/openimpi/impi/plugins/sdk/support/unproved"
)

// TestServerDialogues runs testdata/server: what connections do, and what the
// server does about it. Commands:
//
//	server clients=N [auth=NONE|KEY|NONE+KEY] [limit=S] [connlimit=S] [there=N] [waiting=N] [goeson]
//	accept CONN [from=ADDRESS]  recv CONN (messages below)     close CONN [cause=TEXT]
//	tick SECONDS       abort                          deadline
func TestServerDialogues(t *testing.T) {
	datadriven.Walk(t, "testdata/server", func(t *testing.T, path string) {
		s := &serverScript{}
		datadriven.RunTest(t, path, s.run)
	})
}

var scriptStart = time.Unix(1_000_000_000, 0)

type serverScript struct {
	s   *Server
	now time.Time
}

func (x *serverScript) run(t *testing.T, d *datadriven.TestData) string {
	conn := func() ConnID { return ConnID(intFrom(t, d.CmdArgs[0].Key)) }
	switch d.Cmd {
	case "server":
		x.now = scriptStart
		var err error
		if x.s, err = NewServer(serverConfig(t, d), x.now); err != nil {
			return err.Error()
		}
	case "accept":
		from := fmt.Sprintf("10.0.0.%d", conn())
		d.MaybeScanArgs(t, "from", &from)
		x.s.Accept(conn(), from, unproved.From(netip.MustParseAddr(from)), x.now)
	case "recv":
		x.s.Receive(conn(), encode(t, d.Input), x.now)
	case "close":
		var cause error
		if d.HasArg("cause") {
			var text string
			d.ScanArgs(t, "cause", &text)
			cause = errors.New(text)
		}
		x.s.Closed(conn(), cause)
	case "tick":
		x.now = scriptStart.Add(time.Duration(conn()) * time.Second)
		x.s.Tick(x.now)
	case "abort":
		x.s.Abort(errors.New("the operator said so"))
	case "deadline":
		at, ok := x.s.Deadline()
		if !ok {
			return "none"
		}
		return at.Sub(scriptStart).String()
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	return x.actions(t)
}

func serverConfig(t *testing.T, d *datadriven.TestData) ServerConfig {
	cfg := ServerConfig{Auth: Auth{None: true}}
	d.ScanArgs(t, "clients", &cfg.Clients)
	if d.HasArg("auth") {
		var s string
		d.ScanArgs(t, "auth", &s)
		cfg.Auth = testAuth(t, s)
	}
	for name, to := range map[string]*time.Duration{"limit": &cfg.Limit, "connlimit": &cfg.ConnLimit} {
		if d.HasArg(name) {
			var n int
			d.ScanArgs(t, name, &n)
			*to = time.Duration(n) * time.Second
		}
	}
	cfg.SurvivesLoss = d.HasArg("goeson")
	d.MaybeScanArgs(t, "there", &cfg.WaitingThere)
	d.MaybeScanArgs(t, "waiting", &cfg.Waiting)
	return cfg
}

func testAuth(t testing.TB, s string) Auth {
	mask := authFrom(t, s)
	return Auth{None: mask.Has(0), HasKey: mask.Has(1), Key: 5678}
}

func (x *serverScript) actions(t *testing.T) string {
	var out []string
	for {
		a, ok := x.s.Next()
		switch {
		case !ok:
			if ended, err := x.s.Ended(); ended && len(out) > 0 {
				out = append(out, fmt.Sprintf("ended: %v", err))
			}
			if len(out) == 0 {
				return "ok"
			}
			return strings.Join(out, "\n")
		case a.Kind == ActEvent:
			out = append(out, "* "+a.Event.String())
		case a.Kind == ActClose && a.Reason == nil:
			out = append(out, fmt.Sprintf("%d closed", a.Conn))
		case a.Kind == ActClose:
			out = append(out, fmt.Sprintf("%d closed: %v", a.Conn, a.Reason))
		default:
			for _, line := range decode(t, a.Bytes, true) {
				out = append(out, fmt.Sprintf("%d <- %s", a.Conn, line))
			}
		}
	}
}
