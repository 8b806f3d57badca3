package script

import "time"

// World is the name of the communicator that exists from the start.
const World = "w"

// TagLimit is what the tags of a program's own messages are below. Some steps use
// tags from there on for what they have to tell the other rank.
const TagLimit = 30000

const controlTags = 2000 // how many tags there are from TagLimit on for that

// Program is what all ranks of a job do. Check tells whether it is legal.
type Program struct {
	Procs    int
	Messages []Message // by ID, which are positive; each is used by the steps
	Steps    []Step
}

// Message is a message from one rank to another, or to the same one: a send and
// a receive, which are started and completed by steps.
type Message struct {
	ID       int    `line:"@"`
	From, To int    // ranks in World
	Comm     string // both are members
	Tag      int
	Kind     Kind `line:"type"`
	Len      int  // elements that are sent
	Cap      int  // elements that the receive has room for; fewer than Len are truncated
	Mode     Mode

	AnySource, AnyTag bool // of the receive
	By                By   // how a blocking receive finds it

	// Messages that have one of these in common are sent, or received, by one
	// persistent request. 0: none.
	SendSlot, RecvSlot int
}

// pattern is what a receive asks for.
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

// admits tells whether a receive of this pattern can get m.
func (p pattern) admits(m *Message) bool {
	return (p.source == anySource || p.source == m.From) && (p.tag == anyTag || p.tag == m.Tag)
}

// rank is the world rank of one side.
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

// Step is one line of a program. The types of this package that have a name of
// an MPI function, or of a group of them, are all there are.
type Step interface {
	// messages lists the messages that the step touches.
	messages() []int
}

// Start begins one side of a message. If it is blocking it completes it, too,
// and what it waits for must have been begun by an earlier step.
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
	Rank int   `line:"@"`
	How  How   `line:"-"`
	Reqs []Req `line:"@"`
}

// Cancel cancels and completes one side of a message, which was started.
// Whether that works is open. A send's fate is told to the receiver, in the same
// step, which then completes or cancels its receive or, if it has started none,
// receives or leaves it. A receive that was cancelled is done again.
type Cancel struct {
	Req `line:"@"`
}

// Lone starts a receive for which there is no message, and cancels it.
type Lone struct {
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

// Pause lets a rank compute for that long.
type Pause struct {
	Rank int           `line:"@"`
	For  time.Duration `line:"@"`
}

// Attach gives a rank memory for buffered sends, in bytes.
type Attach struct {
	Rank int `line:"@"`
	Size int `line:"@"`
}

// Detach takes it back, when all buffered sends have left.
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
	// Counts are elements: of each block, if there is one number; of the block of
	// each rank; for Alltoallv of what rank i sends to rank j, at i*size+j.
	Counts []int
	// Gap is the number of elements that are left free before each block, where
	// there are displacements. Blocks lie then in the reverse order of ranks. 0
	// means no displacements.
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

// NoColor is the color of those that get no communicator.
const NoColor = -1

// Cart makes a grid of a communicator.
type Cart struct {
	Comm     string `line:"@"`
	New      string
	Dims     []int
	Periodic []bool
}

// CartSub makes slices of a grid. They are named in the order of the coordinates
// that are not kept.
type CartSub struct {
	Comm string `line:"@"`
	New  []string
	Keep []bool
}

// Free ends the use of a communicator; core/mpi has no call for it.
type Free struct {
	Comm string `line:"@"`
}

func (s Start) messages() []int    { return []int{s.Msg} }
func (s Exchange) messages() []int { return s.Msgs }
func (s Cancel) messages() []int   { return []int{s.Msg} }
func (s Wait) messages() []int {
	ids := make([]int, len(s.Reqs))
	for i, q := range s.Reqs {
		ids[i] = q.Msg
	}
	return ids
}

func (Lone) messages() []int       { return nil }
func (Null) messages() []int       { return nil }
func (Pause) messages() []int      { return nil }
func (Attach) messages() []int     { return nil }
func (Detach) messages() []int     { return nil }
func (Collective) messages() []int { return nil }
func (Dup) messages() []int        { return nil }
func (Split) messages() []int      { return nil }
func (Cart) messages() []int       { return nil }
func (CartSub) messages() []int    { return nil }
func (Free) messages() []int       { return nil }

// index finds messages by their IDs.
func (p *Program) index() map[int]*Message {
	byID := make(map[int]*Message, len(p.Messages))
	for i := range p.Messages {
		byID[p.Messages[i].ID] = &p.Messages[i]
	}
	return byID
}
