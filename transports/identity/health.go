package identity

import (
	"fmt"
	"time"
)

// soon is how long before its end a certificate should be renewed.
const soon = 7 * 24 * time.Hour

// Health says that the site's certificate is about to expire, or has expired. Links that
// exist go on, new ones are refused from then on. Nil: all is well; so is no identity.
func (id *Identity) Health() error {
	if id == nil {
		return nil
	}
	switch left := id.leaf.NotAfter.Sub(id.now()); {
	case left <= 0:
		return fmt.Errorf("the certificate in %s expired on %s: impi-node cert issue -renew %s",
			id.certFile, id.leaf.NotAfter.Format(time.RFC3339), id.Name())
	case left < soon:
		return fmt.Errorf("the certificate in %s expires on %s, in %v: impi-node cert issue -renew %s",
			id.certFile, id.leaf.NotAfter.Format(time.RFC3339), left.Round(time.Minute), id.Name())
	}
	return nil
}
