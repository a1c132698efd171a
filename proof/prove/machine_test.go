package main

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samekey/samekey/dynamo/dynamotest"
	force "github.com/samekey/samekey/internal/testkit/prove"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// onThisMachine plays the claims of these names, also if this machine couldn't show them; all claims if none is named.
func onThisMachine(t *testing.T, change func(App) error, names ...string) map[string]Result {
	t.Helper()
	dynamotest.Start(t) // skips without a database
	var some []Claim
	for _, c := range Claims() {
		if slices.Contains(names, c.Name) {
			c.OnStandIn = ""
			some = append(some, c)
		}
	}
	if len(names) == 0 {
		some = Claims()
	}
	if len(some) < len(names) {
		t.Fatalf("%d claims of %v", len(some), names)
	}
	o := Options{Source: "../..", Tell: t.Logf, build: func(ctx context.Context, o Options, s Site) (App, error) {
		app, err := buildApp(ctx, o, s)
		if err == nil {
			err = change(app)
		}
		return app, err
	}}
	plan, err := Make(&Machine{Logs: t.Output()}, some, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := plan.Execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Result{}
	for _, c := range r.Claims {
		t.Logf("%s: %s %s %s", c.Name, c.Status, c.Figure, c.Why)
		all[c.Name] = c
	}
	return all
}

// The whole run on this machine: nothing fails, and what a stand-in can't show isn't shown.
func TestOnThisMachine(t *testing.T) {
	all := onThisMachine(t, func(App) error { return nil })
	passed := 0
	for _, c := range all {
		switch c.Status {
		case Failed:
			t.Errorf("%s: %s", c.Name, c.Why)
		case Passed:
			passed++
		case NotShown:
		}
	}
	if passed < 42 || all["crash.api.memory"].Status != NotShown || all["dynamodb.conflicts"].Status != NotShown {
		t.Errorf("%d claims passed", passed)
	}
}

// A bug in the library or a mistake in the template fails the claim that it breaks.
func TestPlantedInTheStack(t *testing.T) {
	const root = "../.."
	for name, bug := range map[string]struct {
		sample                         bool   // plays in make samples
		file, old, replacement, breaks string // claims
		also                           string // a claim that is examined before
	}{
		"a claim over any record": {
			true, "dynamo/conditions.go", `"attribute_not_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"`,
			`"attribute_not_exists(pk) OR attribute_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"`, "contract.http-api", "",
		},
		"a replay without its body":     {false, "idem/answer.go", "replayable(&resp)", "replayable(&resp); resp.Body = nil", "crash.api.answered", ""},
		"a REST answer without headers": {false, "lambda/rest.go", "re.Headers[name] = values[0]", "_ = values[0]", "contract.rest-api", ""},
		"presets that are not set": {
			true, "proof/prove/function/plain.go", "idem.New(store, preset, ", "idem.New(store, func(o *idem.Options) { o.Methods = []string{http.MethodPost, http.MethodPut}; _ = preset }, ",
			"contract.stripe contract.stripe-v1 contract.acp contract.ucp", "",
		},
		"a draft whose results are not kept": {
			false, "idem/presets.go", "storedBy(false, http.StatusUnauthorized,", "storedBy(false, http.StatusCreated, http.StatusUnauthorized,", "contract.ietf", "",
		},
		"derived keys of the attempt":    {false, "idem/progress.go", "id: p.rec.ID,", "id: p.rec.Owner,", "crash.api.after", ""},
		"nothing abandoned is completed": {false, "internal/state/abandoned.go", "r.Input != nil", "r.Input != nil && r.Tries < 0", "background.completion", ""},
		"a filter that lets nothing by":  {true, "", `["open","done","stuck"]`, `["nothing"]`, "crash.api.answered", ""},
		"a ticket that is sent anew": {
			false, "internal/background/completer/handler.go", "	if err := h.queue.hide(", `	if t, err := parse(m.Body); err == nil {
		_ = h.queue.Put(ctx, []jobs.Ticket{t.From(due)})
		return false
	}
	if err := h.queue.hide(`, "probe.waiting-ticket probe.in-flight", "",
		},
		"tickets without reports":                        {false, "", "      FunctionResponseTypes: [ReportBatchItemFailures]\n      # After", "      # After", "probe.unhidden", ""},
		"tickets of a worker that ends, without reports": {false, "", "      FunctionResponseTypes: [ReportBatchItemFailures]\n      # After", "      # After", "probe.ended", ""},
		"no filter":                            {true, "", filters(t), "", "background.filter", ""},
		"a mapping without reports":            {false, "", "      FunctionResponseTypes: [ReportBatchItemFailures]\n      BisectBatch", "      BisectBatch", "background.partial", ""},
		"a mapping that bisects nothing":       {true, "", "      BisectBatchOnFunctionError: true\n", "", "background.bisected", ""},
		"a sweep that leaves it to the stream": {false, "", "SAMEKEY_SWEEP_LATE: " + sweepLate, "SAMEKEY_SWEEP_LATE: 24h", "background.sweep", "contract.rest-api"},
		// Of permissions this machine checks none, so each role has one too many. A missing one is played by the proxy.
		"a role with all permissions": {true, "stack.yaml", "", "", "roles.outside", ""},
		"a permission that is missing": {
			true, "proof/prove/function/proxy.go", "	p.point.passed() //nolint:contextcheck // as above\n",
			`	if p.point.role == "receipts" && service == "dynamodb" {
		out.StatusCode, body = http.StatusBadRequest, []byte(` + "`" + `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"not authorized"}` + "`" + `)
		out.Header.Del("X-Amz-Crc32")
	}
`, "roles.enough", "crash.api.answered",
		},
	} {
		if !bug.sample && !force.All() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			change := func(App) error { return nil }
			if !strings.HasSuffix(bug.file, ".go") {
				change = func(app App) error {
					file := filepath.Join(app.Dir, cmp.Or(bug.file, nestedFile))
					return os.WriteFile(file, []byte(changed(t, file, bug.old, bug.replacement)), 0o600)
				}
			} else {
				overlay(t, filepath.Join(root, bug.file), changed(t, filepath.Join(root, bug.file), bug.old, bug.replacement))
			}
			breaks := strings.Fields(bug.breaks)
			names := slices.Clone(breaks)
			if bug.also != "" {
				names = append(names, bug.also)
			}
			all := onThisMachine(t, change, names...)
			for _, name := range breaks {
				if all[name].Status != Failed {
					t.Errorf("%s is %s", name, all[name].Status)
				}
			}
		})
	}
}

// filters are those of the stream's mapping, as the stack has them.
func filters(t *testing.T) string {
	t.Helper()
	const begin = "      FilterCriteria:\n"
	_, rest, ok := strings.Cut(Nested(false), begin)
	own, _, ok2 := strings.Cut(rest, "      DestinationConfig:\n")
	if !ok || !ok2 {
		t.Fatal("the stack has no filters")
	}
	return begin + own
}

func changed(t *testing.T, file, old, replacement string) string {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(src), old) {
		t.Fatalf("%s has no %s", file, old)
	}
	return strings.Replace(string(src), old, replacement, 1)
}

// overlay has go build read another text for a file.
func overlay(t *testing.T, file, text string) {
	t.Helper()
	file, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	with := filepath.Join(dir, "bug.go")
	raw, err := json.Marshal(map[string]any{"Replace": map[string]string{file: with}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{with: []byte(text), filepath.Join(dir, "overlay.json"): raw} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-overlay="+filepath.Join(dir, "overlay.json"))
}
