// Package client is the caller's half of the idempotency contract: an
// [http.RoundTripper] that wraps another, gives every operation a key, and
// repeats the request until the outcome is known.
//
//	hc := &http.Client{Transport: client.New(nil)}
//	resp, err := hc.Post(url, "application/json", body)
//
// It imports the standard library only and works with any server that takes
// keys in a header, such as those of package idem, Stripe, or the IETF draft.
//
// # What it guarantees
//
// For each call of [Transport.RoundTrip], which is one operation:
//
//   - a POST or PATCH without a key gets a new random key, and every attempt
//     sends the same key, headers and body;
//   - a key that the caller set is used unchanged, and no key is ever used for a
//     second operation, even if the caller uses the request again;
//   - no answer, a torn answer, 409, 429 and 5xx are retried, at most
//     [Options.MaxRetries] times, with growing random waits, according to
//     Retry-After and the server's should-retry header;
//   - outcomes that a retry can't improve are not retried: other 4xx, an answer
//     marked as a replay, an invalid certificate, a request that no transport can
//     send, a cancelled context;
//   - no retry is sent when the server may have forgotten the key;
//   - a body that can't be sent twice is refused before the first attempt.
//
// Together with a server that keeps its half of the contract, an operation is
// carried out at most once. An answer of 2xx means that it was carried out, but
// 202 means that it will be, or is being, carried out; [OutcomeUnknown] recognises
// a 202 that asks for a retry.
//
// # What it doesn't guarantee
//
// After an error ([Error.Unknown]), and after an answer that leaves the outcome
// open ([OutcomeUnknown]), the operation may have been carried out or not. To
// find out, send the same request with the same key ([Error.Key]). The transport
// can't do that for a caller who starts again with a new request: that is a new
// operation with a new key. If the caller retries too, name the operation
// ([WithOperation]) or set the header.
//
// The transport also retries at a server that ignores keys, unless the server
// says so (Idempotency-Status: ignored): set [Options.Methods] to the methods for
// which the server takes keys. Requests with other methods pass untouched and are
// sent once, unless the method is idempotent by definition (GET, HEAD, OPTIONS,
// TRACE, PUT, DELETE). A key header without a value
// (req.Header["Idempotency-Key"] = nil) means, as in net/http, that the request
// is idempotent already: the transport makes no key, and retries the request.
//
// # Crashes
//
// A process that dies between sending the request and recording the answer must
// continue with the same key. With a [Journal], the key of a named operation is
// on disk before the request is sent:
//
//	journal, err := client.OpenJournal("/var/lib/shop/operations")
//	hc := &http.Client{Transport: client.New(nil, func(o *client.Options) { o.Journal = journal })}
//	…
//	ctx = client.WithOperation(ctx, "order-42")
//	resp, err := hc.Do(req.WithContext(ctx)) // the same after a crash: same name, same request
//	…                                        // store the answer
//	err = journal.Done("order-42")
//
// # Repeated DELETE
//
// When a DELETE is repeated because its outcome was unknown, and then finds
// nothing (404), it most likely was carried out. The caller gets 204 with the
// header Idempotency-Client: deleted-before. A 404 to a first DELETE, or after
// attempts that can't have reached the server, stays a 404, and so does a
// replayed 404.
//
// # Bodies
//
// Requests made by [http.NewRequest] from a bytes.Reader, bytes.Buffer or
// strings.Reader can be rewound. Other bodies are read into memory first, up to 4 MiB;
// set Request.GetBody for longer bodies. Up to 1 MiB of the answer to a keyed request is
// read before it is returned, so that the transport can retry after a torn answer. The
// rest of a longer answer is streamed, and event streams are never read ahead.
//
// # Retry storms
//
// When a server is down, every client retrying multiplies its load. A budget
// for the whole transport keeps retries to about a tenth of the requests plus ten a
// second ([Options.NoBudget] turns this off); above the budget, the transport
// returns the outcome of the attempt. Share one Transport between all requests.
//
// # Retries say so
//
// A retry under a key has the header Retry-Attempt, with the number of attempts before
// it. A server of package idem then reads its record instead of paying for a claim that is
// refused. Other servers ignore the header.
//
// # Redirects
//
// http.Client follows redirects. After a 307 or 308 the same request is sent elsewhere with
// the same key. After other redirects http.Client sends a GET. The transport makes no key
// for the GET (http.Client repeats a key that the caller has set).
//
// # Other transports and clients
//
// Put a transport that adds credentials (oauth2.Transport) inside, as base, so that
// every attempt gets a fresh token, or outside, so that all attempts share a token. A
// client that retries, too, multiplies the retries: set stripe-go's MaxNetworkRetries
// to 0. The transport keeps stripe-go's keys, as every caller's. http.Client's jar
// doesn't see the cookies of attempts that are retried.
package client
