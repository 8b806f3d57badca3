// Package protocol judges an implementation of IMPI 0.0 from outside, over real
// sockets: the test that NIST once offered, as one command. It plays the server,
// the other clients, their hosts and their procs against an implementation under
// test (IUT), case by case, by the chapters of the standard.
//
// Nothing here is shared with the machine in core: numbers, layouts and state are a
// second reading of the same text, so that an error made there cannot cancel out
// here. What the tester's peers do is scripted by the case; only window
// acknowledgements and the channel of commands to the IUT's program run by
// themselves (see channel and control).
//
// A case is written in a file case_<chapter>.go, in a table that its init function
// hands to register. It runs in a goroutine of its own with a *T, whose Fatalf ends
// it. Whatever it waits for has a deadline. The usual case is
//
//	j := t.join(setup{})             // startup, dance; the IUT's program waits for commands
//	c := j.start(j.iut(0), "recv src=0 tag=5 type=byte n=4")
//	j.send(packet{...})
//	c.ok()                           // what the program answered
//	j.finish()                       // the orderly end, checked too
package protocol
