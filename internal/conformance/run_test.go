package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
	"github.com/openimpi/impi/transports/tcp"
)

// The test binary is also the plugin that is judged: our tcp, with a fault.
const asFault = "IMPI_TEST_FAULT"

// asProtocols has the versions of the protocol that it says to speak.
const asProtocols = "IMPI_TEST_PROTOCOLS"

func protocols(text string) (list []int) {
	for _, w := range strings.Fields(text) {
		v, err := strconv.Atoi(w)
		if err != nil {
			panic(err)
		}
		list = append(list, v)
	}
	return list
}

func TestMain(m *testing.M) {
	if sdk.IsPlugin() {
		if fault, ok := strings.CutPrefix(os.Getenv(asFault), fabricFault); ok {
			sdk.Serve(sdk.Options{Transport: faultyFabric(fault)})
		}
		sdk.Serve(sdk.Options{Transport: &faulty{Transport: tcp.New(), fault: os.Getenv(asFault)}, Protocols: protocols(os.Getenv(asProtocols))})
	}
	os.Exit(m.Run())
}

// faulty is our tcp with a fault.
type faulty struct {
	transports.Transport
	fault string

	mu     sync.Mutex
	leaked []transports.Listener
}

func (f *faulty) Capabilities() transports.Capabilities {
	c := f.Transport.Capabilities()
	if _, wraps := connFaults[f.fault]; wraps {
		c.DataPlanes = []transports.DataPlane{transports.PlaneRing}
	}
	if p := falsePlanes[f.fault]; p != "" {
		c.DataPlanes = []transports.DataPlane{p}
	}
	return c
}

func (f *faulty) Schema() []transports.Setting {
	list := f.Transport.Schema()
	if f.fault == "schema" {
		list[0].Doc = ""
	}
	return list
}

func (f *faulty) Configure(settings map[string]any) error {
	switch f.fault {
	case "changes owners":
		file, err := os.CreateTemp("", "")
		if err != nil {
			return err
		}
		defer os.Remove(file.Name())
		defer file.Close()
		if err := file.Chown(os.Getuid(), os.Getgid()); err != nil {
			return err
		}
	case "chatty":
		fmt.Fprintln(os.Stderr, `{"@level":"info","@message":"I am being configured"}`)
	case "banner":
		fmt.Fprintln(os.Stderr, "==== acme fabric 1.0 ====\n== licensed to you ==\npanic: never\nTraceback (most recent call last):\n  it was caught")
	case "sanitizer":
		fmt.Fprintf(os.Stderr, "==%d==ERROR: AddressSanitizer: heap-use-after-free\n    #0 in dial\n", os.Getpid())
	case "level":
		fmt.Fprintln(os.Stderr, `{"severity":"info","text":"I am being configured"}`)
	}
	return f.Transport.Configure(settings)
}

func (f *faulty) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	switch f.fault {
	case "exits":
		os.Exit(3)
	case "leaks":
		for range 2 {
			_, _ = unix.Open(os.DevNull, unix.O_CLOEXEC, 0) // to be found
		}
	case "deaf":
		ctx = context.WithoutCancel(ctx)
	case "late":
		select {
		case <-ctx.Done():
		case <-time.After(hasty / 16):
		}
	case "stuck":
		if to.Address == "nonsense" {
			select {}
		}
	}
	l, err := f.Transport.Dial(ctx, to)
	if err != nil && f.fault == "untyped" {
		err = errors.New("no")
	}
	if err != nil {
		return nil, err
	}
	if of := falseDescriptors[f.fault]; of != nil {
		return detached{l.(transports.Socket), of}, nil
	}
	return f.wrap(l)
}

// onlyFD is enough for faults that are not those of a data plane.
var onlyFD = []transports.DataPlane{transports.PlaneFD}

// hasty is patience enough for faults that hang.
const hasty = 8 * time.Second

