package link

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// Notes is a Memory that takes notes beside its bytes: short messages, each in a line of
// memory of its own that both sides see. Who waits for one looks at the very line in
// which it comes, and neither side packs or reads a packet.
//
// A note has a place in the stream: it comes after so many of its bytes, and before those
// that follow. So notes and packets keep the order in which they were sent. The calls for
// sending count as Send, those for receiving as Recv.
type Notes interface {
	Memory

	// TakeNotes announces that this side takes notes. It is called once, before the link is
	// used. False means that there are none.
	TakeNotes() bool

	// NoteRoom gives the place of the next note, which PostNote sends, behind all that was
	// sent before; nil if there is no room, if something that was reserved is not committed, or if
	// the other side takes no notes. A packet has to do then.
	NoteRoom() *Note

	// PostNote sends what NoteRoom gave.
	PostNote()

	// NextNote gives the note that comes before any other byte, nil if there is none. The other
	// side can still change it: what is in it is to be read once.
	NextNote() *Note

	// NotesAt tells where in the two streams the next notes come, and whether some could be sent
	// now, and taken, by who has the lane itself.
	NotesAt() (out, in uint64, sends, takes bool)

	// MoveLane has what this side knows of notes lie at to from now on: for others to use it, too,
	// while nobody calls the link.
	MoveLane(to *NoteLane)

	// NotesAgreed tells whether the other side takes notes.
	NotesAgreed() bool

	// NotesSent counts the notes that were sent, NotesTaken those that were taken.
	NotesSent() uint64
	NotesTaken() uint64

	// LimitNotes has no note be sent once that many were; at first there is no limit.
	LimitNotes(sent uint64)

	// WakeForNote wakes the other side if it sleeps, after who has the lane itself has sent a note.
	WakeForNote()

	// NoteTaken says that the note that NextNote gave is done with.
	NoteTaken()
}

const (
	// NotePlaces is how many notes one direction holds.
	NotePlaces = 64
	// MaxNote is the longest message, in bytes, that a note can carry. The first 32 bytes
	// lie in the line that is looked at.
	MaxNote = 96
	// noteLag is how many notes a reader takes before it says so.
	noteLag = NotePlaces / 4
)

// Note is a message in standard mode from one proc of a link to the other.
type Note struct {
	Context uint64
	Rank    int32 // of the sender in the communicator
	Tag     int32
	Len     uint32 // bytes of Data that count
	Kind    uint32 // what they are, for information
	Data    [MaxNote]byte
}

// notePlace is where a note lies. mark is the number of the note, from 1, in its upper half,
// and where in the stream it comes in its lower one, both modulo 2^32; it is written last.
type notePlace struct {
	mark atomic.Uint64
	note Note
}

// NotePage is the memory of the notes of one direction.
type NotePage [NotePlaces]notePlace

// NoteBytes is the size of a NotePage.
const NoteBytes = int(unsafe.Sizeof(NotePage{}))

// NotesAt is the page at the beginning of b, which has to lie at a multiple of 8.
func NotesAt(b []byte) *NotePage { return (*NotePage)(unsafe.Pointer(&b[:NoteBytes][0])) }

// NoteLane is what one side knows of the notes of both directions.
type NoteLane struct {
	Out    *NotePage      // ours
	In     *NotePage      // the other side's
	Read   *atomic.Uint64 // of Out: notes taken, says the other side
	Told   *atomic.Uint64 // of In: notes taken, for the other side to know
	Sleeps *atomic.Uint32 // 1 while the other side wants to be woken
	Bytes  *atomic.Uint64 // how many bytes of the stream the other side has written

	Sent  uint64 // notes since the beginning
	Seen  uint64 // Read as last seen
	Taken uint64 // notes since the beginning
	Limit uint64 // of Sent, which stops there
}

// Room gives the place of the next note, to be filled in and posted; nil if there is none.
func (l *NoteLane) Room() *Note {
	if l.Sent == l.Limit {
		return nil
	}
	if l.Sent-l.Seen >= NotePlaces {
		seen := l.Read.Load()
		if l.Sent-seen >= NotePlaces { // or an impossible number
			return nil
		}
		l.Seen = seen
	}
	return &l.Out[l.Sent%NotePlaces].note
}

// Post sends the note that Room gave, behind the first at bytes of the stream. The caller
// then looks whether the other side sleeps: the store does not pass that look.
func (l *NoteLane) Post(at uint64) {
	p := &l.Out[l.Sent%NotePlaces]
	l.Sent++
	p.mark.Swap(l.Sent<<32 | at&math.MaxUint32)
}

// Next gives the note that comes behind the first at bytes of the stream; nil if none does
// as yet.
func (l *NoteLane) Next(at uint64) *Note {
	p := &l.In[l.Taken%NotePlaces]
	if p.mark.Load() != (l.Taken+1)<<32|at&math.MaxUint32 {
		return nil
	}
	return &p.note
}

// Take says that the note that Next gave is done with.
func (l *NoteLane) Take() {
	l.Taken++
	if l.Taken%noteLag == 0 {
		l.Told.Store(l.Taken)
	}
}

// Ahead tells how many bytes behind the first at ones come before the next note, if there is
// one. The number is nonsense if the other side writes nonsense.
func (l *NoteLane) Ahead(at uint64) (n uint32, ok bool) {
	mark := l.In[l.Taken%NotePlaces].mark.Load()
	return uint32(mark) - uint32(at), uint32(mark>>32) == uint32(l.Taken+1)
}
