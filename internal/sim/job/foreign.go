package job

import (
	"encoding/binary"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// newForeign makes the startup of a site that is not ours.
func newForeign(_ *World, c startup.ClientConfig, _ *Foreign) (client, error) {
	return startup.NewClient(c)
}

// dress gives a channel the manners of the site.
func (s *site) dress(e *kernel.End) link.Link {
	if s.cfg.Foreign == nil || !s.cfg.Foreign.FalseLen {
		return e
	}
	return &liar{End: e, k: s.w.k}
}

// liar writes any pk_len into packets that have no data, as peers in the field do.
type liar struct {
	*kernel.End
	k    *kernel.Kernel
	head []byte // of the packet that is being sent, as far as it was sent
	data uint64 // bytes of it that follow the head
}

// The header, as far as it matters here.
const (
	headerSize = 128
	typeAt     = 0
	lenAt      = 4
)

// Send sends batch with other lengths.
func (x *liar) Send(batch [][]byte) (int, error) {
	changed := make([]byte, 0, link.Len(batch))
	for _, b := range batch {
		changed = append(changed, b...)
	}
	head, data := append([]byte(nil), x.head...), x.data
	for at := 0; at < len(changed); {
		if data > 0 {
			n := min(data, uint64(len(changed)-at))
			at, data = at+int(n), data-n
			continue
		}
		n := min(headerSize-len(head), len(changed)-at)
		head = append(head, changed[at:at+n]...)
		at += n
		if len(head) == headerSize {
			data = uint64(binary.BigEndian.Uint32(head[lenAt:]))
			head = head[:0]
		}
	}
	_ = typeAt
	return x.End.Send([][]byte{changed})
}
