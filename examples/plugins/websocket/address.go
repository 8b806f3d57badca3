package main

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
)

// maxAddress bounds an address, which comes from another site.
const maxAddress = 512

// parseAddress judges the URL of a listener. names allows hosts that have to be
// looked up.
func parseAddress(s string, names bool) (*url.URL, error) {
	if len(s) > maxAddress {
		return nil, errors.New("it is too long")
	}
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "ws" && u.Scheme != "wss") || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return nil, errors.New(`it should be a URL like "ws://192.0.2.1:7800/impi"`)
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return nil, errors.New("its port should be between 1 and 65535")
		}
	}
	if _, err := netip.ParseAddr(u.Hostname()); err != nil && !names {
		return nil, errors.New("its host should be a numeric address; others are for names = true")
	}
	return u, nil
}
