package match

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
)

// naive is both queues as plain lists.
type naive struct {
	posted, unexpected []*item
}

func admits(pattern, m Key) bool {
	return pattern.Context == m.Context &&
		(pattern.Source == AnySource || pattern.Source == m.Source) &&
		(pattern.Tag == AnyTag || pattern.Tag == m.Tag)
}

func remove(list *[]*item, ok func(*item) bool) *item {
	i := slices.IndexFunc(*list, ok)
	if i < 0 {
		return nil
	}
	it := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return it
}

// model drives the queues and the naive ones side by side.
type model struct {
	naive
	p Posted[*item]
	u Unexpected[*item]
	n int
}

func drawKey(t *rapid.T, low int) Key {
	return Key{
		Context: wire.ContextID(rapid.IntRange(0, 1).Draw(t, "cid")),
		Source:  wire.CommRank(rapid.IntRange(low, 4).Draw(t, "source")),
		Tag:     wire.Tag(rapid.IntRange(low, 4).Draw(t, "tag")),
	}
}

func (m *model) message(t *rapid.T) {
	k := drawKey(t, 0)
	want := remove(&m.posted, func(it *item) bool { return admits(it.key, k) })
	got, ok := m.p.Match(k)
	if ok != (want != nil) || ok && got != want {
		t.Fatalf("message %+v: got %v, want %v", k, got, want)
	}
	if !ok {
		m.n++
		it := newItem(m.n)
		m.u.Add(&it.Entry, k)
		m.unexpected = append(m.unexpected, it)
	}
}

func (m *model) receive(t *rapid.T) {
	k := drawKey(t, -1)
	want := remove(&m.unexpected, func(it *item) bool { return admits(k, it.key) })
	got, ok := m.u.Find(k)
	if ok != (want != nil) || ok && got != want {
		t.Fatalf("receive %+v: got %v, want %v", k, got, want)
	}
	if ok {
		m.u.Remove(&got.Entry)
		return
	}
	m.n++
	it := newItem(m.n)
	m.p.Add(&it.Entry, k)
	m.posted = append(m.posted, it)
}

func (m *model) cancel(t *rapid.T) {
	if n := len(m.posted); n > 0 && rapid.Bool().Draw(t, "posted") {
		i := rapid.IntRange(0, n-1).Draw(t, "i")
		m.p.Remove(&m.posted[i].Entry)
		m.posted = slices.Delete(m.posted, i, i+1)
	} else if n := len(m.unexpected); n > 0 {
		i := rapid.IntRange(0, n-1).Draw(t, "i")
		m.u.Remove(&m.unexpected[i].Entry)
		m.unexpected = slices.Delete(m.unexpected, i, i+1)
	}
}

// probe looks for a message twice: it stays where it is, and so does everything
// else.
func (m *model) probe(t *rapid.T) {
	k := drawKey(t, -1)
	i := slices.IndexFunc(m.unexpected, func(it *item) bool { return admits(k, it.key) })
	for range 2 {
		got, ok := m.u.Find(k)
		if ok != (i >= 0) || ok && (got != m.unexpected[i] || !got.Queued()) {
			t.Fatalf("probe %+v: got %v %v, want place %d of %v", k, got, ok, i, m.unexpected)
		}
	}
}

func (m *model) check(t *rapid.T) {
	if got := slices.Collect(m.p.All()); !slices.Equal(got, m.posted) {
		t.Fatalf("posted: %v, want %v", got, m.posted)
	}
	if got := slices.Collect(m.u.All()); !slices.Equal(got, m.unexpected) {
		t.Fatalf("unexpected: %v, want %v", got, m.unexpected)
	}
	if m.p.Len() != len(m.posted) || m.u.Len() != len(m.unexpected) {
		t.Fatal("lengths differ")
	}
	backward := slices.Collect(m.u.Backward())
	if slices.Reverse(backward); !slices.Equal(backward, m.unexpected) {
		t.Fatalf("unexpected, backward: %v, want %v", backward, m.unexpected)
	}
}

// Both queues give the same results as the plain lists, whichever way they search.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := new(model)
		bias := rapid.IntRange(1, 9).Draw(t, "bias") // lets one of the queues grow
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch n := rapid.IntRange(0, 11).Draw(t, "step"); {
			case n == 11:
				m.probe(t)
			case n == 10:
				m.cancel(t)
			case n < bias:
				m.message(t)
			default:
				m.receive(t)
			}
			m.check(t)
		}
	})
}
