package links

// underWay sets what was sent over a pair's link and has not been received, if both ends say that.
func (p *Pair) underWay() {
	if len(p.Views) != 2 || !sameBytes(&p.Views[0], &p.Views[1]) {
		return
	}
	a, b := p.Views[0].Traffic, p.Views[1].Traffic
	p.AToB.UnderWay, p.BToA.UnderWay = left(a.Sent, b.Received), left(b.Sent, a.Received)
}

// left is how many of the bytes sent were not received. The ends are asked one after the other, so
// received may seem to be more than sent; then it is 0.
func left(sent, received *uint64) *uint64 {
	n := *sent - min(*sent, *received)
	return &n
}

// sameBytes reports whether both ends count the same bytes.
func sameBytes(a, b *View) bool {
	counts := func(v *View) bool {
		return (v.State == StateLinked || v.State == StateLost) && !v.Native && v.Traffic != nil && v.Traffic.Sent != nil && v.Traffic.Received != nil
	}
	return counts(a) && counts(b) && a.Local == b.Peer && b.Local == a.Peer && a.Transport == b.Transport &&
		alike(a.Traffic.Pure, b.Traffic.Pure, a.Plane == b.Plane)
}

// alike reports whether two ends that count purely or not count the same. Older releases also count
// what the nodes have said on a ring before, and with one data plane at both ends they do that at
// both.
func alike(a, b, samePlane bool) bool { return a == b && (a || samePlane) }

func channelsUnderWay(all []Channel) {
	ends := make(map[[2]int]*Channel, len(all))
	for i := range all {
		x := [2]int{all[i].From, all[i].To}
		if _, twice := ends[x]; twice {
			ends[x] = nil // which of them is meant is not known
			continue
		}
		ends[x] = &all[i]
	}
	for way, c := range ends {
		back := ends[[2]int{way[1], way[0]}]
		if c == nil || back == nil || c.Ended || back.Ended || c.Sent == nil || back.Received == nil || !alike(c.Pure, back.Pure, c.Plane == back.Plane) {
			continue
		}
		c.UnderWay = left(c.Sent, back.Received)
	}
}
