package agree

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Errors of a Member. All except ErrConfig, ErrRank and ErrMany are about a message: its sender
// violates the algorithm, or counts as failed although it lives.
var (
	// ErrConfig: a Config that is not valid for any group.
	ErrConfig = errors.New("agree: impossible group")
	// ErrRank: a rank that is not in the group, or is this member's own.
	ErrRank = errors.New("agree: not another member of the group")
	// ErrMany: an agreement is begun, or a message is about one, while too many earlier ones have
	// not returned.
	ErrMany = errors.New("agree: too many agreements that have not returned")
	// ErrTwice: a second contribution of the sender to one agreement.
	ErrTwice = errors.New("agree: this was sent before")
	// ErrUnasked: an answer that this member has not asked for.
	ErrUnasked = errors.New("agree: an answer that nobody asked for")
	// ErrExcluded: the others have decided without this member, which they take for failed.
	ErrExcluded = errors.New("agree: the others have agreed without this member")
	// ErrDiffers: two different results of one agreement.
	ErrDiffers = errors.New("agree: two members have different results")
)

// Defaults of a Config.
const (
	DefaultFan    = 2
	DefaultWindow = 64
)

// Config describes the group to a Member. It must be the same at all members, except for Me.
type Config struct {
	Size  int
	Me    int
	Sites []int // site of each member, as any number; nil: all are at one site
	// Fan is the maximum number of children of a member at its own site; 0 is DefaultFan.
	Fan int
	// Window is the maximum number of agreements that are begun and have not returned; 0 is
	// DefaultWindow.
	Window int
}

// Contribution is a member's input to an agreement.
type Contribution struct {
	Flags uint64    // combined by AND
	Max   [2]uint64 // combined by maximum, each for itself
	Acked Set       // failed members that its program has acknowledged
}

// Decision is the result of an agreement, the same at all living members.
type Decision struct {
	Sequence uint64 // result of Begin
	Flags    uint64
	Max      [2]uint64
	Failed   Set // failed members, as known to all now; all others have contributed
	Acked    Set // failed members that all contributors had acknowledged
}

// Unacked returns the failed members that some members have not acknowledged. If there are any,
// MPIX_Comm_agree returns the error class MPIX_ERR_PROC_FAILED at all members.
func (d Decision) Unacked() Set { return d.Failed.Without(d.Acked) }

// Message is a message to another member.
type Message struct {
	To   int
	Data []byte
}

// Member is one member's view of its group. It is not safe for use by several goroutines.
type Member struct {
	me, size, window int
	tree             *tree
	failed           Set
	parent           int
	children         []int
	next             uint64 // number of the next agreement that Begin begins
	low              uint64 // all agreements below this number have returned here
	floor            uint64 // all below this number have returned at all living members, and are forgotten
	agreements       map[uint64]*agreement
	messages         []Message
	decisions        []Decision
}

type agreement struct {
	begun   bool
	own     value // what this member has contributed
	all     value // own and those of open, combined; when decided, the result
	some    bool  // all contains a value
	open    Set   // members that have sent contribute and wait for decide
	told    int   // the parent to which contribute or recall was sent last; -1: none
	asked   bool  // told got contribute, and may answer
	decided bool
}

// New makes the member c.Me of a group of c.Size, before the first agreement. It fails, with
// ErrConfig, for values that cannot be; those that are 0 get their defaults.
func New(c Config) (*Member, error) {
	if c.Size < 1 || c.Me < 0 || c.Me >= c.Size || c.Sites != nil && len(c.Sites) != c.Size || c.Fan < 0 || c.Window < 0 {
		return nil, fmt.Errorf("%w: member %d of %d, sites of %d, fan %d, window %d", ErrConfig, c.Me, c.Size, len(c.Sites), c.Fan, c.Window)
	}
	if c.Sites == nil {
		c.Sites = make([]int, c.Size)
	}
	c.Fan = cmp.Or(c.Fan, DefaultFan)
	c.Window = cmp.Or(c.Window, DefaultWindow)
	m := &Member{me: c.Me, size: c.Size, window: c.Window, tree: newTree(c.Sites, c.Fan), agreements: make(map[uint64]*agreement)}
	m.place()
	return m, nil
}

// Next returns the next message to send that it has not returned yet; ok is false if there is none.
func (m *Member) Next() (out Message, ok bool) {
	if len(m.messages) == 0 {
		return out, false
	}
	out, m.messages = m.messages[0], m.messages[1:]
	return out, true
}

// Decided returns the next result that it has not returned yet; ok is false if there is none.
// Results of nonblocking agreements may come in another order than they were begun.
func (m *Member) Decided() (d Decision, ok bool) {
	if len(m.decisions) == 0 {
		return d, false
	}
	d, m.decisions = m.decisions[0], m.decisions[1:]
	return d, true
}

// Awaits returns the members that an agreement of this member waits for: its children that have not
// contributed, or if all have, its parent, which has to answer.
func (m *Member) Awaits(sequence uint64) (ranks []int) {
	a := m.agreements[sequence]
	if a == nil || !a.begun || a.decided {
		return nil
	}
	for _, c := range m.children {
		if !a.open.Has(c) {
			ranks = append(ranks, c)
		}
	}
	if len(ranks) == 0 && m.parent != m.me {
		ranks = append(ranks, m.parent)
	}
	return ranks
}

