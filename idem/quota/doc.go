// Package quota limits the new operations of callers ([idem.Options.Quota]): how
// many begin in a minute, how many run at once, and how many bytes their records
// keep in the table. A caller over a limit gets a 429 with Retry-After, before
// anything is stored. Replays and retries of known keys are never refused.
//
//	idem.New(store, func(o *idem.Options) {
//		o.Quota = quota.New(quota.Limits{PerMinute: 300})
//	})
//
// The buckets are in this process and cost no calls. Each process has its own: on
// N sandboxes of a function a caller has up to N times the limits, and a new sandbox
// begins with full buckets.
package quota
