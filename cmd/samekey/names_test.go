package main

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/doctor/doctortest"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// names counts the handlers of a build, and doesn't count unreadable
// records and foreign items as fitting.
func TestNamesOfASmallBuild(t *testing.T) {
	someAccount(t)
	file := filepath.Join(t.TempDir(), "samekey.lock")
	localtest.Write(t, file, `{"version":1,"packages":{"example.com/shop":{"App.order":[{"phase":"ordered","kind":"Atomic","result":"int"}]}},"engines":{}}`)
	for name, tt := range map[string]struct {
		items  func(*doctortest.World) []object
		code   int
		stdout string
		stderr string
	}{
		"empty":    {func(*doctortest.World) []object { return nil }, 0, "0 items seen; 0 open operations, of which 0 are incompatible with the build's 1 handlers; 0 unreadable items\n", ""},
		"others'":  {func(*doctortest.World) []object { return []object{{"pk": object{"S": "a customer"}}} }, 1, "", "none of the first 1 items is a Samekey record"},
		"answered": {func(w *doctortest.World) []object { return []object{w.Record("1", "shop", "done", time.Hour)} }, 0, "1 items seen; 0 open", ""},
		"unread": {func(w *doctortest.World) []object {
			it := w.Record("1", "shop", "open", time.Hour)
			it["v"] = object{"N": "3"}
			return []object{it}
		}, 3, "1 items seen; 0 open operations, of which 0 are incompatible with the build's 1 handlers; 1 unreadable items\n", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := doctortest.Good(time.Now())
			w.Items = tt.items(w)
			code, stdout, stderr := callAt(t, w, "vet", "--open", "--table", "records", "--lock", file)
			if code != tt.code || !strings.HasPrefix(stdout, tt.stdout) || (stdout == "") != (tt.stdout == "") || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("%s: code %d, %s%s", name, code, stdout, stderr)
			}
		})
	}
}
