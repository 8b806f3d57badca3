package transporttest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/openimpi/impi/plugins/sdk/link"
)

var sizeCases = []Case{
	{"T-SIZE-01", "sizes", "messages of 0 bytes to 64 MiB, and of one byte more and less than the powers of 2, arrive with the checksum that they had", sizes},
	{"T-SIZE-02", "large", "a large transfer arrives", large},
	{"T-SIZE-03", "every-bit", "every bit of 256 MiB arrives as it was sent: counters that wrap, and buffers that are used again too early, show late", everyBit},
}

// messageSizes are powers of 2 and their neighbours, up to most.
func messageSizes(most int64) (all []int64) {
	for n := int64(0); n <= most; n = max(1, n*4) {
		for _, size := range []int64{n - 1, n, n + 1} {
			if size >= 0 && size <= most && (len(all) == 0 || size > all[len(all)-1]) {
				all = append(all, size)
			}
		}
	}
	if all[len(all)-1] != most {
		all = append(all, most)
	}
	return all
}

func sizes(e *env) {
	a, b := e.pair()
	all := messageSizes(e.h.Large)
	e.together(
		func() error { return e.sendMessages(a, all, 1) },
		func() error { return e.recvMessages(b, all) },
	)
	small := messageSizes(min(e.h.Large, 1<<20))
	e.together(
		func() error { return e.sendMessages(b, small, 2) },
		func() error { return e.recvMessages(a, small) },
	)
}

// sendMessages sends each message behind its length and the checksum of its bytes,
// all in one batch.
func (e *env) sendMessages(l link.Link, all []int64, seed uint64) error {
	for i, size := range all {
		p := pattern{seed: seed + uint64(i)*7919}
		body := make([]byte, size)
		p.next(body)
		head := binary.BigEndian.AppendUint64(nil, uint64(size))
		head = binary.BigEndian.AppendUint32(head, crc32.Checksum(body, castagnoli))
		if err := e.send(l, head, body); err != nil {
			return fmt.Errorf("message of %d bytes: %w", size, err)
		}
	}
	return nil
}

func (e *env) recvMessages(l link.Link, all []int64) error {
	for _, size := range all {
		head, body := make([]byte, 12), make([]byte, size)
		if err := e.recv(l, head, body); err != nil {
			return fmt.Errorf("message of %d bytes: %w", size, err)
		}
		if n := binary.BigEndian.Uint64(head); n != uint64(size) {
			return fmt.Errorf("where a message of %d bytes begins, one of %d was sent", n, size)
		}
		want, got := binary.BigEndian.Uint32(head[8:]), crc32.Checksum(body, castagnoli)
		if want != got {
			return fmt.Errorf("message of %d bytes: it was sent with the checksum %08x and came with %08x", size, want, got)
		}
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func large(e *env) {
	a, b := e.pair()
	c := cut{nil, 1, 256 << 10}
	e.together(both(e.stream(a, b, e.h.Large, c, c))...)
}

// everyBit sends four times as much as a large transfer.
func everyBit(e *env) {
	a, b := e.pair()
	c := cut{nil, 1, 1 << 20}
	e.together(both(e.stream(a, b, 4*e.h.Large, c, c))...)
}
