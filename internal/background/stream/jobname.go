package stream

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/samekey/samekey/internal/item"
)

// byPosition orders names of jobs as they were staged: "2.0" before "10.0".
func byPosition(a, b string) int {
	pa, ia, okA := position(a)
	pb, ib, okB := position(b)
	if !okA || !okB {
		return cmp.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(pa, pb), cmp.Compare(ia, ib))
}

func position(name string) (phase, index int, ok bool) {
	p, i, _ := strings.Cut(name, ".")
	phase, err1 := strconv.Atoi(p)
	index, err2 := strconv.Atoi(i)
	return phase, index, err1 == nil && err2 == nil
}

// each repeats a part of an expression for each path, which replaces %s.
func each(paths []string, part string) string {
	var b strings.Builder
	for _, path := range paths {
		b.WriteString(strings.ReplaceAll(part, "%s", path))
	}
	return b.String()
}

// jobPaths returns the paths of jobs, and their placeholders.
func jobPaths(names []string) (paths []string, placeholders map[string]string) {
	paths, placeholders = make([]string, len(names)), make(map[string]string, len(names)+2)
	for i, name := range names {
		placeholder := "#j" + strconv.Itoa(i)
		placeholders[placeholder] = name
		paths[i] = item.AttrJobs + "." + placeholder
	}
	return paths, placeholders
}
