package ctest

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/openimpi/impi/internal/skips"
)

// viewed is what Chromium's own viewer, the performance panel of its developer tools, makes of
// trace events: by process and thread, how many slices it has of each name.
const viewed = `(async (events) => {
	const { TraceModel } = await import("devtools://devtools/bundled/models/trace/trace.js");
	const model = TraceModel.Model.createWithAllHandlers();
	await model.parse(events);
	const { data } = model.parsedTrace(0);
	const threads = [];
	for (const [process, { threads: all }] of data.Renderer.processes) for (const [thread, { name, entries }] of all) {
		const slices = {};
		for (const e of entries) slices[e.name] = (slices[e.name] || 0) + 1;
		threads.push({ process, thread, name, slices, longest: Math.max(...entries.map((e) => e.dur)) });
	}
	return JSON.stringify(threads);
})`

type viewedThread struct {
	Process, Thread int
	Name            string
	Slices          map[string]int
	Longest         float64 // in microseconds
}

// viewTrace has Chromium read trace events.
func viewTrace(t *testing.T, events string) (threads []viewedThread) {
	t.Helper()
	path := skips.ProgramOf(t, "chromium", "chromium")
	profile, err := os.MkdirTemp("", "chromium")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) }) // a child of the browser may write there still
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(runLimit))
	limited, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	ctx, cancel := chromedp.NewExecAllocator(limited, options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	defer func() { _ = chromedp.Cancel(ctx) }() // waits for the browser's end
	var text string
	wait := func(p *cdpruntime.EvaluateParams) *cdpruntime.EvaluateParams { return p.WithAwaitPromise(true) }
	if err := chromedp.Run(ctx, chromedp.Navigate("devtools://devtools/bundled/models/trace/trace.js"), chromedp.Evaluate(viewed+"("+events+")", &text, wait)); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &threads); err != nil {
		t.Fatal(err)
	}
	return threads
}

// wantViewed wants Chromium to show the calls of each rank, in its host's process, as the files
// have them.
func wantViewed(t *testing.T, files []string) {
	t.Helper()
	all, want := []json.RawMessage{}, make([]map[string]int, len(files))
	for rank, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var events []json.RawMessage
		if err := json.Unmarshal(b, &events); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want[rank] = make(map[string]int)
		for _, e := range events {
			var x struct{ Ph, Name string }
			if err := json.Unmarshal(e, &x); err != nil {
				t.Fatal(err)
			}
			if x.Ph == "X" {
				want[rank][x.Name]++
			}
		}
		all = append(all, events...)
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	seen := viewTrace(t, string(b))
	if len(seen) != len(files) {
		t.Errorf("Chromium shows %d threads of %d ranks: %+v", len(seen), len(files), seen)
	}
	for _, x := range seen {
		if x.Thread < 0 || x.Thread >= len(files) || x.Name != "rank "+string(rune('0'+x.Thread)) || x.Process != x.Thread/2 || !(x.Longest > 0) {
			t.Errorf("%+v", x)
			continue
		}
		for name, n := range want[x.Thread] {
			if x.Slices[name] != n {
				t.Errorf("rank %d has %d calls of %s, Chromium shows %d", x.Thread, n, name, x.Slices[name])
			}
		}
	}
}
