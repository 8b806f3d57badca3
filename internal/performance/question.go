// Package performance makes docs/performance.md: for each question a run of impi-bench,
// whose figures are kept as they came, and a table that judges each row by itself.
package performance

import "slices"

// Question is a question of readers, and how the answer is measured.
type Question struct {
	Name  string // for -only, and the figures' file
	Title string
	Text  string            // what is measured, and how to read it
	Args  []string          // of impi-bench; arguments for JSON are added
	Of    []string          // the columns that are judged; empty: the variants of -beside
	Peers []string          // Of is compared with the best of these; empty: each with ours
	Pairs map[string]string // columns that are compared with this value instead
	Goals []Goal
}

// Goal is the ratio that a row should reach.
type Goal struct {
	Of    string // column
	Bench string
	Size  int     // Any: of all sizes
	Least float64 // wanted ratio; 0: none
	Most  float64 // maximum ratio; 0: any
}

// Any stands for all sizes.
const Any = -1

func (q *Question) goal(column, bench string, size int) (g Goal, ok bool) {
	i := slices.IndexFunc(q.Goals, func(g Goal) bool {
		return g.Of == column && g.Bench == bench && (g.Size == size || g.Size == Any)
	})
	if i < 0 {
		return g, false
	}
	return q.Goals[i], true
}

func (g Goal) met(ratio float64) bool {
	return (g.Least == 0 || ratio >= g.Least) && (g.Most == 0 || ratio <= g.Most)
}

// The columns of impi-bench.
const (
	inGo = "impi"
	inC  = "impi in C"
)

var bothPeers = []string{"mpich", "openmpi"}

func all(of string, least float64, benches ...string) (goals []Goal) {
	for _, b := range benches {
		goals = append(goals, Goal{Of: of, Bench: b, Size: Any, Least: least})
	}
	return goals
}

// The groups of impi-bench.
var (
	collectives = []string{"barrier", "bcast", "reduce", "allreduce", "alltoall", "gather", "scatter", "allgather", "reduce_scatter", "comm_dup", "comm_split"}
	nonblocking = []string{"ibarrier", "ibcast", "ireduce", "iallreduce", "ialltoall", "iallgather", "overlap"}
	onesided    = []string{"put", "get", "accumulate", "fetch_and_op", "compare_and_swap", "fence", "win_create"}
)

