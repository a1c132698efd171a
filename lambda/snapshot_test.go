package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// kept is what an engine with InputHeaders X-Tag stores of a request.
func kept(req idem.Request) idem.Request {
	header := make(http.Header)
	for _, name := range []string{"Content-Type", "X-Tag"} {
		if v := req.Header[name]; v != nil {
			header[name] = v
		}
	}
	return idem.Request{
		Method: req.Method, Path: req.Path, Query: req.Query, Route: req.Route, Header: header,
		Identity: req.Identity, Facts: req.Facts, Snapshot: req.Snapshot, Body: req.Body,
	}
}

// again makes an event of what is kept of another one, as far as a handler sees
// it: through JSON.
func again[Ev, Re any](t testing.TB, a lambda.Adapter[Ev, Re], payload []byte) (was, is Ev, before, after idem.Request) {
	t.Helper()
	if err := json.Unmarshal(payload, &was); err != nil {
		t.Fatal(err)
	}
	before, err := a.Request(t.Context(), was)
	if err != nil {
		t.Fatal(err)
	}
	host := before.Host
	before = kept(before)
	ev, err := a.Event(before)
	if err != nil {
		t.Fatal(err)
	}
	before.Host = host // by the snapshot
	b, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &is); err != nil {
		t.Fatal(err)
	}
	after, err = a.Request(t.Context(), is)
	if err != nil {
		t.Fatal(err)
	}
	return was, is, before, after
}

