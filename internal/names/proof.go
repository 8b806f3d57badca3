package names

import (
	"encoding/binary"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/rpc/auth"
)

var kind = auth.Kind{Protocol: "impi-names/2", Name: "impi names", Denied: ErrDenied, Version: ErrVersion}

func keysOf(a startup.Auth) (k auth.Keys) {
	k.Open = a.None
	if a.HasKey {
		k.Key = binary.BigEndian.AppendUint64(nil, a.Key)
	}
	return k
}
