package names

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/rpc/door"
)

// FirstByte is how a client of names begins. Nothing that a site says in startup begins
// so, and one port can serve both.
const FirstByte = door.FirstByte

var kind = door.Kind{Protocol: "impi-names/2", Name: "impi names", Denied: ErrDenied, Version: ErrVersion}

// keysOf returns what proves a job's nodes and the server to each other.
func keysOf(a startup.Auth) (k door.Keys) {
	k.Open = a.None
	if a.HasKey {
		k.Key = binary.BigEndian.AppendUint64(nil, a.Key)
	}
	return k
}

// OwnerOf derives what proves to be of a job from the job's token, which it does not
// give away.
func OwnerOf(token []byte) (o Owner) {
	h := hmac.New(sha256.New, token)
	h.Write([]byte("impi: names of the job"))
	copy(o[:], h.Sum(nil))
	return o
}
