package names

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// readFrame reads what has its length in two bytes before it, into buf.
func readFrame(r io.Reader, buf *[maxFrame]byte) ([]byte, error) {
	if _, err := io.ReadFull(r, buf[:2]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(buf[:]))
	if n > maxFrame {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrMessage, n, maxFrame)
	}
	if _, err := io.ReadFull(r, buf[:n]); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return buf[:n], nil
}
