package interpreter

import (
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var ops = map[string]mpi.Op{
	"sum": mpi.Sum, "prod": mpi.Prod, "max": mpi.Max, "min": mpi.Min, "band": mpi.BAnd, "bor": mpi.BOr, "bxor": mpi.BXor,
	"land": mpi.LAnd, "lor": mpi.LOr, "lxor": mpi.LXor,
	"concat": mpi.NewOp(func(in, inout []int32) {
		for i := 0; i+1 < len(in); i += 2 {
			inout[i+1] += in[i+1] * inout[i]
			inout[i] *= in[i]
		}
	}, false),
}

func (a *arguments) op() mpi.Op {
	op, ok := ops[a.values["op"]]
	if !ok {
		a.fail("op")
		return mpi.Sum
	}
	return op
}

func (in *interpreter) collective(word string, a *arguments) (string, error) {
	c := in.comm(a, "comm")
	root := a.num("root", 0)
	switch word {
	case "barrier":
		return "", c.Barrier()
	case "bcast":
		b := a.outgoing(a.num("n", 0))
		if c.Rank() != root {
			clear(b.mem)
		}
		err := c.Bcast(b.items(), root)
		return b.tell(b.n), err
	case "reduce", "allreduce", "scan", "reduce_scatter":
		return reduction(word, a, c, root)
	case "gather", "scatter", "allgather", "alltoall":
		return equalBlocks(word, a, c, root)
	case "gatherv", "scatterv", "allgatherv":
		return unequalBlocks(word, a, c, root)
	case "alltoallv":
		counts, rcounts := a.list("counts"), a.list("rcounts")
		out, into := a.outgoing(sum(counts)), a.buffer(sum(rcounts))
		err := c.Alltoallv(out.items(), counts, offsets(counts), into.items(), rcounts, offsets(rcounts))
		return into.tell(into.n), err
	}
	return "", errUnknown
}

func reduction(word string, a *arguments, c *mpi.Comm, root int) (string, error) {
	counts, op := a.list("counts"), a.op()
	if word != "reduce_scatter" {
		counts = []int{a.num("n", 0)}
	}
	out, n := a.outgoing(sum(counts)), sum(counts)
	if word == "reduce_scatter" {
		if n = 0; c.Rank() < len(counts) {
			n = counts[c.Rank()]
		}
	}
	into := a.buffer(n)
	if a.err != nil {
		return "", a.err
	}
	var err error
	switch word {
	case "reduce":
		if err = c.Reduce(out.items(), into.items(), op, root); c.Rank() != root {
			return "", err
		}
	case "allreduce":
		err = c.Allreduce(out.items(), into.items(), op)
	case "scan":
		err = c.Scan(out.items(), into.items(), op)
	case "reduce_scatter":
		err = c.ReduceScatter(out.items(), into.items(), counts, op)
	}
	return into.tell(into.n), err
}

func equalBlocks(word string, a *arguments, c *mpi.Comm, root int) (string, error) {
	n, all := a.num("n", 0), c.Size()*a.num("n", 0)
	switch word {
	case "gather":
		out, into := a.outgoing(n), a.buffer(all)
		if err := c.Gather(out.items(), into.items(), root); err != nil || c.Rank() != root {
			return "", err
		}
		return into.tell(all), nil
	case "scatter":
		out, into := a.outgoing(all), a.buffer(n)
		err := c.Scatter(out.items(), into.items(), root)
		return into.tell(n), err
	case "allgather":
		out, into := a.outgoing(n), a.buffer(all)
		err := c.Allgather(out.items(), into.items())
		return into.tell(all), err
	}
	out, into := a.outgoing(all), a.buffer(all)
	err := c.Alltoall(out.items(), into.items())
	return into.tell(all), err
}

func unequalBlocks(word string, a *arguments, c *mpi.Comm, root int) (string, error) {
	counts := a.list("counts")
	if len(counts) != c.Size() {
		return "", fmt.Errorf("%d counts for %d procs", len(counts), c.Size())
	}
	own, all := counts[c.Rank()], sum(counts)
	switch word {
	case "gatherv":
		out, into := a.outgoing(own), a.buffer(all)
		if err := c.Gatherv(out.items(), into.items(), counts, offsets(counts), root); err != nil || c.Rank() != root {
			return "", err
		}
		return into.tell(all), nil
	case "scatterv":
		out, into := a.outgoing(all), a.buffer(own)
		err := c.Scatterv(out.items(), counts, offsets(counts), into.items(), root)
		return into.tell(own), err
	}
	out, into := a.outgoing(own), a.buffer(all)
	err := c.Allgatherv(out.items(), into.items(), counts, offsets(counts))
	return into.tell(all), err
}

func sum(v []int) (n int) {
	for _, x := range v {
		n += x
	}
	return n
}

func offsets(counts []int) []int {
	v := make([]int, len(counts))
	for i := 1; i < len(v); i++ {
		v[i] = v[i-1] + counts[i-1]
	}
	return v
}
