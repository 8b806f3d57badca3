// Package route decides which links two procs of different sites may have, by the routes of both
// sites and the business cards of both procs: by which transports, in which order, how well
// encrypted, and in which representation data go over them.
package route

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
)

// Route is a site's requirements for links to another site.
type Route struct {
	Direct  bool     // links between procs are allowed; false: all packets go by the agents
	Prefer  []string // transports that may be used, best first
	Planes  []string // data planes that links may use; nil: any
	Secrecy Secrecy  // demand of both sites together
}

// Secrecy is the demand for links between two sites; the weaker demands come first.
type Secrecy uint8

// The demands.
const (
	AnyLink   Secrecy = iota
	Closed            // encrypted, or of a transport that does not leave the machine
	Encrypted         // encrypted, also within one machine
)

// Transport is a transport that runs at the site.
type Transport interface {
	Machine() bool              // its links do not leave a machine
	Encrypts() bool             // its links are encrypted
	HasPlane(plane string) bool // its links can have a data plane
}

// MetBy reports whether the links of a transport meet the demand s.
func (s Secrecy) MetBy(t Transport) bool {
	return s == AnyLink || t.Encrypts() || s == Closed && t.Machine()
}

// Rule is the reason why a transport is not dialled. Its text is part of the reports of nodes about
// their links.
type Rule string

// The rules, in the order in which they are looked at.
const (
	NoCards      Rule = "foreign"       // a proc has no business card, as a site of the job does not run impi
	DirectOff    Rule = "direct"        // the route allows no direct links
	NotPreferred Rule = "prefer"        // the route does not name the transport
	NotRunning   Rule = "not-running"   // the transport does not run at the site
	NotOffered   Rule = "not-offered"   // the peer's card does not offer the transport
	OtherMachine Rule = "other-machine" // the transport does not leave the machine
	NotEncrypted Rule = "require-tls"
	WrongPlane   Rule = "data-plane"  // the transport has no data plane that the route allows
	Drained      Rule = "drained"     // the operator is about to replace the process of the transport
	PeerRoutes   Rule = "peer-routes" // the peer's node has refused the link by one of the rules above
)

// Unfit returns the demand that the links of a transport do not meet, or "" if they meet all.
func (r *Route) Unfit(t Transport, sameMachine bool) Rule {
	switch {
	case t.Machine() && !sameMachine:
		return OtherMachine
	case !r.Secrecy.MetBy(t):
		return NotEncrypted
	case len(r.Planes) > 0 && !slices.ContainsFunc(r.Planes, t.HasPlane):
		return WrongPlane
	}
	return ""
}

// Excludes returns the rule for which a peer is not dialled by a transport, or "" if it is dialled.
// t is nil if the transport does not run. Cards are nil for procs that have none.
func (r *Route) Excludes(name string, t Transport, ours, theirs *dynamic.BusinessCard) Rule {
	switch {
	case ours == nil || theirs == nil:
		return NoCards
	case !r.Direct:
		return DirectOff
	case !slices.Contains(r.Prefer, name):
		return NotPreferred
	case t == nil:
		return NotRunning
	}
	if _, ok := theirs.Address(name); !ok {
		return NotOffered
	}
	if rule := r.Unfit(t, ours.SameNode(theirs)); rule != "" {
		return rule
	}
	if _, ok := ours.Address(name); !ok {
		return NotRunning
	}
	return ""
}

// Addresses returns the addresses at which the owner of a card is dialled, best first. running
// returns a transport of the site, or nil if it does not run.
func (r *Route) Addresses(running func(name string) Transport, ours, theirs *dynamic.BusinessCard) (addresses []dynamic.TransportAddress) {
	for _, name := range r.Prefer {
		if r.Excludes(name, running(name), ours, theirs) != "" {
			continue
		}
		for _, o := range theirs.Addresses {
			if o.Transport == name {
				addresses = append(addresses, o)
			}
		}
	}
	return addresses
}

// Native reports whether two procs of one site, of this client, exchange messages by the site's own
// MPI. The operator has set that the first better transports in Prefer are better than this MPI:
// the result is true if none of these is dialled. Cards may be nil. Both ends get the same result,
// even if the transports of their hosts have different abilities, or the plugin of only one
// encrypts, so that only that host's route is closed: the demands of both cards decide.
func (r *Route) Native(client wire.ClientRank, better int, running func(name string) Transport, ours, theirs *dynamic.BusinessCard) bool {
	both := *r
	both.Secrecy = max(r.Secrecy, DemandOf(ours, client), DemandOf(theirs, client))
	if !r.Direct || both.Secrecy == Encrypted {
		return false
	}
	for i, name := range r.Prefer[:better] {
		if both.Excludes(name, running(name), ours, theirs) == "" && !both.unfit(theirs, i) {
			return false
		}
	}
	return true
}

// NativeFeatures returns features of business cards that tell which of the transports that are
// better than the site's own MPI do not meet the demands of the route at the card's owner, and
// which do not if the route is closed.
func (r *Route) NativeFeatures(better int, running func(name string) Transport) (features []string) {
	open := *r
	open.Secrecy = AnyLink
	for i, name := range r.Prefer[:better] {
		switch t := running(name); {
		case t == nil:
		case open.Unfit(t, true) != "":
			features = append(features, unfitFeature(i))
		case !Closed.MetBy(t):
			features = append(features, plainFeature(i))
		}
	}
	return features
}

// unfit reports whether the owner of a card cannot use the transport at a place of the route.
func (r *Route) unfit(c *dynamic.BusinessCard, at int) bool {
	return c.Has(unfitFeature(at)) || r.Secrecy != AnyLink && c.Has(plainFeature(at))
}

func unfitFeature(at int) string { return fmt.Sprintf("unfit-%d", at) }

func plainFeature(at int) string { return fmt.Sprintf("plain-%d", at) }

// Allows reports whether a link that has arrived by a transport may be accepted.
func (r *Route) Allows(name string, t Transport) bool {
	return r.Direct && slices.Contains(r.Prefer, name) && r.Unfit(t, true) == ""
}
