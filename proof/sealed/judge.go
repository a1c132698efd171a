package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/samekey/samekey/internal/testkit/leaktest"
	"github.com/samekey/samekey/proof/sealed/suite"
)

// judge looks for the contents of a round's records in its writes and logs. said is the
// output of its tests.
func (r *round) judge(said []byte) (string, error) {
	var secret leaktest.Contents
	lines, err := linesOf(r.dir, suite.FileContents)
	if err != nil {
		return "", err
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		text, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			return "", err
		}
		secret.Add(text)
	}
	var leaks []string
	written, err := each(filepath.Join(r.dir, "written"), func(text []byte) { leaks = append(leaks, secret.Find(text)...) })
	if err != nil {
		return "", err
	}
	slices.Sort(leaks)
	leaks = slices.Compact(leaks)
	logged, err := linesOf(r.dir, suite.FileLog)
	if err != nil {
		return "", err
	}
	var told []string
	for _, line := range logged {
		for _, what := range secret.Find([]byte(line)) {
			told = append(told, fmt.Sprintf("%q in the log line %s", what, line))
		}
	}
	verdict := fmt.Sprintf("%d contents, %d found in %d texts written, %d in %d lines logged", secret.Count, len(leaks), written, len(told), len(logged))
	switch {
	case secret.Count < 2 || written < 10 && !r.memory, len(logged) < 10 && r.memory:
		return "", errors.New(verdict + ": too few to show anything")
	case bytes.Contains(said, []byte("--- SKIP")) && bytes.Contains(said, []byte("no DynamoDB")):
		return "", errors.New("tests were skipped")
	case r.plain && len(leaks) < secret.Count/2:
		return "", errors.New(verdict + ": without encryption, most should be found")
	case len(told) > 0, !r.plain && len(leaks) > 0:
		return "", fmt.Errorf("%s:\n%q\n%s", verdict, leaks[:min(len(leaks), 20)], strings.Join(told[:min(len(told), 20)], "\n"))
	}
	return verdict, nil
}

// linesOf returns the lines of all files in dir whose names begin so.
func linesOf(dir, begin string) (lines []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, begin+"*"))
	for _, f := range files {
		raw, rerr := os.ReadFile(f)
		err = errors.Join(err, rerr)
		lines = append(lines, strings.FieldsFunc(string(raw), func(c rune) bool { return c == '\n' })...)
	}
	return lines, err
}
