package routes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/resumable"
)

// Both ends of a pair must send data in one representation, and each site's
// file has a say. So what a site wants other than by default is on its
// business cards, as features: "external32-to-1" for client 1, "external32-to-all".

// RepresentationFeatures lists the features that say which representations the site insists on.
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

// wish gives what the owner of a card insists on towards a client, or "".
func wish(c *dynamic.Card, to wire.ClientRank) string {
	for _, suffix := range []string{fmt.Sprintf("-to-%d", to), "-to-all"} {
		i := slices.IndexFunc(c.Features, func(f string) bool { return strings.HasSuffix(f, suffix) })
		if i >= 0 {
			return strings.TrimSuffix(c.Features[i], suffix)
		}
	}
	return ""
}

// Representation gives the form in which data travels between procs of two
// sites, of which both know the other's card. Either end finds the same.
// IMPI ch.1, Data Format: external32, unless both know better.
func Representation(a, b *dynamic.Card, clientA, clientB wire.ClientRank) string {
	wa, wb := wish(a, clientB), wish(b, clientA)
	switch {
	case wa == "" && wb == "" && a.ByteOrder == b.ByteOrder && a.ByteOrder != "":
		return native(a.ByteOrder).String()
	case wa == "":
		return known(wb)
	case wb == "" || wa == wb:
		return known(wa)
	}
	return datatype.External32.String()
}

func native(order string) datatype.Representation {
	if order == dynamic.BigEndian {
		return datatype.NativeBE
	}
	return datatype.NativeLE
}

// known replaces no wish, and what only a later release understands.
func known(w string) string {
	if r, err := datatype.ParseRepresentation(w); err != nil || r == datatype.Native {
		return datatype.External32.String()
	}
	return w
}

// clientFeatures says on business cards to whom a site's routes are such: to all
// with the feature's name alone, to client 1 with "name-1", not to it with
// "no-name-1".
func clientFeatures(name string, job *config.Job, site config.Site, such func(config.Route) bool) (features []string) {
	always := such(site.RouteTo("*"))
	if always {
		features = append(features, name)
	}
	for _, s := range job.Sites {
		switch one := such(site.RouteTo(s.Name)); {
		case one == always:
		case one:
			features = append(features, fmt.Sprintf("%s-%d", name, s.Client))
		default:
			features = append(features, fmt.Sprintf("no-%s-%d", name, s.Client))
		}
	}
	return features
}

// Wants tells whether the owner of a card has such a route to a client.
func Wants(c *dynamic.Card, name string, to wire.ClientRank) bool {
	switch {
	case c.Has(fmt.Sprintf("no-%s-%d", name, to)):
		return false
	case c.Has(fmt.Sprintf("%s-%d", name, to)):
		return true
	}
	return c.Has(name)
}

// Trimmed keeps the features that a card has room for.
func Trimmed(features []string) []string {
	return slices.Clip(features[:min(len(features), dynamic.MaxFeatures)])
}

// ResumableFeatures says to whom links are to be resumed, as clientFeatures has it.
func ResumableFeatures(job *config.Job, site config.Site) []string {
	return clientFeatures(resumable.Feature, job, site, func(r config.Route) bool { return r.Resume })
}

// Features are all that a site says on its business cards.
func Features(job *config.Job, site config.Site) []string {
	return Trimmed(slices.Concat(SecrecyFeatures(job, site), ResumableFeatures(job, site), PinFeatures(job, site), RepresentationFeatures(job, site)))
}

// WantsResumable tells whether the owner of a card wants links to a client to be resumed.
func WantsResumable(c *dynamic.Card, to wire.ClientRank) bool { return Wants(c, resumable.Feature, to) }

// Resumable tells whether both ends of a pair want a link that can break to be resumed.
func (rt *Table) Resumable(a, b wire.WorldRank) bool {
	ours, theirs := rt.Cards[a], rt.Cards[b]
	return ours != nil && theirs != nil &&
		WantsResumable(ours, rt.World.Procs.At(b).Client) && WantsResumable(theirs, rt.World.Procs.At(a).Client)
}

// Data names the form in which two procs exchange data.
func (rt *Table) Data(local, peer wire.WorldRank) string {
	a, b := rt.World.Procs.At(local).Client, rt.World.Procs.At(peer).Client
	ours, theirs := rt.Cards[local], rt.Cards[peer]
	if a == b {
		return datatype.HostOrder().String()
	}
	if site, foreign := rt.ForeignSite(b); foreign {
		return string(rt.Site.DataTo(site))
	}
	if ours == nil || theirs == nil {
		return datatype.External32.String()
	}
	return Representation(ours, theirs, a, b)
}
