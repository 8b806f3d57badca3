package script

// Side is an end of a message.
type Side uint8

// The sides of a message.
const (
	SendSide Side = iota
	RecvSide
)

// Mode is a send's mode.
type Mode uint8

// The send modes of MPI. A ready send needs a receive that is known to have been
// started before, by a message or a barrier since; a buffered one needs Attach.
const (
	Standard Mode = iota
	Synchronous
	Buffered
	Ready
)

// ReceiveBy is the way in which a blocking receive finds its message.
type ReceiveBy uint8

// Ways of receiving: directly, or after a probe. After the first two kinds of probe an ordinary
// receive receives the message; the other two kinds take the message out of the queue. ByIprobe and
// ByImprobe are repeated until they find something.
const (
	ByRecv ReceiveBy = iota
	ByProbe
	ByIprobe
	ByMprobe
	ByImprobe
)

// CompleteBy is the way of completing requests.
type CompleteBy uint8

// Ways of completing requests. Calls that may complete only some of the requests, or none, are
// repeated until all are complete. GetStatus polls each request and then waits for it.
const (
	HowWait CompleteBy = iota
	HowWaitall
	HowWaitany
	HowWaitsome
	HowTest
	HowTestall
	HowTestany
	HowTestsome
	HowGetStatus
)

// NullCall is a call with MPI_PROC_NULL.
type NullCall uint8

// The calls of Null.
const (
	NullSend NullCall = iota
	NullRecv
	NullIsend
	NullIrecv
	NullSendrecv
	NullProbe
	NullMprobe
)

// Call is a collective operation.
type Call uint8

// The collective operations of core/mpi.
const (
	Barrier Call = iota
	Bcast
	Gather
	Gatherv
	Scatter
	Scatterv
	Allgather
	Allgatherv
	Alltoall
	Alltoallv
	Reduce
	Allreduce
	ReduceScatter
	ReduceScatterBlock
	Scan
	Exscan
)

// Op is a reduction operation.
type Op uint8

// The predefined operations of core/mpi and three user-defined ones. OpRight returns the operand of
// the higher rank, OpAffine composes functions x -> a*x+b; neither is commutative. OpModulo adds
// modulo a prime, which is commutative.
const (
	OpSum Op = iota
	OpProd
	OpMax
	OpMin
	OpLAnd
	OpLOr
	OpLXor
	OpBAnd
	OpBOr
	OpBXor
	OpMaxLoc
	OpMinLoc
	OpRight
	OpAffine
	OpModulo
)

var (
	modeNames = []string{"standard", "synchronous", "buffered", "ready"}
	byNames   = []string{"recv", "probe", "iprobe", "mprobe", "improbe"}
	howNames  = []string{"wait", "waitall", "waitany", "waitsome", "test", "testall", "testany", "testsome", "getstatus"}
	lackNames = []string{"nothing", "room", "place", "life"}
	nullNames = []string{"send", "recv", "isend", "irecv", "sendrecv", "probe", "mprobe"}
	callNames = []string{
		"barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv",
		"reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan",
	}
	opNames = []string{
		"sum", "prod", "max", "min", "land", "lor", "lxor", "band", "bor", "bxor", "maxloc", "minloc",
		"right", "affine", "modulo",
	}
)

func (m Mode) String() string { return modeNames[m] }

func (b ReceiveBy) String() string { return byNames[b] }

func (h CompleteBy) String() string { return howNames[h] }

func (l SpawnFailure) String() string { return lackNames[l] }

func (n NullCall) String() string { return nullNames[n] }

func (c Call) String() string { return callNames[c] }

func (o Op) String() string { return opNames[o] }

func (c Call) rooted() bool {
	switch c {
	case Bcast, Gather, Gatherv, Scatter, Scatterv, Reduce:
		return true
	default: // the step has no communicator
		return false
	}
}

func (c Call) reduces() bool { return c >= Reduce }

// counts returns how many counts a collective operation of n ranks has.
func (c Call) counts(n int) int {
	switch c {
	case Barrier:
		return 0
	case Gatherv, Scatterv, Allgatherv, ReduceScatter:
		return n
	case Alltoallv:
		return n * n
	default: // the same for all ranks
		return 1
	}
}

func (c Call) displaced() bool {
	return c == Gatherv || c == Scatterv || c == Allgatherv || c == Alltoallv
}

// placed reports whether a collective operation can be in place.
func (c Call) placed() bool { return c >= Gather }
