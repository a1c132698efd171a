package tenants_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/leaktest"
	"github.com/samekey/samekey/lambda"
)

// lines is a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// What the engine logs, and tells its hooks, holds neither keys nor bodies, answers,
// credentials or names of callers, in any form. The
// store fails in every way meanwhile, the handler fails and panics.
func TestLogsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	const key, card, token, mail, answer = "secret-key-7f3c", leaktest.Card, "Bearer " + leaktest.Token, leaktest.Mail, "secret-answer-55d0"
	var log lines
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	tell := func(_ context.Context, ev idem.Event) { fmt.Fprintf(&log, "hook: %+v %v\n", ev, ev.Err) }
	requests := 0
	for _, a := range apps {
		for verb, fault := range map[string]idemtest.Fault{
			"": {}, "Claim": {Err: store.ErrUnknown}, "Commit": {Err: store.ErrUnknown, Applied: true}, "Load": {Err: idem.ErrCorrupt},
		} {
			for _, does := range []string{"answers", "fails", "panics"} {
				var plan idemtest.Plan
				if verb != "" {
					plan = idemtest.At(verb, 1, fault)
				}
				s := idemtest.Faulty(&idem.MemoryStore{}, plan)
				e := idem.New(s, func(o *idem.Options) {
					if a.opt != nil {
						a.opt(o)
					}
					o.Logger, o.Key, o.Lease = logger, idem.KeyGenerate, 3*time.Second
					o.Hooks = idem.Hooks{
						Claimed: tell, Replayed: tell, Refused: tell, InFlight: tell, Mismatch: tell, Finished: tell, Failed: tell, Released: tell, LeaseLost: tell,
					}
				})
				h := lambda.Wrap(e, lambda.REST, func(ctx context.Context, ev restRequest) (restResponse, error) {
					if a.phases {
						if _, err := idem.Atomic(ctx, "first", func(_ context.Context, tx *idem.Tx) (string, error) {
							tx.Stage(idem.NewJob("mail", mail))
							return card, nil
						}); err != nil {
							return restResponse{}, err
						}
					}
					switch does {
					case "fails":
						return restResponse{}, errProvider
					case "panics":
						panic(ev.Body)
					}
					return restResponse{StatusCode: http.StatusCreated, Body: answer, Headers: map[string]string{"Location": "/" + answer, "Bad": "a\r\n" + answer}}, nil
				}, func(o *lambda.HandlerOptions) { o.Name = "pay" })
				for i, body := range []string{`{"card":"` + card + `"}`, `{"card":"` + card + `"}`, `{"other":"` + card + `"}`} {
					ev := restEvent(caller{kind: "jwt", a: mail, b: mail}, restRequest{
						HTTPMethod: http.MethodPost, Resource: "/pay", Path: "/pay", Body: body,
						Headers: map[string]string{"Idempotency-Key": key, "Authorization": token},
					})
					if i == 2 {
						ev.Headers["Idempotency-Key"] = key + "\x01"
					}
					if _, err := h.Handle(t.Context(), ev); err != nil {
						t.Fatal(err)
					}
					requests++
				}
			}
		}
	}
	text := log.buf.String()
	if !strings.Contains(text, "hook:") || !strings.Contains(text, `"level":"ERROR"`) {
		t.Fatalf("%d requests have logged little: %s", requests, text)
	}
	if found := leaktest.Find([][]byte{[]byte(text)}, key, leaktest.Card, leaktest.Token, leaktest.Mail, answer); len(found) != 0 {
		t.Errorf("the log has %q", found)
	}
}

type (
	restRequest  = events.APIGatewayProxyRequest
	restResponse = events.APIGatewayProxyResponse
)

var errProvider = errors.New("the provider is down")
