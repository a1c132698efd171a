package idem

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
)

func TestNewPanicsOnWhatCantWork(t *testing.T) {
	t.Parallel()
	const paypal = "PayPal-Request-Id"
	key := bytes.Repeat([]byte{1}, 32)
	account := func(context.Context, *Request) (string, error) { return "account", nil }
	tests := map[string]struct {
		store store.Store
		opt   func(*Options)
		want  string // "" = fine
	}{
		"defaults":                       {&MemoryStore{}, func(*Options) {}, ""},
		"nil store":                      {nil, func(*Options) {}, "store is nil"},
		"nil pointer in the store":       {(*MemoryStore)(nil), func(*Options) {}, "store is nil"},
		"completed what ran unprotected": {&MemoryStore{}, func(o *Options) { o.Resumable, o.Function, o.Mode = true, "f", ModeOpen }, "Mode ModeOpen: Resumable"},
		"nil store, disabled":            {nil, func(o *Options) { o.Mode = ModeOff }, ""},
		"R84 retention too short":        {&MemoryStore{}, func(o *Options) { o.Retention = time.Minute }, "Retention"},
		"lease over retention":           {&MemoryStore{}, func(o *Options) { o.Lease = 48 * time.Hour }, "Lease"},
		"negative lease":                 {&MemoryStore{}, func(o *Options) { o.Lease = -1 }, "Lease"},
		"no margin":                      {&MemoryStore{}, func(o *Options) { o.LeaseMargin = time.Millisecond }, "LeaseMargin"},
		"namespace with a separator":     {&MemoryStore{}, func(o *Options) { o.Namespace = "a#b" }, "Namespace"},
		"namespace too long":             {&MemoryStore{}, func(o *Options) { o.Namespace = strings.Repeat("a", 65) }, "Namespace"},
		"keys over 255":                  {&MemoryStore{}, func(o *Options) { o.MinKey = 256 }, "MinKey"},
		"unknown key mode":               {&MemoryStore{}, func(o *Options) { o.Key = 9 }, "Key 9"},
		"body over 6 MB":                 {&MemoryStore{}, func(o *Options) { o.MaxBody = 7 << 20 }, "MaxBody"},
		"A32 storing Set-Cookie":         {&MemoryStore{}, func(o *Options) { o.StoreHeaders = []string{"set-cookie"} }, "Set-Cookie"},
		"storing a gateway's header":     {&MemoryStore{}, func(o *Options) { o.StoreHeaders = []string{"X-Amzn-RequestId"} }, "X-Amzn-Requestid"},
		"keys on GET":                    {&MemoryStore{}, func(o *Options) { o.Methods = []string{"GET"} }, "Methods"},
		"method in lower case":           {&MemoryStore{}, func(o *Options) { o.Methods = []string{"post"} }, "Methods"},
		"R17 fingerprint of a token":     {&MemoryStore{}, func(o *Options) { o.Fingerprint.Headers = []string{"authorization"} }, "Authorization"},
		"R17 fingerprint of an API key":  {&MemoryStore{}, func(o *Options) { o.Fingerprint.Headers = []string{"x-api-key"} }, "X-Api-Key"},
		"R17 fingerprint of a proof":     {&MemoryStore{}, func(o *Options) { o.Fingerprint.Headers = []string{"dpop"} }, "Dpop"},
		"R17 fingerprint of a retry":     {&MemoryStore{}, func(o *Options) { o.Fingerprint.Headers = []string{"retry-attempt"} }, "Retry-Attempt"},
		"secret without id":              {&MemoryStore{}, func(o *Options) { o.Fingerprint.Secrets = []Secret{{Key: key}} }, "empty or used twice"},
		"secret id used twice":           {&MemoryStore{}, func(o *Options) { o.Fingerprint.Secrets = []Secret{{"a", key}, {"a", key}} }, "empty or used twice"},
		"secret too short":               {&MemoryStore{}, func(o *Options) { o.Fingerprint.Secrets = []Secret{{"a", key[:8]}} }, "at least 16"},
		"CORS": {&MemoryStore{}, func(o *Options) {
			o.CORS = CORS{Origins: []string{"https://shop.example", "http://localhost:3000", "http://[::1]:8080", "app://shop"}, Credentials: true, Expose: []string{"X-A"}}
		}, ""},
		"CORS of all":                 {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{"*"}} }, ""},
		"CORS: all, with credentials": {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{"*"}, Credentials: true} }, "Credentials"},
		"CORS: all and one":           {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{"https://shop.example", "*"}} }, "stands by itself"},
		"CORS: a path":                {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{"https://shop.example/"}} }, "origin"},
		"CORS: a pattern":             {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{"https://*.example"}} }, "origin"},
		"CORS: no scheme":             {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{"shop.example"}} }, "origin"},
		"CORS: null":                  {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{"null"}} }, "origin"},
		"CORS: empty":                 {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{""}} }, "origin"},
		"CORS: upper case":            {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{"https://Shop.example"}} }, "origin"},
		"CORS: the scheme's port":     {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{"https://shop.example:443"}} }, "origin"},
		"CORS: two in one":            {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{"https://a.example, https://b.example"}} }, "origin"},
		"CORS: a user":                {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{"https://me@shop.example"}} }, "origin"},
		"CORS: no origin":             {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Credentials: true} }, "without Origins"},
		"CORS: exposing all":          {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{"*"}, Expose: []string{"*"}} }, "Expose"},
		"CORS: exposing no name":      {&MemoryStore{}, func(o *Options) { o.CORS = CORS{Origins: []string{"*"}, Expose: []string{"a b"}} }, "Expose"},
		"every limit, from below": {&MemoryStore{}, func(o *Options) {
			o.Retention, o.Lease, o.LeaseMargin = time.Hour, defaults.Reserve+1, time.Second
			o.MaxBody, o.MaxRequest, o.MaxTries = 1, 1, 1
		}, ""},
		"every limit, from above": {&MemoryStore{}, func(o *Options) {
			o.Namespace, o.Function = "az-AZ_09."+strings.Repeat("a", 55), strings.Repeat("f", 256)
			o.MinKey, o.MaxBody, o.MaxRequest = 255, 6<<20, math.MaxInt
			o.Key, o.Mode, o.InFlight, o.StatusURL = KeyGenerate, ModeOff, InFlightAccept, "/status/"
		}, ""},
		"function too long":                             {&MemoryStore{}, func(o *Options) { o.Function = strings.Repeat("f", 257) }, "at most 256 bytes"},
		"function not UTF-8":                            {&MemoryStore{}, func(o *Options) { o.Function = "f\xff" }, "of UTF-8"},
		"a lease of the reserve":                        {&MemoryStore{}, func(o *Options) { o.Lease = defaults.Reserve }, "Lease"},
		"negative minimum":                              {&MemoryStore{}, func(o *Options) { o.MinKey = -1 }, "MinKey"},
		"negative key mode":                             {&MemoryStore{}, func(o *Options) { o.Key = -1 }, "Key -1"},
		"negative body":                                 {&MemoryStore{}, func(o *Options) { o.MaxBody = -1 }, "MaxBody"},
		"input over 10 MB":                              {&MemoryStore{}, func(o *Options) { o.Function, o.Resumable, o.MaxRequest = "f", true, 10<<20+1 }, "MaxRequest"},
		"negative request":                              {&MemoryStore{}, func(o *Options) { o.MaxRequest = -1 }, "MaxRequest"},
		"unknown mode in flight":                        {&MemoryStore{}, func(o *Options) { o.InFlight = InFlightAccept + 1 }, "InFlight 3"},
		"negative mode in flight":                       {&MemoryStore{}, func(o *Options) { o.InFlight = -1 }, "InFlight -1"},
		"a 202 that nobody can follow":                  {&MemoryStore{}, func(o *Options) { o.InFlight = InFlightAccept }, "needs StatusURL"},
		"a status URL without its end":                  {&MemoryStore{}, func(o *Options) { o.StatusURL = "/status" }, `must end in "/"`},
		"observed and completed":                        {&MemoryStore{}, func(o *Options) { o.Mode, o.Resumable, o.Function = ModeObserve, true, "f" }, "Mode ModeObserve: Resumable"},
		"negative tries":                                {&MemoryStore{}, func(o *Options) { o.MaxTries = -1 }, "MaxTries"},
		"unknown mode":                                  {&MemoryStore{}, func(o *Options) { o.Mode = ModeOff + 1 }, "Mode 4"},
		"negative mode":                                 {&MemoryStore{}, func(o *Options) { o.Mode = -1 }, "Mode -1"},
		"storing a credential":                          {&MemoryStore{}, func(o *Options) { o.InputHeaders = []string{"authorization"} }, "Authorization may hold a secret"},
		"storing the key":                               {&MemoryStore{}, func(o *Options) { o.StoreHeaders = []string{KeyHeader} }, "StoreHeaders"},
		"keys on HEAD":                                  {&MemoryStore{}, func(o *Options) { o.Methods = []string{"HEAD"} }, "Methods"},
		"keys on no method":                             {&MemoryStore{}, func(o *Options) { o.Methods = []string{""} }, "Methods"},
		"ACP, kept for a day":                           {&MemoryStore{}, func(o *Options) { ACP(o); o.Retention = 24 * time.Hour }, ""},
		"ACP, kept for less":                            {&MemoryStore{}, func(o *Options) { ACP(o); o.Retention = 24*time.Hour - 1 }, "at least 24h"},
		"ACP, failing open":                             {&MemoryStore{}, func(o *Options) { ACP(o); o.Mode = ModeOpen }, "503 without the store"},
		"UCP, failing open":                             {&MemoryStore{}, func(o *Options) { UCP(o); o.Mode = ModeOpen }, "503 without the store"},
		"UCP, off":                                      {&MemoryStore{}, func(o *Options) { UCP(o); o.Mode = ModeOff }, "503 without the store"},
		"UCP, with a status":                            {&MemoryStore{}, func(o *Options) { UCP(o); o.StatusURL = "/status/" }, "StatusURL"},
		"a status without path":                         {&MemoryStore{}, func(o *Options) { o.StatusURL = "status/" }, "must be absolute"},
		"a status with a query":                         {&MemoryStore{}, func(o *Options) { o.StatusURL = "/status/?a=1" }, `must end in "/"`},
		"a status with a part":                          {&MemoryStore{}, func(o *Options) { o.StatusURL = "/status/#a" }, `must end in "/"`},
		"a status of no form":                           {&MemoryStore{}, func(o *Options) { o.StatusURL = "/%zz/" }, "not a URL"},
		"a status by its URL":                           {&MemoryStore{}, func(o *Options) { o.StatusURL = "https://shop.example/v1/status/" }, ""},
		"one caller, and a completer without his token": {&MemoryStore{}, func(o *Options) { OneScope(o); o.Resumable, o.Function = true, "f" }, "CallerFromOp"},
		"the same, formerly": {&MemoryStore{}, func(o *Options) {
			o.Former, o.Resumable, o.Function = &Former{OneScope: true}, true, "f"
		}, "CallerFromOp"},
		"two former scopes":             {&MemoryStore{}, func(o *Options) { o.Former = &Former{Scope: account, OneScope: true} }, "Former"},
		"a status of a former path":     {&MemoryStore{}, func(o *Options) { o.Former, o.StatusURL = &Former{Preset: ACP}, "/operations/" }, "StatusURL"},
		"a caller in the former preset": {&MemoryStore{}, func(o *Options) { o.Former = &Former{Preset: func(o *Options) { o.Scope = account }} }, "Former.Preset"},
		"a scope in the former preset":  {&MemoryStore{}, func(o *Options) { o.Former = &Former{Preset: OneScope} }, "Former.Preset"},
		"a completer that knows no caller": {&MemoryStore{}, func(o *Options) {
			o.Former, o.Function, o.Resumable = &Former{Scope: account}, "f", true
		}, "CallerFromOp"},
		"a key header, fingerprinted":      {&MemoryStore{}, func(o *Options) { o.KeyHeader, o.Fingerprint.Headers = paypal, []string{"paypal-request-id"} }, "Paypal-Request-Id"},
		"a key header, stored":             {&MemoryStore{}, func(o *Options) { o.KeyHeader, o.StoreHeaders = paypal, []string{paypal} }, "StoreHeaders"},
		"a key header, stored as input":    {&MemoryStore{}, func(o *Options) { o.KeyHeader, o.InputHeaders = paypal, []string{paypal} }, "InputHeaders"},
		"the default's key header":         {&MemoryStore{}, func(o *Options) { o.KeyHeader, o.StoreHeaders = paypal, []string{KeyHeader} }, "StoreHeaders"},
		"a credential as key header":       {&MemoryStore{}, func(o *Options) { o.KeyHeader = "authorization" }, "KeyHeader"},
		"the contract's own as key header": {&MemoryStore{}, func(o *Options) { o.KeyHeader = "Idempotency-Status" }, "KeyHeader"},
		"a key header of no name":          {&MemoryStore{}, func(o *Options) { o.KeyHeader = "PayPal Request" }, "KeyHeader"},
		"the zero secret alone":            {&MemoryStore{}, func(o *Options) { o.Fingerprint.Secrets = []Secret{{}} }, "ecret"},
		"the zero secret last":             {&MemoryStore{}, func(o *Options) { o.Fingerprint.Secrets = []Secret{{"a", key}, {}} }, "ecret"},
		"the zero secret twice":            {&MemoryStore{}, func(o *Options) { o.Fingerprint.Secrets = []Secret{{}, {}, {"a", key}} }, "ecret"},
		"a secret's id without a key":      {&MemoryStore{}, func(o *Options) { o.Fingerprint.Secrets = []Secret{{ID: "b"}, {"a", key}} }, "ecret"},
		"Stripe":                           {&MemoryStore{}, Stripe, ""},
		"StripeV1":                         {&MemoryStore{}, StripeV1, ""},
		"IETF":                             {&MemoryStore{}, IETF, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				got := ""
				if p := recover(); p != nil {
					got = p.(string)
				}
				if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
					t.Errorf("panicked with %q, want %q", got, tt.want)
				}
			}()
			New(tt.store, tt.opt)
		})
	}
}

