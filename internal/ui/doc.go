// Package ui serves one page about a running job to a browser on the same machine: sites, hosts and
// procs, who talks to whom, faults and the log. Its page needs no network but to this server.
package ui
