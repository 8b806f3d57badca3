package reload

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

type routing struct {
	table        *routes.Table
	next         config.Site // the site with the routes that will hold
	taken, fixed byText
	changes,
	restart []string
}

// byText groups the labels of routes for which the operator gets the same text.
type byText struct {
	order []string
	of    map[string][]string
}

func (b *byText) add(label, text string) {
	if b.of[text] == nil {
		b.order = append(b.order, text)
	}
	if b.of == nil {
		b.of = make(map[string][]string)
	}
	if label == "*" {
		label = "any other site"
	}
	b.of[text] = append(b.of[text], label)
}

func (b *byText) lines() (list []string) {
	for _, text := range b.order {
		title := "route to "
		if len(b.of[text]) > 1 {
			title = "routes to "
		}
		list = append(list, title+strings.Join(b.of[text], ", ")+": "+text)
	}
	return list
}

// newRoutes finds which changes of the file's routes can apply from now on. What both ends of a
// pair have to agree on is on business cards, which are made once: changing that needs a restart.
func newRoutes(rt *routes.Table, job *config.Job, file *config.Site) *routing {
	now := routes.CurrentSite(rt)
	g := &routing{table: rt, next: *now}
	all := labels(job, now, file)
	g.next.Routes = nil
	for _, label := range all { // each on its own, as "*" may change and others not
		r := now.RouteTo(label)
		r.Site = label
		g.next.Routes = append(g.next.Routes, r)
	}
	for _, label := range all {
		g.compare(label, file)
	}
	g.changes, g.restart = g.taken.lines(), g.fixed.lines()
	return g
}

// labels are the destinations for which a file can have routes, "*", which stands for the sites
// without a route of their own, last.
func labels(job *config.Job, sites ...*config.Site) (list []string) {
	add := func(name string) {
		if name != "*" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	for _, s := range job.Sites {
		add(s.Name)
	}
	for _, s := range sites {
		for _, r := range s.Routes {
			add(r.Site)
		}
	}
	return append(list, "*")
}

func (g *routing) compare(label string, file *config.Site) {
	now, want := routes.CurrentSite(g.table).RouteTo(label), file.RouteTo(label)
	start := g.table.Site.RouteTo(label)
	for _, d := range fixed(start, want) {
		g.fixed.add(label, d.String())
	}
	if want.Direct && !start.Direct { // the rest of the route can change
		g.fixed.add(label, difference{"direct", "false", "true"}.String()+": procs were told at the start that they have no direct links there")
		want.Direct = false
	}
	moved := moves(now, want)
	if len(moved) == 0 {
		return
	}
	to := now
	to.Site, to.Prefer, to.Direct, to.DataPlane, to.Pos = label, want.Prefer, want.Direct, want.DataPlane, want.Pos
	candidate := g.next
	candidate.Routes = replaced(candidate.Routes, to)
	var texts []string
	for _, d := range moved {
		texts = append(texts, d.String())
	}
	text := strings.Join(texts, "; ")
	if why := g.cannot(start, to, want, &candidate); why != "" {
		g.fixed.add(label, text+": "+why)
		return
	}
	g.next = candidate
	g.taken.add(label, text+": for new links")
}

func replaced(list []config.Route, r config.Route) []config.Route {
	list = slices.DeleteFunc(slices.Clone(list), func(x config.Route) bool { return x.Site == r.Site })
	return append(list, r)
}

// fixed lists the differences between two routes that show on business cards.
func fixed(a, b config.Route) (list []difference) {
	add := func(what string, x, y any) {
		if x != y {
			list = append(list, difference{what, fmt.Sprint(x), fmt.Sprint(y)})
		}
	}
	add("resume", a.Resume, b.Resume)
	add("require_tls", tls(a), tls(b))
	add("representation", a.Representation, b.Representation)
	add("precision", a.Precision.String(), b.Precision.String())
	add("compress", a.Compress.String(), b.Compress.String())
	add("the site's own MPI", a.Native, b.Native)
	return list
}

func tls(r config.Route) string {
	switch {
	case r.RequireTLS:
		return "true"
	case r.AllowPlain:
		return "false"
	}
	return "not said"
}

// moves lists the differences between two routes that matter only to links that are made later.
func moves(a, b config.Route) (list []difference) {
	if !slices.Equal(a.Prefer, b.Prefer) || a.NativeAt != b.NativeAt {
		list = append(list, difference{"prefer", quoted(a.Prefer), quoted(b.Prefer)})
	}
	if a.Direct != b.Direct {
		list = append(list, difference{"direct", fmt.Sprint(a.Direct), fmt.Sprint(b.Direct)})
	}
	if !slices.Equal(a.DataPlane, b.DataPlane) {
		list = append(list, difference{"data_plane", quoted(a.DataPlane), quoted(b.DataPlane)})
	}
	return list
}

// cannot returns why a route cannot take the place of the present one while the job runs, or "" if
// it can. to is the route that would hold, want that of the file, start that of which procs and
// other sites were told at the start, and site the site with the route in it.
func (g *routing) cannot(start, to, want config.Route, site *config.Site) string {
	rt := g.table
	for _, name := range to.Prefer {
		if rt.Transport(name) == nil {
			return fmt.Sprintf("%s does not run here, as no route named it at the start", name)
		}
	}
	switch {
	case start.Native || want.Native:
		return "all procs of the site have to choose between its own MPI and links alike"
	case routes.IsClosed(rt, want) != start.Closed:
		return "the other site was told at the start whether links must be encrypted"
	case routes.PinsChannels(start) != routes.PinsChannels(to):
		return "the other site was told at the start how channels are made"
	}
	for _, t := range rt.Transports {
		if !slices.Contains(to.Prefer, t.Name) {
			continue
		}
		open := routes.ListenerPlanes(*rt.Site, t.Name, t.Capabilities().DataPlanes)
		for _, planes := range routes.ListenerPlanes(*site, t.Name, t.Capabilities().DataPlanes) {
			if !slices.ContainsFunc(open, func(x []transports.DataPlane) bool { return slices.Equal(x, planes) }) {
				return fmt.Sprintf("no listener of %s was opened for these data planes", t.Name)
			}
		}
	}
	return ""
}
