package inspect

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
)

// Where no link can be made to a site by which it could be asked, as in a job with direct = false, a
// node asks it over a channel that the hosts have, by wire.PkAsk: a links.Request, and as the answer
// a links.Answer that is compressed.

// Why a site cannot be asked over a channel.
var (
	errNoProof = errors.New(`over the agents' channel its hosts do not prove who they are (auth "key" at all sites changes that)`)
	errUnknown = errors.New("its release of impi cannot be asked over the agents' channel")
	errClosed  = errors.New("no channel between agents leads there now")
)

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

// askByChannel asks another site over the channel to one of its hosts. An error that wraps
// links.ErrNotAsked says that there is none.
func askByChannel(ctx context.Context, c *Control, x *startup.ClientInfo, r links.Request) (a links.Answer, err error) {
	question, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	var hosts []wire.HostRank
	for i := range x.NHosts {
		hosts = append(hosts, x.FirstHost+wire.HostRank(i))
	}
	for i := range c.Hosts {
		b, err := c.Hosts[i].Switch.Ask(ctx, hosts, question)
		if errors.Is(err, agent.ErrNoQuestion) {
			continue
		}
		if err != nil {
			return a, err
		}
		if a, err = unpacked(b); err == nil && a.Error != "" {
			err = errors.New(a.Error)
		}
		return a, err
	}
	return a, fmt.Errorf("%w: %w", links.ErrNotAsked, errClosed)
}

// ServeChannel answers the node of another site, whose host asks over its channel. An empty answer is
// none.
func (c *Control) ServeChannel(ctx context.Context, from wire.HostRank, question []byte) []byte {
	ctx, cancel := context.WithTimeout(ctx, siteLimit)
	defer cancel()
	select {
	case <-c.Ready:
	case <-ctx.Done():
		return nil
	}
	var r links.Request
	if json.Unmarshal(question, &r) != nil || !c.enter(ctx) {
		return nil
	}
	defer func() { <-c.asked }()
	// The channel ends before the last answers are known, so nobody must wait for those here.
	b, err := packed(answerSite(ctx, c, r))
	if err != nil {
		c.Site.Log.Debug("cannot answer a node over its channel", "host", from, "error", err)
		return nil
	}
	return b
}

func packed(a links.Answer) ([]byte, error) {
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

// maxObjects bounds the memory of an answer: an empty object has two bytes of text and takes some
// hundred when it is read. A proc has a few, and a few more for each of its links.
const maxObjects = 1 << 18

// unpacked reads what packed has made, of no more than maxAnswer bytes.
func unpacked(b []byte) (a links.Answer, err error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return a, fmt.Errorf("its answer over the agents' channel cannot be read: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxAnswer+1))
	if err == nil && len(text) > maxAnswer {
		err = fmt.Errorf("more than %d bytes", maxAnswer)
	}
	if n := bytes.Count(text, []byte("{")); err == nil && n > maxObjects {
		err = fmt.Errorf("%d objects, at most %d", n, maxObjects)
	}
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return links.Answer{}, fmt.Errorf("its answer over the agents' channel cannot be read: %w", err)
	}
	return a, nil
}
