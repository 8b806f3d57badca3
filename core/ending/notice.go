package ending

import "time"

// Notice says whom a node tells that its part of the job ends, once it is decided by which failure.
type Notice struct {
	Server     ServerNotice
	Site       bool          // the other hosts of the site: the head tells all, another host tells the head
	Peers      bool          // the hosts that have channels with those of the node, by PkFail
	Latecomers time.Duration // how long the head waits for hosts of the site that are still connecting, to tell them
}

// ServerNotice is what a node says to the job's server as its part of the job ends.
type ServerNotice uint8

// The notices to the server.
const (
	NothingMore ServerNotice = iota // a site that has finished has said so
	Resigns                         // the failure
	Abandons                        // nothing: it only closes the connection, as the others go on without the site
)

// EndingNode is a node whose part of the job ends.
type EndingNode struct {
	Head     bool // it speaks for its site
	Excluded bool // the others go on without it (Survival.Excluded)
}

// latecomers is how long a head whose site cannot run as it is configured waits for hosts that are
// still connecting, which would otherwise look for their head until the limit of the start.
const latecomers = 4 * time.Second

// Notice returns whom the node tells of its end by the failure f, or of the end of a job that went
// well if f is nil. Peers may know the failure from the server, if that is still there. Only the
// head of a site decides by which failure it ends: another host tells its peers what the head has
// decided, and the head what it has met itself.
func (n EndingNode) Notice(f *Failure) (x Notice) {
	if f == nil {
		x.Site = n.Head
		return x
	}
	x.Server, x.Site = Resigns, true
	if n.Excluded {
		x.Server, x.Site = Abandons, n.Head // the head goes on without another host
	}
	x.Peers = !n.Excluded && (n.Head || f.Reported)
	if n.Head && f.Status == StatusConfig {
		x.Latecomers = latecomers
	}
	return x
}
