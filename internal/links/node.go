package links

import (
	"strings"
	"time"

	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/internal/wireup"
)

// NodeState is how far a node has got.
type NodeState string

// The states of nodes.
const (
	NodeStarting NodeState = "starting" // not all sites have met, or not all procs are in Init
	NodeRunning  NodeState = "running"
	NodeEnding   NodeState = "ending"
	NodeSpare    NodeState = "spare" // the node of a spare site, which has no procs except spawned ones
)

// Node is the report of one node about its part of a job.
type Node struct {
	NodeInfo
	State      NodeState   `json:"phase"`
	Waits      string      `json:"waits_for,omitempty"` // for whom it waits, while it starts
	Now        time.Time   `json:"now,omitzero"`        // by the clock of the node's machine, as all times here are
	Sites      []Site      `json:"sites,omitempty"`     // of the whole job, by client rank
	Hosts      []Host      `json:"hosts,omitempty"`     // of this node
	Procs      []Proc      `json:"procs,omitempty"`     // of this node
	Transports []Transport `json:"transports,omitempty"`
	Views      []View      `json:"views,omitempty"` // of the pairs that this node's procs are part of
	Channels   []Channel   `json:"channels,omitempty"`
	Unused     int         `json:"unused,omitempty"` // pairs left out because nothing was sent between them
	Left       int         `json:"left,omitempty"`   // pairs left out because the answer has MaxViews

	// Retransmits are the packets that procs, channels and plugins had to send again, by transport.
	// They never decrease.
	Retransmits map[string]uint64 `json:"retransmits,omitempty"`

	World      string      `json:"world,omitempty"` // the job's name among other jobs; empty: it meets none
	Ports      int         `json:"ports,omitempty"` // open, at which other jobs can connect
	WorldLinks []WorldLink `json:"other_worlds,omitempty"`

	Server *JobServer `json:"server,omitempty"` // as the site's head sees it; nil at other hosts

	Lost []Loss `json:"lost,omitempty"` // lost procs, without which the job continues

	Spares []Spare `json:"spares,omitempty"` // spare sites, as this node sees them, or this one

	Log    []LogLine    `json:"log,omitempty"`     // by time
	ByHost []HostCounts `json:"by_host,omitempty"` // counts of all pairs of its procs, also those that Views leaves out
}

// JobServer is what a site knows of its job's server.
type JobServer struct {
	Address           string    `json:"address"`
	Embedded          bool      `json:"embedded,omitempty"` // it runs in this node
	Ours              bool      `json:"ours,omitempty"`     // it runs in another node of the job, or in a launcher
	Others            []string  `json:"others,omitempty"`   // further addresses of the file, where the sites have not met
	Lost              time.Time `json:"lost,omitzero"`      // since when it is lost for good
	DisconnectedSince time.Time `json:"apart,omitzero"`     // since when it is not connected, and is dialled again
	Why               string    `json:"why,omitempty"`      // why it is lost
	Unknown           bool      `json:"unknown,omitempty"`  // in a Job: whether it is connected is not known, as its node does not answer
}

// LogLine is a line of a node's log.
type LogLine struct {
	At    time.Time `json:"at"`
	Level string    `json:"level"` // info, warn or error
	From  string    `json:"from"`  // name of the part that wrote it
	Text  string    `json:"text"`
	Host  string    `json:"host,omitempty"` // whose node; in a Job
	Site  string    `json:"site,omitempty"`
}

// logLine is what a line of a log takes beside its texts, in bytes: about as much as JSON needs.
const logLine = 100

// KeepLog keeps the last lines of the log, up to most bytes.
func (n *Node) KeepLog(most int) {
	for i := len(n.Log) - 1; i >= 0; i-- {
		l := &n.Log[i]
		if most -= logLine + len(l.Level) + len(l.From) + len(l.Text); most < 0 {
			n.Log = n.Log[i+1:]
			return
		}
	}
}

