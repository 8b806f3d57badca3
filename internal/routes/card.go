package routes

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/resumable"
)

// RepresentationFeatures lists the features with the representations on which the site insists, as
// route.Representation reads them.
func RepresentationFeatures(job *config.Job, site config.Site) []string {
	var features []string
	for _, s := range job.Sites {
		if r := site.RouteTo(s.Name).Representation; r != config.RepresentationAuto && s.Client != site.Client {
			features = append(features, fmt.Sprintf("%s-to-%d", r, s.Client))
		}
	}
	if r := site.RouteTo("*").Representation; r != config.RepresentationAuto && !job.Complete {
		features = append(features, string(r)+"-to-all")
	}
	return features[:min(len(features), dynamic.MaxFeatures)]
}

// clientFeatures returns the features by which a site's business cards list the other sites of the
// job for whose routes such returns true.
func clientFeatures(name string, job *config.Job, site config.Site, such func(config.Route) bool) []string {
	var clients []wire.ClientRank
	for _, s := range job.Sites {
		clients = append(clients, wire.ClientRank(s.Client))
	}
	return route.Features(name, such(site.RouteTo("*")), clients, func(i int) bool { return such(site.RouteTo(job.Sites[i].Name)) })
}

// FloatFeatures returns the features with the clients to which doubles may travel as floats.
func FloatFeatures(job *config.Job, site config.Site) []string {
	return clientFeatures(route.FloatFeature, job, site, func(r config.Route) bool { return r.Precision != nil })
}

// TrimFeatures returns as many of the features as a card has room for, the first ones.
func TrimFeatures(features []string) []string {
	return slices.Clip(features[:min(len(features), dynamic.MaxFeatures)])
}

// ResumableFeatures returns the features with the clients to which links are to be resumed.
func ResumableFeatures(job *config.Job, site config.Site) []string {
	return clientFeatures(resumable.Feature, job, site, func(r config.Route) bool { return r.Resume })
}

// WorldsFeatures returns the feature of a site to whose procs links from other worlds resume.
func WorldsFeatures(site config.Site) []string {
	if site.RouteTo("*").Resume {
		return []string{dynamic.ResumeWorldsFeature}
	}
	return nil
}

// ResumesToWorlds reports whether links to procs of other worlds are resumed if these want it, too.
func ResumesToWorlds(rt *Table) bool { return CurrentSite(rt).RouteTo("*").Resume }

// Features returns all features of a site on its business cards. If there are too many, those about
// collective operations are dropped first: without them all sites use trees, which works.
func Features(job *config.Job, site config.Site) []string {
	return TrimFeatures(slices.Concat(SecrecyFeatures(job, site), ResumableFeatures(job, site), PinFeatures(job, site), RepresentationFeatures(job, site), CompressFeatures(job, site), FloatFeatures(job, site), WorldsFeatures(site), CollectivesFeatures(site)))
}

// Resumable reports whether both ends of a pair ask to resume a link that can break.
func (rt *Table) Resumable(a, b wire.WorldRank) bool {
	ours, theirs := rt.Cards.At(a), rt.Cards.At(b)
	return ours != nil && theirs != nil &&
		route.HasFeature(ours, resumable.Feature, rt.World.Procs.At(b).Client) && route.HasFeature(theirs, resumable.Feature, rt.World.Procs.At(a).Client)
}

// WhyNotFloats returns why doubles of a pair do not travel as floats though the route asks for it;
// empty if they do, or if the route does not.
func WhyNotFloats(rt *Table, local, peer wire.WorldRank) string {
	client := rt.World.Procs.At(peer).Client
	switch {
	case rt.RouteTo(peer).Precision == nil || rt.Data(local, peer) == datatype.NativeFloat.String():
		return ""
	case client == rt.World.Procs.At(local).Client:
		return "the procs are of one site"
	case Foreign(rt, client):
		return rt.ClientName(client) + " is run by another MPI"
	case rt.Cards.At(local) == nil || rt.Cards.At(peer) == nil:
		return rt.WhyNoCards(peer)
	}
	return "the route back of " + rt.ClientName(client) + " has no precision block, or one of the routes a representation"
}

// Data returns the name of the form in which two procs exchange data.
func (rt *Table) Data(local, peer wire.WorldRank) string {
	a, b := rt.World.Procs.At(local).Client, rt.World.Procs.At(peer).Client
	ours, theirs := rt.Cards.At(local), rt.Cards.At(peer)
	if a == b {
		return datatype.HostOrder().String()
	}
	if site, foreign := rt.ForeignSite(b); foreign {
		return string(rt.Site.DataTo(site))
	}
	if ours == nil || theirs == nil {
		return datatype.External32.String()
	}
	return route.Representation(ours, theirs, a, b)
}
