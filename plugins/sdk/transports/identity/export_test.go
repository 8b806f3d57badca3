package identity

import "time"

// Expires returns when the site's certificate expires.
func (id *Identity) Expires() time.Time { return id.leaf().NotAfter }
