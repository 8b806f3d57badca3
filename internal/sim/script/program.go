package script

import (
	"reflect"
	"slices"
	"time"
)

// World is the name of the communicator that exists from the start. In a program of several worlds
// these communicators are called a, b and so on, and MPI_COMM_SELF of rank 1 of b is b1.
const World = "w"

// TagLimit bounds the tags of a program's own messages. Some steps use tags from there on for
// messages of their own.
const TagLimit = 30000

// controlTags is how many tags from TagLimit on are used for messages of steps, and leaderTags how
// many after them for making intercommunicators.
const controlTags, leaderTags = 2000, 700

// Program describes the actions of all procs of a job, or of several jobs that meet. Check decides
// whether it is legal. Procs are numbered by world and rank; in one world the number is the rank.
type Program struct {
	Procs    int       // total of all worlds
	Worlds   []int     // number of procs of each world; nil: there is one world
	Messages []Message // ID of each is positive; the steps use each of them
	Steps    []Step
}

// Message is a message from one rank to another, or to the same one: a send and
// a receive, which are started and completed by steps.
type Message struct {
	ID       int    `line:"@"`
	From, To int    // procs
	Comm     string // From and To are both members
	Tag      int
	Kind     Kind `line:"type"`
	Len      int  // elements that are sent
	Cap      int  // room of the receive in elements; a longer message is truncated
	Mode     Mode

	AnySource, AnyTag bool      // what the receive accepts
	By                ReceiveBy // how a blocking receive finds it

	// Messages with the same slot are sent, or received, by one persistent request. 0: none.
	SendSlot, RecvSlot int
}

type pattern struct{ source, tag int }

const (
	anySource = -1
	anyTag    = -2
)

func (m *Message) pattern() pattern {
	p := pattern{m.From, m.Tag}
	if m.AnySource {
		p.source = anySource
	}
	if m.AnyTag {
		p.tag = anyTag
	}
	return p
}

func (p pattern) admits(m *Message) bool {
	return (p.source == anySource || p.source == m.From) && (p.tag == anyTag || p.tag == m.Tag)
}

func (m *Message) rank(s Side) int {
	if s == SendSide {
		return m.From
	}
	return m.To
}

// Req is one of the two requests of a message.
type Req struct {
	Msg  int  `line:"@"`
	Side Side `line:"-"`
}

// Step is one line of a program. Its types are the types of this package that have the name of an
// MPI function, or of a group of them.
type Step any

// Start begins one side of a message. If it is blocking it also completes it, and whatever it waits
// for must have been begun by an earlier step.
type Start struct {
	Req
	Blocking bool `line:"-"`
}

// Exchange sends and receives messages at the same time: each rank sends at most
// one of them, and receives at most one. A rank that does both calls Sendrecv, or
// SendrecvReplace, any other its blocking send or receive.
type Exchange struct {
	Msgs    []int `line:"@"`
	Replace bool  `line:"-"`
}

// Wait completes requests of one rank.
type Wait struct {
	Rank int        `line:"@"`
	How  CompleteBy `line:"-"`
	Reqs []Req      `line:"@"`
}

// Cancel cancels and completes one side of a message that was started. The cancel may succeed or
// not. The receiver learns a send's fate in the same step, and then completes or cancels its
// receive or, if it has started none, receives the message or does not. A receive that was
// cancelled is done again.
type Cancel struct {
	Req `line:"@"`
}

// Unmatched starts a receive for which there is no message, and cancels it.
type Unmatched struct {
	Rank   int `line:"@"`
	Comm   string
	Source int `line:"source,any"` // world rank, or -1 for any
	Tag    int
}

// Null communicates with MPI_PROC_NULL.
type Null struct {
	Rank int `line:"@"`
	Comm string
	What NullCall `line:"call"`
}

// Pause makes a rank compute for that long.
type Pause struct {
	Rank int           `line:"@"`
	For  time.Duration `line:"@"`
}

// Attach gives a rank memory for buffered sends, in bytes.
type Attach struct {
	Rank int `line:"@"`
	Size int `line:"@"`
}

// Detach detaches a rank's memory for buffered sends, once all buffered sends have left.
type Detach struct {
	Rank int `line:"@"`
}

// Collective is a collective operation of all members of a communicator.
type Collective struct {
	Call Call   `line:"-"`
	Comm string `line:"@"`
	ID   int    // picks the data
	Root int    // rank in World
	Kind Kind   `line:"type"`
	// Counts are in elements: one number for the size of each block; or the block of each rank; for
	// Alltoallv, what rank i sends to rank j, at i*size+j.
	Counts []int
	// Gap is the number of free elements before each block, where there are displacements. Blocks
	// are then in the reverse order of ranks. 0 means no displacements.
	Gap     int
	Op      Op
	InPlace bool
}

// Dup duplicates a communicator.
type Dup struct {
	Comm string `line:"@"`
	New  string
}

// Split splits a communicator. Colors and keys are by rank in it; NoColor is
// MPI_UNDEFINED. The new communicators are named in ascending order of color.
type Split struct {
	Comm   string `line:"@"`
	New    []string
	Colors []int `line:"colors,none"`
	Keys   []int
}

// NoColor is the color of members that get no communicator.
const NoColor = -1

// Cart creates a grid from a communicator.
type Cart struct {
	Comm     string `line:"@"`
	New      string
	Dims     []int
	Periodic []bool
}

// CartSub creates slices of a grid. They are named in the order of the coordinates of the dropped
// dimensions.
type CartSub struct {
	Comm string `line:"@"`
	New  []string
	Keep []bool
}