// IsEvent reports whether a line is about a fault, or about the end of one.
func (l LogLine) IsEvent() bool {
	if strings.Contains(l.Text, "which needs a restart") { // what an operator has yet to do
		return false
	}
	return l.Level != "info" || strings.Contains(l.Text, "resumed") || strings.Contains(l.Text, "is replaced")
}

// HostCounts is what the procs of one host have counted of their links to those of another one.
type HostCounts struct {
	From     int    `json:"from"` // IMPI host ranks; From is the one that counts
	To       int    `json:"to"`
	Pairs    int    `json:"pairs"` // that have a link or have had one
	Messages uint64 `json:"sent_messages"`
	Data     uint64 `json:"sent_data_bytes"` // of these messages, whatever way they went
	Sent     uint64 `json:"sent_bytes"`      // over direct links, headers included
	Received uint64 `json:"received_bytes"`

	RTT time.Duration `json:"rtt_ns,omitempty"` // the shortest estimate of a link's; 0: there is none

	Compressed *wireup.CompressedBytes `json:"packed,omitempty"` // of the compressed links; nil: there are none

	Links []LinkCount `json:"links,omitempty"` // pairs by kind of link, at most MaxKinds; older nodes do not send it
}

// MaxKinds bounds HostCounts.Links.
const MaxKinds = 32

// LinkCount counts the pairs of procs of two hosts that are linked alike.
type LinkCount struct {
	State     State  `json:"state"`
	Transport string `json:"transport,omitempty"`
	Plane     string `json:"data_plane,omitempty"`
	Pairs     int    `json:"pairs"`
	Resumes   int    `json:"resumes,omitempty"` // of all of them
	Waits     int    `json:"waits,omitempty"`   // those that are being made, and for which there are messages

	// Counted are those whose bytes both ends count alike; Sent and Received are theirs.
	Counted  int    `json:"counted,omitempty"`
	Sent     uint64 `json:"sent_bytes,omitempty"`
	Received uint64 `json:"received_bytes,omitempty"`
}

// SetClock converts all times to the clock of another machine, whose present time is now.
func (n *Node) SetClock(now time.Time) {
	if n.Now.IsZero() {
		return
	}
	ahead := now.Sub(n.Now)
	shift := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(ahead)
		}
	}
	shift(&n.Now)
	if n.Server != nil {
		shift(&n.Server.Lost)
		shift(&n.Server.DisconnectedSince)
	}
	for i := range n.Procs {
		shift(&n.Procs[i].Since)
	}
	for i := range n.Transports {
		shift(&n.Transports[i].NextTry)
	}
	for i := range n.Views {
		shift(&n.Views[i].Since)
		for k := range n.Views[i].Candidates {
			shift(&n.Views[i].Candidates[k].At)
		}
	}
	for i := range n.Lost {
		shift(&n.Lost[i].At)
	}
	for i := range n.Spares {
		shift(&n.Spares[i].Since)
	}
	for i := range n.WorldLinks {
		shift(&n.WorldLinks[i].Since)
	}
	for i := range n.Log {
		shift(&n.Log[i].At)
	}
}

// NodeInfo identifies a node. It is a file in the node's run directory, so that a node that does
// not answer has a name, too.
type NodeInfo struct {
	Job    string `json:"job"`          // the job's name, from its file
	ID     string `json:"id,omitempty"` // the same for all nodes of one job; empty before the sites have met
	Site   string `json:"site"`
	Client int    `json:"client"`
	PID    int    `json:"pid"`
	Parent int    `json:"parent"` // process that started the node
	// Host is the address of the node's host, and Number the index of the host in its site, if
	// other nodes have the other hosts.
	Host   string `json:"host,omitempty"`
	Number int    `json:"host_number,omitempty"`

	// Server is the address of the job's server, if the file gives its port: it shows which nodes
	// that were started one by one belong to one job before the job has an ID.
	Server string `json:"server,omitempty"`
}

