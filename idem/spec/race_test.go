//go:build race

package spec

const raceDetector = true