// Free frees a communicator. Its members from different worlds must have another communicator with
// each other, which a Disconnect ends.
type Free struct {
	Comm string `line:"@"`
}

// OpenPort opens a port at a proc, and ClosePort closes it. A port is known by a number.
type OpenPort struct {
	Rank int `line:"@"`
	Port int `line:"@"`
}

// ClosePort closes a port.
type ClosePort struct {
	Rank int `line:"@"`
	Port int `line:"@"`
}

// Meet makes the members of Comm accept at a port that Root has opened, and the members of With
// connect to it. Both are one step, as neither ends before the other begins.
type Meet struct {
	Comm           string `line:"@"`
	With, New      string
	Root, WithRoot int // procs
	Port           int
	Late           time.Duration // time that Root computes before it accepts
}

// Spawn makes the members of Comm spawn procs, which become a world of the program. In these procs
// New is the communicator with their parents.
type Spawn struct {
	Comm  string `line:"@"`
	World string // a letter; empty: the spawn fails
	New   string
	Root  int      // proc
	Procs []int    // number of procs of each command
	Hosts []string // the info key host of each command; empty: no command has the key
	Fails SpawnFailure
}

// SpawnFailure is the reason why a spawn must fail.
type SpawnFailure uint8

// The reasons.
const (
	Nothing  SpawnFailure = iota
	NoSlots               // the site has too few slots
	NoHost                // there is no such host
	ProcEnds              // a proc ends before it is in MPI
)

// Idup begins to duplicate a communicator, and Finish waits for it.
type Idup struct {
	Comm string `line:"@"`
	New  string
}

// Finish waits for the Idup that makes Comm.
type Finish struct {
	Comm string `line:"@"`
}

// Merge creates an intracommunicator from an intercommunicator.
type Merge struct {
	Comm string `line:"@"`
	New  string
	High bool // the side that accepted, or began, comes last
}

// Intercomm creates an intercommunicator from Comm and With, whose leaders are members of Peer.
type Intercomm struct {
	Comm             string `line:"@"`
	With, Peer, New  string
	Leader, WithLead int // procs
}

// Disconnect ends the use of a communicator. The last Disconnect between two worlds ends their
// connection.
type Disconnect struct {
	Comm string `line:"@"`
}

func messages(s Step) []int {
	switch s := s.(type) {
	case Start:
		return []int{s.Msg}
	case Cancel:
		return []int{s.Msg}
	case Exchange:
		return s.Msgs
	case Wait:
		ids := make([]int, len(s.Reqs))
		for i, q := range s.Reqs {
			ids[i] = q.Msg
		}
		return ids
	}
	return nil
}

// worlds returns how many procs each world has.
func (p *Program) worlds() []int {
	if p.Worlds == nil {
		return []int{p.Procs}
	}
	return p.Worlds
}

// WorldOf returns the number of the world of a proc, whose number counts the procs of all worlds.
func (p *Program) WorldOf(proc int) (world int) {
	for ; world < len(p.Worlds)-1 && proc >= p.Worlds[world]; world++ {
		proc -= p.Worlds[world]
	}
	return world
}

// Death returns the program's step about the death of a root, if it has one.
func (p *Program) Death() (Death, bool) {
	for _, s := range p.Steps {
		if d, ok := s.(Death); ok {
			return d, true
		}
	}
	return Death{}, false
}

func (p *Program) index() map[int]*Message {
	byID := make(map[int]*Message, len(p.Messages))
	for i := range p.Messages {
		byID[p.Messages[i].ID] = &p.Messages[i]
	}
	return byID
}

// Prune leaves out steps and messages that refer to missing messages, communicators and ports, and
// messages, communicators and ports that nothing uses. The rest need not be legal.
func (p *Program) Prune() {
	c, ports := p.comms(), map[int]int{}
	for _, s := range p.Steps {
		_, _, _ = c.apply(s)
		switch s := s.(type) {
		case OpenPort:
			ports[s.Port] |= 1
		case ClosePort:
			ports[s.Port] |= 2
		case Meet:
			ports[s.Port] |= 4
		}
	}
	p.Messages = slices.DeleteFunc(p.Messages, func(m Message) bool { return c.byName[m.Comm] == nil })
	byID, used := p.index(), map[int]bool{}
	gone := func(id int) bool { return byID[id] == nil }
	c = p.comms()
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool {
		if _, _, err := c.apply(s); err != nil {
			return true
		}
		f := reflect.ValueOf(s).FieldByName("Comm")
		return f.IsValid() && c.byName[f.String()] == nil
	})
	for i, s := range p.Steps {
		switch s := s.(type) {
		case Exchange:
			s.Msgs = slices.DeleteFunc(slices.Clone(s.Msgs), gone)
			p.Steps[i] = s
		case Wait:
			s.Reqs = slices.DeleteFunc(slices.Clone(s.Reqs), func(q Req) bool { return gone(q.Msg) })
			p.Steps[i] = s
		}
	}
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool {
		switch s := s.(type) {
		case Start, Cancel, Exchange, Wait:
			return len(messages(s)) == 0 || slices.ContainsFunc(messages(s), gone)
		case OpenPort:
			return ports[s.Port] != 7
		case ClosePort:
			return ports[s.Port] != 7
		case Meet:
			return ports[s.Port] != 7
		}
		return false
	})
	for _, s := range p.Steps {
		for _, id := range messages(s) {
			used[id] = true
		}
	}
	p.Messages = slices.DeleteFunc(p.Messages, func(m Message) bool { return !used[m.ID] })
}
