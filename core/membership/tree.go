package membership

// DefaultFan is the default of Tree.Fan.
const DefaultFan = 32

// Tree is the shape of a site: host i > 0 is a child of host (i-1)/Fan.
type Tree struct {
	Hosts int // number of hosts of the site
	Fan   int // maximum number of children of a host
}

// Parent returns the host above another, or -1 for the head.
func (t Tree) Parent(host int) int {
	if host == 0 {
		return -1
	}
	return (host - 1) / t.Fan
}

// Children returns the hosts directly below host: from first up to, but not including, end.
func (t Tree) Children(host int) (first, end int) {
	first = min(host*t.Fan+1, t.Hosts)
	return first, min(first+t.Fan, t.Hosts)
}

// ChildToward returns the child of host that is to or an ancestor of to, or -1 if to is not below
// host.
func (t Tree) ChildToward(host, to int) int {
	if to >= t.Hosts {
		return -1
	}
	for to > host {
		above := t.Parent(to)
		if above == host {
			return to
		}
		to = above
	}
	return -1
}

// EachBelow calls f for host and for every host below it.
func (t Tree) EachBelow(host int, f func(host int)) {
	f(host)
	first, end := t.Children(host)
	for c := first; c < end; c++ {
		t.EachBelow(c, f)
	}
}
