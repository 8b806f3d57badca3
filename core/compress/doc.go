// Package compress makes one link out of another one, whose bytes travel compressed where that
// makes them fewer. Both ends must do so. docs/decisions/0064-compressed-links.md says why it is
// made this way.
//
// The package only computes. The algorithm is a Codec of the owner's.
//
// # Frames
//
// Each direction is a sequence of frames without gap: a header of 8 bytes and a body.
//
//	0  1  version, 1
//	1  1  kind: 0 plain, 1 compressed
//	2  3  bytes that the user gets: 1 to 1 MiB if plain, 2 to 192 KiB if compressed
//	5  3  bytes of the body: as many if plain, 1 or more and fewer if compressed
//
// All numbers are big-endian. A body of kind 1 stands for itself: nothing of the frames before is
// needed to decompress it. So what a receiver allocates is bounded before anything has come, by
// twice the longest compressed frame, and a frame that says more is an error before its body is
// read.
//
// # What is compressed
//
// What one Send gives is cut into blocks; a Send of fewer bytes than Config.Min is sent plain, and
// at once like everything else. A block that does not become an eighth smaller is sent plain, too,
// and then others are sent plain without trying: 256 KiB, and after each try in a row that fails
// twice as much as before, up to 16 MiB.
package compress
