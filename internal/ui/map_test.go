package ui

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/status"
)

// meshed is a job of sites of one proc each, every two of which have a link; those of the first two
// sites and of the last two are lost.
func meshed(sites int) []status.Job {
	j := links.Job{Name: "mesh", ID: "abc"}
	for s := range sites {
		j.Sites = append(j.Sites, links.SiteState{
			Site:  links.Site{Name: fmt.Sprint("site", s), Client: s, Own: true, First: s, Procs: 1, Hosts: []string{fmt.Sprintf("10.0.%d.1", s)}},
			State: links.NodeRunning, Server: &links.JobServer{Address: "10.0.0.1:7800"},
			Ranks: []links.Proc{{Rank: s, PID: 100 + s, Host: s, State: links.ProcRunning, Counts: &links.Counts{Messages: 5}}},
		})
		for peer := range s {
			state := links.StateLinked
			if s+peer == 1 || s+peer == 2*sites-3 {
				state = links.StateLost
			}
			j.Pairs = append(j.Pairs, links.Pair{
				A: peer, B: s, State: state, Transport: "tcp", AToB: count(uint64(s), uint64(100000*s)), BToA: count(9, 900),
				Views: []links.View{{Local: peer, Peer: s, LocalHost: peer, PeerHost: s}},
			})
		}
	}
	return []status.Job{{Job: j}}
}

// mapIsReadable is a function of JavaScript that returns what hides words of the map: a line above
// them in the drawing, a box, the words of another line, or a line of others that goes through them.
const mapIsReadable = `(() => {
  const all = [...document.getElementById("topology").children], wrong = [];
  const shown = all.filter((e) => e.matches(".words") && getComputedStyle(e).display !== "none" && e.textContent);
  const lines = all.filter((e) => e.matches(".path"));
  const inside = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  for (const w of shown) {
    const r = w.getBoundingClientRect(), own = w.dataset.of;
    for (const e of all) {
      if (e.matches(".node") && inside(r, e.querySelector("rect").getBoundingClientRect())) wrong.push(own + " in " + e.dataset.node);
      if (e.matches(".words") && e !== w && shown.includes(e) && inside(r, e.getBoundingClientRect())) wrong.push(own + " and " + e.dataset.of);
    }
    for (const l of lines) {
      if (w.compareDocumentPosition(l) & Node.DOCUMENT_POSITION_FOLLOWING) wrong.push(l.dataset.path + " is drawn above " + own);
      const ink = l.querySelector(".ink"), m = ink.getScreenCTM(), n = ink.getTotalLength();
      for (let i = 0; l.dataset.path !== own && lines.length <= 12 && i <= n; i += 2) {
        const p = ink.getPointAtLength(i).matrixTransform(m);
        if (p.x > r.left && p.x < r.right && p.y > r.top && p.y < r.bottom) { wrong.push(l.dataset.path + " through " + own); break; }
      }
    }
  }
  return wrong.concat(shown.length ? [] : ["no words"]);
})()`

// TestWordsOfTheMap: what the map says of the paths between sites can be read, with few sites and
// with many: of those only what is wrong, and what the focus is on.
func TestWordsOfTheMap(t *testing.T) {
	var sites atomic.Int32
	sites.Store(2)
	s := serve(t, func(context.Context) []status.Job { return meshed(int(sites.Load())) })
	b := open(t)
	for _, c := range []struct{ sites, words int }{{2, 1}, {4, 6}, {8, 2}, {16, 2}} {
		sites.Store(int32(c.sites))
		b.do(chromedp.Navigate(s.URL()))
		b.await(fmt.Sprintf(`document.querySelectorAll("#topology .node").length === 1 + %d`, c.sites))
		b.await(fmt.Sprintf(`[...document.querySelectorAll("#topology .words")].filter((e) => e.textContent && getComputedStyle(e).display !== "none").length === %d`, c.words))
		var wrong []string
		b.do(chromedp.Evaluate(mapIsReadable, &wrong))
		for _, w := range wrong {
			t.Errorf("%d sites: %s", c.sites, w)
		}
		b.shot(fmt.Sprintf("map-%d", c.sites))
	}
	// The map is drawn again when the page has got a scrollbar, and the focus is gone then.
	const focus = `(() => { document.querySelector('#topology [data-path="site %s"]').focus(); return getComputedStyle(document.querySelector('#topology [data-of="site 3,9"]')).display %s "none"; })()`
	b.await(fmt.Sprintf(focus, "3,9", "!=="))
	b.shot("map-16-focus")
	b.await(fmt.Sprintf(focus, "3,8", "==="))
	b.check(s)
}