// Headers of one connection (RFC 9110, section 7.6.1) are of no later answer: no option
// has them stored, and a record that holds them all the same doesn't give them away.
func TestHeadersOfAConnectionAreNotStored(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Connection", "keep-alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
	} {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.Contains(p, http.CanonicalHeaderKey(name)) {
					t.Errorf("storing %s: panicked with %q", name, p)
				}
			}()
			New(&MemoryStore{}, func(o *Options) { o.StoreHeaders = []string{name} })
		}()
		r := Response{Header: http.Header{http.CanonicalHeaderKey(name): {"x"}, "Etag": {"1"}}}
		if replayable(&r); len(r.Header) != 1 {
			t.Errorf("a replay has %v", r.Header)
		}
	}
}

// The stored statuses.
func TestWhatIsStored(t *testing.T) {
	t.Parallel()
	policy := func(preset func(*Options)) func(Response) bool {
		var o Options
		preset(&o)
		return o.withDefaults().Stored
	}
	policies := []func(Response) bool{policy(func(*Options) {}), policy(Stripe), policy(StripeV1), policy(IETF)}
	for status, want := range map[int][4]bool{ // default, Stripe, StripeV1, IETF
		200: {true, true, true, true},
		201: {true, true, true, true},
		204: {true, true, true, true},
		303: {true, true, true, true},
		400: {false, false, false, true},
		401: {false, false, false, false},
		402: {true, true, true, true},
		406: {false, false, false, false},
		407: {false, false, false, false},
		412: {true, true, true, true},
		415: {false, false, false, false},
		408: {false, true, true, true},
		423: {false, true, true, true},
		428: {false, true, true, true},
		403: {false, true, true, true},
		404: {true, true, true, true},
		409: {false, false, false, false},
		410: {true, true, true, true},
		422: {false, true, true, true},
		425: {false, true, true, false},
		429: {false, false, false, false},
		500: {false, false, true, false},
		502: {false, false, true, false},
		503: {false, false, true, false},
	} {
		r := Response{Status: status}
		if stored := policy(ACP); stored(r) != want[3] || policy(UCP)(r) != want[3] {
			t.Errorf("ACP and UCP store %d: %t, want %t", status, !want[3], want[3])
		}
		for i, stored := range policies {
			if stored(r) != want[i] {
				t.Errorf("policy %d stores %d: %t, want %t", i, status, !want[i], want[i])
			}
		}
	}
}

