package native

// Transfer is a message that C has begun to send or receive by the site's MPI, and that Go
// completes.
type Transfer struct {
	number request
	done   bool
	err    error
}

// AwaitTransfer makes the Links wait for a message, or records how it failed. The result may be
// ignored.
func (h *Links) AwaitTransfer(number, failed int32) *Transfer {
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

// Done reports whether the transfer is over, and the error if it has failed.
func (t *Transfer) Done() (bool, error) { return t.done, t.err }

func (h *Links) lookAtTransfers() (news bool) {
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