// isHost reports whether two nodes of one job are of the same host. Several hosts may have one
// address.
func (a *NodeInfo) isHost(b NodeInfo) bool {
	return a.Client == b.Client && (a.Client >= 0 || a.Site == b.Site) && a.Host == b.Host && a.Number == b.Number
}

// Site is one site of a job, as a node knows it since startup.
type Site struct {
	Name   string   `json:"name"` // empty if the node's file does not name it
	Client int      `json:"client"`
	Own    bool     `json:"own"` // runs impi
	First  int      `json:"first_rank"`
	Procs  int      `json:"procs"`
	Hosts  []string `json:"hosts"` // addresses

	HostProcs   []int        `json:"procs_by_host,omitempty"` // ranks are numbered by hosts; older nodes do not send it
	Collectives *Collectives `json:"collectives,omitempty"`   // in all sites of a job the same

	PIDs []int `json:"pids,omitempty"` // of its procs, if their numbers in the job are process IDs (IsProcessID)
}

// Collectives is how the sites of a job exchange messages in collective operations.
type Collectives struct {
	Direct     int           `json:"direct"`      // largest number of sites that exchange directly; more use trees
	DirectLong int           `json:"direct_long"` // bytes from which Allreduce of several sites is done part by part
	RTT        time.Duration `json:"rtt_ns,omitempty"`
	Rate       int64         `json:"rate_bytes_per_s,omitempty"`
	Why        string        `json:"why"`
}

// IsProcessID reports whether a number can be a process ID: the identities that sites of ours give
// their procs are larger than any.
func IsProcessID(n int64) bool {
	const most = 1 << 22 // the kernel's PID_MAX_LIMIT
	return n > 0 && n <= most
}

// Host is one host of the site, with what concerns its agent.
type Host struct {
	Rank    int     `json:"rank"` // IMPI host rank
	Address string  `json:"address"`
	Wait    Waiting `json:"wait"`
	NoBoard string  `json:"no_board,omitempty"` // why its procs share no memory for collective operations; empty: they do

	pid int // of its node, in a Part
}

// Waiting describes how a proc or an agent waits for messages: by polling until the budget is
// spent, and asleep from then on.
type Waiting struct {
	Setting        string        `json:"setting"`         // "auto", or what the wait block says
	Budget         time.Duration `json:"budget_ns"`       // of polling, for each wait
	Oversubscribed bool          `json:"crowded"`         // others want the cores: does not poll for now
	State          string        `json:"state,omitempty"` // "polling", "asleep" or "computing" (not in MPI); empty: not known
	Score          int           `json:"crowd_score"`     // 0 to 16; polling is given up from 8

	// Progress is the interval at which a proc makes progress while the program computes; 0 means
	// only in calls of MPI.
	Progress time.Duration `json:"progress_ns,omitempty"`
}

// Proc is a proc of the node's site, and what it answered when it was asked.
type Proc struct {
	away bool // on another machine; in a Part

	Rank    int     `json:"rank"`
	PID     int     `json:"pid"`
	Host    int     `json:"host"` // IMPI host rank of its agent
	Wait    Waiting `json:"wait"`
	Address string  `json:"address,omitempty"` // of its host, while it has no rank

	Agent  Bytes  `json:"agent"`            // what went over the link to its agent
	Silent string `json:"silent,omitempty"` // why it did not answer; its wait and its counters are unknown then

	// Since is when the first question was asked that it has not answered, or of a proc not told,
	// its node.
	Since time.Time `json:"silent_since,omitzero"`

	Counts  *Counts   `json:"counts,omitempty"` // nil: it did not answer
	State   ProcState `json:"state"`
	Lost    *Loss     `json:"lost,omitempty"`    // since when and why; in a Job
	Ended   string    `json:"ended,omitempty"`   // how it ended
	Blocked *Blocked  `json:"blocked,omitempty"` // nil: not blocked, or not reported

	Account *wireup.Account `json:"account,omitempty"` // its last account; nil: it counts nothing, or none was asked for
}

