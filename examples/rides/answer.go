package rides

import (
	"encoding/json"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

// booked answers a completed booking.
func booked(r Ride) response {
	re := answer(http.StatusCreated, struct {
		Message string `json:"message"`
		Ride
	}{"Payment accepted. Your pilot is on their way!", r})
	re.Headers["Location"] = "/rides/" + r.ID
	return re
}

func problem(status int, message string) response {
	return answer(status, struct {
		Error string `json:"error"`
	}{message})
}

// answer encodes v as JSON. If v has no JSON form, the answer is a 500.
func answer(status int, v any) response {
	body, err := json.Marshal(v)
	if err != nil {
		return response{StatusCode: http.StatusInternalServerError}
	}
	return response{StatusCode: status, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(body)}
}
