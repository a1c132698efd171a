// Command samekey-worker is the background function of a table, for Lambda: it
// delivers staged jobs, completes abandoned operations and sweeps the table. It is
// package lambda/worker, set by environment variables:
//
//	IDEM_TABLE               the table of the records; required
//	SAMEKEY_TICKETS_URL      the URL of the tickets' queue, a standard SQS queue; required
//	SAMEKEY_SINKS            where jobs go, by kind: KIND=SERVICE:ADDRESS (docs/start/jobs.md), with
//	                         commas or blanks between them
//	SAMEKEY_FUNCTIONS        the functions that may be invoked to complete abandoned
//	                         operations: names or ARNs, with commas between them; an
//	                         alias as NAME:ALIAS
//	SAMEKEY_NAMESPACES       the only namespaces in which the sweep gives operations up, with
//	                         commas between them; not set: all
//	SAMEKEY_SCHEDULE_ROLE    the ARN of the role that lets EventBridge Scheduler send tickets for later jobs;
//	                         not set: the tickets' queue keeps them
//	SAMEKEY_GRACE            how long an operation is left to its client after its
//	                         lease, as 5m (the default)
//	SAMEKEY_SWEEP_LATE       how late the stream must be before the sweep acts in
//	                         its stead; default 15m
//	SAMEKEY_SWEEP_PAGES      pages of the table that the sweep reads in a second; default 10
//	SAMEKEY_EVENT_SOURCE     the source of the events on buses; default samekey
//	SAMEKEY_APP              the dimension App of the metrics; default the function's name
//
// A variable that is missing, wrong, or begins with SAMEKEY_ and is not in this list
// ends the program at cold start, with an error that names it and says what to write.
// (SAMEKEY_LEASE_MARGIN is a setting of the applications' functions; the worker ignores
// it.)
//
// This program can't open sealed args: jobs with sealed args wait. The program of the
// same name in module github.com/samekey/samekey/kms opens them by AWS KMS.
//
// The event sources are the table's stream, the tickets' queue and a schedule.
// docs/operate/background.md has their settings and the role.
package main

import "github.com/samekey/samekey/internal/background/readyworker"

func main() { readyworker.Main(nil) }