// The whole snapshot, for each kind of authorizer: what is stored of who was
// verified, and nothing secret.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	const (
		v2    = `{"routeKey":"POST /rides","requestContext":{"apiId":"a1b2c3d4e5","domainName":"a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com","stage":"$default"`
		v2End = `"http":{"sourceIp":"203.0.113.7"}}}`
		v1    = `{"resource":"/rides","requestContext":{"apiId":"f6g7h8i9j0","domainName":"f6g7h8i9j0.execute-api.eu-central-1.amazonaws.com","stage":"prod"`
		url   = `"requestContext":{"domainName":"t7bmxtdc6ojbkd3zgknxe32xdm0oqxkw.lambda-url.eu-central-1.on.aws"`
	)
	for file, want := range map[string]string{
		"httpapi_none": v2 + `,` + v2End,
		"httpapi_jwt": `{"routeKey":"ANY /riders/{rider}/rides","rawPath":"/prod/riders/zoë@example.com/rides",` +
			`"pathParameters":{"rider":"zoë@example.com"},"stageVariables":{"table":"rides-prod"},` +
			`"requestContext":{"apiId":"a1b2c3d4e5","domainName":"a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com","stage":"prod",` +
			`"authorizer":{"jwt":{"claims":{"auth_time":"1795250000","client_id":"7f8g9h0i1j2k3l4m5n6o","cognito:groups":"[riders]",` +
			`"event_id":"f1e2d3c4","exp":"1795257000","iat":"1795253400",` +
			`"iss":"https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI","jti":"0a1b2c3d","origin_jti":"4e5f6a7b",` +
			`"scope":"openid rides/write","sub":"9a3b1c2d-7e4f-4a5b-8c6d-0e1f2a3b4c5d","token_use":"access","username":"zoe"},` +
			`"scopes":["rides/write"]}},` + v2End,
		"httpapi_iam": v2 + `,"authorizer":{"iam":{"accountId":"123456789012","callerId":"AROAIOSFODNN7EXAMPLE:checkout-prod",` +
			`"principalOrgId":"o-exampleorg","userArn":"arn:aws:sts::123456789012:assumed-role/checkout/checkout-prod",` +
			`"userId":"AROAIOSFODNN7EXAMPLE:checkout-prod"}},` + v2End,
		"httpapi_iam_cognito": v2 + `,"authorizer":{"iam":{"accountId":"123456789012","callerId":"AROA7ZJZYVRE7C3DUXHH6:CognitoIdentityCredentials",` +
			`"cognitoIdentity":{"amr":["authenticated","graph.facebook.com"],"identityId":"eu-central-1:3f291106-8703-466b-8f2b-3ecee1ca56ce",` +
			`"identityPoolId":"eu-central-1:4f291106-8703-466b-8f2b-3ecee1ca56ce"},"principalOrgId":"o-exampleorg",` +
			`"userArn":"arn:aws:sts::123456789012:assumed-role/riders/CognitoIdentityCredentials",` +
			`"userId":"AROA7ZJZYVRE7C3DUXHH6:CognitoIdentityCredentials"}},` + v2End,
		"httpapi_lambda_policy": v2 + `,"authorizer":{"lambda":{"numKey":1,"principalId":"rider-42","sub":"not-this-one"}},` + v2End,
		"rest_none":             v1 + `,"identity":{"sourceIp":"203.0.113.7"}}}`,
		"rest_lambda": v1 + `,"authorizer":{"claims":"{\"sub\":\"not-this-one\"}","integrationLatency":503,"plan":"gold","principalId":"rider-42"},` +
			`"identity":{"sourceIp":"203.0.113.7"}}}`,
		"rest_iam": v1 + `,"identity":{"accountId":"123456789012","caller":"AROAIOSFODNN7EXAMPLE:checkout-prod","sourceIp":"203.0.113.7",` +
			`"user":"AROAIOSFODNN7EXAMPLE:checkout-prod","userArn":"arn:aws:sts::123456789012:assumed-role/checkout/checkout-prod"}}}`,
		"rest_apikey":      v1 + `,"identity":{"apiKeyId":"q1w2e3r4t5","sourceIp":"203.0.113.7"}}}`,
		"functionurl_none": `{"rawPath":"/riders/zo%C3%AB%40example.com/rides",` + url + `,` + v2End,
		"functionurl_iam": `{` + url + `,"authorizer":{"iam":{"accountId":"123456789012","callerId":"AROAIOSFODNN7EXAMPLE:checkout-prod",` +
			`"userArn":"arn:aws:sts::123456789012:assumed-role/checkout/checkout-prod","userId":"AROAIOSFODNN7EXAMPLE:checkout-prod"}},` + v2End,
		"alb_single": `{"requestContext":{"elb":{"targetGroupArn":` +
			`"arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/rides/6d0ecf831eec9f09"}}}`,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, string(read(t, file).Snapshot)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	// Nothing that opens a door.
	for _, file := range golden(t) {
		snapshot := string(read(t, file).Snapshot)
		for _, secret := range []string{"ASIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI", "eyJ", "session=", goldenKey} {
			if strings.Contains(snapshot, secret) {
				t.Errorf("%s: the snapshot has %s in it: %s", file, secret, snapshot)
			}
		}
	}
}

// A client's certificate says who it is; the certificate itself isn't needed. A body that came in
// base64 does so again.
func TestCertificateAndBodyMadeAgain(t *testing.T) {
	t.Parallel()
	edited := func(file string, edit func(ev, rc map[string]any)) []byte {
		var ev map[string]any
		if err := json.Unmarshal(load(t, file), &ev); err != nil {
			t.Fatal(err)
		}
		ev["body"], ev["isBase64Encoded"] = "aGVsbG8=", true
		edit(ev, ev["requestContext"].(map[string]any))
		return []byte(marshalled(t, ev))
	}
	cert := map[string]any{"clientCertPem": "-----BEGIN CERTIFICATE-----", "issuerDN": "CN=Issuer", "serialNumber": "1", "subjectDN": "CN=Rider"}
	_, one, req1, _ := again(t, lambda.HTTPAPI, edited("httpapi_jwt", func(_, rc map[string]any) { rc["authentication"] = map[string]any{"clientCert": cert} }))
	_, two, req2, _ := again(t, lambda.REST, edited("rest_iam", func(_, rc map[string]any) { rc["identity"].(map[string]any)["clientCert"] = cert }))
	if one.RequestContext.Authentication.ClientCert.SubjectDN != "CN=Rider" || two.RequestContext.Identity.ClientCert.SubjectDN != "CN=Rider" ||
		strings.Contains(string(req1.Snapshot)+string(req2.Snapshot), "BEGIN") {
		t.Errorf("got %s and %s", req1.Snapshot, req2.Snapshot)
	}
	if one.Body != "aGVsbG8=" || !one.IsBase64Encoded || two.Body != "aGVsbG8=" || !two.IsBase64Encoded {
		t.Errorf("the bodies are %q and %q", one.Body, two.Body)
	}
}

