package ui

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/quantity"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/status"
)

var shots = flag.String("shots", "", "write pictures of the page to this folder")

// browser is a headless Chromium with one window. It notes whom the page asks, and its errors.
type browser struct {
	t      *testing.T
	ctx    context.Context
	mu     sync.Mutex
	asked  map[string]bool // addresses
	errors []string
}

func open(t *testing.T) *browser {
	t.Helper()
	skips.Short(t)
	path := skips.ProgramOf(t, "chromium", "chromium")
	profile, err := os.MkdirTemp("", "chromium")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) }) // a child of the browser may write there still
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile), chromedp.WindowSize(1280, 900), chromedp.Flag("disable-quic", true), chromedp.WSURLReadTimeout(5*time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithBrowserOption(chromedp.WithDialTimeout(5*time.Minute))) // a busy machine
	t.Cleanup(cancel)
	window := ctx
	t.Cleanup(func() { _ = chromedp.Cancel(window) }) // waits for the browser's end
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, asked: make(map[string]bool)}
	chromedp.ListenTarget(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			b.asked[e.Request.URL] = true
		case *cdpruntime.EventExceptionThrown:
			b.errors = append(b.errors, e.ExceptionDetails.Error())
		}
	})
	b.do(network.Enable(), emulation.SetFocusEmulationEnabled(true)) // as a window that somebody uses
	return b
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// key presses keys in the page.
func (b *browser) key(keys string) { b.t.Helper(); b.do(chromedp.KeyEvent(keys)) }

// filter writes into the field to which "/" leads.
func (b *browser) filter(id, text string) {
	b.t.Helper()
	b.key("/")
	b.await(fmt.Sprintf(`document.activeElement.id === %q`, id))
	// The driver sends the character even though the page has used up the key.
	b.do(chromedp.Evaluate(`document.activeElement.value = ""`, nil), chromedp.SendKeys("#"+id, text))
}

// await waits until an expression of JavaScript is true.
func (b *browser) await(expression string) {
	b.t.Helper()
	var is bool
	if err := chromedp.Run(b.ctx, chromedp.Poll(expression, &is, chromedp.WithPollingTimeout(time.Minute))); err != nil || !is {
		var page string
		_ = chromedp.Run(b.ctx, chromedp.InnerHTML("body", &page))
		b.t.Fatalf("never so: %s: %v\n%s", expression, err, page[:min(len(page), 4000)])
	}
}

// shot takes a picture, which must show something, as dark or light as the page says that it is.
func (b *browser) shot(name string) {
	b.t.Helper()
	var picture []byte
	var theme string
	b.do(chromedp.CaptureScreenshot(&picture), chromedp.Evaluate(`document.documentElement.dataset.theme`, &theme))
	if err := shows(picture, theme); err != nil {
		b.t.Errorf("picture %s: %v", name, err)
	}
	if *shots != "" {
		if err := os.WriteFile(filepath.Join(*shots, name+".png"), picture, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
}

// check wants no error of the page, and that it has asked its own server only.
func (b *browser) check(s *Server) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.errors) > 0 {
		b.t.Errorf("errors of the page: %q", b.errors)
	}
	for url := range b.asked {
		if !strings.HasPrefix(url, "http://"+s.Address().String()+"/") && !strings.HasPrefix(url, "data:") {
			b.t.Errorf("the page has asked %s", url)
		}
	}
	if len(b.asked) < 4 {
		b.t.Errorf("the page has asked only %v", b.asked)
	}
}

const visible = `!document.getElementById("%s").hidden`

