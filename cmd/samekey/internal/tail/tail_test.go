package tail_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/cmd/samekey/internal/tail"
)

const pk = "v1#rides#abcdefgh00000000000000000000000000000000000"

// images of a record, in the form of a stream's event.
func image(state, more string) string {
	return `{"pk":{"S":"` + pk + `"},"v":{"N":"1"},"st":{"S":"` + state + `"},"owner":{"S":"secret-owner"},"ver":{"N":"2"},"lease_ms":{"N":"0"},` +
		`"fp":{"S":"secret-fingerprint"},"id":{"S":"i"},"created_ms":{"N":"1"},"run_ms":{"N":"1"},"route":{"S":"POST /rides"},"jobs":{"M":{}}` + more + `}`
}

func record(event, keys, old, is, more string) string {
	images := ""
	if old != "" {
		images += `,"OldImage":` + old
	}
	if is != "" {
		images += `,"NewImage":` + is
	}
	return `{"eventName":"` + event + `","eventSource":"aws:dynamodb"` + more + `,"dynamodb":{"ApproximateCreationDateTime":1763800000.0,"Keys":` + keys + images + `,"SequenceNumber":"1"}}`
}

// A change is a line of its record's name, route, states, phase and jobs, and of nothing
// that belongs to the request.
func TestChanges(t *testing.T) {
	t.Parallel()
	key := `{"pk":{"S":"` + pk + `"}}`
	open := image("open", `,"keep":{"S":"open"},"req":{"M":{"m":{"S":"POST"},"p":{"S":"/secret"},"b":{"B":"c2VjcmV0"}}},"phases":{"L":[{"L":[{"S":"charged"},{"S":"\"secret\""}]}]}`)
	held := strings.Replace(open, `"lease_ms":{"N":"0"}`, `"lease_ms":{"N":"1763800030000"}`, 1)
	done := image("done", `,"keep":{"S":"jobs"},"resp":{"M":{"s":{"N":"201"},"b":{"B":"c2VjcmV0"}}},"jobs":{"M":{"1.0":{"M":{"k":{"S":"mail"},"a":{"S":"\"secret\""}}}}}`)
	done = strings.Replace(done, `"jobs":{"M":{}},`, "", 1)
	payload := `{"Records":[` + strings.Join([]string{
		record("INSERT", key, "", held, ""),
		record("MODIFY", key, held, strings.Replace(open, `"ver"`, `"blocked":{"BOOL":true},"ver"`, 1), ""),
		record("MODIFY", key, open, done, ""),
		record("REMOVE", key, image("open", `,"exp_s":{"N":"5"}`), "", `,"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"}`),
		record("INSERT", `{"pk":{"S":"`+pk+`#owner#1"}}`, "", `{"pk":{"S":"x"},"v":{"N":"1"},"b":{"B":"c2VjcmV0"}}`, ""), // a part of a body
		record("MODIFY", key, done, image("secret", ""), ""),
		record("INSERT", `{"id":{"S":"secret"}}`, "", `{"id":{"S":"secret"}}`, ""), // of another table
		record("INSERT", key, "null", image("secret", ""), ""),
		record("REMOVE", `{"pk":{"S":"secret"}}`, `"secret"`, "", `,"userIdentity":{"type":"Service","principalId":"somebody"}`),
		record("REMOVE", `{"pk":{"N":"1"}}`, `"secret"`, "", ""),
		record("INSERT", key, "", strings.Replace(open, "POST /rides", "", 1), ""),
	}, ",") + `]}`
	got, err := tail.Changes([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range got {
		lines = append(lines, c.String())
	}
	want := []string{
		"08:26:40  abcdefgh  POST /rides  - → open  phase charged",
		"08:26:40  abcdefgh  POST /rides  open → open (blocked)  phase charged",
		"08:26:40  abcdefgh  POST /rides  open (released) → done  jobs 1",
		"08:26:40  abcdefgh  POST /rides  open (released) → -  by ttl",
		"08:26:40  abcdefgh  POST /rides  done → ?  jobs 1",
		"08:26:40  abcdefgh  -  - → ?",
		"08:26:40    -  ? → -",
		"08:26:40    -  ? → -",
		"08:26:40  abcdefgh  -  - → open (released)  phase charged",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := (tail.Change{Time: time.Unix(1763800000, 0).UTC(), Record: "abcdefgh", Route: "POST /rides", From: "-", To: "open", Phase: "charged", Ver: 2}); got[0] != want {
		t.Errorf("%+v, want %+v", got[0], want)
	}
	if strings.Contains(strings.Join(lines, "\n"), "secret") {
		t.Errorf("a line has a secret:\n%s", strings.Join(lines, "\n"))
	}
	if _, err := tail.Changes([]byte("{")); err == nil {
		t.Error("half an event is read")
	}
}
