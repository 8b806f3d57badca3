package ring

// Counts returns how many bytes this side has sent and received: copied ones since the
// region was made, by every owner of the link, and lent ones since New. No other call may
// be in progress.
func (l *Link) Counts() (sent, received uint64) {
	return l.out.head + l.out.lent, l.in.tail + l.in.lent
}