// TestPage goes through the page of a small job by keys.
func TestPage(t *testing.T) {
	var looks, over atomic.Int32
	s := serve(t, func(context.Context) []status.Job {
		switch over.Load() {
		case 1:
			return nil
		case 2:
			return large(0)
		}
		jobs := small(int(looks.Add(1)))
		if looks.Load() > 2 { // ranks 2 and 3 wait for each other from then on
			jobs[0].Deadlock = &status.Deadlock{For: time.Minute, Cycle: []int{2, 3}}
		}
		return jobs
	})
	end := make(chan struct{})
	s.endings.await = func(ctx context.Context, id string) *links.Ending { // nobody has asked yet
		select {
		case <-end:
			return &links.Ending{Site: "alpha", Failure: "rank 1 was killed" + hostile}
		case <-ctx.Done():
			return nil
		}
	}
	b := open(t)
	b.do(chromedp.Navigate(s.URL()))
	b.await(`document.querySelectorAll("#sites .site").length === 2 && document.querySelectorAll("#sites .ranks i").length === 4`)
	b.await(`location.search === ""`)
	b.await(`document.querySelector('[data-rank="3"]').className === "blocked"`)
	b.await(`document.querySelector("#sites .bad").textContent.includes("quic: failed")`)
	b.await(`document.getElementById("sum").textContent.includes("1 links by shm") && document.getElementById("sum").textContent.includes("1 pairs through agents")`)
	b.await(`document.getElementById("alarm").textContent === "Probable deadlock for 60 s: rank 2 waits for rank 3 waits for rank 2"`)
	b.await(`[...document.querySelectorAll("#between td")].some((e) => e.textContent === "through agents 1, channel tcp")`)
	b.await(`document.querySelectorAll("#topology .node").length === 3 && document.querySelectorAll("#topology .path").length === 3`)
	b.await(`document.querySelector('#topology [data-path="site 0,1"]').textContent.includes("300 B under way")`)
	b.await(`document.querySelector('#topology [data-path="site 0,1"]').classList.contains("stalled") && document.querySelector('#topology [data-path="site 0,1"]').getAttribute("aria-label").includes("stalled for ")`) // the same at each look
	b.await(`document.querySelector('#topology [data-path="server 0 1"]').textContent.includes(", goes on without it") && document.querySelector('#topology [data-path="server 0 0"]').classList.contains("linked")`)
	b.shot("small-map")
	b.do(chromedp.Focus(`#topology [data-path="site 0,1"]`))
	b.key(kb.Enter)
	b.await(fmt.Sprintf(visible, "explain") + ` && document.querySelector("#explain pre").textContent.includes("host 0 (127.0.0.2)") === false && document.querySelector("#explain pre").textContent.includes(", 300 B under way")`)
	b.key(kb.Escape)
	b.await(`document.getElementById("explain").hidden && document.activeElement.dataset.path === "site 0,1"`)
	b.do(chromedp.Focus(`#topology [data-node="server 0"]`))
	b.key(kb.Enter)
	b.await(`document.querySelector("#explain h2").textContent === "server 127.0.0.1:7800" && document.querySelector("#explain pre").textContent.includes(": it was killed")`)
	b.key(kb.Escape)

	b.do(chromedp.Click(`[data-view="matrix"]`)) // keys work after that
	b.await(fmt.Sprintf(visible, "matrix"))
	b.await(`document.getElementById("cell").textContent.startsWith("rank 0 → 1: ")`)
	b.key(kb.ArrowLeft)
	b.await(`document.getElementById("cell").textContent === "rank 0: itself"`)
	b.key(kb.Enter)
	b.await(`document.querySelector("#explain h2").textContent === "rank 0" && document.querySelector("#explain pre").textContent.includes("process 100 on host 127.0.0.2 of site alpha")`)
	b.key(kb.Escape)
	b.await(`document.getElementById("explain").hidden`)
	b.key(kb.ArrowRight)
	b.await(`document.getElementById("cell").textContent === "rank 0 → 1: 5 messages, 5.00 kB, by shm"`)
	b.key(kb.Enter)
	b.await(fmt.Sprintf(visible, "explain") + ` && document.querySelector("#explain pre").textContent.includes("the first of the route's prefer")`)
	b.shot("small-explain")
	b.await(`document.activeElement.id === "explain" && document.querySelector("#explain pre").textContent.startsWith("rank 0 → 1: 5 messages, 5.00 kB, by shm\nrank 1 → 0: 1 messages")`)
	b.await(`[...document.querySelectorAll("#partners [aria-pressed=true]")].map((e) => e.textContent).join() === "with 1"`)
	b.key(kb.Escape)
	b.await(`document.getElementById("explain").hidden && document.activeElement.id === "cells"`)
	b.do(chromedp.SetValue("#metric", "half_trip_us"), chromedp.Evaluate(`document.getElementById("metric").dispatchEvent(new Event("change"))`, nil))
	b.await(`document.getElementById("scale").textContent.includes("up to 12 µs")`)
	b.await(`document.getElementById("scale").textContent.includes("3 pairs are left out")`)

	b.key("?")
	b.await(`document.getElementById("help").open`)
	b.key("5") // not behind the dialog
	b.key("p")
	b.key(kb.Escape)
	b.await(`!document.getElementById("help").open`)
	b.await(fmt.Sprintf(visible, "matrix"))
	b.key("3")
	b.await(fmt.Sprintf(visible, "procs") + ` && document.querySelectorAll("#ranks tbody tr").length === 4`)
	b.await(`/[0-9] k?B/.test(document.querySelector('#ranks tr[data-rank="0"]').textContent)`) // each second
	b.do(chromedp.Click(`[data-sort="blocked"]`))
	b.await(`document.querySelector("#ranks tbody tr").dataset.rank === "3"`)
	b.shot("small-procs")
	b.filter("filter", "computing")
	b.await(`document.querySelectorAll("#ranks tbody tr").length === 3 && document.getElementById("shown").textContent === "3 of 4"`)
	b.filter("filter", "127.0.0.3")
	b.await(`document.getElementById("shown").textContent === "2 of 4" && document.querySelector("#ranks tbody tr").textContent.includes("127.0.0.3")`)
	b.filter("filter", " ")
	b.key(kb.Escape)

	b.key("4")
	b.await(`document.querySelectorAll("#faults tr").length === 2 && document.querySelectorAll("#time circle").length === 3`)
	b.await(`[...document.querySelectorAll("#faults td.wide")].map((e) => e.textContent.endsWith(" (2 times)")).join() === "false,true"`)
	b.shot("small-faults")
	b.key("5")
	b.await(`document.querySelectorAll("#lines div").length === 5 && document.getElementById("lines").textContent.includes(" alpha 127.0.0.2 impi-node: a direct link is lost")`)
	b.shot("small-log")
	b.filter("grep", "resumed")
	b.await(`document.querySelectorAll("#lines div").length === 1`)
	b.key(kb.Escape)
	b.await(`window.taken === undefined && document.querySelectorAll("main img, aside img").length === 0 && document.body.textContent.includes("<img src=x")`)

	for _, theme := range []string{"dark", "light"} { // as the system says, until the user chooses
		b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}))
		b.await(fmt.Sprintf(`document.documentElement.dataset.theme === %q`, theme))
	}
	var colour, theme string
	b.do(chromedp.Evaluate(`getComputedStyle(document.body).backgroundColor`, &colour), chromedp.Evaluate(`document.documentElement.dataset.theme`, &theme))
	another := fmt.Sprintf(`getComputedStyle(document.body).backgroundColor !== %q && document.documentElement.dataset.theme !== %q`, colour, theme)
	b.key("t")
	b.await(another)
	b.do(chromedp.Reload())
	b.await(another + ` && document.querySelectorAll("#sites .site").length === 2`) // it is kept
	b.key(" ")
	b.await(`document.getElementById("live").textContent === "paused"`)
	b.key(" ")
	b.key("?")
	b.await(`document.getElementById("help").open`)
	b.key(kb.Escape)

	close(end)
	const killed = "the job has ended: rank 1 was killed<img src=x"
	b.await(fmt.Sprintf(`document.getElementById("alarm").textContent.includes(%q)`, killed))
	b.key("4")
	b.await(fmt.Sprintf(`document.querySelectorAll("#faults tr").length === 3 && document.querySelector("#faults tr").textContent.includes(%q)`, killed))
	over.Store(1)
	b.await(`document.getElementById("live").textContent === "the job is over: this is what was seen last" && document.querySelectorAll("#sites .site").length === 2`)
	b.await(`document.getElementById("job").hidden`)
	b.await(fmt.Sprintf(`document.getElementById("alarm").textContent.startsWith(%q)`, killed))
	b.key("3")
	b.await(`[...document.querySelectorAll("#ranks td.wide")].every((e) => e.textContent.startsWith("was ")) && document.querySelectorAll("#ranks td i.ended").length === 4`)
	over.Store(2) // and another one has begun
	b.await(`!document.getElementById("job").hidden && [...document.querySelectorAll("#job option")].map((o) => o.textContent).join() === "heat2d abc123 (over),large def456"`)
	b.do(chromedp.Evaluate(`document.getElementById("job").value = "0"; document.getElementById("job").dispatchEvent(new Event("change"))`, nil))
	b.await(`document.getElementById("name").textContent === "large def456" && document.getElementById("job").hidden`)
	b.check(s)
	s.Close()
	b.await(`/^(nothing answers here any more|the job has ended: this is what was seen last)/.test(document.getElementById("live").textContent)`) // whether its end has been told or not
}

