package play

import (
	"errors"
	"io"
)

// finish is the orderly end of a job, every step of which is checked: the programs call
// MPI_Finalize, the barrier, FINI on every channel both ways, FINI to the server, exit
// with status 0.
func (j *job) finish() {
	j.finalize()
	j.barrier()
	j.finishChannels()
}

// finishChannels is the part of finish after the barrier.
func (j *job) finishChannels() {
	for _, ch := range j.channels {
		ch.send(packet{typ: pkFini})
	}
	j.channelsEnd()
}

// channelsEnd is the part of finish after our FINIs.
func (j *job) channelsEnd() {
	for _, ch := range j.channels {
		ch.takesFini()
		ch.hangUp()
	}
	for _, ch := range j.channels {
		if err := ch.ends("both sides have sent FINI"); ending(err) != "the channel was closed" {
			j.t.Fatalf("%s: %v", ch.c.name, err)
		}
	}
	j.finished()
	j.run.succeeds()
}

func (j *job) finalize() {
	for _, p := range j.self.procs() {
		j.do(p, "finalize")
	}
}

// barrier plays all masters but the IUT's in a barrier on MPI_COMM_WORLD.
func (j *job) barrier() {
	g := j.world()
	parent, children := g.barrierTree()
	g.givesBarrier(children...)
	if parent >= 0 {
		g.takesBarrier(parent)
		g.givesBarrier(parent)
	}
	g.takesBarrier(children...)
}

// barrierTree returns the master to which number v of m sends (-1: none) and those from
// which it receives, in the order in which it does so.
func barrierTree(v, m, maxlinear int) (parent int, children []int) {
	if m <= maxlinear {
		if v > 0 {
			return 0, nil
		}
		for c := 1; c < m; c++ {
			children = append(children, c)
		}
		return -1, children
	}
	h := highBit(v)
	for i := highBit(m - 1); i > h; i-- {
		if c := v + 1<<i; c < m {
			children = append(children, c)
		}
	}
	if v == 0 {
		return -1, children
	}
	return v - 1<<h, children
}

// highBit returns the number of the highest bit that is set, -1 for none.
func highBit(v int) int {
	h := -1
	for ; v > 0; v >>= 1 {
		h++
	}
	return h
}

// deserted checks how a client ends whose proc ended without MPI_Finalize.
func (j *job) deserted() {
	ch := j.channels[0]
	if err := ch.ends("a proc of it has died"); ch.finished() || !errors.Is(err, io.EOF) && !isReset(err) {
		j.t.Fatalf("%s: %v; a FINI came: %v", ch.c.name, err, ch.finished())
	}
	ch.c.close()
	if rest := j.conn.closed("a proc of the client has died"); len(rest.data) >= 4 && string(rest.data[:4]) == cmdFini.String() {
		j.t.Fatalf("%s: FINI came", j.conn.name)
	}
	j.run.fails("one of its procs has died")
}
