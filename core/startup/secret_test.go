package startup

import (
	"encoding/hex"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// secretJob is a job of a client of ours, a foreign one, and another of ours.
func secretJob() *Job {
	id := func(b byte) wire.HostID { return wire.HostID{12: 10, 15: b} }
	return &Job{
		Clients: []ClientInfo{{Own: true}, {Rank: 1}, {Rank: 2, Own: true}},
		Hosts:   []HostInfo{{Address: id(1), Port: 5000}, {Client: 1, Address: id(2), Port: 5001}, {Client: 2, Address: id(3), Port: 5002}},
		Procs:   ListProcs(ProcInfo{ID: wire.Proc{Host: id(1), PID: 7}}, ProcInfo{ID: wire.Proc{Host: id(2), PID: 8}}, ProcInfo{ID: wire.Proc{Host: id(3), PID: 9}}),
	}
}

// TestSecretBytes fixes the secret that follows from a key: both sites must find it.
func TestSecretBytes(t *testing.T) {
	s := secretJob().secretOf(42)
	if got, want := hex.EncodeToString(s[:]), "014847054fed1590d50bf43ea52b03a017371e4a58af1273c7f6f054c0ca6944"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestSecretOfAnotherJob: with the same key each job has a secret of its own.
func TestSecretOfAnotherJob(t *testing.T) {
	seen := map[[TokenSize]byte]string{}
	for name, change := range map[string]func(*Job){
		"none":          func(*Job) {},
		"a port":        func(j *Job) { j.Hosts[1].Port++ },
		"an address":    func(j *Job) { j.Hosts[2].Address[15]++ },
		"a pid":         func(j *Job) { x := j.Procs.At(0); x.ID.PID++; j.Procs.Set(0, x) },
		"a proc's host": func(j *Job) { x := j.Procs.At(2); x.ID.Host[0]++; j.Procs.Set(2, x) },
		"a host less":   func(j *Job) { j.Hosts = j.Hosts[:2] },
		"another proc":  func(j *Job) { j.Procs.Add(ProcInfo{}) },
		"procs for host": func(j *Job) {
			j.Hosts = j.Hosts[:1]
			for _, x := range j.Procs.All() {
				j.Procs.Add(x)
			}
		},
	} {
		j := secretJob()
		change(j)
		s := j.secretOf(42)
		if other, known := seen[s]; known {
			t.Errorf("%s and %s: one secret", name, other)
		}
		seen[s] = name
		if j.secretOf(43) == s {
			t.Errorf("%s: the key does not matter", name)
		}
	}
}

func TestSharesSecret(t *testing.T) {
	j := secretJob()
	if j.settleSecret(false, 42); j.SharesSecret(2) {
		t.Error("there is no key")
	}
	if j.settleSecret(true, 42); !j.SharesSecret(2) || !j.SharesSecret(0) || j.SharesSecret(1) {
		t.Error("the clients of ours share the secret, and no other")
	}
	if j.Self = 1; j.SharesSecret(2) {
		t.Error("a client that hides what it is shares nothing")
	}
	j.AllOwn, j.Token = true, [TokenSize]byte{5}
	if j.settleSecret(true, 42); j.Secret != j.Token {
		t.Error("where all are ours, the token is the secret")
	}
}