// judged runs cases on the faulty plugin.
func judged(t *testing.T, fault, pattern string, planes ...transports.DataPlane) *Report {
	t.Helper()
	if planes == nil {
		planes = onlyFD
	}
	r, err := Run(t.Context(), subject(fault), Options{Quick: true, Run: regexp.MustCompile(pattern), Planes: planes, patience: hasty})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func subject(fault string) Subject {
	return Subject{Name: "tcp", Env: []string{asFault + "=" + fault, "GORACE=atexit_sleep_ms=0"}}
}

func TestFaultsAreFound(t *testing.T) {
	rules := []struct{ fault, id, words string }{
		{"schema", "T-ABOUT-02", "has no text"},
		{"chatty", "P-LOG-01", "errors only"},
		{"level", "P-LOG-02", "how severe"},
		{"leaks", "P-LEAK-01", "descriptors"},
		{"untyped", "T-DIAL-01", "does not say what happened"},
		{"stuck", "P-CALL-11", "no answer after 5"},
		{"deaf", "P-CALL-13", "was abandoned and goes on"},
		{"stays open", "P-CALL-14", "StopListen is not answered"},
		{"close hangs", "P-CALL-14", "StopListen is not answered"},
		{"leaks listeners", "P-LEAK-03", "listeners that were closed"},
		{"wildcard", "T-ABOUT-05", "0.0.0.0"},
		{"wrong port", "T-ORDER-01", "nobody listens there"},
		{"panics", "P-LIFE-06", "panic: no such peer"},
	}
	ids := map[string]bool{}
	for _, c := range rules {
		ids[c.id] = true
	}
	sound := judged(t, "", strings.Join(slices.Sorted(maps.Keys(ids)), "|"))
	if sound.Verdict != transporttest.Pass || sound.Passed != len(ids) {
		t.Errorf("the sound plugin: %+v", sound.Results)
	}
	for _, c := range rules {
		t.Run(c.fault, func(t *testing.T) {
			r := judged(t, c.fault, c.id)
			if r.Verdict != transporttest.Fail || r.Failed != 1 {
				t.Fatalf("not found: %+v", r.Results)
			}
			if why := r.Results[0].Reason; !strings.HasPrefix(why, c.id+": ") || !strings.Contains(why, c.words) || r.Results[0].Remedy == "" {
				t.Errorf("the reason is %q, the remedy %q", why, r.Results[0].Remedy)
			}
		})
	}
}

// Each rule says what to do about its violation, and there are no others.
func TestRemedies(t *testing.T) {
	rules := map[string]bool{}
	for _, c := range Cases() {
		rules[c.ID] = true
	}
	for _, c := range transporttest.Cases() {
		rules[c.ID] = true
	}
	for id := range rules {
		if remedies[id] == "" {
			t.Errorf("%s has no remedy", id)
		}
	}
	for id := range remedies {
		if !rules[id] {
			t.Errorf("there is no rule %s", id)
		}
	}
}

// install makes a plugin file of a script before the test binary.
func install(t *testing.T, name, text string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+strings.ReplaceAll(text, "REAL", "'"+self+"'")), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFaultyProcessesAreFound(t *testing.T) {
	for _, c := range []struct{ name, file, text, id, words string }{
		{"exits in peace", "impi-transport-tcp", `[ -n "$IMPI_TRANSPORT_PLUGIN" ] || { echo hi; exit 0; }; exec REAL`, "P-START-01", "exits with status 0"},
		{"is dumb", "impi-transport-tcp", `[ -n "$IMPI_TRANSPORT_PLUGIN" ] || exit 1; exec REAL`, "P-START-01", "without a word"},
		{"has another file name", "My TCP.bin", `exec REAL`, "P-START-06", "rename it to impi-transport-tcp"},
		{"is named for another", "impi-transport-pct", `exec REAL`, "P-START-06", `looks for "pct" refuses it; rename it to impi-transport-tcp`},
		{"lives on", "impi-transport-tcp", `REAL; sleep 6`, "P-LIFE-01", "runs on"},
		{"claims versions", "impi-transport-tcp", `if [ "$PLUGIN_PROTOCOL_VERSIONS" = 98,99 ]; then echo '1|99|unix|/x|grpc|'; sleep 1; fi; exec REAL`, "P-START-05", "version 99"},
		{"prints after all", "impi-transport-tcp", `if [ "$IMPI_PLUGIN_LOG_LEVEL" = info ]; then echo hello; fi; exec REAL`, "P-START-02", "hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "lives on" {
				soak.SkipUnlessSoak(t, "the process is waited for several times")
			}
			s := Subject{Path: install(t, c.file, c.text), Env: []string{"GORACE=atexit_sleep_ms=0"}}
			r, err := Run(t.Context(), s, Options{Run: regexp.MustCompile(c.id)})
			if c.name == "prints after all" {
				if !errors.Is(err, ErrNotAPlugin) && !errors.Is(err, nil) || err != nil && !strings.Contains(err.Error(), c.words) {
					t.Fatal(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != transporttest.Fail || !strings.Contains(r.Results[0].Reason, c.words) {
				t.Errorf("%+v", r.Results)
			}
		})
	}
}

// Plugins one version older and newer keep the rules that concern it; what the older one
// has not is skipped, not failed.
func TestOtherAges(t *testing.T) {
	for protocols, skipped := range map[string]string{"": "", "1": "P-CALL-12 P-START-10", "2 3": "P-START-09", "3": "P-START-09"} {
		s := subject("")
		s.Env = append(s.Env, asProtocols+"="+protocols)
		r, err := Run(t.Context(), s, Options{Quick: true, Run: regexp.MustCompile("P-START-02|P-START-05|P-START-09|P-START-10|P-CALL-12|T-DIAL-01"), Planes: onlyFD})
		if err != nil {
			t.Fatalf("%q: %v", protocols, err)
		}
		for _, x := range r.Results {
			want := transporttest.Pass
			if strings.Contains(skipped, x.ID) {
				want = transporttest.Skip
			}
			if x.Verdict != want {
				t.Errorf("versions %q: %s is %s: %s", protocols, x.ID, x.Verdict, x.Reason)
			}
		}
		var text bytes.Buffer
		r.WriteSummary(&text)
		if got := strings.Contains(text.String(), "lacks health"); got != (protocols == "1") {
			t.Errorf("versions %q:\n%s", protocols, &text)
		}
	}
}

func TestWhatIsNoPlugin(t *testing.T) {
	for name, c := range map[string]struct {
		s     Subject
		kind  error
		words string
	}{
		"nothing there":     {Subject{Path: filepath.Join(t.TempDir(), "none")}, nil, "no program"},
		"another program":   {Subject{Path: install(t, "impi-transport-x", "echo hello")}, host.ErrNotPlugin, "hello"},
		"another name":      {Subject{Name: "tcpip", Path: install(t, "impi-transport-tcpip", "exec REAL")}, nil, `"tcp"`},
		"renamed, and ends": {Subject{Path: install(t, "My TCP.bin", "exit 7")}, host.ErrNotPlugin, "status 7"},
		"nothing to say":    {Subject{Path: install(t, "impi-transport-x", "exit 7")}, host.ErrNotPlugin, "status 7"},
		"unknown settings":  {Subject{Name: "tcp", Settings: map[string]any{"colour": "red"}}, host.ErrSettings, "colour"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Run(t.Context(), c.s, Options{Quick: true})
			if !errors.Is(err, ErrNotAPlugin) || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A run on a data plane that there is not would try nothing, and pass.
func TestUnknownPlane(t *testing.T) {
	_, err := Run(t.Context(), subject(""), Options{Quick: true, Planes: []transports.DataPlane{"fd,ring"}})
	if !errors.Is(err, ErrNotAPlugin) || !strings.Contains(err.Error(), `"fd,ring"`) {
		t.Error(err)
	}
}

// Nor is anything tried by a run of rules that there are not.
func TestUnknownRule(t *testing.T) {
	_, err := Run(t.Context(), subject(""), Options{Quick: true, Run: regexp.MustCompile("T-NOPE-01")})
	if !errors.Is(err, ErrNotAPlugin) || !strings.Contains(err.Error(), "T-NOPE-01") {
		t.Error(err)
	}
}

// Every rule of the contract holds for our own tcp, and the report says so in its
// three forms.
func TestOwnTransportIsSound(t *testing.T) {
	var last, all int
	r, err := Run(t.Context(), subject(""), Options{Quick: true, Planes: onlyFD, Progress: func(_ Result, done, of int) { last, all = done, of }})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != transporttest.Pass || !r.Correct || !r.Robust || last != all || last != len(r.Results) {
		t.Errorf("%d of %d done, %+v", last, all, r)
	}
	for _, x := range r.Results {
		if x.Verdict == transporttest.Fail {
			t.Errorf("%s %s", x.Plane, x.Reason)
		}
	}
	if len(r.Speed) == 0 || r.Speed[0].Latency() <= 0 || r.Speed[0].Throughput() <= 0 {
		t.Errorf("no speed: %+v", r.Speed)
	}
	var text bytes.Buffer
	r.WriteSummary(&text)
	for _, words := range []string{"correct  yes", "robust   yes", "a site sees", `transport "tcp" {`, "nodelay = true", "PASS: "} {
		if !strings.Contains(text.String(), words) {
			t.Errorf("%q is not in the summary:\n%s", words, &text)
		}
	}
	checkForms(t, r)
}

// checkForms reads the report as programs do.
func checkForms(t *testing.T, r *Report) {
	t.Helper()
	var text bytes.Buffer
	if err := r.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text.Bytes(), &back); err != nil || len(back.Results) != len(r.Results) || back.Site.Name != r.Site.Name {
		t.Errorf("%v: %+v", err, back)
	}
	text.Reset()
	if err := r.WriteJUnit(&text); err != nil {
		t.Fatal(err)
	}
	var suite struct {
		Tests int        `xml:"tests,attr"`
		Cases []struct{} `xml:"testcase"`
	}
	if err := xml.Unmarshal(text.Bytes(), &suite); err != nil || suite.Tests != len(r.Results) || len(suite.Cases) != suite.Tests {
		t.Errorf("%v: %d tests", err, suite.Tests)
	}
}

// What failed is in all three forms too, with its rule.
func TestReportOfFailure(t *testing.T) {
	r := judged(t, "untyped", "T-DIAL-01|P-CALL-02")
	checkForms(t, r)
	var table, junit bytes.Buffer
	r.WriteSummary(&table)
	if err := r.WriteJUnit(&junit); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"correct  NO", "violated: T-DIAL-01 (fd)", "robust   yes, 1 of 1", "FAIL: "} {
		if !strings.Contains(table.String(), words) {
			t.Errorf("%q is not in\n%s", words, &table)
		}
	}
	for form, text := range map[string]string{"table": table.String(), "JUnit": junit.String()} {
		if !strings.Contains(text, "what to do: return a *transports.Error") {
			t.Errorf("the %s has no remedy:\n%s", form, text)
		}
	}
	if !strings.Contains(junit.String(), `<failure message="dialling an address`) || !strings.Contains(junit.String(), `failures="`) {
		t.Errorf("%s", &junit)
	}
}

func TestNumbersAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if seen[c.ID] || seen[c.Name] || !strings.HasPrefix(c.ID, "P-") || c.Rule == "" || c.Kind == "" {
			t.Errorf("%+v", c)
		}
		seen[c.ID], seen[c.Name] = true, true
	}
}