// Counts are what a proc has counted since its MPI_Init. Bytes are those of its present direct
// links, headers included, without those of links that have ended and of messages of up to 64 KiB
// by the fast boxes of shared memory.
type Counts struct {
	Messages        uint64        `json:"sent_messages"`
	Data            uint64        `json:"sent_data_bytes"` // in these messages, whatever way they went
	Sent            uint64        `json:"sent_bytes"`
	Received        uint64        `json:"received_bytes"`
	Unexpected      int           `json:"unexpected_messages"` // not yet received by the program, at present
	UnexpectedBytes int64         `json:"unexpected_bytes"`    // bytes of them that are here
	Sleeps          uint64        `json:"sleeps"`              // in calls of MPI
	Slept           time.Duration `json:"slept_ns"`            // in all
	Clock           time.Duration `json:"clock_ns,omitempty"`  // since the proc began, when it counted; 0: not known
}

// ProcState is how far a proc has got.
type ProcState string

// The states of a proc.
const (
	ProcStarting ProcState = "starting"    // it has not called MPI_Init
	ProcInit     ProcState = "in MPI_Init" // it waits there for the others
	ProcRunning  ProcState = "running"     // between MPI_Init and MPI_Finalize
	ProcFinished ProcState = "finished"    // after MPI_Finalize
	ProcEnded    ProcState = "ended"
	ProcNotTold  ProcState = "not told"  // its node does not answer; in a Job
	ProcNotAsked ProcState = "not asked" // nobody can ask its node from here; in a Job
	ProcLost     ProcState = "lost"      // the job goes on without it; in a Job
)

// Blocked is what a proc that sleeps in a call of MPI waits for.
type Blocked struct {
	Time     time.Duration `json:"time_ns"`         // length of the wait so far
	Calls    []Call        `json:"calls,omitempty"` // of its goroutines or threads that wait
	Partners []Partner     `json:"partners,omitempty"`
	Left     int           `json:"left_out,omitempty"` // partners that are left out

	Locks []Lock `json:"window_locks,omitempty"` // of the proc's memory in windows, for which others wait

	Computes bool `json:"other_threads_compute,omitempty"` // threads of it that are not in MPI use a core
}

// Call is a call of MPI, as the program writes it.
type Call struct {
	Name string `json:"name"`
	At   string `json:"at,omitempty"` // file and line of a Go program
}

// Lock is the lock of a proc's memory in a window.
type Lock struct {
	Window  string `json:"window"`
	Holders []int  `json:"holders"`
	Waiters []int  `json:"waiters"` // ranks whose requests for the lock have arrived
}

// Values of Partner.What for what procs wait for from others in windows.
const (
	WantsPost     = wireup.WantsPost     // its MPI_Win_post
	WantsComplete = wireup.WantsComplete // its MPI_Win_complete
	WantsLock     = wireup.WantsLock     // the lock of its memory
	WantsWindow   = wireup.WantsWindow   // that it serves operations, as it does in any call of MPI
)

// Partner is another proc, and what a proc waits for from it.
type Partner struct {
	What       string `json:"what"`                  // "recv", "send", "collective": that it comes to an operation; or a Wants constant
	Any        bool   `json:"any,omitempty"`         // from any source: Peer has no meaning
	OtherWorld bool   `json:"other_world,omitempty"` // it is of another world: Peer has no meaning without World
	World      string `json:"world,omitempty"`       // the name of that world, in which Peer is its rank
	Peer       int    `json:"peer"`                  // its rank in the world
	Tag        int    `json:"tag"`                   // -1: any
	Comm       string `json:"comm,omitempty"`        // or the window
	Why        string `json:"why,omitempty"`         // what an operation that has begun waits for

	Holders []int `json:"holders,omitempty"` // of the lock, if Peer reports them; in a Job
}