// A challenge asks for the same request with a proof, which is in a header: it is no
// contract's answer.
func TestChallengesAreNotStored(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer Response
		want   bool
	}{
		"a declined card":                {Response{Status: 402, Body: []byte(`{"decline_code":"x402Version"}`)}, true},
		"x402":                           {Response{Status: 402, Header: http.Header{"Payment-Required": {"e30="}}}, false},
		"x402, version 1":                {Response{Status: 402, Body: []byte(`{"x402Version":1,"accepts":[]}`)}, false},
		"a payment challenge":            {Response{Status: 402, Header: http.Header{"Www-Authenticate": {"L402 invoice=1"}}}, false},
		"a token with too little scope":  {Response{Status: 403, Header: http.Header{"Www-Authenticate": {"Bearer"}}}, false},
		"a proxy's":                      {Response{Status: 404, Header: http.Header{"Proxy-Authenticate": {"Basic"}}}, false},
		"a success that names the realm": {Response{Status: 200, Header: http.Header{"Www-Authenticate": {"Negotiate"}}}, true},
	} {
		for i, preset := range []func(*Options){func(*Options) {}, Stripe, StripeV1, IETF, ACP, UCP} {
			var o Options
			preset(&o)
			if stored := o.withDefaults().Stored(tc.answer); stored != tc.want {
				t.Errorf("%s: contract %d stores it: %t, want %t", name, i, stored, tc.want)
			}
		}
	}
}

