package inspect

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
)

// Where no link can be made to a site by which it could be asked, as in a job with direct = false,
// a node asks it over a channel that the hosts have, by wire.PkAsk: a links.Request, and as the
// answer a links.Answer that is compressed.

// Why a site cannot be asked over a channel.
var (
	errNoProof = errors.New(`over the agents' channel its hosts do not prove who they are (auth "key" at all sites changes that)`)
	errUnknown = errors.New("its release of impi cannot be asked over the agents' channel")
	errClosed  = errors.New("no channel between agents leads there now")
)

// errBusy is why a site that can be asked over a channel is not asked now.
var errBusy = errors.New("it is busy: too many questions to it over the agents' channel have no answer yet; ask again")

// asksByChannel returns nil if hosts of another site can be asked over channels.
func asksByChannel(c *Control, x *startup.ClientInfo) error {
	w := c.Site.Routes.World
	switch {
	case !c.Channels.Proves(x.Rank):
		return errNoProof
	case !x.Lists(wire.AskVersion) || !w.Clients[w.Self].Lists(wire.AskVersion):
		return errUnknown
	}
	return nil
}

// askByChannel asks another site over the channel to one of its hosts, or if that does not answer,
// over those to others. An error that wraps links.ErrNotAsked says that there is none.
func askByChannel(ctx context.Context, c *Control, x *startup.ClientInfo, r links.Request) (a links.Answer, err error) {
	var hosts []wire.HostRank
	for i := range x.NHosts {
		hosts = append(hosts, x.FirstHost+wire.HostRank(i))
	}
	var ask []askFunc
	for i := range c.Hosts {
		ask = append(ask, c.Hosts[i].Switch.Ask)
	}
	b, err := askInTurn(ctx, ask, hosts, r)
	if err != nil {
		return a, err
	}
	if a, err = unpacked(b, mostText(int(x.NHosts), int(x.NProcs))); err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

// askFunc is packetswitch.Switch.Ask of one of the hosts of this node.
type askFunc func(context.Context, []wire.HostRank, []byte) ([]byte, wire.HostRank, error)

// askInTurn asks some hosts, each by the first of some switches that has a channel to it, until one
// answers. If none does, the error is that of the first.
func askInTurn(ctx context.Context, ask []askFunc, hosts []wire.HostRank, r links.Request) (data []byte, err error) {
	no, tries := fmt.Errorf("%w: %w", links.ErrNotAsked, errClosed), 0
	for i := 0; i < len(ask) && tries < mostTries && len(hosts) > 0; {
		within, cancel := ctx, func() {}
		if deadline, ok := ctx.Deadline(); ok && len(hosts) > 1 && tries < mostTries-1 {
			within, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		}
		r.Limit = limitFor(within)
		question, err := json.Marshal(r)
		if err != nil {
			cancel()
			return nil, err
		}
		data, of, err := ask[i](within, hosts, question)
		cancel()
		switch {
		case err == nil:
			return data, nil
		case errors.Is(err, agent.ErrAskBusy):
			if i++; tries == 0 {
				no = errBusy
			}
			continue
		case errors.Is(err, agent.ErrNoQuestion):
			i++
			continue
		}
		if tries++; tries == 1 {
			no = err
		}
		if ctx.Err() != nil {
			break
		}
		hosts = slices.DeleteFunc(slices.Clone(hosts), func(h wire.HostRank) bool { return h == of })
	}
	return nil, no
}

// byPeer counts the questions of other sites that have no answer yet.
type byPeer struct {
	mu sync.Mutex
	n  map[wire.ClientRank]int
}

// AdmitQuestion reports whether another question of a site that came over a channel may be answered: each
// site has mostAsked at a time, however many hosts it has. Over may be called more than once, and
// does not block.
func AdmitQuestion(c *Control, of wire.ClientRank) (over func(), ok bool) {
	p := &c.byPeer
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n[of] >= mostAsked {
		return func() {}, false
	}
	if p.n == nil {
		p.n = make(map[wire.ClientRank]int)
	}
	p.n[of]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.n[of]--
	}), true
}

// ServeChannel answers the node of another site, whose host asks over its channel. An empty answer
// is none.
func (c *Control) ServeChannel(ctx context.Context, from wire.HostRank, question []byte) []byte {
	var r links.Request
	if json.Unmarshal(question, &r) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limitOf(r))
	defer cancel()
	select {
	case <-c.Ready:
	case <-ctx.Done():
		return nil
	}
	if !c.enter(ctx) {
		return nil
	}
	defer func() { <-c.asked }()
	// The channel ends before the last answers are known, so nobody must wait for those here.
	b, err := compressed(answerSite(ctx, c, r))
	if err != nil {
		c.Site.Log.Debug("cannot answer a node over its channel", "host", from, "error", err)
		return nil
	}
	return b
}

func compressed(a links.Answer) ([]byte, error) {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // the level is valid
	if err := errors.Join(json.NewEncoder(z).Encode(a), z.Close()); err != nil {
		return nil, err
	}
	if b.Len() > wire.MaxAnswer {
		return nil, fmt.Errorf("it has %d bytes, at most %d", b.Len(), wire.MaxAnswer)
	}
	return b.Bytes(), nil
}

// A list of two-byte elements takes a hundred times its text once it is read, whatever the elements
// are. True ones are objects of more than thirty bytes, but for a few short lists.
const (
	bytesOfElement = 16       // that a text has at least for each element or object, on average
	freeElements   = 64 << 10 // beyond those: process IDs of large jobs are short
	textOfHost     = 2 << 20  // as much as links.MaxViews pairs, the log and the rest may have
	textOfProc     = 64 << 10
)

// mostText returns the most bytes of text that an answer about a site has.
func mostText(hosts, procs int) int { return min(maxAnswer, hosts*textOfHost+procs*textOfProc) }

// overfull returns an error if a text has more lists' elements, or more objects, than it can have.
func overfull(text []byte) error {
	most, elements, objects := freeElements+len(text)/bytesOfElement, 0, 0
	var lists []bool // of what is open, outermost first: a list or an object
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			lists = append(lists, true)
			elements++ // its first one
		case c == '{':
			lists = append(lists, false)
			objects++
		case (c == ']' || c == '}') && len(lists) > 0:
			lists = lists[:len(lists)-1]
		case c == ',' && len(lists) > 0 && lists[len(lists)-1]:
			elements++
		}
		if max(elements, objects) > most {
			return fmt.Errorf("more than %d elements of lists or objects in %d bytes", most, len(text))
		}
	}
	return nil
}

// unpacked reads what packed has made, of no more than most bytes of text.
func unpacked(b []byte, most int) (a links.Answer, err error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return a, fmt.Errorf("its answer over the agents' channel cannot be read: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	if err == nil {
		err = overfull(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return links.Answer{}, fmt.Errorf("its answer over the agents' channel cannot be read: %w", err)
	}
	return a, nil
}
