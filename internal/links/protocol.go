package links

import (
	"slices"
	"time"
)

// SocketName and AboutName are the files in a node's run directory.
const (
	SocketName = "control"
	AboutName  = "node.json"
)

// Bounds of what is asked and answered.
const (
	MaxViews     = 4096
	maxRequest   = 16 << 10 // bytes
	maxAnswer    = 64 << 20
	maxAbout     = 16 << 10
	maxAsking    = 64              // connections that a node serves at a time; others wait until one has ended
	requestLimit = 5 * time.Second // for a connection to begin, and to be idle
	serveLimit   = MaxDeadline     // to make the answer and send it
)

// Op is the kind of a request.
type Op string

// The requests.
const (
	OpLinks Op = "links" // answered by a Node
	OpProbe Op = "probe" // answered by a Measure

	// OpReload makes the node replace the process of a plugin by a new one. It is answered by a
	// PluginReload.
	OpReload Op = "reload"

	// OpVerify makes the node check the files of its plugins. It is answered by Files.
	OpVerify Op = "verify"

	// OpReread makes all nodes of the site read their job file again and apply what can change of
	// it: all of them, or none if one cannot. It is answered by Rereads.
	OpReread Op = "reread"

	// OpDrain makes new links of a node, and links that can move, avoid plugins; OpUndrain allows
	// these plugins again, and OpDrained only asks. They are answered by a Drain.
	OpDrain   Op = "drain"
	OpUndrain Op = "undrain"
	OpDrained Op = "drained"

	// OpEnding waits until the node is about to end. It is answered by an Ending.
	OpEnding Op = "ending"
)

// Request is what a node is asked.
type Request struct {
	Op Op
	// Host is the address of the host of the node's site that the request is for. If it is empty,
	// links is for all hosts, probe for the host of Local, reload and verify for the host whose
	// node is asked.
	Host string
	// Number is one more than the host's number in its site, if several hosts have the address
	// Host; 0 means the first one.
	Number  int
	Here    bool // links: without Host, only the host whose node is asked
	Sites   bool // links: unless Here, the job's other sites too
	Calls   bool // links: the calls of MPI in which procs wait, which takes longer
	Account bool // links: what procs have counted of their calls of MPI
	Log     bool // links: what nodes of the site have logged last, too
	ByHost  bool // links: what went between hosts in all, too
	All     bool // links: also unused pairs
	AllUpTo int  `json:"Few"` // links: All if the site has no more pairs than this
	Views   int  // links: most pairs of an answer; 0: MaxViews
	// Limit is how long the node of another site waits for the answer; 0: a short time.
	Limit time.Duration `json:",omitempty"`

	// probe: from a rank of the site's, by a transport.
	Local, Peer int
	Transport   string // reload: whose plugin

	Force bool // reload: even if links are lost by it

	// Check and Text are for reread, among the nodes of a site.
	Check bool   `json:",omitempty"` // change nothing
	Text  string `json:",omitempty"` // the head's job file, for nodes that an engine has started
}

// Answer has what was asked for, or Error.
type Answer struct {
	Error   string        `json:"error,omitempty"`
	Node    *Node         `json:"node,omitempty"`
	Measure *Measure      `json:"measure,omitempty"`
	Reload  *PluginReload `json:"reload,omitempty"`
	Files   []File        `json:"files,omitempty"`
	Rereads []FileReload  `json:"rereads,omitempty"` // in the order of the site's hosts
	Drain   *Drain        `json:"drain,omitempty"`
	Ending  *Ending       `json:"ending,omitempty"`
	Others  []HostAnswer  `json:"others,omitempty"` // links: what the nodes of the site's other hosts say

	Reports bool `json:"reports,omitempty"` // between sites: it waits for final answers of others, for a report
}

// Ending is how a node's part of a job ends.
type Ending struct {
	Site    string `json:"site"`
	Failure string `json:"failure,omitempty"` // empty: it ends in order
}

