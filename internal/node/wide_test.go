package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/internal/wan"
	wanrelay "github.com/openimpi/impi/internal/wan/relay"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/plugins/sdk/transports/stripe"
	"github.com/openimpi/impi/transports/quic"
	"github.com/openimpi/impi/transports/support/chaos"
	"github.com/openimpi/impi/transports/tcp"
)

// wide is chaos around tcp or quic whose listeners are reached by a wide area only: each is behind a
// relay of the plugin's process.
type wide struct {
	*chaos.Transport
	inner string // tcp or quic
	seed  uint64 // of the lines
}

func newWide(name string) *wide {
	inner := strings.TrimPrefix(name, "wide-")
	around := map[string]transports.Transport{"tcp": tcp.New(), "quic": quic.New()}[inner]
	inside := chaos.New(chaos.Options{Name: "chaos-" + inner, Around: []transports.Transport{around}})
	return &wide{Transport: inside, inner: inner}
}

// Info names the transport.
func (w *wide) Info() transports.Info {
	i := w.Transport.Info()
	i.Name = "wide-" + w.inner
	return i
}

// Configure sets the faults of the links, and the seed of the lines.
func (w *wide) Configure(s map[string]any) error {
	w.seed = uint64(s["seed"].(float64))
	return w.Transport.Configure(s)
}

// wideLines are what a link meets in one direction. Of TCP's packets, which the kernel makes on both
// sides of a relay, none is lost or late.
var wideLines = map[string]wan.Shape{
	"tcp": {Rate: 500e6, Delay: 5 * time.Millisecond, Jitter: time.Millisecond},
	"quic": {
		Rate: 500e6, Delay: 5 * time.Millisecond, Jitter: time.Millisecond, Queue: 1 << 20,
		Loss: 0.001, Duplicate: 0.001, Reorder: 0.005, ReorderDelay: 2 * time.Millisecond,
		OutageInterval: 3 * time.Second, OutageLength: 200 * time.Millisecond,
	},
}

// Listen opens a listener, and a relay to it.
func (w *wide) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	wanted := net.JoinHostPort(at.Host, strconv.Itoa(at.Port))
	at.Port = 0
	ln, err := w.Transport.Listen(ctx, at)
	if err != nil {
		return nil, err
	}
	address, streams, err := stripe.ParseAddress(ln.Address())
	var r *wanrelay.Relay
	if err == nil {
		shape := wideLines[w.inner]
		if w.inner == "quic" {
			r, err = wanrelay.UDP(wanted, address, shape, shape, w.seed)
		} else {
			r, err = wanrelay.TCP(wanted, address, shape, shape, w.seed)
		}
	}
	if err != nil {
		return nil, errors.Join(socket.Failure(w.Info().Name, "listen", wanted, err), ln.Close())
	}
	return &farListener{ln, stripe.Address(r.Address(), streams)}, nil
}

// farListener is reached by a relay, which goes on after Close for the links that were accepted.
type farListener struct {
	transports.Listener
	address string
}

func (l *farListener) Address() string { return l.address }

var perHop = regexp.MustCompile(`ring: ([0-9.]+) us per hop`)

// The links of a job are behind a wide area, which is late and, for QUIC, loses packets and is down
// from time to time; and they break as well.
func TestLinksBreakInAWideArea(t *testing.T) {
	for _, inner := range []string{"tcp", "quic"} {
		for _, d := range disturbances {
			t.Run(inner+"/"+d.name, func(t *testing.T) {
				if (inner == "tcp") != (d.name == "links cut") {
					soak.SkipUnlessSoak(t, "make test has links of tcp that are cut, and plugins of quic that are killed and reloaded")
				}
				name := "wide-" + inner
				job := exampleJob(t, "ring", []string{"-rounds", "150"}, throughPlugins(name, "ring"))
				ca := pkitest.Authority(t)
				withTransport(job, name, func(site string) map[string]any {
					settings := map[string]any{"seed": 1.0}
					if d.transport == "chaos" {
						settings["cut_bytes"] = 4e3
					}
					if inner == "quic" {
						var own []string
						for k, v := range pkitest.Site(t, site, ca, ca, nil) {
							own = append(own, fmt.Sprint(k, "=", v))
						}
						settings["settings"] = own
					}
					return settings
				})
				all := start(t, job)
				for _, r := range all {
					r.err.Await("] direct link: site", 1)
				}
				d.disturb(t, all, name)
				wantNone(t, all)
				said := all[0].out.String()
				if !strings.Contains(said, "as it must be") {
					t.Errorf("the program says %q", said)
				}
				// Two of the four hops of a round are between the sites.
				m := perHop.FindStringSubmatch(said)
				if m == nil {
					t.Fatalf("no time per hop in %q", said)
				}
				if us, _ := strconv.ParseFloat(m[1], 64); us < float64(wideLines[inner].Delay.Microseconds())/2 {
					t.Errorf("a hop took %v us: the links were not behind the lines", us)
				}
				if resumed(all) == 0 {
					t.Error("no link was resumed: nothing was shown")
				}
			})
		}
	}
}
