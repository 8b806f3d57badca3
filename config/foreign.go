package config

// Representation is the form of user data that is exchanged with a peer (IMPI ch.1, Data
// Format).
type Representation string

// The representations. The empty one stands for native between own sites with the same byte order,
// and external32 otherwise.
const (
	RepresentationAuto Representation = ""
	External32         Representation = "external32"
	NativeLE           Representation = "native-le"
	NativeBE           Representation = "native-be"
	NativeX86          Representation = "native-x86" // NativeLE with the long doubles of x86-64
)

// Implementation is the MPI that runs a foreign site.
type Implementation string

// The known implementations. The empty one stands for an MPI that follows the standard.
const (
	Standard Implementation = ""
	LAM71    Implementation = "lam-7.1" // LAM/MPI 7.1
)

// habits are the ways in which an implementation departs from the standard.
type habits struct {
	representation       Representation
	reduceOnPointToPoint bool
}

var implementationHabits = map[Implementation]habits{
	// LAM sends data in the format of its memory, and swaps bytes only if its own nodes differ.
	// Most likely they are x86-64; otherwise a site sets representation.
	LAM71: {representation: NativeX86, reduceOnPointToPoint: true},
}

// ReduceOnPointToPoint reports whether the site's MPI uses the communicator's
// point-to-point context for the messages of Reduce. IMPI ch.4, Context IDs, requires the
// collective one.
func (i Implementation) ReduceOnPointToPoint() bool {
	return implementationHabits[i].reduceOnPointToPoint
}

// DataTo returns the representation of user data between s and a foreign site. The first of these
// that sets one decides: the route with the site's name, the foreign site's block, its
// implementation, route "*", and last the standard (IMPI ch.1, Data Format).
func (s Site) DataTo(peer Site) Representation {
	route := s.RouteTo(peer.Name)
	named := RepresentationAuto
	if route.Site == peer.Name {
		named = route.Representation
	}
	for _, r := range []Representation{named, peer.Representation, implementationHabits[peer.Implementation].representation, route.Representation} {
		if r != RepresentationAuto {
			return r
		}
	}
	return External32
}

// checkForeign reports attributes of a foreign site that make sense only for a site that we
// run.
func (b *builder) checkForeign(sb *block) {
	const remedy = "remove it, or remove foreign = true"
	if at, has := sb.serverAt(); has {
		b.fault(at, "site "+quote(sb.label)+" is foreign and finds the server by its own means", remedy)
	}
	for _, name := range []string{"server_foreign", "require_tls"} {
		if sb.has(name) {
			b.fault(sb.at(name), "site "+quote(sb.label)+" is foreign and speaks to the server by its own means", remedy)
		}
	}
	for _, name := range []string{"hosts", "procs", "network"} {
		if sb.has(name) {
			b.fault(sb.at(name), "site "+quote(sb.label)+" is foreign: nothing of it is run from here", remedy)
		}
	}
	for _, in := range sb.blocks {
		b.fault(in.pos, "site "+quote(sb.label)+" is foreign: nothing of it is run from here", remedy)
	}
}

// checkOurs reports attributes of a site of ours that make sense only for a foreign one.
func (b *builder) checkOurs(sb *block) {
	for _, c := range []struct{ name, remedy string }{
		{"implementation", "remove it, or add foreign = true"},
		{"representation", "remove it, or add foreign = true; between sites of ours a route says it"},
		{"channels_from", "remove it, or add foreign = true; hosts of ours connect from their own addresses"},
	} {
		if sb.has(c.name) {
			b.fault(sb.at(c.name), "site "+quote(sb.label)+" is ours, and "+c.name+" is for foreign ones", c.remedy)
		}
	}
}
