package play

import (
	"encoding/binary"
)

// uint8s reads values of 8 bytes.
func uint8s(b []byte) (v []uint64) {
	for ; len(b) >= 8; b = b[8:] {
		v = append(v, binary.BigEndian.Uint64(b))
	}
	return v
}

// agree plays the others' part in the agreement on a context ID for the command, which
// the IUT's members have begun. most is what the others have in use; it gives what the
// IUT's members have.
func (g *group) agree(most uint64) (iut uint64) {
	own, root := g.masters[g.self], g.members[0]
	iut = 1 // MPI_COMM_WORLD's
	children, parent := g.reduceTree(g.number(root))
	for _, c := range children {
		g.gives(g.masters[c], own, tagReduce, u64(most))
	}
	if parent >= 0 {
		p := g.takesAny(own, g.masters[parent], tagReduce, "the largest ID")
		equal(g.t, "pk_msglen of the largest ID", p.msglen, 8)
		iut = uint8s(p.data)[0]
		if iut < 1 || iut > most+10 {
			g.t.Fatalf("the largest context ID of the IUT is %d; %d is the largest that was agreed on before", iut, most)
		}
		most = max(most, iut)
	}
	from, to := g.bcastTree(g.number(root))
	if from >= 0 {
		g.gives(g.masters[from], own, tagBcast, u64(most))
	}
	for _, c := range to {
		p := g.takesAny(own, g.masters[c], tagBcast, "the agreed ID")
		equal(g.t, "pk_msglen of the agreed ID", p.msglen, 8)
		iut = uint8s(p.data)[0]
		equal(g.t, "the agreed ID", iut, max(most, iut))
	}
	return iut
}

// makes has all the IUT's members make a communicator, on which the others have most
// in use. It gives the calls, and the largest ID of the IUT.
func (g *group) makes(most uint64, format string, args ...any) []answers {
	begun := g.all(same(format, args...))
	g.agree(most)
	var all []answers
	for _, c := range begun {
		all = append(all, c.ok())
	}
	return all
}

// exchange sends a message each way on a communicator that the interpreter calls comm.
func (g *group) exchange(comm int, u, p *proc) {
	k := g.pairOf(u, p)
	k.tell("send comm=%d dst=%d tag=9 n=4 seed=%d", comm, g.rank(p), comm)
	m := k.take(pkData, "a message on the new communicator")
	g.isMessage(&m, 9, g.cid-1, g.rank(u), 4, "a message on the new communicator")
	m = k.out(pkData, 9, bytesOf(comm+1, 5))
	m.cid, m.lsrank = g.cid-1, int32(g.rank(p))
	k.give(m)
	a := k.tell("recv comm=%d src=%d tag=9 n=5", comm, g.rank(p))
	a.is("source", g.rank(p))
	a.holds(kindOf("byte").values(comm+1, 5))
}

func dupAsFirst(t *T) {
	j := t.join(setup{place: first, iutHosts: []int{2}, others: clients(2)})
	w := j.world()
	for i, most := range []uint64{1000, 3} { // the second time the IUT has more in use
		begun := w.all(same("dup new=%d", i+1))
		agreed := w.agree(most)
		for _, c := range begun {
			c.ok()
		}
		if i == 1 && agreed != 1001 && agreed != 1002 {
			t.Fatalf("1001 and 1002 are in use, and the agreed ID is %d", agreed)
		}
		j.group(agreed+2, j.procs).exchange(i+1, j.iut(1), j.peer(0))
	}
	j.finish()
}

func nonMembers(t *T) {
	j := t.join(setup{iutHosts: []int{2}})
	w := j.world()
	all := w.makes(1000, "create new=1 ranks=0,2")
	all[1].is("member", 0)
	begun := j.world().all(same("dup new=2"))
	own := w.masters[w.self]
	p := w.takesAny(own, w.masters[0], tagReduce, "the largest ID")
	most := uint8s(p.data)[0]
	if most != 1001 && most != 1002 {
		t.Fatalf("1001 and 1002 are in use, and the largest ID of the IUT is %d", most)
	}
	w.gives(w.masters[0], own, tagBcast, u64(2000))
	for _, c := range begun {
		c.ok()
	}
	begun = w.all(same("create new=3 ranks=0"))
	w.takesAny(own, w.masters[0], tagReduce, "the largest ID")
	w.gives(w.masters[0], own, tagBcast, u64(3000))
	for _, c := range begun {
		c.ok().is("member", 0)
	}
	begun = w.all(same("dup new=4"))
	p = w.takesAny(own, w.masters[0], tagReduce, "the largest ID")
	if most = uint8s(p.data)[0]; most != 3001 && most != 3002 {
		t.Fatalf("3001 and 3002 are in use elsewhere, and the largest ID of the IUT is %d", most)
	}
	w.gives(w.masters[0], own, tagBcast, u64(most))
	for _, c := range begun {
		c.ok()
	}
	j.finish()
}

// meets plays the leader of the other side, which is ranks 0 and 1, in the IUT's
// Intercomm_create. most is what that side has in use.
func (j *job) meets(begun []*call, most uint64) {
	own := j.world().own()
	k := j.pairOf(own[0], j.procs[0])
	m := k.take(pkData, "the largest ID and the size")
	k.isMessage(&m, 33, worldCID, k.u.rank, 16, "the largest ID and the size")
	equal(j.t, "the size of the IUT's group", uint8s(m.data)[1], uint64(len(own)))
	k.give(k.out(pkData, 33, u64(most, 2)))
	m = k.take(pkData, "the world ranks")
	k.isMessage(&m, 33, worldCID, k.u.rank, 4*len(own), "the world ranks")
	for i, r := range uint32s(m.data) {
		equal(j.t, "a world rank", int(r), own[i].rank)
	}
	k.give(k.out(pkData, 33, u32(0, 1)))
	for _, c := range begun {
		c.ok().is("size", len(own))
	}
}

