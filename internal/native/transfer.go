package native

// Transfer is a message that C has begun to send or receive by the site's MPI, and Go goes on with.
type Transfer struct {
	number request
	done   bool
	err    error
}

// GoOnWith has the hub wait for a message, or says how it failed. Nobody has to wait for the result.
func (h *Hub) GoOnWith(number, failed int32) *Transfer {
	t := &Transfer{number: number}
	switch {
	case h.err != nil:
		t.done, t.err = true, h.err
	case failed != 0:
		t.done, t.err = true, h.lib.failure(failed)
	default:
		h.transfers = append(h.transfers, t)
	}
	return t
}

// Done reports whether it is over, and how it has ended.
func (t *Transfer) Done() (bool, error) { return t.done, t.err }

func (h *Hub) lookAtTransfers() (news bool) {
	kept := h.transfers[:0]
	for _, t := range h.transfers {
		if t.done, t.err = h.lib.test(t.number); !t.done {
			kept = append(kept, t)
			continue
		}
		news = true
	}
	clear(h.transfers[len(kept):])
	h.transfers = kept
	return news
}