// Failed records that members have failed. Members may be reported more than once.
func (m *Member) Failed(ranks ...int) error {
	for _, r := range ranks {
		switch {
		case r == m.me:
			return fmt.Errorf("%w: it is said to have failed itself", ErrExcluded)
		case r < 0 || r >= m.size:
			return fmt.Errorf("%w: failed member %d of %d", ErrRank, r, m.size)
		}
	}
	known := m.failed.Len()
	for _, r := range ranks {
		m.failed.add(r)
	}
	if m.failed.Len() == known {
		return nil
	}
	m.place()
	for _, sequence := range slices.Sorted(maps.Keys(m.agreements)) {
		if m.agreements[sequence] != nil { // the result of another agreement may have removed it
			m.advance(sequence)
		}
	}
	return nil
}

func (m *Member) place() {
	m.parent, m.children = m.tree.parent(m.me, m.failed), m.tree.children(m.me, m.failed)
}

// Begin begins the next agreement, and returns its number.
func (m *Member) Begin(c Contribution) (sequence uint64, err error) {
	switch {
	case m.next >= m.low+uint64(m.window):
		return 0, fmt.Errorf("%w: the one of number %d, while that of number %d goes on; at most %d may", ErrMany, m.next, m.low, m.window)
	case !c.Acked.within(m.failed):
		return 0, fmt.Errorf("%w: acknowledged %v, of failed %v", ErrRank, c.Acked, m.failed)
	}
	sequence = m.next
	m.next++
	a := m.at(sequence)
	a.begun, a.own = true, value{flags: c.Flags, max: c.Max, low: m.low, failed: m.failed.clone(), acked: c.Acked.clone()}
	a.add(a.own)
	m.advance(sequence)
	return sequence, nil
}

// Receive handles a message from another member. After an error, which is the sender's fault, the
// message has changed nothing.
func (m *Member) Receive(from int, data []byte) error {
	if from < 0 || from >= m.size || from == m.me {
		return fmt.Errorf("%w: a message of member %d of %d to member %d", ErrRank, from, m.size, m.me)
	}
	if m.failed.Has(from) {
		return nil // it may be an answer from a former parent, which this member has replaced
	}
	in, err := parse(data, m.size)
	if err == nil {
		err = m.receive(from, in)
	}
	if err != nil {
		return fmt.Errorf("agreement %d, member %d: %w", in.sequence, from, err)
	}
	return nil
}

func (m *Member) receive(from int, in message) error {
	switch {
	case in.value.failed.Has(m.me):
		return ErrExcluded
	case in.sequence < m.floor:
		return nil // all living members have returned
	case in.sequence >= m.next+uint64(m.window):
		return fmt.Errorf("%w: here %d were begun, at most %d more may be elsewhere", ErrMany, m.next, m.window)
	}
	a := m.agreements[in.sequence]
	if in.kind == contribute {
		if a != nil && a.open.Has(from) {
			return ErrTwice
		}
		m.open(from, in)
		return nil
	}
	switch {
	case a == nil || !a.begun:
		return ErrExcluded
	case a.decided && !a.all.equal(in.value):
		return fmt.Errorf("%w: %v, here %v", ErrDiffers, in.value, a.all)
	case in.kind == decide && (from != a.told || !a.asked):
		return ErrUnasked
	case a.decided:
		return nil
	case !a.own.with(in.value).equal(in.value):
		return fmt.Errorf("%w: %v, contributed here %v", ErrExcluded, in.value, a.own)
	}
	m.decide(in.sequence, in.value)
	return nil
}

// open handles a contribute message.
func (m *Member) open(from int, in message) {
	a := m.at(in.sequence)
	a.open.add(from)
	if a.decided {
		m.send(from, decide, in.sequence)
		return
	}
	a.add(in.value)
	m.advance(in.sequence)
}

// at returns an agreement, which may be one that nobody here has heard of.
func (m *Member) at(sequence uint64) *agreement {
	a := m.agreements[sequence]
	if a == nil {
		a = &agreement{told: -1}
		m.agreements[sequence] = a
	}
	return a
}

func (a *agreement) add(v value) {
	if a.some {
		a.all = a.all.with(v)
	} else {
		a.all, a.some = v, true
	}
}

func (m *Member) advance(sequence uint64) {
	a := m.agreements[sequence]
	switch {
	case !a.begun:
	case a.decided:
		m.inform(sequence, recall)
	case slices.ContainsFunc(m.children, func(c int) bool { return !a.open.Has(c) }):
	default:
		a.all.failed = a.all.failed.union(m.failed)
		if m.parent == m.me {
			m.decide(sequence, a.all)
			return
		}
		m.inform(sequence, contribute)
	}
}

// inform sends the parent a message, unless it has had one.
func (m *Member) inform(sequence uint64, k kind) {
	a := m.agreements[sequence]
	if m.parent != m.me && a.told != m.parent {
		a.told, a.asked = m.parent, k == contribute
		m.send(m.parent, k, sequence)
	}
}

func (m *Member) decide(sequence uint64, v value) {
	a := m.agreements[sequence]
	a.all, a.decided = v, true
	for rank := range a.open.All() {
		if !m.failed.Has(rank) {
			m.send(rank, decide, sequence)
		}
	}
	m.inform(sequence, recall)
	m.decisions = append(m.decisions, Decision{Sequence: sequence, Flags: v.flags, Max: v.max, Failed: v.failed.clone(), Acked: v.acked.clone()})
	for a := m.agreements[m.low]; a != nil && a.decided; a = m.agreements[m.low] {
		m.low++
	}
	for ; m.floor < v.low; m.floor++ {
		delete(m.agreements, m.floor)
	}
}

func (m *Member) send(to int, k kind, sequence uint64) {
	data := message{k, sequence, m.agreements[sequence].all}.append(nil, m.size)
	m.messages = append(m.messages, Message{To: to, Data: data})
}