// Questions are the questions of the page, in its order.
var Questions = []Question{
	{
		Name:  "shm",
		Title: "How fast are messages between two procs of a machine?",
		Text: "Shared memory, beside MPICH and Open MPI, which choose their own. \"impi\" is a program in Go, \"impi in C\" the peers' own C loops with our library. " +
			"The ratio is to the better of the two peers: 1 is as fast, 2 twice as fast.",
		Args:  []string{"-transport", "shm", "-sizes", "8,64,512,4K,16K,64K,256K,1M,4M", "-repeat", "9", "-seconds", "0.05", "-limit", "30s", "-peer", "mpich,openmpi,c", "pingpong", "stream", "rate"},
		Of:    []string{inGo, inC},
		Peers: bothPeers,
		Goals: append(all(inGo, 0.8, "pingpong", "stream", "rate"), all(inC, 0.8, "pingpong", "stream", "rate")...),
	},
	{
		Name:  "collectives-of-two",
		Title: "How fast are collective operations of two procs of a machine?",
		Text:  "The same way, with a core for each proc.",
		Args:  []string{"-transport", "shm", "-procs", "2", "-sizes", "8,512,4K,16K,64K,256K,1M", "-repeat", "5", "-seconds", "0.03", "-limit", "10s", "-peer", "mpich,openmpi,c", "collectives"},
		Of:    []string{inGo, inC},
		Peers: bothPeers,
		Goals: append(all(inGo, 0.8, collectives...), all(inC, 0.8, collectives...)...),
	},
	{
		Name:  "nonblocking",
		Title: "How fast are collective operations that do not block?",
		Text: "Of two procs, each operation started and waited for. Overlap is how much of an iallreduce's time is hidden by computation between start and wait that takes as long as it; " +
			"what is less than 1 % shows as 1.",
		Args:  []string{"-transport", "shm", "-procs", "2", "-sizes", "8,512,4K,64K,1M", "-repeat", "5", "-seconds", "0.03", "-limit", "10s", "-peer", "mpich,openmpi,c", "nonblocking"},
		Of:    []string{inGo, inC},
		Peers: bothPeers,
		Goals: append(all(inGo, 0.8, nonblocking...), all(inC, 0.8, nonblocking...)...),
	},
	{
		Name:  "onesided",
		Title: "How fast are one-sided operations?",
		Text: "By one proc at another one of the machine, in memory of MPI_Win_allocate, each with its flush; a put between two fences; and a window of memory that the program has, made and freed. " +
			"Runs in which a peer crashes are left out.",
		Args:  []string{"-transport", "shm", "-procs", "2", "-sizes", "8,512,4K,16K,256K", "-repeat", "5", "-seconds", "0.03", "-limit", "10s", "-peer", "mpich,openmpi,c", "onesided"},
		Of:    []string{inGo, inC},
		Peers: bothPeers,
		Goals: append(all(inGo, 0.8, onesided...), all(inC, 0.8, onesided...)...),
	},
	{
		Name:  "tcp",
		Title: "How fast are messages over TCP?",
		Text: "The loopback interface, all three forced onto TCP. \"floor\" is two processes that poll a bare socket pair, without header, matching or protocol. " +
			"Up to 256 KiB of nonblocking sends share a system call, and links inside one machine have reno as congestion control where the floor and the peers have the " +
			"system's: so ours can be above the floor.",
		Args:  []string{"-transport", "tcp", "-repeat", "5", "-limit", "30s", "-floor", "-peer", "mpich,openmpi,c", "pingpong", "stream", "rate", "allreduce"},
		Of:    []string{inGo, inC},
		Peers: bothPeers,
		Goals: append(all(inGo, 1, "pingpong", "stream"), Goal{Of: inC, Bench: "pingpong", Size: 8, Least: 1}, Goal{Of: inC, Bench: "stream", Size: 1 << 20, Least: 1}),
	},
	{
		Name:  "collectives",
		Title: "How fast are collective operations of four procs on two cores?",
		Text:  "Shared memory; the root of bcast, reduce and gather goes round. MPICH spins without letting go of its core, so that what counts is Open MPI.",
		Args:  []string{"-transport", "shm", "-procs", "4", "-sizes", "8,1K,32K,1M", "-repeat", "5", "-seconds", "0.04", "-limit", "4s", "-peer", "mpich,openmpi", "collectives"},
		Of:    []string{inGo},
		Peers: bothPeers,
		Goals: all(inGo, 0.67, collectives...),
	},
	{
		Name:  "resume",
		Title: "What does resuming cost while nothing breaks?",
		Text: "Links over TCP with `resume = true` beside the same without. Both jobs live at the same time and take turns of milliseconds; the ratio is how many times longer it takes with " +
			"resuming, or how many times less is moved, with an interval of 95 %. Less than 1.03 is wanted in every row.",
		Args: []string{"-transport", "tcp", "-sizes", "8,4K,32K,64K,1M", "-repeat", "7", "-rounds", "12", "-seconds", "0.15", "-beside", "resume", "pingpong", "stream", "rate"},
		Goals: []Goal{
			{Of: "resume", Bench: "pingpong", Size: Any, Most: 1.03}, {Of: "resume", Bench: "stream", Size: Any, Most: 1.03}, {Of: "resume", Bench: "rate", Size: Any, Most: 1.03},
		},
	},
	{
		Name:  "plugin",
		Title: "What does it cost that a transport is a plugin?",
		Text: "The same loops over the same transport, called in the proc itself, without node or plugin. Above 1 the plugin is faster. Where the proc is handed the socket (tcp, unix) " +
			"or the memory (shm), nobody else sees the bytes.",
		Args:  []string{"-transport", "shm", "-sizes", "8,64K,1M", "-repeat", "7", "-beside", "in-process", "pingpong", "stream", "rate"},
		Goals: all("in-process", 0.95, "pingpong", "stream", "rate"),
	},
	{
		Name:  "plugin-tcp",
		Title: "The same over TCP",
		Text:  "As above.",
		Args:  []string{"-transport", "tcp", "-sizes", "8,64K,1M", "-repeat", "7", "-beside", "in-process", "pingpong", "stream"},
		Goals: all("in-process", 0.95, "pingpong", "stream"),
	},
	{
		Name:  "plugin-quic",
		Title: "The same over QUIC, and beside the library alone",
		Text: "QUIC lives in the plugin, which passes the bytes on: four processes share two cores. \"floor\" is quic-go alone: one connection, one stream, blocking calls, two processes. " +
			"0.85 of both is wanted.",
		Args:  []string{"-transport", "quic", "-sizes", "8,64K,1M", "-repeat", "7", "-beside", "in-process", "-floor", "pingpong", "stream"},
		Goals: append(all("in-process", 0.85, "pingpong", "stream"), all("floor", 0.85, "stream")...),
	},
	{
		Name:  "planes",
		Title: "What does a data plane cost?",
		Text: "The same TCP connection by each plane: `fd` hands its socket to the procs, in the others a plugin at each end passes the bytes on. The ratio is how many times better `fd` is. " +
			"`grpc` is for platforms on which descriptors cannot be passed.",
		Args: []string{"-transport", "tcp", "-plane", "fd", "-sizes", "8,4K,64K,1M", "-repeat", "5", "-beside", "ring,stream,grpc", "pingpong", "stream"},
	},
	{
		Name:  "ways",
		Title: "What do Unix sockets gain, and agents cost?",
		Text: "TCP between two procs beside Unix sockets, and beside the way through the agents of two sites (`direct = false`), on which each message passes through four processes. " +
			"The ratio is how many times better TCP is.",
		Args: []string{"-transport", "tcp", "-sizes", "8,4K,64K,1M", "-repeat", "5", "-beside", "unix,channel", "pingpong", "stream"},
	},
	{
		Name:  "connect",
		Title: "How long does it take to connect and to spawn?",
		Text: "MPI_Comm_accept of a proc of another world, which connects, and MPI_Comm_disconnect; a spawned world from MPI_Comm_spawn to MPI_Comm_disconnect. MPICH is the one " +
			"that `make peers` builds, if it has: Debian's can do neither. Each of our connections makes two links by the plugin, where the peers keep what they have.",
		Args:  []string{"-transport", "shm", "-repeat", "5", "-seconds", "0.3", "-limit", "20s", "-peer", "mpich,openmpi", "connect", "spawn"},
		Of:    []string{inGo},
		Peers: bothPeers,
	},
	{
		Name:  "start",
		Title: "How long does a job take to start, and how much memory has a proc?",
		Text: "Four procs that do nothing, from start to end (ours on two sites, with their plugins); what is resident of one; and of the plugins shm, unix, tcp and quic of a node together, " +
			"of which 120 MB are allowed.",
		Args:  []string{"-repeat", "5", "-peer", "mpich,openmpi", "start", "memory", "plugins"},
		Of:    []string{inGo},
		Peers: bothPeers,
	},
	{
		Name:  "machines",
		Title: "How long do launchers take on 2, 4 and 8 machines?",
		Text: "A program of two procs on each machine that does nothing, from start to end: impiexec beside mpiexec.hydra and mpirun. The machines are made on this one and share its cores: " +
			"network namespaces with sshd, of whose time ssh's own is more than half; and nodes of a real Slurm, where launchers run as in a batch script, on the job's first node. " +
			"\"by salloc\" is impiexec on another machine, which first goes to that node by a step of srun; \"by srun\" is srun --mpi=pmi2. The ratio is to the best of the others, and by srun to MPICH by srun.",
		Args:  []string{"-on", "ssh,slurm", "-machines", "2,4,8", "-repeat", "9", "-peer", "mpich,openmpi", "start"},
		Of:    []string{inGo, "impi by salloc", "impi by srun"},
		Peers: []string{"mpich", "openmpi"},
		Pairs: map[string]string{"impi by srun": "mpich by srun"},
		Goals: all(inGo, 1, "start by ssh", "start by slurm"),
	},
	{
		Name:  "startup",
		Title: "How long does a job of a million procs take to agree on who is who?",
		Text: "One server and 32 clients of 32,768 procs each, over TCP on loopback, from the first connection to the last client that knows the job. " +
			"The clients are the machine of core/startup, all in one process, and forget what they have checked.",
		Args: []string{"startup", "-clients", "32", "-procs", "1048576"},
	},
}
