package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

// The page says what the results say.
func TestPageIsOfTheResults(t *testing.T) {
	t.Parallel()
	r, err := load(folder)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), r.page()); diff != "" {
		t.Errorf("proof/bench/README.md (-page +results), go run -C proof ./bench -page writes it:\n%s", diff)
	}
	for name, svg := range r.Growth.plots() {
		got, err := os.ReadFile(filepath.Join(folder, "images", name))
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(string(got), svg); diff != "" {
			t.Errorf("proof/bench/images/%s (-picture +results), go run -C proof ./bench -page writes it:\n%s", name, diff)
		}
		var parsed struct {
			Title string `xml:"title"`
		}
		if err := xml.Unmarshal(got, &parsed); err != nil || parsed.Title == "" {
			t.Errorf("proof/bench/images/%s: title %q: %v", name, parsed.Title, err)
		}
	}
	prices, err := loadPrices(filepath.Join(folder, "prices.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(prices, r.Prices); diff != "" {
		t.Errorf("the results' prices (-prices.json +results.json):\n%s", diff)
	}
}

// A short run of every part that takes times: each measures something, and prints it.
func TestShortRun(t *testing.T) {
	t.Parallel()
	var log, out bytes.Buffer
	b := bench{root: filepath.Join(folder, "..", ".."), samples: short(), grow: shortScales(), db: dynamotest.Start(t), log: &log}
	r := new(Results)
	if err := b.measure(t.Context(), r, []string{"records", "library", "sdk", "latency", "streams", "recovery", "start", "growth-counts", "growth-callers", "growth", "passes"}); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	r.print(&out)
	for _, l := range r.Library {
		if l.Hot.P50 <= 0 || l.InSitu.P50 <= 0 || l.Objects <= 0 {
			t.Errorf("the library's figures: %+v", l)
		}
	}
	for _, v := range append(r.SDK, r.Latency...) {
		if v.Library.P50 <= 0 || v.Same.P50 <= 0 || v.Smallest.P50 <= 0 || v.OverSame <= 0 {
			t.Errorf("a request and its floors: %+v", v)
		}
	}
	for _, s := range r.Start {
		if s.Next.P50 <= 0 || s.Answer.P50 <= s.Next.P50 {
			t.Errorf("a cold start: %+v", s)
		}
	}
	for _, s := range r.Streams {
		if s.PerSecond <= 0 {
			t.Errorf("a stream: %+v", s)
		}
	}
	if n := len(r.Library) + len(r.SDK) + len(r.Latency) + len(r.Start) + len(r.Streams); n != 8+2+2+2+3 {
		t.Errorf("%d figures", n)
	}
	if c := r.Recovery; c.Answer.P50 <= 0 || c.Bound <= c.Margin {
		t.Errorf("a recovery: %+v", c)
	}
	if len(r.Growth.Charts) != len(pictures) || len(r.Growth.plots()) != len(pictures) {
		t.Errorf("%d charts for %d pictures", len(r.Growth.Charts), len(pictures))
	}
	for _, p := range r.Passes.Passes {
		if p.Pages <= 0 || p.Read <= 0 || p.Pace <= 0 || p.Seconds <= 0 {
			t.Errorf("a pass: %+v", p)
		}
	}
	if n := len(r.Passes.Passes); n != 2*(1+len(passCommands)) {
		t.Errorf("%d passes", n)
	}
	if !strings.Contains(out.String(), "COLD START") {
		t.Errorf("the table:\n%s", &out)
	}
}

