// Command samekey-worker is the background function of a table, for Lambda: it delivers
// staged jobs, completes abandoned operations and sweeps the table. It runs the worker
// of package lambda/worker with the settings of these environment variables:
//
//	IDEM_TABLE               the table of the records; required
//	SAMEKEY_TICKETS_URL      the URL of the tickets' queue, a standard SQS queue; required
//	SAMEKEY_SINKS            where jobs go, by kind: KIND=SERVICE:ADDRESS (docs/start/jobs.md), with
//	                         commas or blanks between them
//	SAMEKEY_FUNCTIONS        the functions that may be invoked to complete abandoned
//	                         operations: names or ARNs, with commas between them; an
//	                         alias as NAME:ALIAS
//	SAMEKEY_NAMESPACES       the only namespaces in which the sweep marks operations stuck,
//	                         with commas between them; not set: all
//	SAMEKEY_SCHEDULE_ROLE    the ARN of the role that lets EventBridge Scheduler send tickets
//	                         for later jobs; not set: the tickets' queue keeps these tickets
//	SAMEKEY_GRACE            how long after the lease the worker leaves an operation to the
//	                         client; default 5m
//	SAMEKEY_SWEEP_LATE       how late the stream's readers must be before the sweep does
//	                         the readers' work; default 15m
//	SAMEKEY_SWEEP_PAGES      pages of the table that the sweep reads in a second; default 10
//	SAMEKEY_EVENT_SOURCE     the source of the events on buses; default samekey
//	SAMEKEY_APP              the dimension App of the metrics; default the function's name
//
// If a required variable is missing or a value is wrong, the program ends at cold
// start. The error names the variable and says what to write. An unknown variable that
// begins with SAMEKEY_ also ends the program. But this program ignores
// SAMEKEY_LEASE_MARGIN, a setting of the applications' functions, and
// SAMEKEY_KMS_CONTEXT.
//
// This program can't open sealed args, so jobs with sealed args wait. The program of
// the same name in module github.com/samekey/samekey/kms opens sealed args by AWS KMS.
//
// The event sources are the table's stream, the tickets' queue and a schedule.
// docs/operate/background.md describes the event sources' settings and the program's
// role.
package main

import "github.com/samekey/samekey/internal/background/readyworker"

func main() { readyworker.Main(nil) }