// What the documentation says of each preset.
func TestPresetsHaveTheirLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		preset    func(*Options)
		retention time.Duration
		methods   string
		least     int
		key       KeyMode
	}{
		"default":  {func(*Options) {}, 24 * time.Hour, "POST PATCH", 1, KeyRequired},
		"Stripe":   {Stripe, 30 * 24 * time.Hour, "POST DELETE", 1, KeyRequired},
		"StripeV1": {StripeV1, 24 * time.Hour, "POST", 1, KeyOptional},
		"IETF":     {IETF, 24 * time.Hour, "POST PATCH", 1, KeyRequired},
		"ACP":      {ACP, 24 * time.Hour, "POST", 1, KeyRequired},
		"UCP":      {UCP, 48 * time.Hour, "POST PUT", 22, KeyRequired},
	} {
		o := Options{Retention: time.Hour, Methods: []string{"PUT"}, Key: KeyGenerate} // a preset that comes later wins
		switch name {
		case "default":
			o = Options{}
		case "Stripe", "IETF": // set no mode
			o.Key = KeyRequired
		}
		if name == "IETF" {
			o.Retention = 0
		}
		tc.preset(&o)
		if o = o.withDefaults(); o.Retention != tc.retention || strings.Join(o.Methods, " ") != tc.methods || o.MinKey != tc.least || o.Key != tc.key {
			t.Errorf("%s: kept for %v, methods %v, keys of %d bytes, mode %d", name, o.Retention, o.Methods, o.MinKey, o.Key)
		}
	}
}
