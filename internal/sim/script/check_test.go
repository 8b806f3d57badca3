package script

import (
	"errors"
	"strings"
	"testing"
)

// legal parses a program and checks it.
func legal(t *testing.T, text string) *Program {
	t.Helper()
	p, err := Parse(text)
	if err == nil {
		err = Check(p)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// Each of these would hang, or vary, in some legal MPI. The second line of each says what is wrong.
func TestCheckRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a send waited for before its receive": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1
			isend 1
			wait 0 s1
			recv 1`, "its send is waited for before the receive begins"},
		"a blocking send before its receive": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1
			send 1
			recv 1`, "its send is waited for"},
		"a receive before its send": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1
			recv 1
			isend 1
			wait 0 s1`, "its receive is waited for before the send begins"},
		"received in another order than sent": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1
			message 2 from=0 to=1 comm=w tag=1 type=int8 len=1
			isend 1
			isend 2
			recv 2
			recv 1
			waitall 0 s1 s2`, "by the receive of another"},
		"never completed": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1
			isend 1
			recv 1`, "not sent and received to the end"},
		"completed twice": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1
			isend 1
			recv 1
			wait 0 s1 s1`, "not under way"},
		"waited for by another rank": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1
			isend 1
			recv 1
			wait 1 s1`, "is not of rank 1"},
		"a wildcard that starves a receive": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1
			message 2 from=2 to=1 comm=w tag=1 type=int8 len=1 anysource=yes
			isend 1
			isend 2
			recv 2
			recv 1
			wait 0 s1
			wait 2 s2`, "in place of"},
		"a wildcard that takes a message from a receive": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1
			message 2 from=0 to=1 comm=w tag=2 type=int8 len=1 anytag=yes
			isend 1
			isend 2
			recv 2
			recv 1
			waitall 0 s1 s2`, "by the receive of another"},
		"any tag meets a message of another pattern": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 anysource=yes anytag=yes
			message 2 from=0 to=1 comm=w tag=2 type=int8 len=1
			message 3 from=2 to=1 comm=w tag=3 type=int8 len=1 anysource=yes
			isend 1
			isend 2
			isend 3
			recv 1
			recv 2
			recv 3
			waitall 0 s1 s2
			wait 2 s3`, "in place of"},
		"a blocking send to one of several wildcard receives": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 anysource=yes
			message 2 from=2 to=1 comm=w tag=1 type=int8 len=1 anysource=yes
			isend 1
			exchange 2
			recv 1
			wait 0 s1`, "before all receives"},
		"a wildcard receive too early": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 anysource=yes
			message 2 from=2 to=1 comm=w tag=1 type=int8 len=1 anysource=yes
			irecv 2
			isend 1
			recv 1
			isend 2
			wait 1 r2
			wait 0 s1
			wait 2 s2`, "when 1 messages are sent"},
		"wildcards of two types": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 anysource=yes
			message 2 from=2 to=1 comm=w tag=1 type=int16 len=1 anysource=yes
			isend 1
			isend 2
			recv 1
			recv 2
			wait 0 s1
			wait 2 s2`, "different types"},
		"a wildcard receive that is too small": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 anysource=yes
			message 2 from=2 to=1 comm=w tag=1 type=int8 len=5 anysource=yes
			isend 1
			isend 2
			recv 1
			recv 2
			wait 0 s1
			wait 2 s2`, "has room for 1"},
		"ready without a receive": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 mode=ready
			isend 1
			recv 1
			wait 0 s1`, "cannot know"},
		"ready, and nobody has told": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 mode=ready
			irecv 1
			send 1
			wait 1 r1`, "cannot know"},
		"ready, and the wrong one was told": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 mode=ready
			message 2 from=1 to=2 comm=w tag=1 type=int8 len=0
			irecv 1
			exchange 2
			send 1
			wait 1 r1`, "cannot know"},
		"buffered without memory": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 mode=buffered
			send 1
			recv 1`, "may lack the memory"},
		"too little memory": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=100 mode=buffered
			attach 0 600
			send 1
			recv 1
			detach 0`, "may lack the memory"},
		"detached before it is received": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 mode=buffered
			attach 0 6000
			send 1
			detach 0
			recv 1`, "may not have left"},
		"memory left behind": {`attach 0 6000`, "leaves memory"},
		"a persistent request started twice": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 sendslot=1
			message 2 from=0 to=1 comm=w tag=1 type=int8 len=1 sendslot=1
			isend 1
			isend 2
			recv 1
			recv 2
			waitall 0 s1 s2`, "while message 1 is under way"},
		"a persistent request of two lengths": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 sendslot=1
			message 2 from=0 to=1 comm=w tag=1 type=int8 len=2 sendslot=1
			isend 1
			recv 1
			wait 0 s1
			isend 2
			recv 2
			wait 0 s2`, "slot 1 cannot serve both"},
		"cancelled among others": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1
			message 2 from=0 to=1 comm=w tag=1 type=int8 len=1
			isend 1
			isend 2
			cancel s1
			recv 2
			wait 0 s2`, "others of its kind"},
		"an unmatched receive of a message": {`
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1
			isend 1
			unmatched 1 comm=w source=0 tag=1
			recv 1
			wait 0 s1`, "has that tag"},
		"freed under way": {`
			dup w new=a
			message 1 from=0 to=1 comm=a tag=1 type=int8 len=1
			isend 1
			free a
			recv 1
			wait 0 s1`, "under way"},
		"used after its end":            {"dup w new=a\nfree a\nbarrier a", "has been freed"},
		"no member":                     {"split w new=a colors=0,none,none keys=0,0,0\nnull 1 comm=a call=send", "not in communicator"},
		"a name twice":                  {"dup w new=a\ndup w new=a", "before"},
		"a grid that is too large":      {"cart w new=a dims=2,2 periodic=no,no", "members"},
		"no grid":                       {"cartsub w new=a keep=yes", "no grid"},
		"names missing":                 {"split w new=a colors=0,1,2 keys=0,0,0", "1 names for 3"},
		"the world freed":               {"free w", "cannot be freed"},
		"counts missing":                {"gatherv w id=1 type=int8 root=0 counts=1,2", "2 counts"},
		"no such operation":             {"reduce w id=1 type=bool root=0 op=sum counts=1", "no sum of bool"},
		"in place with other counts":    {"alltoallv w id=1 type=int8 counts=1,2,3,4,5,6,7,8,9 inplace=yes", "same counts"},
		"a root that is no member":      {"split w new=a colors=0,0,none keys=0,0,0\nbcast a id=1 type=int8 root=2 counts=1", "root 2"},
		"two sends in an exchange":      {"message 1 from=0 to=1 comm=w tag=1 type=int8 len=1\nmessage 2 from=0 to=2 comm=w tag=1 type=int8 len=1\nexchange 1 2", "two messages"},
		"an exchange of two types":      {"message 1 from=0 to=1 comm=w tag=1 type=int8 len=1\nmessage 2 from=1 to=0 comm=w tag=1 type=int16 len=1\nexchange 1 2", "differ"},
		"a replacement of another size": {"message 1 from=0 to=1 comm=w tag=1 type=int8 len=1\nmessage 2 from=1 to=0 comm=w tag=1 type=int8 len=2\nreplace 1 2", "replaces"},
		"a probe that does not block":   {"message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 by=probe\nirecv 1\nsend 1\nwait 1 r1", "only a blocking receive"},
		"a rank that is not there":      {"pause 3 1s", "ranks are 0 to 2"},
	} {
		p, err := Parse("procs 3\n" + c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := Check(p); !errors.Is(err, ErrIllegal) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The cases above with what they lack are legal.
func TestCheckAccepts(t *testing.T) {
	for name, text := range map[string]string{
		"buffered sends wait for nobody": `
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 mode=buffered
			attach 0 6000
			send 1
			recv 1
			detach 0`,
		"ready after a message": `
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 mode=ready
			message 2 from=1 to=2 comm=w tag=1 type=int8 len=0
			message 3 from=2 to=0 comm=w tag=1 type=int8 len=0
			irecv 1
			exchange 2
			exchange 3
			send 1
			wait 1 r1`,
		"ready after a barrier": `
			split w new=a colors=4,4,none keys=0,0,0
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 mode=ready
			irecv 1
			barrier a
			send 1
			wait 1 r1`,
		"wildcards apart by a barrier": `
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 anysource=yes anytag=yes
			message 2 from=0 to=1 comm=w tag=1 type=int8 len=1
			isend 1
			recv 1
			barrier w
			isend 2
			recv 2
			waitall 0 s1 s2`,
		"wildcards of different tags": `
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 anysource=yes
			message 2 from=2 to=1 comm=w tag=2 type=int16 len=5 anysource=yes
			isend 2
			isend 1
			recv 1
			recv 2
			wait 0 s1
			wait 2 s2`,
		"one sender to different patterns": `
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 anytag=yes
			message 2 from=0 to=1 comm=w tag=2 type=int16 len=2
			message 3 from=0 to=1 comm=w tag=2 type=int32 len=3 anysource=yes
			irecv 2
			irecv 1
			isend 1
			isend 2
			isend 3
			wait 1 r1
			wait 0 s1
			recv 3
			wait 1 r2
			waitall 0 s2 s3`,
		"a ring": `
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1
			message 2 from=1 to=2 comm=w tag=1 type=int8 len=2 cap=5
			message 3 from=2 to=0 comm=w tag=1 type=int8 len=3
			exchange 1 2 3`,
		"a persistent request again": `
			message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 sendslot=1 recvslot=1
			message 2 from=0 to=1 comm=w tag=1 type=int8 len=1 sendslot=1 recvslot=1
			irecv 1
			isend 1
			wait 0 s1
			wait 1 r1
			irecv 2
			isend 2
			wait 0 s2
			wait 1 r2`,
	} {
		t.Run(name, func(t *testing.T) {
			p := legal(t, "procs 3\n"+text)
			for seed := range uint64(20) {
				if err := newExec(t, p, seed).run(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// The strict executor hangs in some programs that Check refuses, which shows that it can find
// deadlocks.
func TestExecutorSeesDeadlocks(t *testing.T) {
	for _, text := range []string{
		"message 1 from=0 to=1 comm=w tag=1 type=int8 len=1\nsend 1\nbarrier w\nrecv 1",
		"message 1 from=0 to=1 comm=w tag=1 type=int8 len=1\nmessage 2 from=1 to=0 comm=w tag=1 type=int8 len=1\nsend 1\nsend 2\nrecv 1\nrecv 2",
		"message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 mode=ready\nsend 1\nrecv 1",
		"message 1 from=0 to=1 comm=w tag=1 type=int8 len=1 mode=buffered\nsend 1\ndetach 0\nbarrier w\nrecv 1",
	} {
		p, err := Parse("procs 2\n" + text)
		if err != nil {
			t.Fatal(err)
		}
		if Check(p) == nil {
			t.Errorf("legal?\n%s", text)
		}
		if newExec(t, p, 1).run() == nil {
			t.Errorf("no deadlock:\n%s", text)
		}
	}
}
