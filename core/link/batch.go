package link

// Len is the number of bytes in a batch.
func Len(batch [][]byte) int {
	n := 0
	for _, b := range batch {
		n += len(b)
	}
	return n
}

// Advance drops the first n bytes of a batch, which a Send took or a Recv
// filled, and returns the rest; slices that are used up go, the next one is cut
// in place, in the caller's array. It panics if n is more than Len(batch).
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

// Front returns the part of batch that holds its first n bytes, built in dst[:0]
// so that batch itself stays as it is; all of batch if it is not longer than n.
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
