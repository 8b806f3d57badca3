package dial

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// Messages are JSON objects on a link, each after its length in four bytes. gRPC cannot be used, as
// it reads and writes at the same time: a link has one descriptor, for which one goroutine at a
// time may wait.
type Messages struct {
	*Blocking
	MaxSize int // bytes of an object
}

// ErrMessage is wrapped by the errors for objects that are too long or cannot be read.
var ErrMessage = errors.New("malformed message between nodes")

// Write sends x.
func (m Messages) Write(x any) error {
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	if len(b) > m.MaxSize {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrMessage, len(b), m.MaxSize)
	}
	return m.WriteAll(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
}

// Read receives an object into x.
func (m Messages) Read(x any) error {
	var size [4]byte
	if err := m.ReadFull(size[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(size[:])
	if uint64(n) > uint64(m.MaxSize) {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrMessage, n, m.MaxSize)
	}
	b := make([]byte, n)
	if err := m.ReadFull(b); err != nil {
		return err
	}
	if err := json.Unmarshal(b, x); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return nil
}
