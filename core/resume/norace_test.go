//go:build !race

package resume

// raceDetector tells that the tests run ten times slower.
const raceDetector = false
