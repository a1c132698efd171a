// Package quota limits the new operations of callers ([idem.Options.Quota]): how many begin
// in a minute, how many run at once, and how many bytes their records take in the table. A
// caller over a limit gets a 429 with Retry-After, before anything is stored. Replays and
// retries of known keys are never refused.
//
//	idem.New(store, func(o *idem.Options) {
//		o.Quota = quota.New(quota.Limits{PerMinute: 300})
//	})
//
// By default each process has token buckets in its own memory, so checking the limits costs
// no calls. The limits then hold for each sandbox: in a function that runs in N sandboxes,
// a caller can reach up to N times the limits. A new sandbox begins with full buckets. If
// [Options.Shared] is set, all processes use the same buckets.
package quota
