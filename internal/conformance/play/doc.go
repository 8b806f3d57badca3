// Package play plays the server, the other clients, their hosts and their procs against an
// implementation of IMPI 0.0 under test (IUT), case by case, by the chapters of the standard.
//
// Nothing here is shared with the machine in core: numbers, layouts and state are a second
// reading of the same text, so that an error made there cannot cancel out here. What the
// tester's peers do is scripted by the case; only window acknowledgements and the channel of
// commands to the IUT's program run by themselves (see channel and control).
//
// Cases are in cases/*.txt, in the form of package script. The steps between two procs are
// in play_client.go, those of collective operations in play_group.go, of startup in
// play_startup.go, of host-to-host connections in play_dance.go, and against a server in
// play_server.go. What follows the trees of the standard is one step, of collective.go. A case runs
// in a goroutine of its own with a *T, whose Fatalf ends it. Whatever it waits for has a deadline.
package play
