package startup

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// settleSecret sets Secret. In a job with clients of others, no cards are sent, and the key is the
// only thing that only the job's clients have (IMPI ch.2, Authentication).
func (j *Job) settleSecret(keyed bool, key uint64) {
	switch {
	case j.AllOwn:
		j.Secret = j.Token
	case keyed && j.Clients[j.Self].Own:
		j.Secret = j.secretOf(key)
	}
}

// secretOf derives a secret from the key and the members of the job, so that each job has
// another one.
func (j *Job) secretOf(key uint64) (secret [TokenSize]byte) {
	said := []byte("impi job: secret\x00")
	said = binary.BigEndian.AppendUint32(said, uint32(len(j.Hosts)))
	for _, h := range j.Hosts {
		said = append(said, h.Address[:]...)
		said = binary.BigEndian.AppendUint32(said, uint32(h.Port))
	}
	said = binary.BigEndian.AppendUint32(said, uint32(j.Procs.Len()))
	for _, p := range j.Procs.All() {
		said = append(said, p.ID.Host[:]...)
		said = binary.BigEndian.AppendUint64(said, uint64(p.ID.PID))
	}
	mac := hmac.New(sha256.New, binary.BigEndian.AppendUint64(nil, key))
	mac.Write(said)
	mac.Sum(secret[:0])
	return secret
}
