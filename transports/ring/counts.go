package ring

// Counts gives how many bytes this side has sent and received since the region
// was made, by whoever had the link. No other call may be in progress.
func (l *Link) Counts() (sent, received uint64) { return l.out.head, l.in.tail }
