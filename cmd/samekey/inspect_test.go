package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/doctor/doctortest"
)

type object = doctortest.Object

func phase(names ...string) object {
	all := make([]any, len(names))
	for i, n := range names {
		all[i] = object{"L": []any{object{"S": n}, object{"S": "{}"}}}
	}
	return object{"L": all}
}

// crowd returns a world whose table has records of every kind.
func crowd() *doctortest.World {
	w := doctortest.Good(time.Now())
	add := func(state string, more object) {
		it := w.Record(fmt.Sprint(len(w.Items)), "orders", state, 24*time.Hour)
		maps.Copy(it, more)
		if _, kept := more["exp_s"]; kept {
			delete(it, "keep")
		}
		w.Items = append(w.Items, it)
	}
	millis := func(d time.Duration) object { return object{"N": fmt.Sprint(w.Now.Add(d).UnixMilli())} }
	add("open", object{"phases": phase("ride_created"), "lease_ms": millis(time.Minute), "route": object{"S": "POST /rides"}})
	add("open", object{"phases": phase("ride_created", "tax_added"), "route": object{"S": "POST /rides"}, "created_ms": millis(-50 * time.Hour)})
	add("open", object{"phases": phase("ride_created", "tax_added"), "route": object{"S": "POST /rides"}, "blocked": object{"BOOL": true}})
	add("open", object{"phases": phase("ride_created"), "doubts": object{"L": []any{object{"S": "tax#1"}}}, "doubt_ms": millis(-time.Hour)})
	add("stuck", object{"phases": phase("\x1b[2Jevil"), "fpk": object{"S": "2026-01"}})
	add("done", object{"fpk": object{"S": "2025-07"}})
	add("done", object{"fpk": object{"S": "2026-01"}, "exp_s": object{"N": "5"}})
	jobs := object{"M": object{"0.0": object{"M": object{"k": object{"S": "mail"}, "a": object{"S": "{}"}}}, "0.1": object{"M": object{"k": object{"S": "mail"}, "a": object{"S": "{}"}, "f": object{"S": "refused"}}}}}
	add("done", object{"keep": object{"S": "jobs"}, "jobs": jobs})
	delete(w.Items[len(w.Items)-1], "exp_s")
	w.Items = append(w.Items, object{"pk": object{"S": "v1#orders#companion#o#1"}, "v": object{"N": "1"}, "b": object{"B": "eA=="}})
	w.Table["ItemCount"], w.Table["TableSizeBytes"] = len(w.Items), 12345
	return w
}

// vet --open and list --stats read the whole table, or a sample.
func TestNamesAndStats(t *testing.T) {
	someAccount(t)
	for name, tt := range map[string]struct {
		args string
		code int
		want []string
	}{
		"names": {"vet --open --lock ../../examples/samekey.lock", 3, []string{
			"twice  call tax  open  POST /orders  1  1h0m0s  v1#orders#6", "refused  phase tax_added  open  POST /rides  2  50h0m0s  v1#orders#4", "refused  phase  [2Jevil  stuck  POST /orders  1",
			"12 items seen; 6 open operations, of which 4 are incompatible with the build's 8 handlers; 0 unreadable items",
		}},
		"names as JSON": {"vet --open --lock ../../examples/samekey.lock --json", 3, []string{`"danger": "twice"`, `"unknown": "phase tax_added"`, `"seen": 12`}},
		"stats": {"list --stats --scan", 0, []string{
			"about 12 items, 12345 bytes; items read: 12 (the whole table): 11 records, 1 other items, 0 unreadable", "done  with undelivered jobs  1", "open  waits for the completer  3",
			"open  blocked: the program refuses to continue  1", "POST /orders  8\nPOST /rides  3", "up to 1 hour  10\nup to 7 days  1", "orders  24h0m0s  24h0m0s  2\nreceipts  672h0m0s  672h0m0s  1",
			"jobs: 1 waiting, 0 to deliver later, 1 parked\nrecords that wait for people (in the whole table): 0\noldest open operation: 40000000, claimed 50h0m0s ago\n",
			"202 bytes on average, 236 at most; 0 records are above 1 KB", "records cost about 600 write units per month",
		}},
		"of a sample":         {"list --stats", 0, []string{"about 120 items, 12345 bytes; items read: 12 (a sample)", "records cost about 6000 write units per month"}},
		"stats as JSON":       {"list --stats --scan --json", 0, []string{`"whole": true`, `"records": 11`, `"jobs_parked": 1`}},
		"fingerprints":        {"list --stats --fingerprints", 0, []string{"(none)  (default)  8  6  2000-01-28T23:00:01Z\n2025-07  (default)  1  0  2000-01-01T23:00:01Z\n2026-01  (default)  1  1"}},
		"fingerprints (JSON)": {"list --stats --fingerprints --json", 0, []string{`"secret": "2025-07"`}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := crowd()
			if name == "of a sample" {
				w.Pages, w.Table["ItemCount"] = 10, 10*len(w.Items)
			}
			code, stdout, stderr := callAt(t, w, append(strings.Fields(tt.args), "--table", "records")...)
			if code != tt.code || !onlyPlace(stderr) {
				t.Errorf("%s: code %d, want %d; %s", name, code, tt.code, stderr)
			}
			says(t, name, stdout, tt.want...)
		})
	}
}

