package routers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/proof/routers/orders"
)

// Payment is the answer of the keyed route.
type Payment struct {
	Order  string `json:"order"`
	Charge string `json:"charge"`
}

var (
	errNoAnswer = errors.New("no answer")
	errDeclined = errors.New("the card is declined")
)

// bank charges once for each of its keys.
type bank struct {
	charges map[string]string
	runs    int
	silent  bool
}

func (b *bank) charge(order, key string) (string, error) {
	if order == "broke" {
		return "", errDeclined
	}
	b.charges[key] = "ch_" + order
	if b.silent {
		return "", errNoAnswer
	}
	return b.charges[key], nil
}

// pay has the phases of the route, under every router.
func (b *bank) pay(ctx context.Context, order string) (Payment, error) {
	b.runs++
	charge, err := idem.Foreign(ctx, "charged", func(_ context.Context, tx *idem.Tx) (string, error) {
		return b.charge(order, tx.Key("bank"))
	})
	return Payment{order, charge}, err
}

// answer is what a client hears.
type answer struct {
	status   int
	body     string
	replayed bool
}

// paysOnce sends payments of two callers with one key, of which each is made once, and
// requests that make none. Five of them reach the keyed route. b is silent at first.
func (b *bank) paysOnce(t *testing.T, send func(method, path, user, key string) answer) {
	t.Helper()
	pay := func(user string, status, runs int, replayed bool) string {
		t.Helper()
		a := send(http.MethodPost, "/orders/7/payments", user, "k1")
		if a.status != status || b.runs != runs || a.replayed != replayed {
			t.Errorf("%s: %+v after %d runs; want %d, replayed %t, after %d", user, a, b.runs, status, replayed, runs)
		}
		return a.body
	}
	pay("jane", http.StatusInternalServerError, 1, false)
	b.silent = false
	first := pay("jane", http.StatusCreated, 2, false)
	if again := pay("jane", http.StatusCreated, 2, true); again != first || !strings.Contains(first, `"charge":"ch_7"`) {
		t.Errorf("first answer %s, then %s", first, again)
	}
	pay("omar", http.StatusCreated, 3, false)
	if len(b.charges) != 2 {
		t.Errorf("charges %v: want jane's and omar's", b.charges)
	}
	if a := send(http.MethodPost, "/orders/7/payments", "jane", ""); a.status != http.StatusBadRequest || b.runs != 3 {
		t.Errorf("without a key: %+v, %d runs", a, b.runs)
	}
	if a := send(http.MethodGet, "/nowhere", "jane", ""); a.status != http.StatusNotFound {
		t.Errorf("another path: %+v", a)
	}
}

type callerKey struct{}

// identify stands for the authentication: it puts the caller into the context.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, user)))
	})
}

func whose(ctx context.Context, _ *idem.Request) (string, error) {
	user, _ := ctx.Value(callerKey{}).(string)
	return user, nil
}

// inFront puts the engine in front of a router.
func inFront(engine *idem.Engine, app http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/payments", engine.Middleware(app)) // a keyed route
	mux.Handle("/", app)                                             // all others
	return identify(mux)
}

func standard(engine *idem.Engine, b *bank) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/payments", engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := b.pay(r.Context(), r.PathValue("id"))
		if err != nil {
			http.Error(w, "try again", http.StatusInternalServerError) // not stored: the key is free, or the operation goes on
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(p)
	})))
	return identify(mux)
}

