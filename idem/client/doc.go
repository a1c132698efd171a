// Package client is the caller's half of the idempotency contract: an
// [http.RoundTripper] over any other that gives every operation a key and
// repeats it until its outcome is known.
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
//   - a POST or PATCH without a key gets a new random one, and every attempt
//     sends the same key, headers and body;
//   - a key that the caller set is used as it is, and no key is ever used for a
//     second operation, even if the caller's request is;
//   - no answer, a torn answer, 409, 429 and 5xx are retried, at most
//     [Options.MaxRetries] times, with growing random waits; Retry-After and the
//     server's should-retry header are obeyed;
//   - nothing is retried that can't get better: other 4xx, an answer marked as a
//     replay, certificates that don't check, requests no transport can send,
//     cancelled contexts;
//   - no retry is sent when the server may have forgotten the key;
//   - a body that can't be sent twice is refused before it is sent once.
//
// Together with a server that keeps its half, an operation is carried out at
// most once, and an answer of 2xx says that it was; but 202 says that it will be,
// or is being, and is told apart by [OutcomeUnknown] where it asks to come again.
//
// # What it does not
//
// After an error ([Error.Unknown]), and after an answer that doesn't settle the
// matter ([OutcomeUnknown]), the operation may have been carried out or not. To
// find out, send the same request with the same key ([Error.Key]). The transport
// can't do that for a caller who starts again with a new request: that is a new
// operation with a new key. Name the operation ([WithOperation]) or set the
// header where the caller retries too.
//
// A server that ignores keys is called again all the same, unless it says so
// (Idempotency-Status: ignored): set [Options.Methods] to what it takes keys
// for. Requests of other methods than that, unless they are idempotent by
// definition (GET, HEAD, OPTIONS, TRACE, PUT, DELETE), pass untouched and are
// sent once. A key header that is there without a value
// (req.Header["Idempotency-Key"] = nil) means, as in net/http, that the request
// is idempotent as it is: no key is made, and it is retried.
//
// # Crashes
//
// A process that dies between sending and noting the answer must go on with the
// same key. With a [Journal], the key of a named operation is on the disk before
// the request is sent:
//
//	journal, err := client.OpenJournal("/var/lib/shop/operations")
//	hc := &http.Client{Transport: client.New(nil, func(o *client.Options) { o.Journal = journal })}
//	…
//	ctx = client.WithOperation(ctx, "order-42")
//	resp, err := hc.Do(req.WithContext(ctx)) // the same after a crash: same name, same request
//	…                                        // put the answer away
//	err = journal.Done("order-42")
//
// # Repeated DELETE
//
// When a DELETE is repeated because its outcome was unknown, and then finds
// nothing (404), it most likely was carried out. The caller gets 204 with the
// header Idempotency-Client: deleted-before. A 404 to a first DELETE, or after
// attempts that can't have reached the server, stays a 404, and so does a
// replayed one. [Options.KeepNotFound] turns this off.
//
// # Bodies
//
// Requests made by [http.NewRequest] from a bytes.Reader, bytes.Buffer or
// strings.Reader can be rewound. Other bodies are read into memory first, up to
// [Options.MaxBuffer]; set Request.GetBody for longer ones. Answers to keyed
// requests are read ahead up to [Options.MaxAnswer], so that one that tears on
// the way is asked for again instead of being lost with its key; for servers
// that stream their answers set it to -1.
//
// # Retry storms
//
// When a server is down, every client retrying multiplies its load. A budget
// for the whole transport keeps retries to about a tenth of the requests
// ([Options.BudgetRatio]), and ten a second besides; what exceeds it is returned
// as it is. It needs one Transport for many requests: don't make one for each.
//
// # Redirects
//
// They are http.Client's. A 307 or 308 asks for the same request elsewhere and
// goes out with the same key; what follows other redirects is a GET and gets no
// key made here (http.Client repeats one that the caller has set).
//
// # Other transports and clients
//
// Put a transport that adds credentials (oauth2.Transport) inside, as base, so
// that every attempt gets a fresh token, or outside, where all attempts share
// one. A client with retries of its own multiplies them: set stripe-go's
// MaxNetworkRetries to 0. Its keys are kept, as all callers' are. Cookies of
// attempts that are retried are not seen by http.Client's jar.
package client