// interJob has an intercommunicator, number 2, of the IUT's two procs, whose group is
// communicator 1, and ranks 0 and 1. Its ID is 2001.
func (t *T) interJob() *job {
	j := t.join(setup{iutHosts: []int{2}, others: [][]int{{3}}}) // ranks 3 and 4
	w := j.world()
	w.makes(1000, "create new=1 ranks=3,4")
	j.meets(w.all(same("intercomm comm=1 new=2 leader=0 peer=0 remote=0 tag=33")), 2000)
	return j
}

// crissGives sends a message of Intercomm_merge or Comm_dup. rank is the sender's in its own group.
func (k *procPair) crissGives(tag int32, cid uint64, rank int, values ...uint64) {
	m := k.out(pkData, tag, u64(values...))
	m.cid, m.lsrank = cid, int32(rank)
	k.give(m)
}

func (k *procPair) crissTakes(tag int32, cid uint64, rank, n int, what string) []uint64 {
	m := k.take(pkData, what)
	k.isMessage(&m, tag, cid, rank, 8*n, what)
	return uint8s(m.data)
}

func mergesAsLeader(t *T) {
	merges(t, func(j *job, cid uint64) {
		leaders, toOther := j.pairOf(j.iut(0), j.procs[0]), j.pairOf(j.iut(0), j.procs[1])
		fromOther := j.pairOf(j.iut(1), j.procs[0])
		toOther.crissGives(tagMerge, cid, 1, 5000)
		var ours []uint64
		for range 2 { // the IUT's other proc and its leader say something, in any order
			p := leaders.ch.expect(pkData, "a message of Intercomm_merge")
			if p.src == j.iut(0).id {
				j.isMessage(&p, tagMerge, cid, 0, 16, "the leader's message")
				ours = uint8s(p.data)
				continue
			}
			j.isMessage(&p, tagMerge, cid, 1, 8, "the other's message")
		}
		if ours == nil || ours[0] != 5000 || ours[1] != 1 {
			t.Fatalf("the leader says %d, not {5000, 1}", ours)
		}
		leaders.crissGives(tagMerge, cid, 0, 3000, 0)
		fromOther.crissGives(tagMerge, cid, 0, 5000, 0)
		got := toOther.crissTakes(tagMerge, cid, 0, 2, "the leader's word for our other proc")
		if got[0] != 5000 || got[1] != 1 {
			t.Fatalf("the leader tells our other proc %d, not {5000, 1}", got)
		}
	}, 5001)
}

func mergesAsOther(t *T) {
	merges(t, func(j *job, cid uint64) {
		leaders, toOther := j.pairOf(j.iut(0), j.procs[0]), j.pairOf(j.iut(0), j.procs[1])
		fromOther := j.pairOf(j.iut(1), j.procs[0])
		toOther.crissGives(tagMerge, cid, 1, 10)
		for range 2 {
			p := leaders.ch.expect(pkData, "a message of Intercomm_merge")
			if p.src == j.iut(1).id {
				j.isMessage(&p, tagMerge, cid, 1, 8, "the other's message")
				if most := uint8s(p.data)[0]; most < 2001 || most > 2010 {
					t.Fatalf("2001 is in use, and the largest ID of the IUT is %d", most)
				}
			}
		}
		leaders.crissGives(tagMerge, cid, 0, 7000, 0)
		fromOther.crissGives(tagMerge, cid, 0, 7000, 0)
		toOther.crissTakes(tagMerge, cid, 0, 2, "the leader's word for our other proc")
	}, 7001)
}

// merges makes an intercommunicator and merges it, the IUT's side with high. The new
// communicator has an ID, and the tester's side comes first in it.
func merges(t *T, play func(j *job, cid uint64), id uint64) {
	j := t.interJob()
	begun := j.world().all(same("merge comm=2 new=3 high=1"))
	play(j, 2002)
	for i, c := range begun {
		c.ok().is("rank", 2+i)
	}
	g := j.group(id+1, []*proc{j.procs[0], j.procs[1], j.procs[3], j.procs[4]})
	g.exchange(3, j.procs[4], j.procs[1])
	j.finish()
}

func dupsInter(t *T) {
	j := t.interJob()
	const cid = 2002
	begun := j.world().all(same("dup comm=2 new=3"))
	leaders, toOther := j.pairOf(j.iut(0), j.procs[0]), j.pairOf(j.iut(0), j.procs[1])
	fromOther := j.pairOf(j.iut(1), j.procs[0])
	toOther.crissGives(tagDup, cid, 1, 5000)
	for range 2 { // the IUT's other proc and its leader, in any order
		p := leaders.ch.expect(pkData, "a message of Comm_dup")
		rank := 0
		if p.src == j.iut(1).id {
			rank = 1
		}
		j.isMessage(&p, tagDup, cid, rank, 8, "a message of Comm_dup")
	}
	leaders.crissGives(tagDup, cid, 0, 4000)
	fromOther.crissGives(tagDup, cid, 0, 5000)
	equal(t, "the largest ID that the leader tells our other proc", toOther.crissTakes(tagDup, cid, 0, 1, "the leader's word for our other proc")[0], 5000)
	for _, c := range begun {
		c.ok().is("size", 2)
	}
	k := j.pairOf(j.iut(1), j.procs[1])
	k.tell("send comm=3 dst=1 tag=5 n=3 seed=1")
	m := k.take(pkData, "a message on the new intercommunicator")
	k.isMessage(&m, 5, 5001, 1, 3, "a message on the new intercommunicator")
	j.finish()
}
