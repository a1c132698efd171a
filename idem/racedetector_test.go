//go:build race

package idem_test

// raceDetector says that it looks on: five times the time for each schedule.
const raceDetector = true
