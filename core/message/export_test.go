package message

// IsRecv reports whether the request is a receive.
func (r *Request) IsRecv() bool { return r.kind == kindRecv }

// Peers returns how many procs were ever in the table, this one included.
func (e *procs) Peers() int { return int(e.next) }

// Finished reports whether PK_FINI has come by l: only PROTOACKs follow it.
func (e *linkTable) Finished(l LinkID) bool { return e.link(l).fini }

// Counters returns the counts since New.
func (e *linkTable) Counters() Counts { return e.counters }

// Kept returns how many bytes unexpected messages of others take here, as allowances count
// them.
func (e *procs) Kept() (n int64) {
	for _, p := range e.peers.made {
		n += p.held
	}
	return n
}
