package sink

// service is a service that takes jobs.
type service struct {
	name string // in errors
	limits
	codes // the causes of errors, for codes that say more than their class
}

// limits are a service's limits for a call.
type limits struct {
	entries int
	// bytes is the limit for all entries together, counted as the service counts
	// them. An entry over the limit is sent alone, and the service decides: its
	// limit may be set differently, such as a queue's or topic's MaximumMessageSize,
	// and limits grow.
	bytes int
}

// services lists all services.
var services = []service{queues, topics, buses, functions, machines}

// The limits are from the API reference that comes with this module's version of the
// service's SDK client.
var (
	// SendMessageBatch: 1 MiB for a message, and for all messages of a call (256 KiB until August
	// 2025). A message counts its body, and its attributes' names, types and values.
	queues = service{"sqs", limits{entries: 10, bytes: 1 << 20}, codes{
		ofJob: {"BatchRequestTooLong", "InvalidMessageContents"},
		ofSink: {
			"InvalidAddress", "NonExistentQueue", "OverLimit", "QueueDeletedRecently", "QueueDoesNotExist", "ResourceNotFoundException",
			"KmsAccessDenied", "KmsDisabled", "KmsInvalidKeyUsage", "KmsInvalidState", "KmsNotFound", "KmsOptInRequired", "KmsThrottled",
		},
	}}
	// PublishBatch: the topic's MaximumMessageSize for a message, and for all
	// messages of a call: 256 KiB by default, at most 1 MiB. Body and attributes
	// count.
	topics = service{"sns", limits{entries: 10, bytes: 256 << 10}, codes{
		ofJob: {"BatchRequestTooLong", "InvalidMessageContents"},
		ofSink: {
			"EndpointDisabled", "NotFound", "PlatformApplicationDisabled", "Throttled",
			"KMSAccessDenied", "KMSDisabled", "KMSInvalidState", "KMSNotFound", "KMSOptInRequired", "KMSThrottling",
		},
	}}
	// PutEvents: all entries together are less than "1MB" (256 KB until January 2026). "1MB" is read
	// here as the smaller of its meanings. An entry counts its source, detail-type and detail.
	buses = service{"eventbridge", limits{entries: 10, bytes: 1_000_000 - 1}, codes{
		ofJob:  {"MalformedDetail"},
		ofSink: {"InvalidAccountIdException", "NotAuthorizedForDetailTypeException", "NotAuthorizedForSourceException", "OperationDisabledException"},
	}}
	// Invoke takes one event a call: 1 MB if it is asynchronous (256 KB until October 2025). An
	// event can't be split, so Lambda decides.
	functions = service{"lambda", limits{}, codes{
		ofJob: {
			// the name of a durable execution is taken by another payload
			"DurableExecutionAlreadyStartedException",
			"InvalidRequestContentException", "RequestTooLargeException", "SerializedRequestEntityTooLargeException",
		},
		ofSink: {
			"ModeNotSupportedException", "NoPublishedVersionException", "ResourceConflictException", "ResourceNotReadyException", "SnapStartException",
			"KMSAccessDeniedException", "KMSDisabledException", "KMSInvalidStateException", "KMSNotFoundException",
		},
	}}
	// StartExecution takes one input a call, of 262,144 bytes. ExecutionLimitExceeded is
	// the account's limit of open executions.
	machines = service{"states", limits{bytes: 256 << 10}, codes{
		ofJob: {"InvalidExecutionInput", "InvalidName"},
		ofSink: {
			"ExecutionLimitExceeded", "InvalidArn", "StateMachineDeleting", "StateMachineDoesNotExist",
			"KmsAccessDeniedException", "KmsInvalidStateException", "KmsThrottlingException",
		},
	}}
)

// anyService has the codes that all services have.
var anyService = service{codes: codes{
	ofSink: {
		// the sender
		"AccessDenied", "AccessDeniedException", "AuthorizationError", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature",
		"IncompleteSignatureException", "InvalidClientTokenId", "InvalidSecurity", "InvalidSignatureException", "MissingAuthenticationToken",
		"MissingAuthenticationTokenException", "NotAuthorized", "OptInRequired", "RequestExpired", "SignatureDoesNotMatch",
		"UnrecognizedClientException",
		// the connection and the service
		"InternalError", "InternalException", "InternalFailure", "InvalidAction", "MalformedHttpRequestException", "RequestAbortedException",
		"RequestTimeout", "RequestTimeoutException", "ServiceException", "ServiceUnavailable", "UnknownOperationException",
	},
}}
