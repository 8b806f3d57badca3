package check

import "encoding/binary"

// maxClients is the most clients of a job: masks have 32 bits.
const maxClients = 32

// mechKey is the authentication mechanism in which a key follows the answer to AUTH.
const mechKey = 1

type client struct {
	rank     int
	foreign  bool
	hosts    []int
	expect   map[uint32]uint32 // checksums of values that the job determines, by label
	counts   [3]int            // how many values a label has, by scope
	link     *link             // to the server
	up, down *commandStream

	// As the server sees it: after it has read the message.
	auth, ranked, done, fini bool
	mask                     uint32
	top                      uint32 // highest label
	key                      bool

	// As the client wrote it.
	last    uint32 // label
	labels  int    // number submitted of IMPI 0.0
	keySent bool

	// As the server wrote it.
	asked uint32 // mechanism
	told  uint32 // label

	// As the client has read it.
	chosen, sized, running bool
	choice                 uint32
	answered               uint32 // label
}

// beginUp judges the header of a client's command. Our clients wait for the answer to each command
// before they send the next one.
func (t *commandStream) beginUp(s *stream) error {
	k, m := t.client, &t.now
	strict := !k.foreign
	if t.phase == saysIMPI && k.chosen && k.choice == mechKey && !k.keySent {
		k.keySent = true
		m.cmd, m.size = cmdKey, 0
		return nil
	}
	switch {
	case t.phase == saysAuth && m.cmd == cmdAuth && m.size == 4:
		t.phase = saysIMPI
		return nil
	case t.phase == saysIMPI && m.cmd == cmdIMPI && m.size == 4:
		if strict && !k.chosen {
			return t.wrong(s, "the answer to AUTH has not come")
		}
		t.phase = saysLabels
		return nil
	case t.phase == saysLabels && m.cmd == cmdColl && m.size >= 4:
		return t.mayGoOn(s)
	case t.phase == saysLabels && m.cmd == cmdDone && m.size == 0:
		t.phase = saysFini
		if err := t.mayGoOn(s); err != nil {
			return err
		}
		if strict && k.labels < len(labels) {
			return t.wrongLabel(s, "it has sent %d of the %d labels", k.labels, len(labels))
		}
		return nil
	case t.phase == saysFini && (m.cmd == cmdFini || !strict && m.cmd == cmdINIF) && m.size == 0:
		t.phase = saysNothing
		return t.mayLeave(s)
	case !strict && !known(m.cmd) && m.size >= 0:
		m.cmd = cmdOther
		return nil
	}
	return t.wrong(s, "%v may say %s now", s.from, phaseNames[t.phase])
}

func known(cmd uint32) bool {
	return cmd == cmdAuth || cmd == cmdIMPI || cmd == cmdColl || cmd == cmdDone || cmd == cmdFini || cmd == cmdINIF || cmd == cmdFail
}

func (t *commandStream) mayGoOn(s *stream) error {
	k := t.client
	switch {
	case k.foreign:
		return nil
	case !k.sized:
		return t.wrong(s, "the answer to IMPI has not come")
	case k.answered < k.last:
		return t.wrong(s, "the answer to %s has not come", labelName(k.last))
	}
	return nil
}

// mayLeave judges whether a client may send FINI now. IMPI ch.2, FINI command: its procs have
// finished, its channels are over.
func (t *commandStream) mayLeave(s *stream) error {
	k := t.client
	if k.foreign {
		return nil
	}
	if !k.running {
		return t.wrong(s, "the server's DONE has not come")
	}
	for _, h := range k.hosts {
		for peer := range s.c.hosts {
			l := s.c.hosts[h].channels[peer]
			if l == nil || l.cut {
				continue
			}
			out := l.stream(l.a.from == AgentEnd(h))
			if failed := s.c.clients[s.c.hosts[peer].Client].link; failed != nil && failed.cut && out.back.finiRead && out.back.ended {
				continue // it failed between its FINI and ours, which is not read
			}
			if !out.fini || !out.back.finiRead {
				return t.wrong(s, "FINI has not gone both ways between hosts %d and %d", h, peer)
			}
		}
	}
	return nil
}

func (t *commandStream) finishUp(s *stream) error {
	k := t.client
	switch t.now.cmd {
	case cmdAuth:
		t.now.value = binary.BigEndian.Uint32(t.payload)
		if t.now.value&3 == 0 && !k.foreign {
			return t.wrong(s, "it offers nothing in mask %x", t.now.value)
		}
	case cmdIMPI:
		if rank := binary.BigEndian.Uint32(t.payload); rank != uint32(k.rank) {
			return t.wrong(s, "client %d says that it is client %d", k.rank, rank)
		}
	case cmdColl:
		return t.submitted(s)
	}
	return nil
}

func (k *client) read(m *command) {
	switch m.cmd {
	case cmdChoice:
		k.chosen, k.choice = true, m.value
	case cmdIMPI:
		k.sized = true
	case cmdColl:
		k.answered = max(k.answered, m.value)
	case cmdDone:
		k.running = true
	}
}

func (c *Checker) serverRead(k *client, m *command) {
	switch m.cmd {
	case cmdAuth:
		k.auth, k.mask = true, m.value
	case cmdKey:
		k.key = true
	case cmdIMPI:
		k.ranked = true
	case cmdColl:
		k.top = max(k.top, m.value)
		c.submissions(m.value).of[k.rank].read = true
	case cmdDone:
		k.done = true
	case cmdFini, cmdINIF:
		k.fini = true
	}
}