// HostAnswer is the answer of another host's node, or why there is none.
type HostAnswer struct {
	About NodeInfo `json:"about"`
	Node  *Node    `json:"node,omitempty"`
	Error string   `json:"error,omitempty"`

	NotAsked bool `json:"not_asked,omitempty"` // there is no way to ask it, for the reason in Error

	Since time.Time `json:"silent_since,omitzero"` // when a question was first not answered, by the clock of the node that asked
}

// PluginReload is the result of a request to replace a plugin's process.
type PluginReload struct {
	Site      string  `json:"site"`
	Transport string  `json:"transport"`
	Before    Process `json:"before"`
	After     Process `json:"after"`
	Resuming  int     `json:"resuming"` // links whose bytes passed through the old process, and that are resumed
	Lost      int     `json:"lost"`     // such links that are not
}

// FileReload is the result of a request to read the job file again, at one node. Its texts are for
// the operator, a line each.
type FileReload struct {
	Site    string   `json:"site"`
	Host    string   `json:"host,omitempty"` // if each host of the site has a node of its own
	PID     int      `json:"node_pid,omitempty"`
	File    string   `json:"file,omitempty"`
	Applied bool     `json:"applied"`                 // the Changes are in effect
	Changes []string `json:"changes,omitempty"`       // what can change
	Restart []string `json:"needs_restart,omitempty"` // what differs and cannot change
	Faults  []string `json:"faults,omitempty"`        // of the file
	Problem string   `json:"problem,omitempty"`       // why this node has changed nothing, or not all
	Digest  string   `json:"digest,omitempty"`        // of the settings that all hosts must share
}

// Failed reports whether something is wrong at the node or with its file.
func (r *FileReload) Failed() bool { return r.Problem != "" || len(r.Faults) > 0 }

// Drain reports what uses plugins of a node that are to be replaced.
type Drain struct {
	Site       string     `json:"site"`
	Transports []Draining `json:"transports"`
}

// Draining counts what uses a plugin: links whose bytes pass through it.
type Draining struct {
	Transport string `json:"transport"`
	PID       int    `json:"pid"`
	Version   string `json:"version"`
	Drained   bool   `json:"drained"`
	Moving    int    `json:"moving"`    // are resumed by another transport
	Waiting   int    `json:"waiting"`   // can be resumed, but no other transport leads to the peer
	Fixed     int    `json:"fixed"`     // are not resumed
	ToWorlds  int    `json:"to_worlds"` // lead to other worlds: they stay until they are closed or lost
	Channels  int    `json:"channels"`  // between hosts
}

// InUse reports whether anything uses the plugin.
func (d *Draining) InUse() bool { return d.Moving+d.Waiting+d.Fixed+d.ToWorlds+d.Channels > 0 }

// InUse reports whether anything uses one of the plugins.
func (d *Drain) InUse() bool {
	return slices.ContainsFunc(d.Transports, func(t Draining) bool { return t.InUse() })
}

// Moves reports whether something is leaving one of the plugins.
func (d *Drain) Moves() bool {
	return slices.ContainsFunc(d.Transports, func(t Draining) bool { return t.Moving > 0 })
}

// File describes the file of a plugin on the machine of the node. Built-in plugins have none.
type File struct {
	Transport string `json:"transport"`
	Path      string `json:"path,omitempty"`
	SHA256    string `json:"sha256,omitempty"`  // of the file as it is now
	Trusted   string `json:"trusted,omitempty"` // the checksum in the job file
	Running   string `json:"running,omitempty"` // of the file that the plugin's process was started from
	Error     string `json:"error,omitempty"`   // what is wrong with it
}

// Process is a plugin's process.
type Process struct {
	PID     int    `json:"pid"`
	Version string `json:"version"` // of the plugin
	SHA256  string `json:"sha256,omitempty"`
}
