package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/ui"
	"github.com/samekey/samekey/internal/testkit/hostiletest"
)

// Texts from a table can't hide or turn text on the page. Each call of the page runs
// over records of each state with hostile texts everywhere, and actions still work.
func TestHostileRecordsOnThePage(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	now := time.Now().Add(-time.Minute)
	all := hostiletest.Claimed(t, d.store, "rides", now)
	v := visit(t, 0, d.Table).enter()
	send := func(method, path string, in any) (int, string) {
		t.Helper()
		status, _, body := v.send(method, path, in)
		hostiletest.CheckJSON(t, method+" "+path, []byte(body))
		return status, body
	}
	l := loaded(v)
	if l.Total != len(all) {
		t.Fatalf("%d rows of %d records", l.Total, len(all))
	}
	for _, path := range []string{"/api/about", "/api/size", "/api/requests", "/api/record?pk=" + url.QueryEscape(hostiletest.Text), "/api/" + url.PathEscape(hostiletest.Text)} {
		send("GET", path, nil)
	}
	if got := get[listing](v, "/api/requests?route="+url.QueryEscape(l.Routes[0].Name)); got.Matched != l.Routes[0].Count {
		t.Errorf("%d records of a route with %d", got.Matched, l.Routes[0].Count)
	}
	if status, body := send("POST", "/api/find", ui.Search{Any: l.Rows[0].PK}); status != http.StatusOK || strings.Contains(body, "[]") {
		t.Errorf("found %d %s", status, body)
	}
	send("POST", "/api/find", ui.Search{Key: hostiletest.Text, Scope: hostiletest.Text})
	send("POST", "/api/session", map[string]string{hostiletest.Text: hostiletest.Text})
	acts := 0
	for _, row := range l.Rows {
		path := "/api/record?pk=" + url.QueryEscape(row.PK)
		if status, body := send("GET", path, nil); status != http.StatusOK {
			t.Errorf("%q: %d %s", row.PK, status, body)
			continue
		}
		story := get[ui.Story](v, path)
		send("POST", "/api/data", map[string]string{"pk": row.PK})
		for _, offer := range story.Offers {
			a := ui.Action{Do: offer.Do, PK: row.PK, Seen: story.Seen, By: "by" + hostiletest.Text, Jobs: offer.Jobs, Status: 200, Body: hostiletest.Text, ContentType: "text/plain", Loses: offer.Loses}
			a.NotMade = offer.Call != ""
			if status, body := send("POST", "/api/ask", a); status != http.StatusOK {
				t.Errorf("ask %s of %s: %d %s", a.Do, row.State, status, body)
			}
		}
		for _, do := range []string{"retry", "settle", "redrive", "release", "forget", hostiletest.Text} {
			send("POST", "/api/ask", ui.Action{Do: do, PK: row.PK, Seen: story.Seen, By: "jane", Jobs: []string{hostiletest.Text}})
		}
		if len(story.Offers) > 0 {
			offer := story.Offers[len(story.Offers)-1]
			if status, body := send("POST", "/api/act", ui.Action{Do: offer.Do, PK: row.PK, Seen: story.Seen, By: "jane", Jobs: offer.Jobs, Status: 410, Loses: offer.Loses}); status != http.StatusOK {
				t.Errorf("%s of %s: %d %s", offer.Do, row.State, status, body)
			}
			acts++
		}
	}
	if acts < 5 {
		t.Errorf("%d records were acted on", acts)
	}
	for lines := v.events(); lines.Scan(); {
		if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
			hostiletest.CheckJSON(t, "an event", []byte(data))
			break
		}
	}
}
