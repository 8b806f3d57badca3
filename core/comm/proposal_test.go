package comm

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
)

func drawProposal(t *rapid.T) Proposal {
	return Proposal{
		ContextUse: ContextUse{
			Max: wire.ContextID(rapid.Uint64().Draw(t, "max")), Private: wire.ContextID(rapid.Uint64().Draw(t, "private")),
			Busy: rapid.Bool().Draw(t, "busy"),
		},
		Fault: rapid.Uint32().Draw(t, "fault"), Flags: rapid.Uint32Range(0, 1<<31-1).Draw(t, "flags"),
	}
}

func TestProposals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q, b := drawProposal(t), drawProposal(t), make([]byte, ProposalSize)
		p.Put(b)
		if got, err := ReadProposal(b); err != nil || got != p {
			t.Fatalf("%+v, %v; want %+v", got, err, p)
		}
		both := p.Combine(q)
		if both != q.Combine(p) || both.Combine(p) != both || both.Max < p.Max || both.Fault < q.Fault || p.Busy && !both.Busy || both.Flags&p.Flags != p.Flags {
			t.Fatalf("%+v with %+v is %+v", p, q, both)
		}
	})
	_, err := ReadProposal(make([]byte, ProposalSize-1))
	wrong(t, err, ErrMessage)
}

func FuzzReadProposal(f *testing.F) {
	b := make([]byte, ProposalSize)
	Proposal{ContextUse: ContextUse{Max: 5, Private: 1 << 63, Busy: true}, Fault: 2, Flags: 7}.Put(b)
	f.Add(b)
	f.Add(b[1:])
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ReadProposal(b)
		if err != nil {
			return
		}
		again := make([]byte, ProposalSize)
		if p.Put(again); !bytes.Equal(again, b[:ProposalSize]) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}
