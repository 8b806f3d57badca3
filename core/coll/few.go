package coll

// The algorithms for a few processes of one machine. If they outnumber the cores, a switch from one
// to another costs more than a message, and a tree makes those in its middle wait twice. So the
// first process, or the root, exchanges messages with each of the others directly.

// MaxFlatProcs is the largest value of Tuning.FlatProcs that has an effect.
const MaxFlatProcs = 8

func (p *Planner) few() bool {
	n := p.team.size()
	return n > 2 && n <= min(p.profile.Tuning.FlatProcs, MaxFlatProcs)
}

// bcastFew is bcastTree; long messages are copied by all receivers at once.
func (p bcasts) bcastFew(buf []byte, root int) {
	if p.team.me != root {
		p.recvLocal(p.team.rank(root), tagBcast, buf)
		p.wait()
		return
	}
	for i := 1; i < p.team.size(); i++ {
		p.sendLocal(p.team.rank(root+i), tagBcast, buf)
	}
}

// reduceFew is reduceTree without a tree, and keeps rank order if root is 0. The root has memory
// for all operands.
func (p reductions) reduceFew(a *accumulator, root int) {
	n := p.team.size()
	if p.team.me != root {
		p.sendLocal(p.team.rank(root), tagReduce, a.cur)
		return
	}
	var operands [MaxFlatProcs][]byte
	for i := 1; i < n; i++ {
		operands[i] = a.buffer()
		p.recvLocal(p.team.rank(root+i), tagReduce, operands[i])
	}
	a.wait()
	for _, x := range operands[1:n] {
		a.after(x)
	}
}
