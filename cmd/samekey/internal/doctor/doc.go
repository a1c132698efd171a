// Package doctor looks for mistakes in the deployment of a table, its worker and the
// functions on it. It only reads, and tries writes that can't succeed.
//
// [Gather] asks AWS, and notes which questions had no answer. [Examine] judges the
// answers by the checks of [All]; it makes no call. A check whose question had no answer
// is reported as not checked, never as good.
package doctor
