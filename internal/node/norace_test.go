//go:build !race

package node

// raceDetector tells that the tests run ten times slower.
const raceDetector = false
