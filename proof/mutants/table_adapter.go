package main

// adapterMutants break what an adapter reads from an event and what it makes of an
// answer: who calls, what is the same request, and the bytes that go out.
func adapterMutants() []mutant {
	return []mutant{
		{
			rule: "RouteIsNoPath", what: "a function URL's route is its path",
			in: "lambda.functionURLRequest", old: "$req.Route = anyRoute($req.Method)", new: `$req.Route = anyRoute("")[:0] + $req.Method + " " + $req.Path`, run: "^TestGoldenEvents$",
		},
		{
			rule: "RouteIsNoPath", what: "a load balancer's route is its path",
			in: "lambda.albRequest", old: "$req.Route = anyRoute($req.Method)", new: `$req.Route = anyRoute("")[:0] + $req.Method + " " + $req.Path`, run: "^TestGoldenEvents$",
		},
		{
			rule: "EventKind", what: "a function's own event passes for an HTTP API's",
			in: "lambda.httpAPIRequest", old: `$rc.HTTP.Method == ""`, new: "false", run: "^TestWebhookHandle$",
		},
		{
			rule: "EventKind", what: "a load balancer's event passes for a REST API's",
			in: "lambda.restRequest", old: `$ev.Resource == ""`, new: "false", run: "^TestWrongKindOfEvent$",
		},
		{
			rule: "EventKind", what: "a REST API's event, whose identity nobody reads, passes for a load balancer's",
			in: "lambda.albRequest", old: `$ev.RequestContext.ELB.TargetGroupArn == ""`, new: "false", run: "^TestWrongKindOfEvent$",
		},
		{
			rule: "EventKind", what: "an HTTP API's event, whose authorizer nobody reads, passes for a function URL's",
			in: "lambda.functionURLRequest", old: `$rc.DomainName != "" && !strings.Contains($rc.DomainName, urlDomain)`, new: `strings.Contains(urlDomain, "?")`, run: "^TestFunctionURLDomain$",
		},
		{
			rule: "EventKind", what: "an event of another kind is answered by the engine",
			in: "lambda.Handler.serve", old: "errors.Is($reqErr, ErrEvent)", new: "false", run: "^TestResumeRefusesWhatIsNoTicket$",
		},
		{
			rule: "HTTPIdentity", what: "an HTTP API has no caller",
			in: "lambda.httpAPIRequest", old: "httpAPIIdentity($rc)", new: "idem.Identity{}, idem.Facts{}", run: "^TestResumeLosesNoCaller$",
		},
		{
			rule: "HTTPIdentity", what: "a REST API has no caller",
			in: "lambda.restRequest", old: "restIdentity(&$ev.RequestContext)", new: "idem.Identity{}, idem.Facts{}", run: "^TestResumeLosesNoCaller$",
		},
		{
			rule: "HTTPIdentity", what: "a function URL with AWS_IAM has no caller",
			in: "lambda.functionURLRequest", old: `$req.Identity, $req.Facts = iamIdentity("", "", $rc.Authorizer.IAM.UserARN)`, new: "", run: "^TestStatusResource$",
		},
		{
			rule: "HTTPIdentity", what: "the claims of a token aren't read",
			in: "lambda.httpAPIIdentity", old: "$a.JWT != nil && len($a.JWT.Claims) > 0", new: "false", run: "^TestResumeLosesNoCaller$",
		},
		{
			rule: "HTTPIdentity", what: "callers signed by IAM aren't told apart",
			in: "lambda.httpAPIIdentity", old: "$a.IAM != nil", new: "false", run: "^TestHTTPAPIIdentity$",
		},
		{
			rule: "HTTPIdentity", what: "an authorized caller without a name passes for nobody in particular",
			in: "lambda.httpAPIIdentity", old: "$caller = lambdaIdentity($rc.APIID, $a.Lambda)", new: "", run: "^TestUnnamedCallerIsRefused$",
		},
		{
			rule: "HTTPIdentity", what: "the claims of a REST API's token aren't read",
			in: "lambda.restIdentity", old: "len($claims) > 0", new: "false", run: "^TestResumeLosesNoCaller$",
		},
		{
			rule: "HTTPIdentity", what: "the callers of a REST API's authorizer aren't told apart",
			in: "lambda.restIdentity", old: "named($rc.Authorizer)", new: "false", run: "^TestGoldenEvents$",
		},
		{
			rule: "HTTPIdentity", what: "the callers of a REST API by IAM aren't told apart",
			in: "lambda.restIdentity", old: `$id.CognitoIdentityID != "" || $id.UserArn != ""`, new: "false", run: "^TestGoldenEvents$",
		},
		{
			rule: "HTTPIdentity", what: "the holders of API keys aren't told apart",
			in: "lambda.restIdentity", old: "$facts.APIKey = $id.APIKeyID", new: "_ = $facts", run: "^TestGoldenEvents$",
		},
		{
			rule: "HTTPIdentity", what: "a null from a public route is a caller",
			in: "lambda.named", old: "$v != nil", new: "$v != nil || $v == nil", run: "^TestGoldenEvents$",
		},
		{
			rule: "IdentityParts", what: "users of two issuers with one sub are one caller",
			in: "lambda.jwtIdentity", old: "join($iss, $sub)", new: "$sub", run: "^TestGoldenEvents$",
		},
		{
			rule: "IdentityParts", what: "a token without a sub names its issuer's users as one",
			in: "lambda.jwtIdentity", old: `$sub != ""`, new: "true", run: "^TestAppSyncKey$",
		},
		{
			rule: "IdentityParts", what: "users of two identity pools are one caller",
			in: "lambda.iamIdentity", old: "join($pool, $identity)", new: "$identity", run: "^TestGoldenEvents$",
		},
		{
			rule: "IdentityParts", what: "all users of an identity pool are one caller",
			in: "lambda.iamIdentity", old: "strings.HasSuffix($userARN, poolSession)", new: "false", run: "^TestCallersByChoice$",
		},
		{
			rule: "IdentityParts", what: "an authorizer's empty principalId hides its sub",
			in: "lambda.lambdaIdentity", old: `$ok && $s != ""`, new: "$ok", run: "^TestHTTPAPIIdentity$",
		},
		{
			rule: "IdentityParts", what: "two callers whose names contain the separator are one",
			in: "lambda.join", old: "scope.Escape($first)", new: `scope.Escape("")+$first`, run: "^TestHTTPAPIIdentity$",
		},
		{
			rule: "RoleScope", what: "a request without a verified role gets a scope",
			in: "lambda.iamScope", old: `$r.Identity.Kind != "iam" || $r.Identity.Subject == ""`, new: "false", run: "^TestCallersByChoice$",
		},
		{
			rule: "RoleScope", what: "each session of a role has keys of its own",
			in: "lambda.RoleScope", old: `return "iam:" + $session[:$i], nil`, new: `_ = $i; return "iam:" + $session, nil`, run: "^TestCallersByChoice$",
		},
		{
			rule: "HTTPSame", what: "the same path in two spellings is two requests",
			in: "internal/base/scope.Path", old: "$s = $u", new: "_ = $u", pkg: "lambda", run: "^TestStatusResource$",
		},
		{
			rule: "HTTPSame", what: "under net/http a path in another spelling is another operation",
			in: "idem.httpRequest", old: "scope.Path(sentPath($r))", new: "scope.Escape(sentPath($r))", pkg: "lambda", run: "^TestACP$",
		},
		{
			rule: "HTTPSame", what: "a named stage is a part of the path",
			in: "lambda.httpAPIRequest", old: "$path = $rest", new: "_ = $rest", run: "^TestCORSOfTheRouter$",
		},
		{
			rule: "HTTPSame", what: "a path that begins like the stage loses its begin",
			in: "lambda.httpAPIRequest", old: `$rc.Stage != "" && ($rest == "" || $rest[0] == '/')`, new: `$rc.Stage != ""`, run: "^TestHTTPAPIPathAndRoute$",
		},
		{
			rule: "HTTPSame", what: "the default route of an HTTP API is one route for every path",
			in: "lambda.httpAPIRoute", old: `$key == "" || $key == "$default"`, new: `$key == ""`, run: "^TestHTTPAPIPathAndRoute$",
		},
		{
			rule: "HTTPSame", what: "a route for any method differs from one for the method",
			in: "lambda.httpAPIRoute", old: `strings.HasPrefix($key, "ANY ")`, new: "false", run: "^TestGoldenEvents$",
		},
		{
			rule: "HTTPSame", what: "a REST API's query with several values has only the last",
			in: "lambda.restRequest", old: "encodedQuery($ev.QueryStringParameters, $ev.MultiValueQueryStringParameters)", new: "encodedQuery($ev.QueryStringParameters, nil)", run: "^TestGoldenEvents$",
		},
		{
			rule: "HTTPSame", what: "a load balancer's query with several values has only the last",
			in: "lambda.albRequest", old: "rawQuery($ev.QueryStringParameters, $ev.MultiValueQueryStringParameters)", new: "rawQuery($ev.QueryStringParameters, nil)", run: "^TestReplayAcrossSources$",
		},
		{
			rule: "HTTPSame", what: "two keys in a REST API's headers pass for the last",
			in: "lambda.restRequest", old: "header($ev.Headers, $ev.MultiValueHeaders)", new: "header($ev.Headers, nil)", run: "^TestGoldenEvents$",
		},
		{
			rule: "HTTPSame", what: "two keys in a load balancer's headers pass for the last",
			in: "lambda.albRequest", old: "header($ev.Headers, $ev.MultiValueHeaders)", new: "header($ev.Headers, nil)", run: "^TestLifeOfAKey$",
		},
		{
			rule: "HTTPSame", what: "a header that is in both of an event's maps has all values twice",
			in: "lambda.header", old: "maps.Copy($h, $all)", new: "for name, values := range $all { $h[name] = append($h[name], values...) }", run: "^TestCORSOfTheRouter$",
		},
		{
			rule: "HTTPBody", what: "a body in base64 is taken as text",
			in: "lambda.decoded", old: "case !$isBase64:", new: "case true:", run: "^TestA28WebhookThroughEachSource$",
		},
		{
			rule: "HTTPBody", what: "a body that isn't base64 is an empty one",
			in: "lambda.decoded", old: `return nil, fmt.Errorf("%w: body is not base64…", idem.ErrRequest, $err)`, new: `if $err != nil { return nil, nil }; return nil, fmt.Errorf("%w %w", idem.ErrRequest, $err)`, run: "^TestA28WebhookThroughEachSource$",
		},
		{
			rule: "HTTPBody", what: "an answer of any bytes goes out as text",
			in: "lambda.textBody", old: "utf8.Valid($b) && (len($b) <= $small || !inflates($b))", new: "true || len($b) > $small", run: "^TestReplayAcrossSources$",
		},
		{
			rule: "HTTPBody", what: "an answer of control characters outgrows the answer's limit",
			in: "lambda.textBody", old: "|| !inflates($b))", new: "|| true)", run: "^TestBodies$",
		},
		{
			rule: "HTTPBody", what: "a handler's body that isn't base64 is lost, though its effect has happened",
			in: "lambda.response", old: "$b = []byte($body)", new: "", run: "^TestUndecodableResponse$",
		},
		{
			rule: "HTTPBody", what: "an answer without a status is none",
			in: "lambda.response", old: "$status = http.StatusOK", new: "", run: "^TestResponses$",
		},
		{
			rule: "HTTPBody", what: "a resumed request's bytes are taken as text",
			in: "lambda.eventBody", old: "!$was && utf8.Valid($b)", new: "!$was || utf8.Valid($b)", run: "^TestCertificateAndBodyMadeAgain$",
		},
		{
			rule: "HTTPHeaders", what: "the cookies of a request in format 2.0 aren't read",
			in: "lambda.withCookies", old: "len($cookies) > 0", new: "false", run: "^TestGoldenEvents$",
		},
		{
			rule: "HTTPHeaders", what: "the cookies of an answer in format 2.0 are left out",
			in: "lambda.httpAPIReply", old: ", Cookies: $r.Header[setCookie]", new: "", run: "^TestReplayAcrossSources$",
		},
		{
			rule: "HTTPHeaders", what: "a cookie of an answer in format 2.0 is a header too",
			in: "lambda.httpAPIReply", old: "delete($headers, setCookie)", new: "_ = $headers", run: "^TestReplies$",
		},
		{
			rule: "HTTPHeaders", what: "cookies of a load balancer's answer are joined by commas",
			in: "lambda.joined", old: "case $name == setCookie: $single[$name] = $values[len($values)-1]", new: "", run: "^TestReplayAcrossSources$",
		},
		{
			rule: "HTTPHeaders", what: "an answer's header with several values keeps one, over REST",
			in: "lambda.restReply", old: "$re.MultiValueHeaders[$name] = $values", new: "$re.Headers[$name] = $values[0]", run: "^TestReplayAcrossSources$",
		},
		{
			rule: "HTTPHeaders", what: "a load balancer with multi-value headers gets none",
			in: "lambda.albReply", old: "$re.MultiValueHeaders[$name] = $values", new: "_, _ = $name, $values", run: "^TestLifeOfAKey$",
		},
		{
			rule: "Resumed", what: "a request runs again for a caller that its record doesn't name",
			in: "lambda.Handler.again", old: "!$h.adapter.typed && ($err != nil || $made.Identity != $req.Identity)", new: `!$h.adapter.typed && ($err != nil || $made.Identity.Kind == "?")`, run: "^TestResumeLosesNoCaller$",
		},
		{
			rule: "Resumed", what: "a snapshot is made that nobody stores",
			in: "lambda.storable", old: "$ctx.Value(unstoredKey{}) == nil", new: "true", run: "^TestSnapshotOnlyOfStoredRequests$",
		},
		{
			rule: "Resumed", what: "a router's last engine decides whether requests are stored",
			in: "lambda.Router.Keyed", old: "$r.stored || $route.handler.stored", new: "$route.handler.stored", run: "^TestSnapshotOnlyOfStoredRequests$",
		},
		{
			rule: "Resumed", what: "a snapshot that can't be read is an empty one",
			in: "lambda.restore", old: `return fmt.Errorf("lambda: %w: the stored snapshot…", idem.ErrCorrupt, $err)`, new: "return nil", run: "^TestEventWithoutSnapshot$",
		},
		{
			rule: "Resumed", what: "what can't be written into a snapshot is left out",
			in: "lambda.take", old: `return nil, fmt.Errorf("%w: what is verified has…", idem.ErrRequest, $err)`, new: "return nil, nil", run: "^TestUnstorableIdentity$",
		},
		{
			rule: "Resumed", what: "an adapter that can't make its event again completes without one",
			in: "lambda.Handler.resume", old: "return errNoInverse", new: "_ = errNoInverse; return nil", run: "^TestResumeNeedsAnInverse$",
		},
		{
			rule: "Resumed", what: "a handler that panics in a completion ends the process",
			in: "lambda.resume", old: "$err = panicked($v)", new: "panic($v)", run: "^TestResumeSaysWhatBecameOfATicket$",
		},
		{
			rule: "HTTPHandler", what: "an http.Handler behind a gateway gets the path without its escapes",
			in: "lambda.httpRequest", old: "$u.Path, $u.RawPath = $path, $req.Path", new: "$u.Path = $path", run: "^TestRequestsAndAnswersOnLambda$",
		},
		{
			rule: "HTTPHandler", what: "its route is the gateway's, though the router tells the pattern",
			in: "lambda.routed", old: `case $pattern == "":`, new: `case $pattern != "?":`, pkg: "proof/routers", run: "^TestRoutersOnLambda$",
		},
		{
			rule: "HTTPHandler", what: "on a completer's run it doesn't have the stored event",
			in: "lambda.WrapHandler", old: "context.WithValue($ctx, eventKey{}, $ev)", new: "$ctx", run: "^TestHandlerCompletesWithoutItsClient$",
		},
		{
			rule: "HTTPHandler", what: "a request that can't be read is served",
			in: "lambda.WrapHandler", old: "if $err != nil { return $re, $err }", new: "_ = $err", run: "^TestHandlerReadsAnEventOnce$",
		},
		{
			rule: "HTTPHandler", what: "a HEAD is answered with a body",
			in: "lambda.WrapHandler", old: "$resp.Body = nil", new: "_ = $resp.Body", run: "^TestRequestsAndAnswersOnLambda$",
		},
	}
}