// Transport is a transport that the node runs.
type Transport struct {
	Host   string   `json:"host,omitempty"` // NodeInfo.Host of the node, in a Part
	Name   string   `json:"name"`
	State  string   `json:"state"` // of its plugin
	PID    int      `json:"pid"`
	Links  int      `json:"links"` // made so far
	Planes []string `json:"data_planes"`
	Reach  string   `json:"reach"`
	Error  string   `json:"error,omitempty"` // why its last process ended

	Drained  bool       `json:"drained,omitempty"`   // new links do not use it
	Protocol int        `json:"protocol,omitempty"`  // version that is spoken with the plugin
	Lacks    []string   `json:"lacks,omitempty"`     // features that this version lacks
	Problem  string     `json:"problem,omitempty"`   // degraded: what is worse than it could be
	Starts   int        `json:"starts,omitempty"`    // processes that got ready
	Failures int        `json:"failures,omitempty"`  // deaths and failed starts in a row
	NextTry  time.Time  `json:"next_start,omitzero"` // backoff and failed: not before
	Usage    *Resources `json:"resources,omitempty"` // of its process
}

// Resources is what a process takes of its machine.
type Resources struct {
	Resident    int64         `json:"resident_bytes"`
	Own         int64         `json:"own_bytes"` // of these, in no file and shared with nobody
	CPU         time.Duration `json:"cpu_ns"`
	Descriptors int           `json:"descriptors"`
	Threads     int           `json:"threads"`
}

// State is the state of a pair of procs.
type State string

// The states of a pair. They are ordered: of two views the later one counts.
const (
	StateUnused  State = "unused"  // nothing was sent yet: links are made for the first message
	StateOpening State = "opening" // transports are being tried
	StateWaiting State = "waiting" // both ends dialled: the other one's link is on its way
	StateAgents  State = "agents"  // packets go through the agents
	StateLinked  State = "linked"  // packets go over a link of the two procs
	StateEnded   State = "ended"   // the proc has finished, or its link broke

	// StateLost means that the connection of a link or a channel was lost and is being made again.
	StateLost State = "lost"
)

// View is a pair of procs as one end's node sees it.
type View struct {
	Local       int         `json:"local"`
	Peer        int         `json:"peer"`
	LocalHost   int         `json:"local_host"` // IMPI host ranks of their agents
	PeerHost    int         `json:"peer_host"`
	State       State       `json:"state"`
	Transport   string      `json:"transport,omitempty"`
	Plane       string      `json:"data_plane,omitempty"`
	PlaneReason string      `json:"data_plane_reason,omitempty"`
	Native      bool        `json:"native,omitempty"`  // the site's own MPI carries what they send
	Dialled     bool        `json:"dialled,omitempty"` // by this end's node
	Since       time.Time   `json:"since,omitzero"`
	Reason      string      `json:"reason,omitempty"` // why the packets go through the agents
	SameMachine bool        `json:"same_machine"`
	Candidates  []Candidate `json:"candidates,omitempty"`
	Route       Route       `json:"route"`
	Traffic     *Traffic    `json:"traffic,omitempty"` // nil: the proc did not answer
	Resumes     int         `json:"resumes"`
	Compress    string      `json:"compress,omitempty"`          // how this end compresses what it sends
	Rounds      bool        `json:"doubles_as_floats,omitempty"` // doubles of messages travel as floats
	Exact       string      `json:"not_rounded,omitempty"`       // why doubles are not rounded, though the route asks for it
	NoCompress  string      `json:"not_compressed,omitempty"`    // why it does not compress, though the route asks for it
}

// Verdict is a node's judgement of a transport for a pair.
type Verdict string

// The verdicts.
const (
	Chosen   Verdict = "chosen"
	Failed   Verdict = "failed"   // it was tried
	Lost     Verdict = "lost"     // both ends dialled, and the other link is used
	Possible Verdict = "possible" // not tried, as a better one works or nothing was sent
	Excluded Verdict = "excluded" // by the rule that Rule names
)

