package rides_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

func TestBookingsThatAreRefused(t *testing.T) {
	t.Parallel()
	lat := func(v string) string { return `{"origin_lat":` + v + `,"origin_lon":0,"target_lat":0,"target_lon":0}` }
	lon := func(v string) string { return `{"origin_lat":0,"origin_lon":0,"target_lat":0,"target_lon":` + v + `}` }
	for _, tc := range []struct {
		name, body string
		says       string // "" where it is taken
	}{
		{"the poles", lat("90"), ""},
		{"the date line", lon("180"), ""},
		{"more members", strings.TrimSuffix(trip, "}") + `,"note":"hurry"}`, ""},
		{"north of the pole", lat("90.0000001"), "origin_lat must be a number from -90 to 90"},
		{"east of the date line", lon("180.1"), "target_lon must be a number from -180 to 180"},
		{"null", lat("null"), "origin_lat"},
		{"a member is missing", `{"origin_lat":0,"origin_lon":0,"target_lat":0}`, "target_lon"},
		{"an array", `[]`, "no JSON object"},
		{"an unknown recovery point", raising("take_off"), "raise_error must be one of started, ride_created, charge_created, finished"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			st := inMemory(t)
			if tc.says == "" {
				st.post(t, jane, "k", tc.body).is(t, 201)
				return
			}
			var body struct{ Error string }
			a := st.post(t, jane, "k", tc.body).is(t, 422)
			if err := json.Unmarshal([]byte(a.Body), &body); err != nil || !strings.Contains(body.Error, tc.says) {
				t.Errorf("got %s, want it to say %q", a.Body, tc.says)
			}
			if len(st.records(t)) != 0 {
				t.Error("there is a record")
			}
		})
	}
}

func TestBodyInBase64(t *testing.T) {
	t.Parallel()
	st := inMemory(t)
	ev := event(jane, "k", base64.StdEncoding.EncodeToString([]byte(trip)))
	ev.IsBase64Encoded = true
	first := st.send(t, ev).is(t, 201)
	st.post(t, jane, "k", trip).replays(t, first)

	ev = event(jane, "l", "%%%")
	ev.IsBase64Encoded = true
	st.send(t, ev).is(t, 422)
}

func TestUnknownRoute(t *testing.T) {
	t.Parallel()
	ev := event(jane, "k", trip)
	ev.RouteKey, ev.RawPath = "POST /planes", "/planes"
	inMemory(t).send(t, ev).is(t, 404)
	ev = event(jane, "k", trip)
	ev.RequestContext.HTTP.Method = "PATCH"
	inMemory(t).send(t, ev).is(t, 405)
}

// What the client asks to fail fails, before or behind what it has done, and the
// same request without the switch is its retry.
func TestRaiseError(t *testing.T) {
	t.Parallel()
	inQuery := func(point string) events.APIGatewayV2HTTPRequest {
		ev := event(jane, "k", trip)
		ev.RawQueryString, ev.QueryStringParameters = "raise_error="+point, map[string]string{"raise_error": point}
		return ev
	}
	inBody := func(point string) events.APIGatewayV2HTTPRequest { return event(jane, "k", raising(point)) }
	encoded := func(point string) events.APIGatewayV2HTTPRequest {
		ev := event(jane, "k", base64.StdEncoding.EncodeToString([]byte(raising(point))))
		ev.IsBase64Encoded = true
		return ev
	}
	for _, tc := range []struct {
		point string
		with  func(string) events.APIGatewayV2HTTPRequest
		left  seen
	}{
		{"started", inBody, seen{}},
		{rideCreated, inQuery, seen{}},
		{chargeCreated, encoded, seen{Rides: 1, Audits: 1}},
		{"finished", inBody, seen{Rides: 1, Audits: 1, Charges: 1, Calls: 1}},
	} {
		st := inMemory(t)
		st.send(t, tc.with(tc.point)).is(t, 500).has(t, "Retry with the same key")
		st.want(t, tc.left)
		first := st.post(t, jane, "k", trip).is(t, 201)
		st.send(t, tc.with(tc.point)).replays(t, first)
		st.want(t, whole)
	}
}

// Neither is the switch stored: a completer must not fail where the client
// wanted to.
func TestRaiseErrorIsNotStored(t *testing.T) {
	t.Parallel()
	st := inMemory(t)
	ev := event(jane, "k", raising(chargeCreated))
	ev.RawQueryString = "a=1&raise_error=finished&b=2"
	st.send(t, ev).is(t, 500)
	in := st.record(t).Input
	if got, want := fmt.Sprint(in.Query, " ", string(in.Body)), "a=1&b=2 "+trip; got != want {
		t.Errorf("stored is %s, want %s", got, want)
	}
}