// TestPageOfALargeHost: 1,024 procs of one host are a field that is as wide as the page, not a
// tower of a few in each row.
func TestPageOfALargeHost(t *testing.T) {
	j := links.Job{Name: "wide", ID: "abc"}
	p := links.SiteState{Site: links.Site{Name: "local", Own: true, Procs: 1024, Hosts: []string{"127.0.0.1"}}, State: links.NodeRunning}
	for rank := range 1024 {
		p.Ranks = append(p.Ranks, links.Proc{Rank: rank, PID: 1000 + rank, State: links.ProcRunning, Counts: &links.Counts{}})
	}
	j.Sites = append(j.Sites, p)
	s := serve(t, func(context.Context) []status.Job { return []status.Job{{Job: j}} })
	b := open(t)
	b.do(chromedp.Navigate(s.URL()))
	b.await(`document.querySelectorAll("#sites .ranks i").length === 1024`)
	b.await(`document.querySelector("#sites .host").clientWidth > innerWidth / 2`)
	b.await(`document.querySelector("#sites .host").clientHeight < innerHeight`)
	b.shot("large-host")
	b.check(s)
}

// TestLargePage: a job of 1,024 ranks is shown by host.
func TestLargePage(t *testing.T) {
	s := serve(t, func(context.Context) []status.Job { return large(0) })
	b := open(t)
	b.do(chromedp.Navigate(s.URL()))
	b.await(`document.querySelectorAll("#sites .host").length === 32 && document.querySelectorAll("#sites .ranks i").length === 1024`)
	b.await(`document.querySelectorAll("#sites .host.wrong").length === 1 && document.getElementById("alarm").textContent.includes("host 10.3.0.8: it does not answer")`)
	b.await(`document.getElementById("states").textContent === "342 blocked682 running"`)
	b.await(`document.querySelectorAll("#between tr").length === 1 + 4 + 6`) // sites, and pairs of them
	b.await(`document.querySelectorAll("#topology .node").length === 1 + 4 && document.querySelectorAll("#topology .path").length === 4 + 6`)
	b.await(`[...document.querySelectorAll("#topology .path.bad")].map((e) => e.dataset.path).join() === "site 0,1,server 0 2"`)
	b.await(`document.querySelector('#topology [data-path="site 0,1"]').textContent.includes("16 of 2048 lost, being made again")`)
	b.shot("large-map")
	b.key("t")
	b.shot("large-map-other")
	b.key("t")
	b.do(chromedp.Focus(`#topology [data-path="site 0,1"]`))
	b.key(" ")
	b.await(`document.querySelector("#explain h2").textContent === "site0 – site1" && document.querySelectorAll("#partners button").length === 8 && document.querySelector("#partners button").textContent === "hosts 0 and 10: 2 of 32 lost, being made again"`)
	b.shot("large-path")
	b.key(kb.Escape)
	b.await(`document.getElementById("explain").hidden && document.getElementById("live").textContent !== "paused"`)
	var texts, want []string
	numbers := []float64{0, 7, 999.4, 999.6, 1234, 9994, 9996, 99960, 999500, 6.3e9, 5e12}
	for _, x := range numbers {
		want = append(want, quantity.Text(x, "B"))
	}
	list, err := json.Marshal(numbers)
	if err != nil {
		t.Fatal(err)
	}
	if b.do(chromedp.Evaluate(string(list)+`.map((x) => amount(x, "B"))`, &texts)); !slices.Equal(texts, want) {
		t.Errorf("the page writes %q, the commands %q", texts, want)
	}
	b.key("2")
	b.key(kb.ArrowDown)
	b.key(kb.ArrowLeft)
	b.await(`document.getElementById("cell").textContent === "host 1 → 0: 1 messages, 2.00 kB, 32 pairs of procs"`)
	b.await(`document.getElementById("scale").textContent.includes("hosts") && document.getElementById("scale").textContent.includes("up to 992 kB")`)
	b.shot("large-matrix-a")
	b.key(kb.Enter)
	const panel = `document.querySelector("#explain h2").textContent === %q && document.querySelector("#explain pre").textContent.includes(%q)`
	b.await(fmt.Sprintf(panel, "hosts 1 and 0", "channel of host 1 > 0: linked by tcp, data plane fd, 2 resumes"))
	b.await(fmt.Sprintf(panel, "hosts 1 and 0", "host 1 → 0: 1 messages, 2.00 kB, 32 pairs of procs") + ` && document.querySelectorAll("#partners button").length === 1`)
	b.await(fmt.Sprintf(panel, "hosts 1 and 0", "host 1: 10.0.0.2 of site site0"))
	b.shot("large-explain")
	b.key(kb.Tab + kb.Tab)
	b.await(`document.activeElement.textContent === "ranks 0 and 32"`)
	b.key(kb.Enter)
	b.await(fmt.Sprintf(panel, "ranks 0 and 32", "tcp: the first of the route's prefer"))
	b.key(kb.Escape)
	b.await(`document.getElementById("explain").hidden`)
	b.key("1")
	b.do(chromedp.Click(`#sites .host:nth-child(2) .name`))
	b.await(fmt.Sprintf(panel, "host 1", "rank 33, process 1033: in MPI_Barrier") + ` && document.querySelectorAll("#partners button").length === 32`)
	b.do(chromedp.Click(`#partners button:nth-child(6)`))
	b.await(fmt.Sprintf(panel, "hosts 1 and 5", "Nothing is known of single pairs"))
	b.key(kb.Escape)
	b.key("2")
	b.key("t")
	b.shot("large-matrix-b")
	b.key("3")
	b.await(`document.getElementById("shown").textContent.startsWith("500 of 1024")`)
	b.filter("filter", "host 31")
	b.await(`document.getElementById("shown").textContent === "32 of 1024"`)
	b.shot("large-procs")
	b.key(kb.Enter)
	b.await(fmt.Sprintf(panel, "rank 992", "process 1992 on host 10.3.0.8 of site site3"))
	b.check(s)
}