// Without a snapshot, of an adapter of one's own say, there is an event all the
// same, of nobody; a torn one is an error and never an event of nobody.
func TestEventWithoutSnapshot(t *testing.T) {
	t.Parallel()
	req := idem.Request{Method: "POST", Path: "/rides", Route: "POST /rides", Query: "a=1", Body: []byte("\xff")}
	checkEvent(t, lambda.HTTPAPI, req)
	checkEvent(t, lambda.REST, req)
	req.Route = "POST /*"
	checkEvent(t, lambda.FunctionURL, req)
	checkEvent(t, lambda.ALB, req)
}

func checkEvent[Ev, Re any](t *testing.T, a lambda.Adapter[Ev, Re], req idem.Request) {
	t.Helper()
	ev, err := a.Event(req)
	if err != nil {
		t.Fatalf("%T: %v", ev, err)
	}
	got, err := a.Request(t.Context(), ev)
	ignore := cmpopts.IgnoreFields(idem.Request{}, "Snapshot", "Header")
	if diff := cmp.Diff(req, got, ignore); diff != "" || err != nil {
		t.Errorf("%T: err %v (-want +got):\n%s", ev, err, diff)
	}
	for _, torn := range []string{"{", `{"requestContext":[]}`, `"x"`} {
		req.Snapshot = []byte(torn)
		if _, err := a.Event(req); !errors.Is(err, idem.ErrCorrupt) {
			t.Errorf("%T: snapshot %s: got %v, want ErrCorrupt", ev, torn, err)
		}
	}
}

// What is empty is somebody without a name; what isn't there is nobody. The two
// must not become one another.
func TestEmptyAuthorizers(t *testing.T) {
	t.Parallel()
	for _, authorizer := range []string{
		`null`, `{}`, `{"jwt":{}}`, `{"jwt":{"claims":{}}}`, `{"lambda":null}`, `{"lambda":{}}`, `{"jwt":{},"lambda":{}}`, `{"iam":{}}`,
	} {
		var ev v2Request
		payload := fmt.Sprintf(`{"routeKey":"POST /a","rawPath":"/a","requestContext":{"http":{"method":"POST"},"authorizer":%s}}`, authorizer)
		if err := json.Unmarshal([]byte(payload), &ev); err != nil {
			t.Fatal(err)
		}
		before, err := lambda.HTTPAPI.Request(t.Context(), ev)
		if err != nil {
			t.Fatal(err)
		}
		made, err := lambda.HTTPAPI.Event(before) // not through JSON, which has no room for some of these
		if err != nil {
			t.Fatal(err)
		}
		after, err := lambda.HTTPAPI.Request(t.Context(), made)
		if diff := cmp.Diff(before, after); diff != "" || err != nil {
			t.Errorf("%s: err %v (-want +got):\n%s", authorizer, err, diff)
		}
	}
}

