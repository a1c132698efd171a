package rules

import (
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// arrows has, for each file of a package, the files that it names something of (a
// function, a method, a type, a constant, a variable, a field), and one example of each.
type arrows map[string]map[string]string

// arrowsOf returns the arrows of a package, and how many methods each of its types declares.
func arrowsOf(t *testing.T, dir string) (arrows, map[string]int) {
	t.Helper()
	p := check(t, dir)
	all := arrows{}
	for _, f := range p.files {
		all[p.file(f.Pos())] = map[string]string{}
	}
	for id, used := range p.uses {
		if used.Pkg() != p.types || !used.Pos().IsValid() {
			continue
		}
		from, to := p.file(id.Pos()), p.file(used.Pos())
		if from != to {
			all[from][to] = used.Name()
		}
	}
	methods := map[string]int{}
	for _, name := range p.types.Scope().Names() {
		if tn, ok := p.types.Scope().Lookup(name).(*types.TypeName); ok {
			if named, ok := tn.Type().(*types.Named); ok {
				methods[name] = named.NumMethods()
			}
		}
	}
	return all, methods
}

// The house of idem: how many methods a type declares, and how many arrows between files
// run back up. `go test ./rules -run HouseOfIdem -v` prints the figures.
//
// The floors are the best order that is found: the one in which the fewest files name
// something of a file above them.
func TestHouseOfIdem(t *testing.T) {
	t.Parallel()
	const mostMethods, mostUp = 25, 0.05
	all, methods := arrowsOf(t, filepath.Join(root, "idem"))
	names := slices.Sorted(maps.Keys(methods))
	slices.SortStableFunc(names, func(a, b string) int { return methods[b] - methods[a] })
	for i, name := range names {
		if i < 12 {
			t.Logf("%3d methods %s", methods[name], name)
		}
		if methods[name] > mostMethods {
			t.Errorf("%s has %d methods, want at most %d", name, methods[name], mostMethods)
		}
	}
	order := all.floors()
	total, back := 0, 0
	for floor, from := range order {
		var up []string
		for _, to := range slices.Sorted(maps.Keys(all[from])) {
			total++
			if slices.Index(order, to) > floor {
				up = append(up, to+" ("+all[from][to]+")")
			}
		}
		back += len(up)
		t.Logf("%2d %-16s names %2d files, above it %v", floor, from, len(all[from]), up)
	}
	share := float64(back) / float64(total)
	t.Logf("%d of %d arrows run back up: %.1f %%", back, total, 100*share)
	if total < 100 || share > mostUp {
		t.Errorf("%d of %d arrows run back up, want at most %.0f %%", back, total, 100*mostUp)
	}
}

// floors orders the files from the ground up: each file in turn moves to the place where
// the fewest arrows of its own run back up, until none can move.
func (all arrows) floors() []string {
	order := slices.Sorted(maps.Keys(all))
	slices.SortStableFunc(order, func(a, b string) int { return len(all[a]) - len(all[b]) })
	for moved := true; moved; {
		moved = false
		for _, file := range slices.Sorted(maps.Keys(all)) {
			was := slices.Index(order, file)
			others := slices.Delete(slices.Clone(order), was, was+1)
			up := make([]int, len(order)) // arrows of file that run back up, by its floor
			for _, other := range others {
				if all[file][other] != "" {
					up[0]++
				}
			}
			for i, other := range others {
				up[i+1] = up[i]
				if all[file][other] != "" {
					up[i+1]--
				}
				if all[other][file] != "" {
					up[i+1]++
				}
			}
			if best := slices.Index(up, slices.Min(up)); up[best] < up[was] {
				order, moved = slices.Insert(others, best, file), true
			}
		}
	}
	return order
}
