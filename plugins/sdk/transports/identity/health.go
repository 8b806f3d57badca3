package identity

import (
	"fmt"
	"time"
)

// soon is how long before its expiry a certificate should be renewed.
const soon = 7 * 24 * time.Hour

// Health returns an error if the site's certificate has expired or will soon. Existing
// links continue after the expiry, but new ones are refused. It returns nil otherwise, and
// for a nil Identity.
func (id *Identity) Health() error {
	if id == nil {
		return nil
	}
	switch left := id.leaf().NotAfter.Sub(id.now()); {
	case left <= 0:
		return fmt.Errorf("the certificate in %s expired on %s: impi-node cert issue -renew %s",
			id.files.Load().certFile, id.leaf().NotAfter.Format(time.RFC3339), id.Name())
	case left < soon:
		return fmt.Errorf("the certificate in %s expires on %s, in %v: impi-node cert issue -renew %s",
			id.files.Load().certFile, id.leaf().NotAfter.Format(time.RFC3339), left.Round(time.Minute), id.Name())
	}
	return nil
}
