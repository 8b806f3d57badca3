package dynamic

import "fmt"

// inbox collects one message of the greeting at a time. It takes no byte behind the message, since
// packets follow the last one.
type inbox struct {
	buf  [meetLostSize]byte
	have int
}

// take moves bytes from b until the message is complete. sizeOf returns the size of a message of a
// kind, 0 if none of that kind may come now.
func (i *inbox) take(b []byte, sizeOf func(kind) int) (n int, complete bool, err error) {
	if i.have < headSize {
		n = copy(i.buf[i.have:headSize], b)
		if i.have += n; i.have < headSize {
			return n, false, nil
		}
	}
	k, err := parseHead(i.buf[:])
	if err != nil {
		return n, false, err
	}
	size := sizeOf(k)
	if size == 0 {
		return n, false, fmt.Errorf("dynamic: %w: message of kind %d is out of place", ErrGreeting, k)
	}
	m := copy(i.buf[i.have:size], b[n:])
	i.have += m
	return n + m, i.have == size, nil
}

// message returns the complete message and makes room for the next.
func (i *inbox) message() []byte {
	m := i.buf[:i.have]
	i.have = 0
	return m
}
