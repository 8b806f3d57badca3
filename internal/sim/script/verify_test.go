package script

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// rich is a program with something of everything that Verify judges.
const rich = `procs 3
message 1 from=0 to=1 comm=w tag=1 type=int32 len=20
message 2 from=0 to=1 comm=w tag=1 type=int32 len=20
isend 1
isend 2
recv 1
recv 2
waitall 0 s1 s2
message 3 from=0 to=1 comm=w tag=2 type=int32 len=30 anysource=yes
message 4 from=0 to=1 comm=w tag=2 type=int32 len=30 anysource=yes
message 5 from=2 to=1 comm=w tag=2 type=int32 len=30 anysource=yes
isend 3
isend 4
isend 5
recv 3
recv 4
recv 5
waitall 0 s3 s4
wait 2 s5
message 6 from=2 to=0 comm=w tag=3 type=float64 len=10 cap=4
exchange 6
message 7 from=0 to=2 comm=w tag=4 type=int8 len=5 mode=synchronous
isend 7
cancel s7
allreduce w id=1 type=float64 op=sum counts=3
gather w id=2 type=int16 root=1 counts=2
split w new=a,b colors=0,1,0 keys=9,0,-9
dup a new=c
scan c id=3 type=uint64 op=affine counts=4
`

func richRecords(t *testing.T) (*Program, []*Record) {
	t.Helper()
	p := legal(t, rich)
	x := newExec(t, p, 3)
	if err := x.run(); err != nil {
		t.Fatal(err)
	}
	return p, x.records()
}

// delivery finds what the receive of a message received.
func delivery(records []*Record, msg int) *Delivery {
	for _, rec := range records {
		for i := range rec.Deliveries {
			if rec.Deliveries[i].Msg == msg {
				return &rec.Deliveries[i]
			}
		}
	}
	return nil
}

func swap(records []*Record, x, y int) {
	a, b := delivery(records, x), delivery(records, y)
	a.Msg, b.Msg = y, x
}

func drop(rec *Record, msg int) {
	rec.Deliveries = slices.DeleteFunc(rec.Deliveries, func(d Delivery) bool { return d.Msg == msg })
}

// ordered sorts the wildcard receives by the order in which the messages were sent.
func ordered(records []*Record) { arrange(records, 3, 4, 5) }

// arrange makes the three wildcard receives get these messages.
func arrange(records []*Record, ids ...int) {
	p, err := Parse(rich)
	if err != nil {
		panic(err)
	}
	for i, id := range ids {
		m := p.index()[id]
		*delivery(records, 3+i) = Delivery{Msg: 3 + i, Source: m.From, Tag: 2, Count: 30, Sum: m.content(30).sum(30)}
	}
}

