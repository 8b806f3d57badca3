package route

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
)

// Features of business cards that tell to which clients links of the card's owner are encrypted or
// closed.
const (
	TLSFeature    = "tls"
	ClosedFeature = "closed"
)

// FloatFeature is the feature of business cards that tells to which clients doubles in messages may
// travel as floats.
const FloatFeature = "float"

// AnyClient stands for clients of other jobs, to which only features without a number apply.
const AnyClient wire.ClientRank = -1

// Features returns features of business cards that tell to which clients a site's routes have a
// property: the feature's name alone means all clients, "name-1" means client 1, and "no-name-1"
// means not client 1. such reports whether the route to the i-th of clients has the property, and
// usual whether routes to clients that are not among them have it.
func Features(name string, usual bool, clients []wire.ClientRank, such func(i int) bool) (features []string) {
	if usual {
		features = append(features, name)
	}
	for i, c := range clients {
		switch one := such(i); {
		case one == usual:
		case one:
			features = append(features, fmt.Sprintf("%s-%d", name, c))
		default:
			features = append(features, fmt.Sprintf("no-%s-%d", name, c))
		}
	}
	return features
}

// HasFeature reports whether a card has a feature towards a client, as Features writes it.
func HasFeature(c *dynamic.BusinessCard, name string, to wire.ClientRank) bool {
	switch {
	case c.Has(fmt.Sprintf("no-%s-%d", name, to)):
		return false
	case c.Has(fmt.Sprintf("%s-%d", name, to)):
		return true
	}
	return c.Has(name)
}

// DemandOf returns the secrecy that a card demands of links to a client. It is AnyLink for a proc
// without a card.
func DemandOf(c *dynamic.BusinessCard, to wire.ClientRank) Secrecy {
	switch {
	case c == nil:
		return AnyLink
	case HasFeature(c, TLSFeature, to):
		return Encrypted
	case HasFeature(c, ClosedFeature, to):
		return Closed
	}
	return AnyLink
}

// Representation returns the form in which data travel between procs of two clients that know each
// other's card. Both ends get the same result. IMPI ch.1, Data Format: external32, unless both
// sides agree on a better form. A site can insist on one by a feature such as "external32-to-1",
// for client 1, or "external32-to-all". If none does and both sites allow it, doubles travel as
// floats.
func Representation(a, b *dynamic.BusinessCard, clientA, clientB wire.ClientRank) string {
	wa, wb := wish(a, clientB), wish(b, clientA)
	switch {
	case wa == "" && wb == "" && HasFeature(a, FloatFeature, clientB) && HasFeature(b, FloatFeature, clientA):
		return datatype.NativeFloat.String()
	case wa == "" && wb == "" && a.ByteOrder == b.ByteOrder && a.ByteOrder != "":
		if a.ByteOrder == dynamic.BigEndian {
			return datatype.NativeBE.String()
		}
		return datatype.NativeLE.String()
	case wa == "":
		return understood(wb)
	case wb == "" || wa == wb:
		return understood(wa)
	}
	return datatype.External32.String()
}

// wish returns the representation that the owner of a card insists on towards a client; empty:
// none.
func wish(c *dynamic.BusinessCard, to wire.ClientRank) string {
	for _, suffix := range []string{fmt.Sprintf("-to-%d", to), "-to-all"} {
		i := slices.IndexFunc(c.Features, func(f string) bool { return strings.HasSuffix(f, suffix) })
		if i >= 0 {
			return strings.TrimSuffix(c.Features[i], suffix)
		}
	}
	return ""
}

// understood returns w, or external32 if w is empty or only a later release understands it.
func understood(w string) string {
	if r, err := datatype.ParseRepresentation(w); err != nil || r == datatype.Native {
		return datatype.External32.String()
	}
	return w
}