func TestInspectWorstInputs(t *testing.T) {
	someAccount(t)
	empty := filepath.Join(t.TempDir(), "empty.lock")
	if err := os.WriteFile(empty, []byte(`{"version":1,"packages":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const locks = "../../examples/samekey.lock"
	for _, tt := range []struct {
		args   []string
		refuse string // operation and error code
		code   int
		stderr string
	}{
		{[]string{"vet", "--open"}, "", 2, "no lock file: give --lock FILE"},
		{[]string{"vet", "--open", "--lock", empty}, "", 2, "has no handlers"},
		{[]string{"vet", "--open", "--lock", "names.go"}, "", 2, "is not a lock file"},
		{[]string{"vet", "--open", "--lock", locks, "--pages", "0"}, "", 2, "--pages above 0"},
		{[]string{"vet", "--open", "--lock", locks}, "", 2, "no table: set"},
		{[]string{"vet", "--open", "--lock", locks, "--table", "nothing"}, "", 1, "no table nothing at "},
		{[]string{"vet", "--open", "--lock", locks, "--table", "records"}, "DynamoDB.Scan AccessDeniedException", 1, "AccessDeniedException"},
		{[]string{"vet", "--open", "--lock", locks, "--table", "records"}, "DynamoDB.Scan ProvisionedThroughputExceededException", 1, "ProvisionedThroughputExceededException"},
		{[]string{"get", "--table", "records", "AAAAAAAAAAAAAAAAAAAAAAAAAA"}, "DynamoDB.Scan AccessDeniedException", 1, "AccessDeniedException"}, // not: no record
		{[]string{"list", "--stats"}, "", 2, "no table: set"},
		{[]string{"list", "--stats", "--table", "nothing"}, "", 1, "no table nothing at "},
		{[]string{"list", "--stats", "--table", "records", "--segments", "0"}, "", 2, "--segments"},
		{[]string{"list", "--stats", "--table", "records"}, "DynamoDB.Scan AccessDeniedException", 1, "AccessDeniedException"},
		{[]string{"list", "--stats", "--table", "records"}, "DynamoDB.Scan ThrottlingException", 1, "ThrottlingException"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := crowd()
			if op, code, ok := strings.Cut(tt.refuse, " "); ok {
				w.Refused[op] = code
			}
			code, stdout, stderr := callAt(t, w, tt.args...)
			if code != tt.code || !strings.Contains(stderr, tt.stderr) || stdout != "" {
				t.Errorf("%v: code %d, %q, %q", tt.args, code, stdout, stderr)
			}
		})
	}
	// Records of another layout are counted as unreadable, so the build isn't said to fit.
	synctest.Test(t, func(t *testing.T) {
		w := doctortest.Good(time.Now())
		w.Items[2]["v"] = object{"N": "3"}
		code, stdout, _ := callAt(t, w, "vet", "--open", "--table", "records", "--lock", locks)
		if code != 3 || !strings.Contains(stdout, "1 unreadable") {
			t.Errorf("names: code %d, %s", code, stdout)
		}
		code, stdout, _ = callAt(t, w, "list", "--stats", "--table", "records")
		if code != 0 || !strings.Contains(stdout, "1 unreadable") {
			t.Errorf("stats: code %d, %s", code, stdout)
		}
	})
}

// safeBuffer is a buffer that may be read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// waitFor waits until is returns true, with a deadline for a machine that hangs.
func waitFor(t *testing.T, what string, is func() bool, seen func() string) {
	t.Helper()
	deadline := time.After(10 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("waited for %s; seen: %s", what, seen())
		case <-tick.C:
		}
	}
}

// onlyPlace reports whether a command has printed only the table's place.
func onlyPlace(stderr string) bool {
	return strings.HasPrefix(stderr, "table records") && strings.Count(stderr, "\n") == 1
}
