package rides

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// input is a client's request for a ride. parse ensures that all coordinates are set.
type input struct {
	OriginLat *float64 `json:"origin_lat"`
	OriginLon *float64 `json:"origin_lon"`
	TargetLat *float64 `json:"target_lat"`
	TargetLon *float64 `json:"target_lon"`

	RaiseError string `json:"raise_error"` // see raise.go
}

// parse reads a booking from an event. An error is a text for the client.
func parse(ev request) (in input, err error) {
	body, err := decoded(ev)
	if err == nil {
		err = json.Unmarshal([]byte(body), &in)
	}
	if err != nil {
		return in, fmt.Errorf("the body is no JSON object of coordinates: %w", err)
	}
	for _, c := range []struct {
		name  string
		value *float64
		limit float64
	}{
		{"origin_lat", in.OriginLat, 90},
		{"origin_lon", in.OriginLon, 180},
		{"target_lat", in.TargetLat, 90},
		{"target_lon", in.TargetLon, 180},
	} {
		if c.value == nil || *c.value < -c.limit || *c.value > c.limit {
			return in, fmt.Errorf("%s must be a number from -%g to %g", c.name, c.limit, c.limit)
		}
	}
	if in.RaiseError == "" {
		in.RaiseError = ev.QueryStringParameters[raiseError]
	}
	return in, in.checkRaise()
}

// decoded returns the body as the client sent it.
func decoded(ev request) (string, error) {
	if !ev.IsBase64Encoded {
		return ev.Body, nil
	}
	b, err := base64.StdEncoding.DecodeString(ev.Body)
	return string(b), err
}