func TestVerifyFinds(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func([]*Record)
		want  string
	}{
		"a lost message":    {func(r []*Record) { drop(r[1], 2) }, "message 2 is lost"},
		"a doubled message": {func(r []*Record) { delivery(r, 2).Sum = delivery(r, 1).Sum }, "message 2 has other contents; that is message 1"},
		"two deliveries to one receive": {func(r []*Record) { r[1].Deliveries = append(r[1].Deliveries, *delivery(r, 1)) },
			"has got two messages"},
		"a message of another rank": {func(r []*Record) { r[2].Deliveries = append(r[2].Deliveries, *delivery(r, 1)) }, "not for it"},
		"two messages overtaking":   {func(r []*Record) { swap(r, 1, 2) }, "message 1 has other contents; that is message 2"},
		"wrong contents":            {func(r []*Record) { delivery(r, 1).Sum++ }, "message 1 has other contents"},
		"a wrong source":            {func(r []*Record) { delivery(r, 1).Source = 2 }, "source 2"},
		"a wrong tag":               {func(r []*Record) { delivery(r, 1).Tag = 7 }, "tag 7"},
		"a wrong count":             {func(r []*Record) { delivery(r, 1).Count = 19 }, "19 elements"},
		"no truncation":             {func(r []*Record) { delivery(r, 6).Truncated = false }, "want source 2, tag 3, 4 elements, truncated"},
		"wildcards overtaking":      {func(r []*Record) { ordered(r); swap(r, 3, 4) }, "after one that was sent later"},
		"a wildcard message twice":  {func(r []*Record) { ordered(r); delivery(r, 4).Sum = delivery(r, 3).Sum }, "again"},
		"a wildcard message of another": {func(r []*Record) { ordered(r); delivery(r, 5).Sum = delivery(r, 4).Sum },
			"nobody has sent; that is message 4"},
		"a lost wildcard message":         {func(r []*Record) { ordered(r); drop(r[1], 5) }, "message 5 is lost"},
		"cancelled and received":          {func(r []*Record) { cancelled(r, true) }, "cancelled and received"},
		"neither":                         {func(r []*Record) { cancelled(r, false) }, "neither cancelled nor received"},
		"a wrong result":                  {func(r []*Record) { r[2].Results[0].Sum++ }, "rank 2 has another result"},
		"a result missing":                {func(r []*Record) { r[2].Results = r[2].Results[1:] }, "is missing"},
		"a result that is no root's":      {func(r []*Record) { r[0].Results = append(r[0].Results, Result{Step: 17}) }, "or there should be none"},
		"a result twice":                  {func(r []*Record) { r[0].Results = append(r[0].Results, r[0].Results[0]) }, "two results"},
		"a result of nothing":             {func(r []*Record) { r[0].Results = append(r[0].Results, Result{Step: 2}) }, "no collective operations"},
		"a context used twice":            {func(r []*Record) { r[0].Comms[2].Context = 4 }, "communicators a and c have context 4"},
		"contexts that overlap":           {func(r []*Record) { r[0].Comms[2].Context = 5 }, "communicators a and c have context 5"},
		"a context of MPI_COMM_SELF":      {func(r []*Record) { r[1].Comms[1].Context = 2 }, "MPI_COMM_SELF and b have context 2"},
		"another context than the others": {func(r []*Record) { r[0].Comms[2].Context = 8 }, "communicator c has context 8, not 6"},
		"a wrong rank":                    {func(r []*Record) { r[0].Comms[1].Rank = 0 }, "is 0 of 2 in communicator a, not 1 of 2"},
		"a wrong group":                   {func(r []*Record) { r[0].Comms[1].Size = 3 }, "of 3 in communicator a"},
		"a communicator too many":         {func(r []*Record) { r[1].Comms = append(r[1].Comms, Membership{19, "c", 6, 0, 2, false}) }, "which it is not in"},
		"a communicator missing":          {func(r []*Record) { r[0].Comms = r[0].Comms[:2] }, "has not got communicator c"},
		"a rank twice":                    {func(r []*Record) { r[2] = &Record{Rank: 1} }, "two records of rank 1"},
	} {
		t.Run(name, func(t *testing.T) {
			p, records := richRecords(t)
			if err := Verify(p, records); err != nil {
				t.Fatal(err)
			}
			c.spoil(records)
			if err := Verify(p, records); !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// cancelled makes message 7 cancelled and received, or neither.
func cancelled(r []*Record, both bool) {
	m := Message{ID: 7, Kind: Int8}
	drop(r[2], 7)
	if both {
		r[2].Deliveries = append(r[2].Deliveries, Delivery{Msg: 7, Tag: 4, Count: 5, Sum: m.content(5).sum(5)})
	}
	r[0].Cancels = []Cancelled{{Req{7, SendSide}, both}}
}

// The sender of message 7 is free to cancel it or not.
func TestVerifyAcceptsBothFatesOfACancel(t *testing.T) {
	for _, gone := range []bool{true, false} {
		p, records := richRecords(t)
		cancelled(records, !gone)
		records[0].Cancels[0].Cancelled = gone
		if err := Verify(p, records); err != nil {
			t.Errorf("cancelled %v: %v", gone, err)
		}
	}
}

// Wildcard receives may get messages of different senders in any order, but not
// those of one sender.
func TestVerifyWildcardOrders(t *testing.T) {
	for _, c := range []struct {
		ids   []int
		legal bool
	}{
		{[]int{3, 4, 5}, true}, {[]int{3, 5, 4}, true}, {[]int{5, 3, 4}, true},
		{[]int{4, 3, 5}, false}, {[]int{4, 5, 3}, false}, {[]int{5, 4, 3}, false},
	} {
		p, records := richRecords(t)
		arrange(records, c.ids...)
		if err := Verify(p, records); (err == nil) != c.legal {
			t.Errorf("%v: %v", c.ids, err)
		}
	}
}

// What a failed rank has not received is excused; what it has received is judged.
func TestVerifyAfterAFailure(t *testing.T) {
	p, records := richRecords(t)
	ordered(records)
	records[1].Ended = false
	drop(records[1], 1)
	drop(records[1], 4)
	records[1].Results = nil
	records[2] = nil
	if err := Verify(p, records); err != nil {
		t.Fatal(err)
	}
	delivery(records, 2).Sum++
	if err := Verify(p, records); !errors.Is(err, ErrMismatch) {
		t.Errorf("%v", err)
	}
	delivery(records, 2).Sum--
	delivery(records, 5).Sum = delivery(records, 3).Sum
	delivery(records, 5).Source = 0
	if err := Verify(p, records); !errors.Is(err, ErrMismatch) {
		t.Errorf("%v", err)
	}
}