// TestPageOfLosses: a site and procs without which a job goes on are shown as lost, also when the
// job is over.
func TestPageOfLosses(t *testing.T) {
	var over atomic.Bool
	s := serve(t, func(context.Context) []status.Job {
		if over.Load() {
			return nil
		}
		return withLosses(small(0), time.Now())
	})
	b := open(t)
	b.do(chromedp.Navigate(s.URL()))
	b.await(`document.querySelectorAll("#sites .ranks i.lost").length === 2 && document.querySelectorAll("#sites .host.wrong").length === 1`)
	b.await(`/ is lost since [0-9:]+, [0-9]+ s ago: its channel ended$/.test(document.getElementById("alarm").textContent)`)
	b.await(`[...document.querySelectorAll("#states span")].some((e) => e.textContent === "2 lost")`)
	b.shot("losses-map")
	b.key("3")
	b.await(`[...document.querySelectorAll("#ranks tbody tr")].filter((e) => / ago, with the node of its site$/.test(e.textContent)).length === 2`)
	over.Store(true)
	b.await(`document.getElementById("live").textContent.startsWith("the job is over") && document.querySelectorAll("#ranks i.lost").length === 2 && document.querySelectorAll("#ranks i.ended").length === 2`)
	b.check(s)
}

// TestNoToken: a browser without the token is told what to do.
func TestNoToken(t *testing.T) {
	s := serve(t, func(context.Context) []status.Job { return small(0) })
	b := open(t)
	b.do(chromedp.Navigate("http://" + s.Address().String() + "/"))
	b.await(`document.body.textContent.includes("open the address that impi-node ui prints")`)
}
