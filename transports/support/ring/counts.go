package ring

// Counts returns how many bytes this side has sent and received, by copying since
// the region was made, by whoever had the link, and by lending since New. No
// other call may be in progress.
func (l *Link) Counts() (sent, received uint64) {
	return l.out.head + l.out.lent, l.in.tail + l.in.lent
}