func onChi(engine *idem.Engine, b *bank) http.Handler {
	r := chi.NewRouter()
	r.Use(identify)
	r.With(engine.Middleware).Post("/orders/{id}/payments", func(w http.ResponseWriter, r *http.Request) {
		p, err := b.pay(r.Context(), chi.URLParam(r, "id"))
		if err != nil {
			http.Error(w, "try again", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(p)
	})
	r.With(engine.Middleware).Post("/orders/{id}/shipments", func(w http.ResponseWriter, r *http.Request) {
		resp, err := b.ship(r.Context(), chi.URLParam(r, "id"))
		if err != nil {
			http.Error(w, "try again", http.StatusInternalServerError) // the client of a declined card gets the answer of Respond
			return
		}
		w.WriteHeader(resp.Status)
		_, _ = w.Write(resp.Body)
	})
	return r
}

// ship charges, tells that the card is declined, and stages the parcel with the answer.
func (b *bank) ship(ctx context.Context, order string) (idem.Response, error) {
	charge, err := idem.Foreign(ctx, "charged", func(_ context.Context, tx *idem.Tx) (string, error) {
		charge, err := b.charge(order, tx.Key("bank"))
		if errors.Is(err, errDeclined) {
			return "", idem.Respond(idem.Response{Status: http.StatusPaymentRequired, Body: []byte("declined")})
		}
		return charge, err
	})
	if err != nil {
		return idem.Response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Stage(idem.NewJob("parcel", Payment{order, charge}))
		return idem.Response{Status: http.StatusCreated, Body: []byte(charge)}, nil
	})
}

// Finish, Respond and a job under chi: the client hears the stored answer, whatever the
// handler has written, and the job is in its record.
func TestPhasesUnderChi(t *testing.T) {
	t.Parallel()
	store := new(idem.MemoryStore)
	app := onChi(idem.New(store, func(o *idem.Options) { o.Scope, o.MinKey = whose, 1 }), &bank{charges: make(map[string]string)})
	for order, want := range map[string]answer{
		"7": {http.StatusCreated, "ch_7", false}, "broke": {http.StatusPaymentRequired, "declined", false},
	} {
		for _, replayed := range []bool{false, true} {
			r, w := httptest.NewRequest(http.MethodPost, "/orders/"+order+"/shipments", http.NoBody), httptest.NewRecorder()
			r.Header.Set("Authorization", "Bearer jane")
			r.Header.Set(idem.KeyHeader, order)
			app.ServeHTTP(w, r)
			want.replayed = replayed
			if got := (answer{w.Code, w.Body.String(), w.Header().Get(idem.ReplayedHeader) == "true"}); got != want {
				t.Errorf("order %s: got %+v, want %+v", order, got, want)
			}
		}
	}
	staged := 0
	for _, r := range store.Records() {
		staged += len(r.Jobs)
	}
	if staged != 1 {
		t.Errorf("%d jobs are staged, want the parcel of order 7", staged)
	}
}

func onEcho(engine *idem.Engine, b *bank) http.Handler { return inFront(engine, echoApp(b)) }

func echoApp(b *bank) http.Handler {
	app := echo.New()
	app.POST("/orders/:id/payments", func(c echo.Context) error {
		p, err := b.pay(c.Request().Context(), c.Param("id"))
		if err != nil {
			return echo.ErrInternalServerError
		}
		return c.JSON(http.StatusCreated, p)
	})
	return app
}

func onGin(engine *idem.Engine, b *bank) http.Handler { return inFront(engine, ginApp(b)) }

func ginApp(b *bank) http.Handler {
	app := gin.New()
	app.POST("/orders/:id/payments", func(c *gin.Context) {
		p, err := b.pay(c.Request.Context(), c.Param("id"))
		if err != nil {
			c.Status(http.StatusInternalServerError)
			return
		}
		c.JSON(http.StatusCreated, p)
	})
	return app
}

func onHuma(engine *idem.Engine, b *bank) http.Handler { return inFront(engine, humaApp(b)) }

func humaApp(b *bank) http.Handler {
	app := http.NewServeMux()
	api := humago.New(app, huma.DefaultConfig("Orders", "1.0.0"))
	type input struct {
		ID string `path:"id"`
	}
	type output struct{ Body Payment }
	huma.Register(api, huma.Operation{Method: http.MethodPost, Path: "/orders/{id}/payments", DefaultStatus: http.StatusCreated},
		func(ctx context.Context, in *input) (*output, error) {
			p, err := b.pay(ctx, in.ID)
			if err != nil {
				return nil, huma.Error500InternalServerError("try again")
			}
			return &output{p}, nil
		})
	return app
}

func onGenerated(engine *idem.Engine, b *bank) http.Handler { return inFront(engine, generatedApp(b)) }

// generatedApp is the server that oapi-codegen makes of orders/spec.yaml.
func generatedApp(b *bank) http.Handler {
	return orders.Handler(orders.NewStrictHandler(generated{b}, nil))
}

type generated struct{ b *bank }

func (g generated) Pay(ctx context.Context, r orders.PayRequestObject) (orders.PayResponseObject, error) {
	p, err := g.b.pay(ctx, r.Id)
	if err != nil {
		return orders.Pay500Response{}, nil //nolint:nilerr // the declared answer
	}
	return orders.Pay201JSONResponse{Order: p.Order, Charge: p.Charge}, nil
}

// Under each router a keyed POST runs once, its retry is a replay, a failure is not
// stored, and the route is the pattern of the path.
func TestRouters(t *testing.T) {
	t.Parallel()
	gin.SetMode(gin.TestMode)
	for name, tc := range map[string]struct {
		app   func(*idem.Engine, *bank) http.Handler
		route string
	}{
		"net/http": {standard, "POST /orders/{id}/payments"},
		"chi":      {onChi, "/orders/{id}/payments"},
		"echo":     {onEcho, "POST /orders/{id}/payments"},
		"gin":      {onGin, "POST /orders/{id}/payments"},
		"huma":     {onHuma, "POST /orders/{id}/payments"},

		"oapi-codegen": {onGenerated, "POST /orders/{id}/payments"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bank{charges: make(map[string]string), silent: true}
			routes := make(map[string]int)
			engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
				o.Scope, o.MinKey = whose, 1
				o.Hooks.Ended = func(_ context.Context, s idem.Summary) { routes[s.Route]++ }
			})
			app := tc.app(engine, b)
			b.paysOnce(t, func(method, path, user, key string) answer {
				r := httptest.NewRequest(method, path, http.NoBody)
				r.Header.Set("Authorization", "Bearer "+user)
				if key != "" {
					r.Header.Set(idem.KeyHeader, key)
				}
				w := httptest.NewRecorder()
				app.ServeHTTP(w, r)
				return answer{w.Code, w.Body.String(), w.Header().Get(idem.ReplayedHeader) == "true"}
			})
			if fmt.Sprint(routes) != fmt.Sprint(map[string]int{tc.route: 5}) {
				t.Errorf("routes %v, want 5 of %q", routes, tc.route)
			}
		})
	}
}
