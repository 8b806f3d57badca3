package names

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/rpc/door"
)

// FirstByte is the first byte that a client of the name service sends. No site begins
// startup with it, so one TCP port can serve both.
const FirstByte = door.FirstByte

var kind = door.Kind{Protocol: "impi-names/2", Name: "impi names", Denied: ErrDenied, Version: ErrVersion}

// keysOf returns the keys by which a job's nodes and the server prove who they are.
func keysOf(a startup.Auth) (k door.Keys) {
	k.Open = a.None
	if a.HasKey {
		k.Key = binary.BigEndian.AppendUint64(nil, a.Key)
	}
	return k
}

// OwnerOf derives from the job's token the proof that a request comes from the job. It does
// not reveal the token.
func OwnerOf(token []byte) (o Owner) {
	h := hmac.New(sha256.New, token)
	h.Write([]byte("impi: names of the job"))
	copy(o[:], h.Sum(nil))
	return o
}
