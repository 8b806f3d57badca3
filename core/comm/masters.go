package comm

import "github.com/openimpi/impi/core/wire"

// Masters numbers the clients that a communicator spans. The master of a client
// is the lowest of its ranks; masters are numbered from 0 by ascending rank.
//
// IMPI ch.4, Utility functions: the methods are the standard's mnum, mrank,
// locals, nlocal and local.
type Masters struct {
	number  []int32 // by rank: number of its client's master
	place   []int32 // by rank: its place among its client's ranks
	ranks   []int32 // all ranks, those of master 0 first, ascending within a master
	start   []int32 // by number, and one more: where its ranks begin in ranks
	clients []wire.ClientRank
}

// NewMasters works the masters out from the client of each rank.
func NewMasters(clients []wire.ClientRank) *Masters {
	n := len(clients)
	table := make([]int32, 3*n)
	m := &Masters{number: table[:n], place: table[n : 2*n], ranks: table[2*n:]}
	var count []int32
	numbers := make(map[wire.ClientRank]int32)
	for r, c := range clients {
		num, seen := numbers[c]
		if !seen {
			num = int32(len(numbers))
			numbers[c] = num
			m.clients = append(m.clients, c)
			count = append(count, 0)
		}
		m.number[r], m.place[r] = num, count[num]
		count[num]++
	}
	m.start = make([]int32, len(count)+1)
	for i, c := range count {
		m.start[i+1] = m.start[i] + c
	}
	for r, num := range m.number {
		m.ranks[m.start[num]+m.place[r]] = int32(r)
	}
	return m
}

// Count is the number of masters, which is the number of clients spanned.
func (m *Masters) Count() int { return len(m.clients) }

// Number is the number of the master of rank's client.
func (m *Masters) Number(rank int) int { return int(m.number[rank]) }

// Rank is the rank of master number n.
func (m *Masters) Rank(n int) int { return int(m.ranks[m.start[n]]) }

// Client is the client of master number n.
func (m *Masters) Client(n int) wire.ClientRank { return m.clients[n] }

// Locals are the ranks of the client of master number n, ascending, the master
// first. The caller must not change them.
func (m *Masters) Locals(n int) []int32 { return m.ranks[m.start[n]:m.start[n+1]] }

// Place is where rank stands among the Locals of its master.
func (m *Masters) Place(rank int) int { return int(m.place[rank]) }

// Local tells whether two ranks are of the same client.
func (m *Masters) Local(a, b int) bool { return m.number[a] == m.number[b] }
