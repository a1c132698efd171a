// Package doctor looks for mistakes in the deployment of a table, its worker and the
// functions that use the table. The package changes nothing: it reads, and tries writes
// that can't succeed.
//
// [Gather] asks AWS, and notes which questions got no answer. [Examine] applies the
// checks of [All] to the answers, without a call to AWS. If a check needs an answer
// that AWS didn't give, [Examine] reports the check as not checked, never as good.
package doctor
