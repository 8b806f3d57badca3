package resume

// Append appends the frame to b.
func (h *Hello) Append(b []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, HelloSize)...)
	h.put(b[at:])
	return b
}
