// Package greeting is the handler of the hello example. It has no code for
// idempotency.
package greeting

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// Request is what a client sends.
type Request struct {
	Name string `json:"name"`
	// Letters is how many random letters to add, at most 4,000,000.
	Letters int `json:"letters,omitempty"`
	// LingerMS makes the handler take its time, in ms, at most 10,000.
	LingerMS int `json:"linger_ms,omitempty"`
}

// Greeting is the answer. ID and At are new for every run, so two runs never look
// alike.
type Greeting struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Message string    `json:"message"`
}

// Greeter greets. It writes one line to Log for each run, so that the demo can count
// runs.
type Greeter struct{ Log io.Writer }

// Hello answers a Request with a Greeting.
func (g Greeter) Hello(ctx context.Context, req events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	var in Request
	if err := json.Unmarshal([]byte(req.Body), &in); err != nil || in.Name == "" || in.Letters < 0 || in.Letters > 4_000_000 || in.LingerMS < 0 || in.LingerMS > 10_000 {
		return answer(http.StatusUnprocessableEntity, map[string]string{"error": `send {"name": "…"}`})
	}
	out := Greeting{ID: rand.Text(), At: time.Now().UTC(), Message: "Hello, " + in.Name + "!"}
	fmt.Fprintln(g.Log, "greeting", out.ID)
	letters := make([]byte, in.Letters)
	for i := range letters {
		letters[i] = 'a' + byte(mathrand.IntN(26))
	}
	out.Message += string(letters)
	select {
	case <-ctx.Done():
		return events.APIGatewayV2HTTPResponse{}, ctx.Err()
	case <-time.After(time.Duration(in.LingerMS) * time.Millisecond):
	}
	return answer(http.StatusCreated, out)
}

func answer(status int, v any) (events.APIGatewayV2HTTPResponse, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	return events.APIGatewayV2HTTPResponse{
		StatusCode: status,
		Headers:    map[string]string{"Content-Type": "application/json"},
		Body:       string(body),
	}, nil
}