// An engine that stores no requests needs no snapshot of them; a router makes one if one of
// its engines does.
func TestSnapshotOnlyOfStoredRequests(t *testing.T) {
	t.Parallel()
	plain := anEngine()
	stores := anEngine(func(o *idem.Options) { o.Resumable, o.Function = true, "rides" })
	var got idem.Request
	api := lambda.HTTPAPI
	api.Request = func(ctx context.Context, ev v2Request) (req idem.Request, err error) {
		got, err = lambda.HTTPAPI.Request(ctx, ev)
		return got, err
	}
	created := func(context.Context, v2Request) (v2Response, error) { return v2Response{StatusCode: 201}, nil }
	router := func(engines ...*idem.Engine) func(context.Context, v2Request) (v2Response, error) {
		r := lambda.NewRouter(api)
		for i, e := range engines {
			r.Keyed("POST "+[]string{"/", "/two", "/three"}[i], e, created)
		}
		return r.Handle
	}
	for name, tc := range map[string]struct {
		handle func(context.Context, v2Request) (v2Response, error)
		want   bool
	}{
		"an engine that stores none": {lambda.Wrap(plain, api, created).Handle, false},
		"an engine that stores them": {lambda.Wrap(stores, api, created, named("rides")).Handle, true},
		"a router without":           {router(plain, plain), false},
		"a router with one":          {router(plain, stores, plain), true},
	} {
		ev := post("k", "")
		ev.RequestContext.HTTP.SourceIP = "203.0.113.7"
		if re, err := tc.handle(t.Context(), ev); err != nil || re.StatusCode != 201 || (got.Snapshot != nil) != tc.want {
			t.Errorf("%s: %d, %v, snapshot %s", name, re.StatusCode, err, got.Snapshot)
		}
	}
}

// An identity that has no JSON form can't be put back, so such a request is
// refused instead of run again as nobody's.
func TestUnstorableIdentity(t *testing.T) {
	t.Parallel()
	store := &watched{}
	ran := false
	wrap := func(s *watched, resumable bool) *lambda.Handler[v2Request, v2Response] {
		return lambda.Wrap(idem.New(s, callertest.Anybody, func(o *idem.Options) { o.Resumable, o.Function = resumable, "rides" }), lambda.HTTPAPI,
			func(context.Context, v2Request) (v2Response, error) {
				ran = true
				return v2Response{StatusCode: 201}, nil
			}, named("pay"))
	}
	ev := post("k", "")
	ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		Lambda: map[string]any{"principalId": "rider-42", "bad": make(chan int)},
	}
	re, err := wrap(store, true).Handle(t.Context(), ev)
	if re.StatusCode != 400 || err != nil || ran {
		t.Errorf("got %+v, %v; the handler ran: %t", re, err, ran)
	}
	store.untouched(t)
	// An engine that stores no requests needs none of it.
	if re, err := wrap(&watched{}, false).Handle(t.Context(), ev); re.StatusCode != 201 || err != nil || !ran {
		t.Errorf("without Resumable: %+v, %v", re, err)
	}
}

// Of an authorizer's context a record has the values that are no tokens.
func TestSnapshotsHaveNoTokens(t *testing.T) {
	t.Parallel()
	given := func() map[string]any {
		return map[string]any{
			"sub": "ann", "plan": "gold", "accessToken": "s3cret", "api_key": "s3cret", "raw": "Bearer s3cret", "id": "eyJhbGciOiJub25lIn0.e30.s3cret",
			"inner": map[string]any{"refresh-token": "s3cret", "tier": 1},
		}
	}
	v2 := post("k", "{}")
	v2.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: given()}
	one, err1 := lambda.HTTPAPI.Request(t.Context(), v2)
	two, err2 := lambda.REST.Request(t.Context(), restFrom(func(rc *events.APIGatewayProxyRequestContext) { rc.Authorizer = given() }))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for _, req := range []idem.Request{one, two} {
		s := string(req.Snapshot)
		if strings.Contains(s, "s3cret") || !strings.Contains(s, `{"inner":{"tier":1},"plan":"gold","sub":"ann"}`) {
			t.Errorf("got %s", s)
		}
		if req.Facts.Claims["accessToken"] != "s3cret" {
			t.Errorf("the scope function gets %v", req.Facts.Claims)
		}
	}
}
