// Package quota limits the new operations of each caller ([idem.Options.Quota]): how many
// begin in a minute, how many run at once, and how many bytes their records take in the
// table. A caller over a limit gets a 429 with Retry-After, and nothing is stored. A request
// whose key has a record is never refused.
//
//	idem.New(store, func(o *idem.Options) {
//		o.Quota = quota.New(quota.Limits{PerMinute: 300})
//	})
//
// By default each process has its token buckets in memory, so a check of the limits costs no
// call. Each sandbox then applies the limits separately: if a function runs in N sandboxes,
// a caller can reach N times the limits. A new sandbox begins with full buckets. If
// [Options.Shared] is set, all processes use the same buckets.
package quota