// Samekey keeps its promises in every scenario, and the recorded results say so.
func TestBreaksAreAsRecorded(t *testing.T) {
	t.Parallel()
	r, err := load(folder)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := ourBreaks(t.Context(), dynamotest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	recorded := slices.DeleteFunc(slices.Clone(r.Peers.Breaks), func(b Break) bool { return !strings.HasPrefix(b.Who, "Samekey") })
	if diff := cmp.Diff(recorded, ours); diff != "" {
		t.Errorf("proof/bench/peers.json (-recorded +now), make bench-peers writes it:\n%s", diff)
	}
	for _, b := range ours {
		switch broken := b.broken(); {
		case b.Who == defaultBody && broken != nothing, b.Who != defaultBody && broken != "":
			t.Errorf("%s, %s: %q: %+v", b.Who, b.Scenario, broken, b)
		}
	}
}

// A scenario's judge sees what can go wrong in it.
func TestBrokenPromisesAreSeen(t *testing.T) {
	t.Parallel()
	for scenario, broken := range map[string][]Break{
		"late finisher": {{Answers: [][2]string{{"", "b"}, {"", "a"}, {"", "a"}}, Runs: 2}, {Answers: [][2]string{{"", "b"}, {"", "b"}, {"", "b"}}, Runs: 3}},
		"late failure":  {{Answers: [][2]string{{"", "b"}, {"", "e"}, {"", "c"}}, Runs: 3}, {Answers: [][2]string{{"", "b"}, {"", "e"}, {"", "e"}}, Runs: 2}},
		"nested": {
			{Answers: [][2]string{{"", "a"}, {"", "a"}, {"", "a"}}, Runs: 2},
			{Answers: [][2]string{{"", "a"}, {"", "e"}, {"", "201, the inner answer"}}, Runs: 2},
			{Answers: [][2]string{{"", "a"}, {"", "a"}, {"", "201, the inner answer"}}, Runs: 3},
		},
		"large": {{Answers: [][2]string{{"", "a"}, {"", "a"}, {"", "a"}}, Runs: 2}, {Answers: [][2]string{{"", "a"}, {"", "e"}, {"", "e"}}, Runs: 1}},
		"500":   {{Answers: [][2]string{{"", "500"}, {"", "500"}}, Runs: 1}},
	} {
		for _, b := range broken {
			if b.Scenario = scenario; b.broken() == "" {
				t.Errorf("%+v passes", b)
			}
		}
	}
}

// The counted figures of growth are those of the code, at a few places.
func TestGrowthIsAsRecorded(t *testing.T) {
	t.Parallel()
	r, err := load(folder)
	if err != nil {
		t.Fatal(err)
	}
	db, ctx := dynamotest.Start(t), t.Context()
	charts, err := countGrowth(ctx, db, r.Prices, scales{bodies: []int{300, 64 << 10}, phases: []int{3, 10}, jobs: []int{0, 50}})
	if err != nil {
		t.Fatal(err)
	}
	for _, now := range charts {
		recorded, _ := r.Growth.chart(now.ID)
		for i, l := range now.Lines {
			if i >= len(recorded.Lines) || recorded.Lines[i].Name != l.Name {
				t.Errorf("proof/bench/growth.json has no line %q in %s, make bench-paths writes it", l.Name, now.ID)
				continue
			}
			for _, p := range l.Points {
				if !slices.Contains(recorded.Lines[i].Points, p) {
					t.Errorf("%s, %q: now %v, recorded %v; make bench-paths writes it", now.ID, l.Name, p, recorded.Lines[i].Points)
				}
			}
		}
	}
}

// Pages and units of a pass are those of the code, over 1,000 records. (TestShortRun plays
// the commands.)
func TestPassesAreAsRecorded(t *testing.T) {
	t.Parallel()
	r, err := load(folder)
	if err != nil {
		t.Fatal(err)
	}
	db := dynamotest.Start(t)
	err = growPassed(t.Context(), db, []int{1000}, func(ctx context.Context, b *bed, n int) error {
		now, err := sweepPass(ctx, b, db, n)
		recorded := r.Passes.Passes[0]
		if now.Seconds = recorded.Seconds; now != recorded {
			t.Errorf("now %+v, recorded %+v; make bench-growth writes it", now, recorded)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
