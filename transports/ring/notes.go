package ring

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/openimpi/impi/core/link"
)

// notes is a side's part in the notes of both directions.
type notes struct {
	lane  *link.NoteLane // nil: this side does not take part
	taker *atomic.Uint32 // whether the other one does, as it says
	taken bool           // it does
}

// TakeNotes has this side take notes, and write some once the other side does so too
// (link.Notes). It is for who keeps the link to its end, before the link is used. False
// means that the memory has no room for any.
func (l *Link) TakeNotes() bool {
	r := l.region
	if r.notes[0] == nil || l.closed.Load() {
		return false
	}
	l.notes = notes{
		taker: &l.out.b.takesNotes,
		lane: &link.NoteLane{
			Out: r.notes[l.side], In: r.notes[1-l.side],
			Read: &l.out.b.noted, Told: &l.in.b.noted,
			Sleeps: &l.out.b.readerSleeps, Bytes: &l.in.b.head,
			Limit: math.MaxUint64,
		},
	}
	l.in.lane = l.notes.lane
	l.in.b.takesNotes.Store(1)
	return true
}

// NoteRoom gives the place of the next note, to be filled in and posted, if one can be
// written behind what was sent so far.
func (l *Link) NoteRoom() *link.Note {
	if !l.NotesAgreed() {
		return nil
	}
	if l.out.placed > 0 || l.out.given != l.out.back || l.ended || l.sendErr != nil || l.closed.Load() {
		return nil
	}
	return l.notes.lane.Room()
}

// NotesAgreed tells whether both sides take notes.
func (l *Link) NotesAgreed() bool { return l.notes.taken || l.lookForTaker() }

func (l *Link) lookForTaker() bool {
	l.notes.taken = l.notes.lane != nil && l.notes.taker.Load() != 0
	return l.notes.taken
}

// PostNote sends the note that NoteRoom gave.
func (l *Link) PostNote() {
	l.notes.lane.Post(l.out.head)
	if l.out.b.readerSleeps.Load() != 0 {
		l.wakeReader()
	}
}

// NextNote gives the note that comes before any other byte, nil if there is none. The other
// side can still change it.
func (l *Link) NextNote() *link.Note {
	if l.recvErr != nil || l.closed.Load() {
		return nil
	}
	return l.notes.lane.Next(l.in.tail)
}

// NoteTaken says that the note that NextNote gave is done with.
func (l *Link) NoteTaken() {
	l.notes.lane.Take()
	l.idle = 0
}

// NotesAt tells where the next notes come, and whether any could be sent and taken
// (link.Notes).
func (l *Link) NotesAt() (out, in uint64, sends, takes bool) {
	if l.closed.Load() {
		return 0, 0, false, false
	}
	sends = l.NotesAgreed() && l.out.placed == 0 && l.out.given == l.out.back && !l.ended && l.sendErr == nil
	return l.out.head, l.in.tail, sends, l.recvErr == nil
}

// MoveLane has what this side knows of notes lie elsewhere.
func (l *Link) MoveLane(to *link.NoteLane) {
	*to = *l.notes.lane
	l.notes.lane, l.in.lane = to, to
}

// NotesSent counts the notes that were sent.
func (l *Link) NotesSent() uint64 { return l.notes.lane.Sent }

// NotesTaken counts the notes that were taken.
func (l *Link) NotesTaken() uint64 { return l.notes.lane.Taken }

// LimitNotes has no note be sent once that many were.
func (l *Link) LimitNotes(sent uint64) { l.notes.lane.Limit = sent }

// WakeForNote wakes the other side if it sleeps.
func (l *Link) WakeForNote() {
	if l.out.b.readerSleeps.Load() != 0 {
		l.wakeReader()
	}
}

// before is how many of the next n bytes come before the next note.
func (r *reader) before(n uint64) (uint64, error) {
	k, ok := r.lane.Ahead(r.tail)
	if !ok {
		return n, nil
	}
	if uint64(k) > r.mask+1 {
		return 0, fmt.Errorf("%w: the other side's note comes %d bytes behind those that were read, of %d that fit", ErrRegion, k, r.mask+1)
	}
	return min(n, uint64(k)), nil
}

// noteDue tells whether what comes next is a note.
func (r *reader) noteDue() bool { return r.lane != nil && r.lane.Next(r.tail) != nil }