// Candidate is a transport that was considered for a pair.
type Candidate struct {
	Transport string     `json:"transport"`
	Address   string     `json:"address,omitempty"` // where the peer listens
	Reach     string     `json:"reach,omitempty"`
	Planes    []string   `json:"data_planes,omitempty"` // that its links can have
	Verdict   Verdict    `json:"verdict"`
	Rule      route.Rule `json:"rule,omitempty"` // of an excluded one, or of one that was refused
	Reason    string     `json:"reason"`
	At        time.Time  `json:"at,omitzero"` // of the last try
	Tries     int        `json:"tries,omitempty"`
	Probe     *Speed     `json:"probe,omitempty"` // of a transport that is not in use, if measured
}

// Route is the part of a site's file that holds for a pair.
type Route struct {
	Site       string   `json:"site"` // as in route "site"; empty: there is no block for it
	Prefer     []string `json:"prefer"`
	Direct     bool     `json:"direct"`
	DataPlane  []string `json:"data_plane,omitempty"`
	RequireTLS bool     `json:"require_tls,omitempty"`
	Closed     bool     `json:"closed,omitempty"`    // nothing leaves the machine unencrypted
	Compress   string   `json:"compress,omitempty"`  // how links are to be compressed
	Precision  string   `json:"precision,omitempty"` // format in which numbers are to travel
}

// Bytes counts both directions, by one end. Nil: unknown.
type Bytes struct {
	Sent     *uint64 `json:"sent_bytes,omitempty"`
	Received *uint64 `json:"received_bytes,omitempty"`
}

// Traffic is what a proc knows of its traffic with a peer.
type Traffic struct {
	Bytes                              // of the direct link, headers included
	Messages   uint64                  `json:"sent_messages"`
	Data       uint64                  `json:"sent_data_bytes"`  // in these messages, whatever way they went
	RTT        time.Duration           `json:"rtt_ns,omitempty"` // as the kernel estimates it for TCP, or the transport
	Ended      bool                    `json:"ended,omitempty"`  // the proc has no link to the peer any more
	Pure       bool                    `json:"pure,omitempty"`   // the bytes are those of the two procs alone, without what nodes said on the link before
	Compressed *wireup.CompressedBytes `json:"packed,omitempty"` // of a direct link that is compressed
}

// Channel is the connection between two hosts that carries what goes through
// the agents.
type Channel struct {
	From        int           `json:"from"` // IMPI host ranks
	To          int           `json:"to"`
	Address     string        `json:"address"`              // of To
	Transport   string        `json:"transport,omitempty"`  // of the connection, or of the last one
	Plane       string        `json:"data_plane,omitempty"` // at From's end
	PlaneReason string        `json:"data_plane_reason,omitempty"`
	RTT         time.Duration `json:"rtt_ns,omitempty"`
	State       State         `json:"state"`
	Ended       bool          `json:"ended,omitempty"`
	Resumable   bool          `json:"lasting,omitempty"` // it is made again when its connection is lost
	Lost        string        `json:"lost,omitempty"`    // why the last connection was lost
	Resumes     int           `json:"resumes"`
	Bytes
	Pure         bool                    `json:"pure,omitempty"`            // these bytes are only the two agents' own
	Compressed   *wireup.CompressedBytes `json:"packed,omitempty"`          // of a channel that is compressed
	UnderWay     *uint64                 `json:"under_way_bytes,omitempty"` // that From has sent and To has not received; nil: unknown. In a Job
	NoArrivalFor time.Duration           `json:"still_ns,omitempty"`        // time in which none of them has arrived, as far as observed
}

// Measure is what a probe of a transport between two nodes found.
type Measure struct {
	HalfTrip time.Duration `json:"half_trip_ns"` // median, of 8 bytes
	Best     time.Duration `json:"best_ns"`
	Rounds   int           `json:"rounds"`
	Rate     float64       `json:"rate_bytes_per_s"` // of one stream
	Plane    string        `json:"data_plane,omitempty"`
}
