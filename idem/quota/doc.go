// Package quota limits the new operations of callers ([idem.Options.Quota]): how many begin
// in a minute, how many run at once, and how many bytes their records take in the table. A
// caller over a limit gets a 429 with Retry-After, before anything is stored. Replays and
// retries of known keys are never refused.
//
//	idem.New(store, func(o *idem.Options) {
//		o.Quota = quota.New(quota.Limits{PerMinute: 300})
//	})
//
// By default each process has token buckets in its own memory, which cost no calls. If a
// function runs in N sandboxes, a caller has up to N times the limits, and a new sandbox
// begins with full buckets. If [Options.Shared] is set, all processes use the same
// buckets.
package quota
