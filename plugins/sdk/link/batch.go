package link

// Len returns the number of bytes in all slices of a batch.
func Len(batch [][]byte) int {
	n := 0
	for _, b := range batch {
		n += len(b)
	}
	return n
}

// Advance drops the first n bytes of a batch, which a Send took or a Recv filled, and
// returns the rest. It removes slices that are used up and shortens the next one in place,
// in the caller's array. It panics if n is more than Len(batch).
func Advance(batch [][]byte, n int) [][]byte {
	for len(batch) > 0 && n >= len(batch[0]) {
		n -= len(batch[0])
		batch = batch[1:]
	}
	if n > 0 {
		batch[0] = batch[0][n:]
	}
	return batch
}

// Front returns the part of batch with its first n bytes, built in dst[:0] so that batch
// does not change. It returns all of batch if that has no more than n bytes.
func Front(dst, batch [][]byte, n int) [][]byte {
	dst = dst[:0]
	for _, b := range batch {
		if n <= 0 {
			break
		}
		b = b[:min(n, len(b))]
		n -= len(b)
		dst = append(dst, b)
	}
	return dst
}
